"""Untrained hybrids: what each token mixer costs in attention's place, over the number of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.catalog import MODELS
from benchmarks.reporting.students import mixer_of, replaced_of
from benchmarks.reporting.text import bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.records import Value
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

ATTENTION = "attention"
"""What tables call the model in which nothing is replaced."""


@dataclass(frozen=True)
class Kernel:
    """One untrained model at one number of tokens.

    Attributes:
        variant: the model.
        mixer: what stands in attention's place; "attention" where nothing was replaced.
        replaced: layers without attention.
        depth: layers there are.
        tokens: N, class token included.
    """

    variant: Variant
    mixer: str
    replaced: tuple[int, ...]
    depth: int
    tokens: int


def kernels(view: View) -> list[Kernel]:
    """All of them, each point once: attention first, then in the suite's order."""
    found: dict[str, Kernel] = {}
    for variants in view.hybrids.values():
        for variant in variants:
            replaces = "replace" in MODELS.get(variant.model).declarable()
            replaced = replaced_of(variant) if replaces else ()
            mixer = mixer_of(variant) if replaced else ATTENTION
            found.setdefault(
                variant.group_id,
                Kernel(
                    variant,
                    mixer,
                    replaced,
                    _declared(view, variant, "depth"),
                    _tokens(view, variant),
                ),
            )
    return sorted(found.values(), key=lambda k: bool(k.replaced))


def _declared(view: View, variant: Variant, name: str) -> int:
    default = MODELS.get(variant.model).declarable()[name]
    return int(view.config(variant).get(name, default))


def _tokens(view: View, variant: Variant) -> int:
    length = variant.points[0].point.max_length
    if not variant.reads_images:
        return length
    return (length // _declared(view, variant, "patch_size")) ** 2 + 1


def speedup(view: View, kernel: Kernel, batch_size: int) -> Value | None:
    """Attention's time over the kernel's, of the whole model."""
    record = view.first(kernel.variant, "latency")
    return record.get("speedup", batch_size=batch_size) if record else None


def line(found: Sequence[Kernel], mixer: str, n_replaced: int) -> list[Kernel]:
    """One mixer in so many layers, by tokens."""
    own = [k for k in found if k.mixer == mixer and len(k.replaced) == n_replaced]
    return sorted(own, key=lambda k: k.tokens)


def break_even(view: View, own: Sequence[Kernel], batch_size: int) -> str:
    """From which N on a mixer is faster than attention, as far as was timed; empty: never timed.

    Args:
        view: the suite's results.
        own: one mixer in so many layers, by tokens.
        batch_size: that of the times.
    """
    timed = [(k.tokens, v) for k in own if (v := speedup(view, k, batch_size)) is not None]
    if not timed:
        return ""
    faster = [v.low is not None and v.low > 1 for _, v in timed]
    start = len(timed)
    while start and faster[start - 1]:
        start -= 1
    if start == len(timed):
        n, value = timed[-1]
        word = "slower" if value.high is not None and value.high < 1 else "no gain shown"
        return f"not up to N = {n:,} ({value.value:.2f}x {bounds(value)}, {word})"
    n, value = timed[start]
    if start == 0:
        return f"faster from N = {n:,}, the least timed ({value.value:.2f}x)"
    before = timed[start - 1][0]
    return f"between N = {before:,} and {n:,}"
