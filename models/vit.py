"""The Vision Transformer (Dosovitskiy et al. 2021, arXiv 2010.11929) as DeiT and DINOv2 have it.

Class token, learned positions, pre-norm blocks, linear head on the class token. Parameters are
named as in timm's `VisionTransformer`, so that its state dicts load unchanged. In training there is
no dropout on attention weights, as in all encoders here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from models.interface import Classifier, ClassifierOutput
from models.mixers.attention import Attention
from models.state_dict import fill
from models.vit_weights import from_pretrained

if TYPE_CHECKING:
    from models.config import VisionConfig
    from models.mixers.interface import TokenMixer
    from models.vit_config import ViTConfig

NORM_EPS = 1e-6
TABLE_STD = 0.2
"""Of fresh positions and of the class token; patches come out at about 0.6."""
INITIAL_SCALE = 0.1
"""Of layer scale, for networks of up to 18 layers (arXiv 2103.17239, section 2)."""


class PatchEmbedding(nn.Module):
    """Cuts images into square patches and projects each to a token."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        patch = config.patch_size
        self.proj = nn.Conv2d(config.channels, config.d_model, patch, stride=patch)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """(batch, channels, side, side) to (batch, patches, d_model), row by row."""
        projected: Tensor = self.proj(pixel_values)
        return projected.flatten(2).transpose(1, 2)


class FeedForward(nn.Module):
    """Two linear maps with a GELU between them."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.d_model, config.width_of_ffn)
        self.fc2 = nn.Linear(config.width_of_ffn, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to the same shape."""
        mapped: Tensor = self.fc2(nn.functional.gelu(self.fc1(x)))
        return mapped


class LayerScale(nn.Module):
    """Learned factors, one a channel."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((d_model,), INITIAL_SCALE))

    def forward(self, x: Tensor) -> Tensor:
        """(…, d_model) to the same shape."""
        return x * self.gamma


class Block(nn.Module):
    """Pre-norm residual block.

    Attributes:
        attn: the token mixer: attention, or what has taken its place.
    """

    attn: TokenMixer

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.d_model, NORM_EPS)
        self.attn = Attention(config.d_model, config.n_heads, config.width_of_head)
        self.norm2 = nn.LayerNorm(config.d_model, NORM_EPS)
        self.mlp = FeedForward(config)
        scale = LayerScale if config.layer_scale else nn.Identity
        self.ls1: nn.Module = scale(config.d_model)
        self.ls2: nn.Module = scale(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, tokens, d_model) to the same shape."""
        if self.attn.proj is not None:  # else it adds nothing
            x = x + self.branch1(self.attn(self.norm1(x)))
        return x + self.branch2(self.mlp(self.norm2(x)))

    def branch1(self, mixed: Tensor) -> Tensor:
        """What the mixer's output adds to the residual stream."""
        return cast(Tensor, self.dropout(self.ls1(mixed)))

    def branch2(self, mapped: Tensor) -> Tensor:
        """What the feed-forward output adds to it."""
        return cast(Tensor, self.dropout(self.ls2(mapped)))


class ViT(Classifier):
    """The Vision Transformer classifier."""

    config: ViTConfig
    undecayed = ("cls_token", "pos_embed")

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbedding(config)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.d_model))
        self.pos_embed = nn.Parameter(torch.zeros(1, config.n_tokens, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.d_model, NORM_EPS)
        self.head = nn.Linear(config.d_model, config.n_classes)
        self._initialise()
        if config.head_only:
            self.requires_grad_(requires_grad=False)
            self.head.requires_grad_()

    def _initialise(self) -> None:
        """Xavier's matrices, as the first ViT, and tables that stand out beside the patches.

        DeiT's 0.02 for all of them suits its widths and its 300 epochs. A width of 64 learns nothing
        from it for a long time: after 8 epochs of MNIST-5k 51 % were right, with these 90 %.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        for table in (self.cls_token, self.pos_embed):
            nn.init.trunc_normal_(table, std=TABLE_STD)

    @property
    def plain_attention(self) -> bool:
        """Whether the mixers compute by their plain twins, which counters of FLOPs see through."""
        return all(mixer.plain for mixer in self.mixers())

    @plain_attention.setter
    def plain_attention(self, plain: bool) -> None:
        for mixer in self.mixers():
            mixer.plain = plain

    def mixers(self) -> list[TokenMixer]:
        """The token mixer of each layer."""
        return [cast(Block, block).attn for block in self.blocks]

    def forward(self, pixel_values: Tensor) -> ClassifierOutput:
        """See `Classifier.forward`."""
        x = self._embed(pixel_values)
        for block in self.blocks:
            x = block(x)
        return ClassifierOutput(self._classify(x[:, 0]))

    def load_pretrained(self, state: Mapping[str, Tensor]) -> None:
        """Takes over a pretrained encoder, and its linear head where both have as many classes.

        Else the head stays fresh. Positions of another grid are interpolated bicubically, and where
        the images are grey the colour channels' filters are summed, as if each image had been
        repeated.

        Args:
            state: tensors by transformers' names of DINOv2, or by timm's.

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        encoder = from_pretrained(state, self.config)
        head = {name: tensor for name, tensor in state.items() if name.startswith("head.")}
        bias = head.get("head.bias")
        if bias is not None and len(bias) == self.config.n_classes:
            fill(self, encoder | head)
        else:
            fill(self, encoder, fresh=("head.",))

    def start_from(self, state: Mapping[str, Tensor]) -> None:
        """Takes over all weights of a trained Vision Transformer of the same size.

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        fill(self, state)

    def _embed(self, pixel_values: Tensor) -> Tensor:
        """Class token and patches with their positions, (batch, tokens, d_model)."""
        side, channels = self.config.image_size, self.config.channels
        if pixel_values.ndim != 4 or tuple(pixel_values.shape[1:]) != (channels, side, side):
            raise ValueError(
                f"the images are {tuple(pixel_values.shape[1:])} (channels, height, width), but the "
                f"model takes {(channels, side, side)}"
            )
        patches = self.patch_embed(pixel_values)
        first = self.cls_token.expand(len(patches), -1, -1)
        return cast(Tensor, self.dropout(torch.cat((first, patches), 1) + self.pos_embed))

    def _classify(self, token: Tensor) -> Tensor:
        """Logits from the class token (batch, d_model)."""
        return cast(Tensor, self.head(self.norm(token)))
