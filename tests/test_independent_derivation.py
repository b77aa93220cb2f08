"""BudgetFormer's forward pass and its MACs a second time, in plain NumPy from the state dict alone.

Nothing here calls the model's own parts: one text at a time, no padding, no batching, one head after
the other. It guards what a twin built of the same parts cannot see: which activation, temperature,
pooling and gates the numbers in the reports rest on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
import torch
from scipy.special import erf

from models.budgetformer import BudgetFormer
from models.budgetformer_config import BudgetFormerConfig

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEPTH, WIDTH, HEADS, CLASSES = 2, 16, 4, 3
TAU = 0.5
LENGTHS = (7, 1, 4, 12, 9, 3)


@pytest.fixture(scope="module")
def model() -> BudgetFormer:
    torch.manual_seed(3)
    config = BudgetFormerConfig(
        depth=DEPTH,
        d_model=WIDTH,
        n_heads=HEADS,
        n_classes=CLASSES,
        vocab_size=50,
        max_length=12,
        tau_end=TAU,
    )
    model = BudgetFormer(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # far enough from the start that every bias, norm and gate matters
            parameter.add_(0.3 * torch.randn_like(parameter))
            if "budget_out" in name:
                parameter.mul_(3.0)
    return model


@pytest.fixture(scope="module")
def texts() -> list[NDArray[np.int64]]:
    rng = np.random.default_rng(5)
    return [rng.integers(3, 50, length) for length in LENGTHS]


def gelu(x: NDArray[Any]) -> NDArray[Any]:
    out: NDArray[Any] = 0.5 * x * (1 + erf(x / math.sqrt(2)))
    return out


def softmax(x: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(x - x.max(-1, keepdims=True))
    out: NDArray[Any] = e / e.sum(-1, keepdims=True)
    return out


class Plain:
    """The paper's model by hand; counts the multiplications of each matrix product it makes."""

    def __init__(self, model: BudgetFormer) -> None:
        self.w = {k: v.double().numpy() for k, v in model.state_dict().items()}
        self.macs = 0

    def mul(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        rows, inner = a.shape
        self.macs += rows * inner * b.shape[1]
        out: NDArray[Any] = a @ b
        return out

    def linear(self, name: str, x: NDArray[Any]) -> NDArray[Any]:
        out: NDArray[Any] = self.mul(x, self.w[f"{name}.weight"].T) + self.w[f"{name}.bias"]
        return out

    def norm(self, name: str, x: NDArray[Any]) -> NDArray[Any]:
        centred = x - x.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        out: NDArray[Any] = scaled * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]
        return out

    def mean(self, x: NDArray[Any]) -> NDArray[Any]:
        return self.mul(np.full((1, len(x)), 1 / len(x)), x)

    def attention(
        self, at: str, x: NDArray[Any], mode: Literal["hard", "soft"]
    ) -> tuple[NDArray[Any], float, int, set[int]]:
        pooled = self.mean(x)
        hidden = gelu(self.linear(f"{at}.controller.budget_in", pooled))
        s = float(1 / (1 + np.exp(-self.linear(f"{at}.controller.budget_out", hidden)[0, 0])))
        p = softmax(self.linear(f"{at}.controller.scorer", pooled)[0] / TAU)
        k = max(1, math.floor(s * HEADS + 1e-6))
        chosen = set(sorted(range(HEADS), key=lambda head: -p[head])[:k])
        width = WIDTH // HEADS
        out = np.zeros_like(x) + self.w[f"{at}.output.bias"]
        for head in range(HEADS) if mode == "soft" else sorted(chosen):
            rows = slice(head * 3 * width, (head + 1) * 3 * width)
            weight, bias = self.w[f"{at}.qkv.weight"][rows], self.w[f"{at}.qkv.bias"][rows]
            q, key, value = np.split(self.mul(x, weight.T) + bias, 3, axis=1)
            attended = self.mul(softmax(self.mul(q, key.T) / math.sqrt(width)), value)
            gate = 1.0 if mode == "hard" else min(1.0, s * HEADS * p[head])
            columns = slice(head * width, (head + 1) * width)
            out = out + gate * self.mul(attended, self.w[f"{at}.output.weight"][columns])
        return out, s, k, chosen

    def __call__(
        self, ids: NDArray[np.int64], mode: Literal["hard", "soft"]
    ) -> tuple[NDArray[Any], list[float], list[int], list[set[int]]]:
        x = self.w["token.weight"][ids] + self.w["position.weight"][: len(ids)]
        budgets, counts, heads = [], [], []
        for layer in range(DEPTH):
            at = f"blocks.{layer}"
            normed = self.norm(f"{at}.attention_norm", x)
            attended, s, k, chosen = self.attention(f"{at}.attention", normed, mode)
            budgets.append(s)
            counts.append(k)
            heads.append(chosen)
            x = x + attended
            hidden = gelu(self.linear(f"{at}.ffn_in", self.norm(f"{at}.ffn_norm", x)))
            x = x + self.linear(f"{at}.ffn_out", hidden)
        logits = self.linear("head", self.mean(self.norm("norm", x)))[0]
        return logits, budgets, counts, heads


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_the_model_says_what_plain_arithmetic_says(
    model: BudgetFormer, texts: list[NDArray[np.int64]], mode: Literal["hard", "soft"]
) -> None:
    ids = torch.zeros(len(texts), max(LENGTHS), dtype=torch.int64)
    padding = torch.ones_like(ids, dtype=torch.bool)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.from_numpy(text)
        padding[row, : len(text)] = False
    model.head_mode = mode
    with torch.inference_mode():
        output = model(ids, padding)
    model.head_mode = "auto"
    assert output.heads is not None
    all_counts = set()
    for row, text in enumerate(texts):
        logits, budgets, counts, heads = Plain(model)(text, mode)
        np.testing.assert_allclose(output.logits[row].numpy(), logits, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(output.heads.budget[row].numpy(), budgets, atol=1e-5)
        assert output.heads.k[row].tolist() == counts
        for layer in range(DEPTH):
            selected = output.heads.selected[row, layer].nonzero().flatten().tolist()
            assert set(selected) == heads[layer]
        all_counts.update(counts)
    assert len(all_counts) > 1, "one k everywhere would show little"


def test_the_formula_is_the_multiplications_that_were_made(
    model: BudgetFormer, texts: list[NDArray[np.int64]]
) -> None:
    for text in texts:
        plain = Plain(model)
        _, _, counts, _ = plain(text, "hard")
        assert model.config.macs(len(text), counts).total == plain.macs
