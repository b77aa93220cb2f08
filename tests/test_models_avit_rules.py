"""A-ViT against a token-by-token reading of its rules: values and gradients."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from tiny_avit import MODES, images, make, tokens_of
from torch import Tensor
from torch.nn import functional

from models.avit import AViT
from models.avit_config import AViTConfig
from models.token_halting import EPS, HaltingState


def linear(x: Tensor, module: Any) -> Tensor:
    return x @ module.weight.T + module.bias


def norm(x: Tensor, module: Any) -> Tensor:
    return functional.layer_norm(x, x.shape[-1:], module.weight, module.bias, 1e-6)


class Read:
    """One image through A-ViT, from the rules as they are written down: token by token.

    Attributes:
        logits: (n_classes,).
        keep: per layer and token, whether it was computed.
        scores: per layer and token, h of every token, halted or not.
        rho: per token.
    """

    def __init__(self, model: AViT, image: Tensor, *, class_stays: bool) -> None:
        config = model.config
        x = model.patch_embed(image[None])[0]
        x = torch.cat((model.cls_token[0], x)) + model.pos_embed[0]
        n = len(x)
        total, left = [torch.zeros(())] * n, [torch.ones(())] * n
        self.rho = [torch.zeros(())] * n
        halted = [False] * n
        alive = [True] * n
        out = torch.zeros(config.d_model)
        self.keep: list[list[bool]] = []
        self.scores: list[Tensor] = []
        for depth, block in enumerate(model.blocks):
            shown = torch.tensor(alive, dtype=torch.float32)[:, None]
            x = x.clone()
            x.data = x.data * shown  # autograd does not see it
            x = self.block(block, x, shown, config)
            centres = [model.gate_center[min(k, 1)] for k in range(n)]
            h = [
                torch.sigmoid(t[0] * config.gate_scale - c) for t, c in zip(x, centres, strict=True)
            ]
            self.scores.append(torch.stack(h))
            self.keep.append(list(alive))
            if depth == config.depth - 1:
                h = [torch.ones(())] * n
            for k in range(n):
                total[k] = total[k] + h[k]
                if not alive[k]:
                    continue
                self.rho[k] = self.rho[k] + 1
                if k == 0 and class_stays and total[0] >= 0.99 and depth < config.depth - 1:
                    continue  # its remainder waits for the last layer
                if total[k] > 0.99:
                    out = out + left[k] * x[k] if k == 0 else out
                    self.rho[k] = self.rho[k] + left[k]
                elif total[k] < 0.99:
                    out = out + h[k] * x[k] if k == 0 else out
                    left[k] = left[k] - h[k]
                # both are strict: at equality the layer has no share, and the token halts
                halted[k] = not bool(total[k] < 0.99)
            alive = [not stop for stop in halted]
        self.logits = linear(norm(out, model.norm), model.head)

    @staticmethod
    def block(block: Any, x: Tensor, shown: Tensor, config: AViTConfig) -> Tensor:
        qkv = linear(norm(x * shown, block.norm1) * shown, block.attn.qkv)
        width = config.width_of_head
        heads = []
        for head in range(config.n_heads):
            q, k, v = (part[:, head * width : (head + 1) * width] for part in qkv.chunk(3, 1))
            weights = torch.softmax(q @ k.T / math.sqrt(width) - 1000 * (1 - shown.T), 1)
            heads.append(weights @ v)
        x = x + linear(torch.cat(heads, 1), block.attn.proj)
        hidden = functional.gelu(linear(norm(x * shown, block.norm2) * shown, block.mlp.fc1))
        return x + linear(hidden, block.mlp.fc2)


def prior_by_hand(model: AViT, read: list[Read], mode: str) -> Tensor:
    """The prior's divergence from the scores of all images."""
    scores = torch.stack([torch.stack(one.scores) for one in read])
    counted = scores[:, :, 1:] if mode == "s2s" else scores[1:]
    depth = model.config.depth
    mean = torch.stack([counted[:, layer].mean() for layer in range(depth)])
    share = torch.clamp(mean / mean.sum(), 0.01, 0.99)
    if mode == "s2s":
        share = share / share.sum()
    parts = [
        t * (math.log(t) - torch.log(s)) for t, s in zip(model.config.prior, share, strict=True)
    ]
    return torch.stack(parts).sum() / depth


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("centre", [-2.0, -0.5, 1.0])
def test_values_and_gradients_are_those_of_the_rules(mode: str, centre: float) -> None:
    apart = 1.0 if mode == "s2s" else 0.0
    model = make(mode, centre).train()
    model.gate_center[0] += apart
    labels = torch.tensor([0, 1, 2, 0])
    output = model(images())
    decided = tokens_of(output)
    weight = 1.0 if mode == "avit2022" else 0.1
    losses = model.auxiliary_losses(output)
    (functional.cross_entropy(output.logits, labels) + 1e3 * sum(losses.values())).backward()
    ours = {name: parameter.grad for name, parameter in model.named_parameters()}

    twin = make(mode, centre)
    twin.gate_center[0] += apart
    read = [Read(twin, image, class_stays=mode == "s2s") for image in images()]
    keep = torch.tensor([one.keep for one in read])
    rho = torch.stack([torch.stack(one.rho) for one in read])
    prior = prior_by_hand(twin, read, mode).clamp(min=0.0)
    loss = functional.cross_entropy(torch.stack([one.logits for one in read]), labels)
    (loss + 1e3 * weight * (5e-4 * rho.mean() + 1e-3 * prior)).backward()

    assert torch.equal(decided.keep, keep)
    assert 0.3 < keep.float().mean() < 0.97, "this centre halts some tokens and not all"
    torch.testing.assert_close(
        output.logits, torch.stack([one.logits for one in read]), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(decided.ponder, rho, rtol=1e-5, atol=1e-5)
    scores = torch.stack([torch.stack(one.scores) for one in read])
    torch.testing.assert_close(decided.halting, scores, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(losses["ponder"], weight * 5e-4 * rho.mean())
    torch.testing.assert_close(losses["prior"], weight * 1e-3 * prior)
    for name, parameter in twin.named_parameters():
        torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-3, atol=2e-4, msg=name)


@pytest.mark.parametrize("stays", [False, True])
def test_scores_that_sum_to_exactly_the_threshold_halt_without_a_share(stays: bool) -> None:
    like = torch.zeros((), dtype=torch.float64)
    state = HaltingState(1, 3, like, class_token_stays=stays)
    h = torch.tensor([[1 - EPS, 1 - EPS, 0.5]], dtype=torch.float64)
    share = state.step(h, state.running)
    assert share.tolist() == [[0.0, 0.0, 0.5]]
    assert state.running.tolist() == [[stays, False, True]]
    assert state.ponder.tolist() == [[1.0, 1.0, 1.0]]
    # of what is left, a class token that stays gets all
    assert state.step(h, state.running, last=True).tolist() == [[float(stays), 0.0, 0.5]]
