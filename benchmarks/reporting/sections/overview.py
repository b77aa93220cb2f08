"""What was run on what, and how much of it is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import MODELS
from benchmarks.reporting.sections.recipe import distillation, recipe
from benchmarks.reporting.text import (
    NOT_APPLICABLE,
    axis_text,
    bullets,
    counted,
    duration,
    listing,
    percent,
    table,
)

if TYPE_CHECKING:
    from benchmarks.data.card import Card
    from benchmarks.planning.plan import Measurable
    from benchmarks.records import DataUsed, Record
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


CUT = re.compile(r"(\d+) of (\d+) inputs cut to (\d+) tokens")
"""What a record's note says of inputs that were longer than the model reads."""
UNKNOWN = "unknown"
"""A count that no file here gives (a hub set that was never fetched)."""


def heading(view: View, *, decides: bool) -> str:
    """Title, description, what was run on what in a few lines, and the state of the results.

    Args:
        view: the suite's results.
        decides: whether the suite decides a claim.
    """
    suite = view.suite
    brief = [*_brief(view), *([] if decides else ["This suite decides no claim."])]
    description = " ".join(suite.description.split())
    parts = [f"# {suite.title}", unmeasured(view), description, bullets(brief)]
    return "\n\n".join(part for part in parts if part)


def unmeasured(view: View) -> str:
    """Says that there is no result at all; empty where there is one."""
    if view.ok:
        return ""
    left_out = len(view.failures()) + view.results.stale + view.results.damaged
    there = f" ({left_out:,} that failed, are outdated or damaged do not count)" if left_out else ""
    return (
        f"**Nothing was measured yet{there}: this page shows what the suite asks for, and no result.** "
        f"`frugalbench run {view.suite_argument}` measures it."
    )


def _brief(view: View) -> list[str]:
    lines = [f"**State: {state(view)}**"]
    trained = [v for v in view.variants if v.trained]
    if trained:
        names = dict.fromkeys(v.dataset for v in trained)
        sets = [f"{view.name(name)} ({view.card(name).title})" for name in names]
        what = "Trained and measured" if view.ok else "To be trained and measured"
        lines.append(f"{what}: {listing(view.labels)}; on {listing(sets)}.")
    if view.ok:
        usual, *others = machines(view.ok)
        more = f" Records of {counted(len(others) + 1, 'machine')}, see below." if others else ""
        lines.append(f"{usual}{more} Measured {_period(view)}.")
    return lines


def state(view: View) -> str:
    """One sentence: complete, or how much is missing and of which seeds, failed or outdated."""
    missing, failed = len(view.results.missing), len(view.failures())
    total = counted(missing + len(view.results.records), "record")
    if not view.ok:
        parts = [f"nothing was measured yet, {missing:,} of {total} missing"]
    elif missing:
        parts = [f"partial: {missing:,} of {total} missing ({_missing_of(view)})"]
    elif failed:
        parts = ["partial: nothing is missing"]
    else:
        seeds = sorted({p.point.seed for p in view.results.expansion.points if p.point.trained})
        shown = f", {counted(len(seeds), 'seed')} ({', '.join(map(str, seeds))})" if seeds else ""
        parts = [f"complete{shown}"]
    if failed:
        parts.append(f"{counted(failed, 'measurement')} failed")
    if view.results.stale:
        parts.append(f"{counted(view.results.stale, 'stored record')} outdated and left out")
    if view.results.damaged:
        parts.append(f"{counted(view.results.damaged, 'stored record')} damaged and left out")
    return ", ".join(parts) + "."


def _missing_of(view: View) -> str:
    """E.g. "some of seed 0, all of seeds 1, 2, some without training"."""
    missing = Counter(_seed(wanted) for wanted in view.results.missing)
    there = Counter(_seed(found.wanted) for found in view.results.found)
    parts = []
    for share, seeds in (
        ("some", [seed for seed in missing if there[seed]]),
        ("all", [seed for seed in missing if not there[seed]]),
    ):
        trained = sorted(seed for seed in seeds if seed is not None)
        if trained:
            noun = "seed" if len(trained) == 1 else "seeds"
            parts.append(f"{share} of {noun} {', '.join(map(str, trained))}")
        if None in seeds:
            parts.append(f"{share} of what needs no training")
    return ", ".join(parts)


