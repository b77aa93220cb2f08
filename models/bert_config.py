"""Configuration of the BERT encoder (Devlin et al. 2019, arXiv 1810.04805)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from models import costs
from models.config import EncoderConfig, Macs

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """A post-norm encoder whose weights can be a pretrained BERT's; the sizes are MiniLM-L6's.

    Attributes:
        pretrained: name of the weights to start from, whose vocabulary the texts are then encoded
            with; None: random weights and the data set's own vocabulary.
        pooling: what the linear head sees: the masked mean over the tokens, as in MiniLM, or the
            first token. BERT's own pooling layer (a matrix and tanh over the first token) is left out.
    """

    target: ClassVar[str] = "models.bert:Bert"
    summary: ClassVar[str] = "post-norm BERT encoder, from pretrained weights or from scratch"

    depth: int = 6
    d_model: int = 384
    n_heads: int = 12
    pretrained: str | None = None
    pooling: Pooling = "mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be 'mean' or 'cls', not {self.pooling!r}")

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input; see `EncoderConfig.macs`."""
        heads = [self.n_heads] * self.depth if k is None else k
        return as_bert(self, costs.encoder(self, length, heads), length)


def as_bert(config: BertConfig, macs: Macs, length: int) -> Macs:
    """The pre-norm encoder's cost as BERT's.

    There are as many norms: the one over the embeddings takes the final one's place. Token types
    are added to single texts too, and pooling by the first token costs nothing.
    """
    types = length * config.d_model if config.n_segments == 1 else 0
    pool = length * config.d_model if config.pooling == "cls" else 0
    return replace(macs, elementwise=macs.elementwise + types, classifier=macs.classifier - pool)
