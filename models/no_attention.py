"""Control: the encoder with its attention sub-layers (and their norms) deleted.

Where it is as accurate as the dense model, the data set does not need attention, and a small head
budget proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.encoder import EncoderClassifier

if TYPE_CHECKING:
    from models.no_attention_config import NoAttentionConfig


class NoAttention(EncoderClassifier):
    """Embeddings, feed-forward blocks, pooling, head."""

    def __init__(self, config: NoAttentionConfig) -> None:
        super().__init__(config, [None] * config.depth)
