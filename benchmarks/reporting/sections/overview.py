"""What was run on what, and how much of it is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.catalog import DATASETS
from benchmarks.reporting.text import bullets, counted, duration, listing, table
from benchmarks.training.recipe import Recipe

if TYPE_CHECKING:
    from benchmarks.records import DataUsed, Record
    from benchmarks.reporting.view import Variant, View


def heading(view: View) -> str:
    """Title, description, what was run on what in a few lines, and the state of the results."""
    suite = view.suite
    parts = [f"# {suite.title}", " ".join(suite.description.split()), bullets(_brief(view))]
    return "\n\n".join(part for part in parts if part)


def _brief(view: View) -> list[str]:
    lines = [f"**State: {state(view)}**"]
    if view.main:
        sets = [f"{name} ({DATASETS.get(name).title})" for name in view.main]
        labels = list(dict.fromkeys(v.label for vs in view.main.values() for v in vs))
        lines.append(f"Trained and measured: {listing(labels)}; on {listing(sets)}.")
    if view.ok:
        usual, *others = machines(view.ok)
        more = f" Records of {counted(len(others) + 1, 'machine')}, see below." if others else ""
        lines.append(f"{usual}{more} Measured {_period(view)}.")
    return lines


def state(view: View) -> str:
    """One sentence: complete, or which seeds are there, how much is missing, failed or stale."""
    missing, failed = len(view.results.missing), len(view.failures())
    parts = ["partial" if missing or failed else "complete"]
    wanted = sorted({p.point.seed for p in view.results.expansion.points if p.point.trained})
    if wanted:
        seeds = sorted({r.seed for r in view.ok if r.meter in {"accuracy", "training"}})
        there = f" ({', '.join(map(str, seeds))})" if seeds else ""
        parts.append(f"{len(seeds)} of {counted(len(wanted), 'seed')}{there}")
    if missing:
        total = missing + len(view.results.records)
        parts.append(f"{missing:,} of {counted(total, 'record')} missing")
    if failed:
        parts.append(f"{counted(failed, 'measurement')} failed")
    if view.results.stale:
        parts.append(f"{counted(view.results.stale, 'stored record')} outdated and left out")
    return ", ".join(parts) + "."


def setting(view: View) -> str:
    """Data sets, models, recipe, machine and time."""
    return "\n\n".join(
        ["## What was run on what", _datasets(view), _models(view), bullets(_facts(view))]
    )


def _datasets(view: View) -> str:
    used: dict[str, DataUsed] = {}
    for record in view.ok:
        if record.data is not None and (
            record.data.name not in used or record.data.split in {"test", "generated"}
        ):
            used[record.data.name] = record.data
    rows = []
    for name in dict.fromkeys(p.point.dataset for p in view.results.expansion.points):
        card = DATASETS.get(name)
        counts = card.counts
        split = (
            f"{counts.train:,} / {counts.validation:,} / {counts.test:,}" if counts else "generated"
        )
        found = used.get(name)
        measured = f"{found.n:,} ({found.split})" if found else "not yet"
        lengths = sorted(
            {p.point.max_length for p in view.results.expansion.points if p.point.dataset == name}
        )
        rows.append(
            [
                name,
                card.title,
                str(len(card.classes)),
                split,
                measured,
                ", ".join(map(str, lengths)),
            ]
        )
    return table(
        [
            "data set",
            "what",
            "classes",
            "rows train / validation / test",
            "rows measured",
            "tokens kept",
        ],
        rows,
        align="llrrrr",
    )


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
            _size(view.config(first), axes),
            "" if first.is_control else _interval(view.config(first), axes),
        ]
        if source is not None:
            told.append(f"after `{source.label}`")
        share = first.points[0].point.train_fraction
        if share < 1 and "train_fraction" not in axes:
            told.append(f"{share:g} of the training rows")
        if axes:
            told.append(f"along {listing(axes)}")
        seeds = listing([str(seed) for seed in first.seeds]) if first.trained else "fresh weights"
        rows.append([sweep_name, f"`{label}`", first.model, "; ".join(t for t in told if t), seeds])
    return table(["sweep", "variant", "model", "configuration", "seeds"], rows, align="lllll")


def _size(config: Mapping[str, Any], axes: Sequence[str]) -> str:
    """E.g. "2 layers, 8 heads, d_model 64", without what an axis varies."""
    varied = " ".join(axes)
    parts = [
        text
        for name, text in (
            ("depth", f"{config.get('depth')} layers"),
            ("n_heads", f"{config.get('n_heads')} heads"),
            ("d_model", f"d_model {config.get('d_model')}"),
        )
        if name in config and name not in varied.replace("fixed_d_model", "")
    ]
    return ", ".join(parts)


def _interval(config: Mapping[str, Any], axes: Sequence[str]) -> str:
    if "s_min" not in config or "budget_interval" in axes or "k_fraction" in axes:
        return ""
    return f"s in [{config['s_min']:g}, {config['s_max']:g}]"


def _facts(view: View) -> list[str]:
    facts = []
    if view.main or view.studies:
        recipe = Recipe.from_declared(view.suite.recipe)
        facts.append(
            "One recipe for all trained models, tuned on the dense model's validation accuracy: "
            f"AdamW, {counted(recipe.epochs, 'epoch')}, batch {recipe.batch_size}, peak learning "
            f"rate {recipe.peak_lr:g} after {recipe.warmup:.0%} warm-up, cosine to zero, weight "
            f"decay {recipe.weight_decay:g}, gradients clipped at {recipe.clip:g}. The test split "
            "is read once, after training."
        )
    facts += machines(view.ok)
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
