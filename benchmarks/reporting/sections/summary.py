"""What a run found, in a few plain sentences: numbers and fixed rules, good news and bad alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from benchmarks.reporting.sections.kernels import kernel_lines
from benchmarks.reporting.sections.students_summary import readings, student_lines
from benchmarks.reporting.sections.tables import cut
from benchmarks.reporting.sections.times import speedup
from benchmarks.reporting.sections.validation import best, validated
from benchmarks.reporting.sections.verdicts import noise, threshold_text
from benchmarks.reporting.text import bounds, bullets, difference_text, percent, shown

if TYPE_CHECKING:
    from benchmarks.checking.claim_files import Claim
    from benchmarks.checking.verdicts import ClaimResult
    from benchmarks.records import Value
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

CONTROLS = {
    "fewer-heads": "dense, fewer heads, about equal MACs",
    "static-heads": "a dense model's most important heads, the same for all inputs",
    "random-trained": "random heads in training and inference",
    "random-at-test": "random heads at inference",
    "no-attention": "no attention at all",
}
"""What each control is, as the sentence names it, in the order in which it does."""

RULE = (
    "Brackets are 95 % intervals, over seeds (accuracy) or processes (speed; above 1x is faster). A "
    "difference is called higher or lower, faster or slower, only if its whole interval lies on one side."
)
JUDGED = " Bold: what a claim below makes of the number."
SINGLE = (
    "There is one seed: differences of accuracy have no interval yet, and decide nothing. Brackets are 95 % "
    "intervals over processes (speed; above 1x is faster)."
)


def summary(view: View, claims: Sequence[ClaimResult]) -> str:
    """A few sentences for each data set; empty where nothing is measured."""
    outcomes = {
        _key(result.claim, verdict.dataset, verdict.candidate): (
            f"{threshold_text(result.claim)}: **{verdict.outcome}**"
            f"{', noisy' if noise(result.claim, verdict) else ''}"
        )
        for result in claims
        for verdict in result.verdicts
        if not verdict.setting
    }
    parts = []
    for dataset, variants in view.main.items():
        lines = [
            *_accuracy(view, variants, outcomes),
            *_work(view, variants),
            *_time(view, variants, outcomes),
            *_controls(view, variants),
            *student_lines(view, dataset),
        ]
        if lines:
            parts.append(f"**On {view.name(dataset)}:**\n\n{bullets(lines)}")
    if parts:
        single = max(_seeds(view), default=0) < 2
        parts.append((SINGLE if single else RULE) + (JUDGED if outcomes else ""))
    if told := readings(view):
        parts.append(f"**The paper's readings, tested:**\n\n{bullets(told)}")
    if told := list(kernel_lines(view)):
        parts.append(f"**Modules in attention's place, untrained:**\n\n{bullets(told)}")
    chosen = list(_validation(view))
    parts += [bullets(chosen)] if chosen else []
    return "\n\n".join(["## In short", *parts]) if parts else ""


Outcomes = Mapping[tuple[str, int | None, str, str, str], str]


def _key(claim: Claim, dataset: str, candidate: str) -> tuple[str, int | None, str, str, str]:
    return claim.quantity, claim.batch_size, claim.sweep, dataset, candidate


def _outcome(
    outcomes: Outcomes, quantity: str, variant: Variant, batch_size: int | None = None
) -> str:
    """E.g. "above 1.00x: **holds**"; empty where no claim asks."""
    return outcomes.get((quantity, batch_size, variant.sweep, variant.dataset, variant.label), "")


def _seeds(view: View) -> Iterator[int]:
    """How many seeds each main variant has."""
    for variants in view.main.values():
        yield from (len(view.values(v, "accuracy", "accuracy")) for v in variants)


def _decides(view: View, variant: Variant) -> bool:
    """Whether it chooses its heads itself, and was measured."""
    measured = view.mean(variant, "accuracy", "mean_k") is not None
    return measured and not variant.is_control and not variant.is_baseline


def _pairs(view: View, variants: Sequence[Variant]) -> Iterator[tuple[Variant, Variant]]:
    """Variants that decide heads, each with its baseline."""
    for variant in variants:
        base = view.baseline(variant)
        if base is not None and _decides(view, variant):
            yield variant, base


def _accuracy(view: View, variants: Sequence[Variant], outcomes: Outcomes) -> Iterator[str]:
    """Each variant that decides heads against its baseline."""
    told: dict[str, list[str]] = {}
    for variant, base in _pairs(view, variants):
        gap = view.difference(variant, base, "accuracy")
        if gap is not None:
            judged = _outcome(outcomes, "accuracy_difference", variant)
            mean = view.mean(base, "accuracy", "accuracy") or 0.0
            against = f"`{base.label}` ({percent(mean)} %)"
            told.setdefault(against, []).append(
                f"`{variant.label}` {difference_text(gap)}" + (f" ({judged})" if judged else "")
            )
    for against, texts in told.items():
        yield f"Accuracy against {against}: {'; '.join(texts)}."


def _work(view: View, variants: Sequence[Variant]) -> Iterator[str]:
    """What each variant that decides heads computes and saves."""
    told = []
    for variant in variants:
        if not _decides(view, variant):
            continue
        k, heads = view.mean(variant, "accuracy", "mean_k"), view.config(variant).get("n_heads")
        saved = cut(view, variant, "macs")
        text = f"`{variant.label}`"
        if saved is not None:
            change = "saves" if saved >= 0 else "adds"
            text += f" {change} {percent(abs(saved))} % of whole-model MACs and"
        told.append(f"{text} computes {k:.2f} of {heads} heads per layer")
    if told:
        yield f"Work: {'; '.join(told)}."


def _time(view: View, variants: Sequence[Variant], outcomes: Outcomes) -> Iterator[str]:
    """Realised speed-up at the smallest and the largest batch, beside the promise."""
    told: dict[str, list[str]] = {}
    for variant, base in _pairs(view, variants):
        sizes = []
        for size in sorted({view.batch_sizes[0], view.batch_sizes[-1]}):
            value = speedup(view, variant, size)
            if value is not None:
                judged = _outcome(outcomes, "speedup", variant, size)
                text = f"{value.value:.2f}x {bounds(value)}".rstrip()
                told_of = "; ".join(filter(None, (_pace(value), judged)))
                sizes.append(f"{text} at batch {size}" + (f" ({told_of})" if told_of else ""))
        if sizes:
            promised = view.promised(variant)
            beside = f", where MACs promise {promised:.2f}x" if promised else ""
            told.setdefault(base.label, []).append(f"`{variant.label}` {', '.join(sizes)}{beside}")
    for label, texts in told.items():
        yield f"Realised speed-up over `{label}`: {'; '.join(texts)}."


def _pace(value: Value) -> str:
    if value.low is None or value.high is None:
        return ""
    return "faster" if value.low > 1 else "slower" if value.high < 1 else "no difference shown"


def _controls(view: View, variants: Sequence[Variant]) -> Iterator[str]:
    """In one sentence: controls against what they take away, no attention against the baseline."""
    told: dict[str, list[str]] = {}
    for name, meaning in CONTROLS.items():
        for control in variants:
            source = next((v for v in variants if v.group_id == control.source), None)
            other = view.baseline(control) if name == "no-attention" else source
            if control.model != name or other is None:
                continue
            gap = view.difference(control, other, "accuracy")
            if gap is not None:
                told.setdefault(other.label, []).append(
                    f"`{control.label}` ({meaning}) {difference_text(gap)}"
                )
    if told:
        parts = [f"against `{label}`, {'; '.join(texts)}" for label, texts in told.items()]
        yield f"Accuracy of the controls: {'; and '.join(parts)}."


def _validation(view: View) -> Iterator[str]:
    """The best setting of a study that is judged on the validation split."""
    for (_, dataset), variants in view.studies.items():
        found = validated(view, variants)
        if not found:
            continue
        variant, value = best(found)
        axes = ", ".join(f"{name} {shown(x)}" for name, x in variant.axes.items())
        text = (
            f"**{view.name(dataset)}**: the highest validation accuracy is {percent(value.value)} %, of "
            f"`{variant.label}` at {axes}"
        )
        low = value.low
        if low is not None:
            close = sum(other.value >= low for _, other in found)
            where = bounds(value, 1, 100)
            text += f"; {close} of the {len(found)} settings lie in its 95 % interval {where}"
        yield f"{text}."
