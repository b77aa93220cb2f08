"""Accuracy against the realised speed-up over the baseline, beside the one that the MACs promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.reporting.figures import style
from benchmarks.reporting.figures.fronts import front

if TYPE_CHECKING:
    from benchmarks.records import Value
    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View


def draw(view: View) -> style.Drawing | style.NotDrawn:
    """One marker per variant at its realised speed-up, hollow where its MACs would put it."""
    shown = {
        dataset: [v for v in variants if _speedup(view, v) or _anchors(view, v, variants)]
        for dataset, variants in view.main.items()
    }
    shown = {d: vs for d, vs in shown.items() if any(_speedup(view, v) for v in vs)}
    if not shown:
        return style.NotDrawn("no variant has a latency record yet")
    look = style.looks(view.labels)
    batch_size = view.batch_sizes[-1]
    figure, axes = style.panels(1, len(shown), 3.7)
    n_processes: set[int] = set()
    for ax, (dataset, variants) in zip(axes[0], shown.items(), strict=True):
        realised: list[tuple[float, float]] = []
        for variant in variants:
            accuracy = _accuracy(view, variant)
            if accuracy is None:
                continue
            speedup, style_of = _speedup(view, variant), look[variant.label]
            x = speedup.value if speedup else 1.0
            if speedup and speedup.low is not None and speedup.high is not None:
                ax.plot([speedup.low, speedup.high], [accuracy] * 2, color=style_of.colour, lw=1.2)
                n_processes.add(speedup.n or 0)
            promised = view.promised(variant) if speedup else None
            if promised is not None:
                ax.plot([x, promised], [accuracy] * 2, color=style_of.colour, lw=0.8, ls=":")
                ax.plot(
                    promised, accuracy, ls="", marker=style_of.marker, ms=7,
                    mfc="none", mec=style_of.colour,
                )  # fmt: skip
            ax.plot(
                x, accuracy, ls="", marker=style_of.marker, ms=8, color=style_of.colour,
                mec=style.PANEL, label=variant.label, zorder=3,
            )  # fmt: skip
            realised.append((-x, accuracy))
        if realised:
            line = [(-x, y) for x, y in front(realised)]
            ax.plot(*zip(*line, strict=True), color=style.MUTED, lw=0.9, zorder=1)
        ax.axvline(1.0, color=style.INK, lw=0.8)
        ax.set_title(style.wrapped(view.name(dataset)))
        ax.set_xlabel(f"speed-up over the baseline at batch {batch_size} (x)")
    axes[0][0].set_ylabel("test accuracy of the timed weights (%)")
    style.legend_below(figure, axes[0])
    processes = f" over {min(n_processes)} processes" if n_processes else ""
    return style.Drawing(
        figure,
        "Test accuracy against speed-up over the baseline, for the weights of the one seed that was "
        "timed: filled "
        f"markers are what was realised at batch {batch_size} (bars: 95 % t interval{processes}), hollow "
        "ones what the MACs promise; right of the vertical line is faster than it.",
    )


def _speedup(view: View, variant: Variant) -> Value | None:
    record = view.first(variant, "latency")
    return record.get("speedup", batch_size=view.batch_sizes[-1]) if record else None


def _anchors(view: View, variant: Variant, others: list[Variant]) -> bool:
    """Whether some other variant is timed against this one."""
    bases = (view.baseline(other) for other in others if _speedup(view, other))
    return any(base is not None and base.group_id == variant.group_id for base in bases)


def _accuracy(view: View, variant: Variant) -> float | None:
    """Accuracy (%) of the weights that were timed; of a baseline, of its first seed."""
    values = view.values(variant, "accuracy", "accuracy")
    record = view.first(variant, "latency")
    seed = record.seed if record else next(iter(values), None)
    return values[seed].value * 100 if seed in values and seed is not None else None
