"""A-ViT: a Vision Transformer that halts tokens (Yin et al. 2022, arXiv 2112.07658).

In training all tokens are computed and halted ones are masked; at inference they are dropped: what
is left of all images lies packed, row by row, and nothing is computed for the others. The two agree
up to rounding. Blocks and parameters are those of `ViT`; halting adds none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from models.interface import ClassifierOutput, TokenDecisions
from models.mixers.attention import Attention
from models.state_dict import fill
from models.token_halting import HaltingState, prior_divergence, require_masks
from models.vit import Block, ViT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn

    from models.avit_config import AViTConfig
    from models.mixers.interface import TokenMixer

HIDDEN = -1000.0
"""Added to the attention scores of halted keys, as in the 2022 code: no infinity, so that an image
whose tokens have all halted still has a softmax."""
CENTRE = 30.0
"""Of the gate of a model that was not calibrated; the paper's for its smallest model."""
NEVER = 30.0
"""So far beyond the highest score, a centre leaves halting scores that vanish in float32."""


class AViT(ViT):
    """The Vision Transformer classifier with token halting.

    Attributes:
        packed: whether eval mode drops halted tokens; False masks them, as training does.
        gate_center: (2,) centre of the gate, of the class token's and of the patches', a buffer; the two
            are alike in mode "avit2022".
    """

    config: AViTConfig
    packed: bool = True
    gate_center: Tensor

    def __init__(self, config: AViTConfig) -> None:
        super().__init__(config)
        self.register_buffer("gate_center", torch.full((2,), CENTRE))
        self._calibrated: float | None = None

    def forward(self, pixel_values: Tensor, keep: Tensor | None = None) -> ClassifierOutput:
        """See `Classifier.forward`.

        Args:
            pixel_values: (batch, channels, side, side), normalised.
            keep: (batch, depth, tokens) bool, which tokens each layer computes; None leaves that to
                the halting scores. A token's last layer is then its halting layer, unless its scores
                reached the threshold before.

        Returns:
            `tokens.halting` holds the scores themselves, the last layer's too, which counts as 1;
            where a token was dropped it is 0, and where it was masked, a score of no meaning.

        Raises:
            ValueError: images of another size, or masks that cannot be.
        """
        x = self._embed(pixel_values)
        if keep is not None:
            shape = (len(x), self.config.depth, x.shape[1])
            require_masks(keep, shape, class_token_stays=self.config.class_token_stays)
        if self.packed and not self.training:
            return self._packed(x, keep)
        return self._masked(x, keep)

    def auxiliary_losses(self, output: ClassifierOutput) -> dict[str, Tensor]:
        """Terms "ponder" and "prior", weighted; of a masked pass, as training makes it."""
        if output.tokens is None:
            return {}
        config = self.config
        divergence = prior_divergence(output.tokens.halting, config.prior, s2s=config.mode == "s2s")
        weight = config.weight_of_halting
        return {
            "ponder": weight * config.ponder_weight * output.tokens.ponder.mean(),
            "prior": weight * config.prior_weight * divergence,
        }

    def start_from(self, state: Mapping[str, Tensor]) -> None:
        """Takes over the weights of a trained `ViT`; the gate's centre stays.

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        fill(self, state, fresh=("gate_center",))

    @torch.no_grad()
    def calibrate(
        self, batches: Sequence[Tensor], *, steps: int = 20, tolerance: float = 0.002
    ) -> float:
        """Sets the gate's centre so that these images keep `config.keep_ratio` of their patches.

        By bisection: the higher the centre, the later tokens halt. Leaves the mode as it was. A class
        token that stays gets a centre above its scores: its output then starts as that of the
        last layer, and not of the first in which patches would halt.

        Args:
            batches: pixel values, as `forward` takes them.
            steps: of the bisection at most; each runs all batches.
            tolerance: on the ratio; where it is reached the bisection ends.

        Returns:
            The ratio reached, mean over images and layers.

        Raises:
            ValueError: no images.
        """
        if not batches:
            raise ValueError("calibration needs images")
        was_training = self.training
        self.eval()
        share = 1.0
        try:
            low, high, of_class = self._score_range(batches)
            # so far up that no token halts at all
            self.gate_center.fill_(high + NEVER)
            if self.config.keep_ratio == 1.0:
                share = self._share_kept(batches)
                return share
            low, high = low - NEVER, high + math.log(self.config.depth) + 1.0
            self.gate_center[0] = of_class + math.log(10 * self.config.depth)
            moved = self.gate_center[1:] if self.config.class_token_stays else self.gate_center
            for _ in range(steps):
                centre = 0.5 * (low + high)
                moved.fill_(centre)
                share = self._share_kept(batches)
                if abs(share - self.config.keep_ratio) <= tolerance:
                    break
                low, high = (low, centre) if share > self.config.keep_ratio else (centre, high)
            return share
        finally:
            self.train(was_training)
            self._calibrated = share

    def schedule_state(self) -> dict[str, float]:
        """See `Classifier.schedule_state`: the keep ratio that calibration reached, if it was done."""
        return {} if self._calibrated is None else {"calibrated_keep_ratio": self._calibrated}

    def _score_range(self, batches: Sequence[Tensor]) -> tuple[float, float, float]:
        """Least and greatest score before the centre is taken off, and the class token's greatest.

        Those of a pass in which no token halts.
        """
        low, high, of_class = math.inf, -math.inf, -math.inf
        for pixel_values in batches:
            x = self._embed(pixel_values)
            for block in self.blocks:
                x = block(x)
                scores = x[:, :, 0] * self.config.gate_scale
                low, high = min(low, scores.min().item()), max(high, scores.max().item())
                of_class = max(of_class, scores[:, 0].max().item())
        return low, high, of_class

    def _share_kept(self, batches: Sequence[Tensor]) -> float:
        shares = [
            cast(TokenDecisions, self(pixel_values).tokens).keep[:, :, 1:].float().mean((1, 2))
            for pixel_values in batches
        ]
        return torch.cat(shares).mean().item()

    def _scores(self, x: Tensor, of_class: Tensor) -> Tensor:
        """The halting scores of tokens (…, d_model), where `of_class` (…) says which are class tokens."""
        centre = torch.where(of_class, self.gate_center[0], self.gate_center[1])
        return torch.sigmoid(x[..., 0] * self.config.gate_scale - centre)

    def _start(self, x: Tensor, keep: Tensor | None) -> tuple[HaltingState, Tensor]:
        """The state, and the first layer's mask."""
        batch, tokens, _ = x.shape
        state = HaltingState(batch, tokens, x, class_token_stays=self.config.class_token_stays)
        return state, state.running if keep is None else keep[:, 0]

    def _masked(self, x: Tensor, keep: Tensor | None) -> ClassifierOutput:
        """Computes all tokens, and masks the halted ones as the 2022 code does."""
        state, mask = self._start(x, keep)
        masks: list[Tensor] = []
        halting: list[Tensor] = []
        result = torch.zeros_like(x[:, 0])
        of_class = torch.arange(x.shape[1], device=x.device) == 0
        for layer, block in enumerate(self.blocks):
            masks.append(mask)
            # the 2022 code zeroes halted tokens behind autograd's back
            x = x + (x * mask.unsqueeze(2) - x).detach()
            x = self._masked_block(cast(Block, block), x, mask)
            halting.append(self._scores(x, of_class))
            share, mask = self._advance(state, halting[-1], masks, keep, layer)
            result = result + x[:, 0] * share[:, :1]
        return self._output(result, masks, halting, state)

    def _advance(
        self,
        state: HaltingState,
        h: Tensor,
        masks: Sequence[Tensor],
        keep: Tensor | None,
        layer: int,
    ) -> tuple[Tensor, Tensor]:
        """The layer's shares in the outputs, and the next layer's mask."""
        if layer == self.config.depth - 1:
            return state.step(h, masks[-1], last=True), masks[-1]
        if keep is None:
            share = state.step(h, masks[-1])
            return share, state.running
        return state.step(h, masks[-1], ends=masks[-1] & ~keep[:, layer + 1]), keep[:, layer + 1]

    def _masked_block(self, block: Block, x: Tensor, mask: Tensor) -> Tensor:
        kept = mask.unsqueeze(2).to(x.dtype)
        mixer = block.attn
        if mixer.proj is not None:
            normed = block.norm1(x * kept) * kept
            if isinstance(mixer, Attention):
                mixed = mixer.attend(normed, HIDDEN * (1.0 - kept.squeeze(2)))
            else:
                mixed = _of_kept(mixer, normed.flatten(0, 1), mask).view(*mask.shape, -1)
            if mixer.capture:
                mixer.captured = mixed * kept
            x = x + block.branch1(mixer.proj(mixed))
        return x + block.branch2(block.mlp(block.norm2(x * kept) * kept))

    def _packed(self, x: Tensor, keep: Tensor | None) -> ClassifierOutput:
        """Computes the tokens that are kept, and nothing for the others."""
        state, mask = self._start(x, keep)
        tokens = x.shape[1]
        masks: list[Tensor] = []
        halting: list[Tensor] = []
        result = torch.zeros_like(x[:, 0])
        rows, where = x.flatten(0, 1), torch.arange(mask.numel(), device=x.device)
        for layer, block in enumerate(self.blocks):
            stays = mask.flatten()[where]
            if not stays.all():
                rows, where = rows[stays], where[stays]
            masks.append(mask)
            rows = self._packed_block(cast(Block, block), rows, where, mask)
            of_class = where % tokens == 0
            scores = self._scores(rows, of_class)
            h = torch.zeros_like(state.ponder).flatten().index_copy(0, where, scores)
            halting.append(h.view_as(mask))
            share, mask = self._advance(state, halting[-1], masks, keep, layer)
            images = where[of_class] // tokens
            result = result.index_add(0, images, rows[of_class] * share[images, :1])
        return self._output(result, masks, halting, state)

    def _packed_block(self, block: Block, rows: Tensor, where: Tensor, mask: Tensor) -> Tensor:
        mixer = block.attn
        if mixer.proj is not None:
            normed = block.norm1(rows)
            if isinstance(mixer, Attention):
                mixed = mixer.packed(normed, mask.sum(1).tolist())
            else:
                full = normed.new_zeros(mask.numel(), normed.shape[1]).index_copy(0, where, normed)
                mixed = _of_kept(mixer, full, mask)[where]
            if mixer.capture:
                captured = mixed.new_zeros(mask.numel(), mixed.shape[1])
                mixer.captured = captured.index_copy(0, where, mixed).view(*mask.shape, -1)
            rows = rows + block.branch1(mixer.proj(mixed))
        return rows + block.branch2(block.mlp(block.norm2(rows)))

    def _output(
        self, result: Tensor, masks: list[Tensor], halting: list[Tensor], state: HaltingState
    ) -> ClassifierOutput:
        keep = torch.stack(masks, 1)
        tokens = TokenDecisions(keep.sum(2), keep, torch.stack(halting, 1), state.ponder)
        return ClassifierOutput(self._classify(result), tokens=tokens)


