"""Control: a dense encoder with fewer heads, which does the same work as an adaptive model.

If it is as accurate, fixing the heads beforehand does as well as choosing them for each input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.dense import SelfAttention
from models.encoder import EncoderClassifier

if TYPE_CHECKING:
    from models.fewer_heads_config import FewerHeadsConfig


class FewerHeads(EncoderClassifier):
    """The dense encoder classifier with a number of heads of its own in each layer."""

    def __init__(self, config: FewerHeadsConfig) -> None:
        super().__init__(
            config, [SelfAttention(config.d_model, h, config.width_of_head) for h in config.heads]
        )
