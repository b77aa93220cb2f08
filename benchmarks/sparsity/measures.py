"""How unevenly a row of attention weights spreads over its keys: four measures, all in [0, 1].

Every function takes `weights` (..., keys), rows that sum to 1, and `keys` (...), which broadcasts:
how many of a row's places are real keys. The others, wherever they lie, hold 0. A row with one key
has nothing to choose between: its measures are not a number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

TOP_SHARE = 10
"""`top_mass` looks at one in this many keys, rounded up."""
UNIFORM = 1e-5
"""Relative distance to 1 / keys within which a weight counts as uniform: float32 rounds."""


def concentration(weights: Tensor, keys: Tensor) -> Tensor:
    """1 - entropy / log(keys): 0 where all keys weigh the same, 1 where one has all the weight."""
    entropy = torch.special.entr(weights).sum(-1)
    return _bounded(1 - entropy / keys.to(weights.dtype).log(), keys)


def top_mass(weights: Tensor, keys: Tensor) -> Tensor:
    """Weight of the heaviest 10 % of the keys, their number rounded up; so about 0.1 if uniform."""
    count = (keys + TOP_SHARE - 1) // TOP_SHARE
    most = max(1, (weights.shape[-1] + TOP_SHARE - 1) // TOP_SHARE)
    running = weights.topk(most).values.cumsum(-1)
    where = (count - 1).clamp(min=0).expand(running.shape[:-1])
    return _bounded(running.gather(-1, where[..., None]).squeeze(-1), keys)


def hoyer(weights: Tensor, keys: Tensor) -> Tensor:
    """(sqrt(keys) - l1 / l2) / (sqrt(keys) - 1), from 0 to 1 (Hoyer 2004, section 3.1)."""
    root = keys.to(weights.dtype).sqrt()
    length = weights.square().sum(-1).sqrt().clamp(min=torch.finfo(weights.dtype).tiny)
    return _bounded((root - weights.sum(-1) / length) / (root - 1), keys)


def below_uniform(weights: Tensor, keys: Tensor) -> Tensor:
    """Share of the keys that weigh less than 1 / keys each."""
    limit = (1 - UNIFORM) / keys.to(weights.dtype)
    below = keys - (weights >= limit[..., None]).sum(-1)
    return _bounded(below.to(weights.dtype) / keys, keys)


MEASURES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "concentration": concentration,
    "top_mass": top_mass,
    "hoyer": hoyer,
    "below_uniform": below_uniform,
}
"""By the name that records use."""


def _bounded(values: Tensor, keys: Tensor) -> Tensor:
    """Rounding may leave [0, 1] by a little; a row with fewer than two keys has no value."""
    return values.clamp(0, 1).masked_fill(keys < 2, float("nan"))