def _of_kept(mixer: TokenMixer, rows: Tensor, mask: Tensor) -> Tensor:
    """What a mixer makes of the kept tokens of each image as if there were no others.

    Args:
        mixer: any.
        rows: (batch * tokens, d_model).
        mask: (batch, tokens) bool, which tokens are kept.

    Returns:
        (batch * tokens, n_heads * head_dim), zero where a token is not kept.
    """
    if not bool(mask.any()):
        return rows.new_zeros(len(rows), cast("nn.Linear", mixer.proj).in_features)
    # an image without any lends its class token, so that no mixer sees an empty one
    lent = mask.clone()
    lent[:, 0] |= ~mask.any(1)
    counts = lent.sum(1, keepdim=True)
    order = lent.byte().argsort(dim=1, descending=True, stable=True)[:, : int(counts.max())]
    places = order + mask.shape[1] * torch.arange(len(mask), device=mask.device).unsqueeze(1)
    padding = torch.arange(order.shape[1], device=mask.device) >= counts
    mixed = mixer.heads(rows[places], padding if bool(padding.any()) else None)
    full = mixed.new_zeros(mask.numel(), mixed.shape[2])
    full = full.index_copy(0, places.flatten(), mixed.flatten(0, 1))
    return full * mask.reshape(-1, 1)