def _seed(wanted: Measurable) -> int | None:
    """None for fresh weights, whose seed tells nothing."""
    return wanted.point.seed if wanted.point.trained else None


def setting(view: View) -> str:
    """Data sets, models, recipe, machine and time."""
    return "\n\n".join(
        ["## What was run on what", _datasets(view), _models(view), bullets(_facts(view))]
    )


def _datasets(view: View) -> str:
    used: dict[str, DataUsed] = {}
    for record in view.ok:
        name = record.point["dataset"]
        if record.data is not None and (
            name not in used or record.data.split in {"test", "generated"}
        ):
            used[name] = record.data
    rows = []
    for name in dict.fromkeys(p.point.dataset for p in view.results.expansion.points):
        card = view.card(name)
        found = used.get(name)
        measured = f"{found.n:,} ({found.split})" if found else "not yet"
        lengths = sorted(
            {p.point.max_length for p in view.results.expansion.points if p.point.dataset == name}
        )
        rows.append(
            [
                view.name(name),
                card.title,
                str(len(card.classes)),
                _rows(card) if card.run_name == view.name(name) else UNKNOWN,
                measured,
                _sizes(card, lengths),
                _cut(view, name, lengths) if card.task != "image" else NOT_APPLICABLE,
            ]
        )
    headers = [
        "data set",
        "what",
        "classes",
        "rows train / validation / test",
        "rows measured",
        "read of an input",
        "inputs cut to that (%)",
    ]
    images = [row[-1] == NOT_APPLICABLE for row in rows]  # which are never cut
    if all(images):
        headers, *rows = [row[:-1] for row in (headers, *rows)]
    elif not any(images):
        headers[-2] = "tokens kept"
        rows = [[*row[:-2], row[-2].removesuffix(" tokens"), row[-1]] for row in rows]
    return table(headers, rows, align="ll" + "r" * (len(headers) - 2))


def _sizes(card: Card, lengths: Sequence[int]) -> str:
    if card.task == "image":
        return ", ".join(f"{side} x {side}" for side in lengths) + " pixels"
    return ", ".join(map(str, lengths)) + " tokens"


def _rows(card: Card) -> str:
    train, *others = (card.n_rows(split) for split in ("train", "validation", "test"))
    if train:
        return " / ".join(f"{n:,}" for n in (train, *others))
    return "generated" if card.is_generated else UNKNOWN


def _cut(view: View, dataset: str, lengths: Sequence[int]) -> str:
    """Share of the test inputs that were longer than what is read of them, at each length."""
    shares = []
    for length in lengths:
        notes = {
            record.data.note
            for record in view.ok
            if record.data is not None
            and record.data.split in {"test", "generated"}
            and (record.point["dataset"], record.point["max_length"]) == (dataset, length)
        }
        found = [hit for note in notes for hit in CUT.finditer(note) if hit[3] == str(length)]
        cut = max((int(hit[1]) / int(hit[2]) for hit in found), default=0.0)
        shares.append(percent(cut) if notes else "not yet")
    if len(set(shares)) == 1:
        return shares[0]
    return ", ".join(f"{length}: {share}" for length, share in zip(lengths, shares, strict=True))


def _models(view: View) -> str:
    """One row for each variant of a sweep, whatever its data set and axis values."""
    groups: dict[tuple[str, str], list[Variant]] = {}
    for sweep in view.suite.sweeps:
        for variant in view.variants:
            if variant.sweep == sweep.name:
                groups.setdefault((variant.sweep, variant.label), []).append(variant)
    rows = []
    for (sweep_name, label), members in groups.items():
        first = members[0]
        axes = list(dict.fromkeys(name for v in members for name in v.axes))
        source = first.points[0].point.source
        told = [
            size_text(view.config(first), axes, first),
            "" if first.is_control else _interval(view.config(first), axes),
            _fixed_share(view.config(first), axes),
        ]
        told += _others(first, axes)
        if source is not None:
            word = "distilled from" if first.is_student else "after"
            told.append(f"{word} `{source.label}`")
        base = first.points[0].point.base
        if base is not None:
            told.append(f"from the weights of `{base.label}`")
        share = first.points[0].point.train_fraction
        if share < 1 and "train_fraction" not in axes:
            told.append(f"{share:g} of the training rows")
        if axes:
            told.append(f"along {listing([_axis(name, first) for name in axes])}")
        seeds = listing([str(seed) for seed in first.seeds]) if first.trained else "fresh weights"
        rows.append([sweep_name, f"`{label}`", first.model, "; ".join(t for t in told if t), seeds])
    return table(["sweep", "variant", "model", "configuration", "seeds"], rows, align="lllll")


