"""What each token mixer costs in attention's place: parameters, MACs, and time over tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.kernels import ATTENTION, break_even, kernels, line, speedup
from benchmarks.reporting.text import (
    MISSING,
    NOT_APPLICABLE,
    bounds,
    listing,
    ratio,
    significant,
    table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.reporting.kernels import Kernel
    from benchmarks.reporting.view import View

BREAK_EVEN_NOTE = (
    "Whole model, {most} of {depth} layers replaced, on one thread of the CPU, against the same model "
    "with fused attention; fresh weights, which take as long as trained ones. N counts all tokens. A "
    "module is faster from the first N timed from which on its whole interval lies above 1x."
)
TIME_NOTE = (
    "Attention's time over the module's, whole model, with its 95 % interval over processes, and in "
    "brackets what the MACs promise; above 1x is faster."
)
COST_NOTE = (
    "Of the whole model, for one image; more tokens also need a longer table of positions. In brackets "
    "the share cut of attention's; below 0 it is an addition."
)


def kernel_section(view: View) -> str:
    """Break-evens, then time for each batch size, then MACs and parameters; empty without hybrids."""
    found = kernels(view)
    if not any(k.replaced for k in found):
        return ""
    sizes = view.timed_at([k.variant for k in found])
    parts = ["## Modules in attention's place", _break_evens(view, found, sizes)]
    parts += [_times(view, found, size) for size in sizes]
    if view.plans([k.variant for k in found], "flops", "memory"):
        parts.append(_costs(view, found))
    return "\n\n".join(part for part in parts if part)


def kernel_lines(view: View) -> Iterator[str]:
    """At each batch size and number of tokens: which modules are faster than attention, which slower."""
    found = kernels(view)
    most = _most_replaced(found)
    of = f"With the attention of {most} of {found[0].depth} layers replaced" if found else ""
    for size in view.timed_at([k.variant for k in found]):
        told = []
        for tokens in sorted({k.tokens for k in found}):
            groups: dict[str, list[str]] = {"faster": [], "slower": [], "no difference shown": []}
            for kernel in found:
                if (len(kernel.replaced), kernel.tokens) != (most, tokens):
                    continue
                value = speedup(view, kernel, size)
                if value is None or value.low is None or value.high is None:
                    continue
                word = (
                    "faster" if value.low > 1 else "slower" if value.high < 1
                    else "no difference shown"
                )  # fmt: skip
                groups[word].append(f"`{kernel.mixer}` {ratio(value.value)}")
            texts = [f"{word}: {listing(names)}" for word, names in groups.items() if names]
            if texts:
                told.append(f"N = {tokens:,}: {'; '.join(texts)}")
        if told:
            yield f"{of}, batch {size}, against fused attention: {'. '.join(told)}."


def _most_replaced(found: Sequence[Kernel]) -> int:
    return max((len(k.replaced) for k in found), default=0)


def _mixers(found: Sequence[Kernel]) -> list[tuple[str, int]]:
    """(mixer, layers replaced), a mixer after the other."""
    pairs = {(k.mixer, len(k.replaced)) for k in found if k.replaced}
    order = list(dict.fromkeys(k.mixer for k in found))
    return sorted(pairs, key=lambda pair: (order.index(pair[0]), pair[1]))


def _break_evens(view: View, found: Sequence[Kernel], sizes: Sequence[int]) -> str:
    most = _most_replaced(found)
    rows = []
    for mixer in dict.fromkeys(k.mixer for k in found if k.replaced):
        cells = [break_even(view, line(found, mixer, most), size) for size in sizes]
        if any(cells):
            rows.append([f"`{mixer}`", *[cell or NOT_APPLICABLE for cell in cells]])
    if not rows:
        return ""
    headers = ["module", *[f"faster than attention, batch {size}" for size in sizes]]
    return "\n\n".join(
        [
            "### From which number of tokens on a module is faster",
            table(headers, rows, align="l" * len(headers)),
            BREAK_EVEN_NOTE.format(most=most, depth=found[0].depth),
        ]
    )


def _times(view: View, found: Sequence[Kernel], size: int) -> str:
    all_tokens = sorted({k.tokens for k in found if speedup(view, k, size) is not None})
    rows = []
    for mixer, n in _mixers(found):
        by_tokens = {k.tokens: k for k in line(found, mixer, n)}
        cells = [_time(view, by_tokens.get(tokens), size) for tokens in all_tokens]
        if any(cell != NOT_APPLICABLE for cell in cells):
            rows.append([f"`{mixer}`", str(n), *cells])
    headers = ["module", "layers replaced", *[f"N = {tokens:,}" for tokens in all_tokens]]
    return "\n\n".join(
        [
            f"### Speed at batch {size}",
            table(headers, rows, align="lr" + "r" * len(all_tokens)),
            TIME_NOTE,
        ]
    )


def _time(view: View, kernel: Kernel | None, size: int) -> str:
    value = speedup(view, kernel, size) if kernel else None
    if kernel is None or value is None:
        return NOT_APPLICABLE
    promised = view.promised(kernel.variant, size)
    beside = f"({ratio(promised)})" if promised else ""
    return " ".join(filter(None, [ratio(value.value), bounds(value), beside]))


def _costs(view: View, found: Sequence[Kernel]) -> str:
    all_tokens = sorted({k.tokens for k in found})
    rows = []
    for mixer, n in [(ATTENTION, 0), *_mixers(found)]:
        own = line(found, mixer, n)
        if not own:
            continue
        by_tokens = {k.tokens: k for k in own}
        sizes = [view.mean(k.variant, "memory", "parameters") for k in own]
        parameters = next((x for x in sizes if x is not None), None)
        rows.append(
            [
                f"`{mixer}`",
                str(n) if n else NOT_APPLICABLE,
                f"{parameters:,.0f}" if parameters is not None else MISSING,
                *[_macs(view, by_tokens.get(tokens)) for tokens in all_tokens],
            ]
        )
    headers = ["module", "layers replaced", f"parameters, N = {all_tokens[0]:,}"]
    headers += [f"MACs (M), N = {tokens:,}" for tokens in all_tokens]
    return "\n\n".join(
        [
            "### Parameters and MACs",
            table(headers, rows, align="l" + "r" * (len(headers) - 1)),
            COST_NOTE,
        ]
    )


def _macs(view: View, kernel: Kernel | None) -> str:
    ours = view.mean(kernel.variant, "flops", "macs", stat="mean") if kernel else None
    if kernel is None or ours is None:
        return MISSING
    base = view.baseline(kernel.variant)
    theirs = view.mean(base, "flops", "macs", stat="mean") if base else None
    cut = f" ({(1 - ours / theirs) * 100:+.1f} %)" if theirs else ""
    return f"{significant(ours / 1e6)}{cut}"
