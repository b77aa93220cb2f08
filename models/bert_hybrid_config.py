"""Configuration of a BERT in which other modules than attention mix the tokens of some layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

from models import costs
from models.bert_config import BertConfig, as_bert
from models.config import Macs, TrainedSummary
from models.distillation import Distillation, require_fit, taken_from
from models.hybrid_costs import sub_layer


@dataclass(frozen=True, kw_only=True)
class BertHybridConfig(Distillation, BertConfig):
    """A trained BERT whose attention is replaced in some layers, distilled from it.

    Everything that is not declared is the teacher's, its vocabulary included.
    """

    target: ClassVar[str] = "models.bert_hybrid:BertHybrid"
    summary: ClassVar[str] = "a trained BERT with the attention of some layers replaced, distilled"
    source: ClassVar[Literal["none", "budgets", "weights", "macs", "teacher"]] = "teacher"

    pretrained: str | None = field(default=None, metadata={"declarable": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distillation()

    def macs(self, length: int, k: Sequence[int] | None = None) -> Macs:
        """Cost of one input; see `ModelConfig.macs`. A mixer's work stands in attention's place.

        Raises:
            ValueError: heads are given: none can be left out here.
        """
        if k is not None:
            raise ValueError("a hybrid computes all heads of its attention: give no k")
        attends = [0 if i in self.replace else self.n_heads for i in range(self.depth)]
        whole = as_bert(self, costs.encoder(self, length, attends), length)
        mixer = sub_layer(self, length)
        n = sum(heads == 0 for heads in attends)
        # the encoder's cost without heads has norm, residual sum and W^O's bias of these layers
        counted = length * (costs.NORM_OPS + 2) * self.d_model
        return replace(
            whole,
            attention_core=whole.attention_core + n * mixer.attention_core,
            attention_projections=whole.attention_projections + n * mixer.attention_projections,
            elementwise=whole.elementwise + n * (mixer.elementwise - counted),
        )

    def resolve(self, source: TrainedSummary) -> Self:
        """Takes over the teacher's configuration.

        Raises:
            ValueError: a layer to replace that it has not, another value declared than it has, or sizes
                that the mixer cannot have.
        """
        made = replace(self, **taken_from(self, source.params))
        require_fit(made)
        return made