def size_text(config: Mapping[str, Any], axes: Sequence[str], variant: Variant) -> str:
    """E.g. "2 layers, 8 heads, d_model 64", without what an axis varies."""
    varied = " ".join(axes)
    model = MODELS.get(variant.model)
    heads = f"{config.get('n_heads')} heads"
    if "n_heads" not in model.declarable():
        heads = "no heads"
    elif model.source == "macs":
        heads = f"at most {heads}"
    parts = [
        text
        for name, text in (
            ("depth", f"{config.get('depth')} layers"),
            ("n_heads", heads),
            ("d_model", f"d_model {config.get('d_model')}"),
        )
        if name in config and name not in varied.replace("fixed_d_model", "")
    ]
    return ", ".join(parts)


def _interval(config: Mapping[str, Any], axes: Sequence[str]) -> str:
    if "s_min" not in config or "budget_interval" in axes or "k_fraction" in axes:
        return ""
    return f"s in [{config['s_min']:g}, {config['s_max']:g}]"


def _fixed_share(config: Mapping[str, Any], axes: Sequence[str]) -> str:
    """The share of heads of a model that has it fixed."""
    return f"s = {config['budget']:g}" if "budget" in config and "budget" not in axes else ""


def _others(variant: Variant, axes: Sequence[str]) -> list[str]:
    """Declared parameters that no other words of the row tell, e.g. "budget 0.25"."""
    told = {"depth", "n_heads", "d_model", "s_min", "s_max", "budget", *axes}
    if "k_fraction" in axes:
        told.add("fixed_k")
    params = variant.points[0].point.params
    return [axis_text(name, value) for name, value in params.items() if name not in told]


def _axis(name: str, variant: Variant) -> str:
    """What the axis of a sweep is called in a sentence."""
    if name == "max_length" and variant.reads_images:
        return "image size"
    return "replaced layers" if name == "replace" else name


def _facts(view: View) -> list[str]:
    facts = []
    if any(v.trained for v in view.variants):
        facts.append(recipe(view))
    if any(v.is_student for v in view.variants):
        facts.append(distillation(view))
    kinds = machines(view.ok)
    facts += kinds if len(kinds) > 1 else []
    threads = sorted({r.environment.threads for r in view.ok})
    if threads:
        facts.append(f"Torch threads while measuring: {', '.join(map(str, threads))}.")
    facts += [f"Skipped: {s.what}: {s.reason}." for s in view.results.expansion.skipped]
    return facts


def machines(records: Sequence[Record]) -> list[str]:
    """One line for each kind of machine and software the records come from, the usual one first."""
    found = Counter(
        f"{e.cpu}, {counted(e.cores, 'core')}, {e.memory_gib:.0f} GiB, {e.os}; Python {e.python}, "
        f"torch {e.libraries.get('torch', 'unknown')}"
        for e in (r.environment for r in records)
    )
    if len(found) == 1:
        return [f"Machine: {text}." for text in found]
    return [f"Machine: {text} ({counted(n, 'record')})." for text, n in found.most_common()]


def _period(view: View) -> str:
    """The days on which the records were made, and how long the work took."""
    days = sorted({r.created[:10] for r in view.ok})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    measuring = sum(r.duration_s for r in view.ok)
    training = sum(
        v.value for r in view.ok if r.meter == "training" and (v := r.get("train_seconds"))
    )
    return (
        f"{when}: {duration(training)} of training and {duration(measuring)} of measuring, "
        "summed over points"
    )
