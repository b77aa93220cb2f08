from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.checking.claim_files import load_claims
from benchmarks.checking.claims import evaluate_claim
from benchmarks.reporting.kernels import break_even, kernels, line
from benchmarks.reporting.page import page
from benchmarks.reporting.sections.kernels import kernel_section
from benchmarks.reporting.sections.layers import layers, which_matter
from benchmarks.reporting.sections.overview import setting
from benchmarks.reporting.sections.provenance import ours
from benchmarks.reporting.sections.replacement import replacement, sparser_cost_less
from benchmarks.reporting.sections.sparse_teachers import narrows_the_gap
from benchmarks.reporting.sections.students_summary import student_lines
from benchmarks.reporting.sections.summary import summary
from benchmarks.reporting.sections.tables import results
from benchmarks.reporting.sparse_layers import correlations, reading
from benchmarks.reporting.sparse_teachers import sparse_teachers
from benchmarks.reporting.students import (
    Deletion,
    continued,
    deletions,
    emptied,
    students,
    teachers,
)
from benchmarks.reporting.text import axis_text, layers_text
from benchmarks.reporting.view import View
from benchmarks.statistics.intervals import Interval, paired_t


@pytest.fixture(scope="module")
def text(s2s_view: View) -> str:
    return page(s2s_view, [], [])


def cells(text: str, *starts: str) -> list[str]:
    """The cells of the first table row that begins with these."""
    for row in text.splitlines():
        found = [cell.strip() for cell in row.strip("|").split("|")]
        if row.startswith("|") and tuple(found[: len(starts)]) == starts:
            return found
    raise AssertionError(f"no row {starts}")


def test_what_layers_are_worth_comes_before_any_result(text: str) -> None:
    headings = [row for row in text.splitlines() if row.startswith("## ")]
    assert headings[:3] == [
        "## In short", "## What each layer's attention is worth", "## What was run on what",
    ]  # fmt: skip
    first = text.index("Deleting the attention of one layer of `teacher`")
    assert first < text.index("Accuracy with layers")


def test_which_layers_matter_in_one_sentence(s2s_view: View) -> None:
    assert which_matter(s2s_view, teachers(s2s_view)[0]) == (
        "Deleting the attention of one layer of `teacher`, without any training, costs 1.0 points or more of "
        "validation accuracy in 6 of its 8 layers (0-5); layers 6-7 can be done without, so what replaces "
        "one of them can show nothing."
    )


def test_uninformative_layers_and_groups_are_marked(s2s_view: View) -> None:
    told = layers(s2s_view)
    assert cells(told, "5")[1:3] == ["+1.5 [+1.1, +1.9]", "yes"]
    assert cells(told, "6")[1:3] == ["+0.4 [+0.3, +0.5]", "**no**"]
    assert cells(told, "6-7 (quarter 4)")[2] == "**no**"
    assert cells(told, "4-7 (last half)")[1:3] == ["+4.0 [+3.0, +5.0]", "yes"]


def test_ratios_wanted_and_reached_in_one_sentence(s2s_view: View) -> None:
    start = "Patches kept, mean over layers: "
    told = [row for row in layers(s2s_view).splitlines() if row.startswith(start)]
    assert told == [
        f"{start}0.80 wanted, 0.81 after calibration, 0.78 reached after fine-tuning.",
        f"{start}0.50 wanted, 0.49 after calibration, 0.53 reached after fine-tuning.",
    ]


def test_one_seed_of_deletion_has_the_interval_over_inputs(s2s: Any, s2s_tuning: Any) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.meter.name == "deletion" and w.point.seed == 1))
    view = View(s2s.results())
    drop = deletions(view, teachers(view)[0])[0,].drop
    assert drop.method == "paired_adjusted_wald"
    assert (drop.low, drop.estimate, drop.high) == pytest.approx((0.29, 0.30, 0.31))
    assert "interval over inputs" in layers(view)


@pytest.mark.parametrize(
    ("drop", "low", "high", "told"),
    [
        (0.02, 0.015, 0.025, ("yes", False)),
        (0.02, 0.005, 0.035, ("yes", True)),
        (0.01, 0.01, 0.02, ("yes", False)),
        (0.009, 0.0, 0.009, ("no", False)),
        (0.009, 0.0, 0.02, ("no", True)),
    ],
)
def test_the_margin_decides_and_an_interval_that_holds_it_is_unclear(
    drop: float, low: float, high: float, told: tuple[str, bool]
) -> None:
    found = Deletion((0,), "", Interval(drop, low, high, "paired_t", 0.95, 3), 0.01)
    assert ("yes" if found.informative else "no", found.unclear) == told


@pytest.mark.parametrize(
    ("label", "name", "controls"),
    [
        ("bilstm-last-half", "`bilstm`", ["teacher-continued", "identity-last-half"]),
        (
            "bilstm-longer",
            "`bilstm, 40,000 samples`",
            ["continued-longer", "identity-longer"],
        ),
    ],
)
def test_a_student_row_traced_by_hand(
    s2s_view: View, reach: Any, label: str, name: str, controls: list[str]
) -> None:
    found = students(s2s_view)
    student = next(s for s in found if s.variant.label == label)
    on, empty = continued(found, student), emptied(found, student)
    assert on is not None
    assert empty is not None
    assert [on.variant.label, empty.variant.label] == controls

    def accuracies(variant: Any) -> list[float]:
        return [round(reach(p.point) * 10_000) / 10_000 for p in variant.points]

    ours, before, kept, gone = map(
        accuracies, (student.variant, student.teacher, on.variant, empty.variant)
    )
    row = cells(replacement(s2s_view), "4-7", name)
    assert row[2] == f"{100 * sum(ours) / 3:.1f}"
    for cell, pairs in (
        (row[3], zip(before, ours, strict=True)),
        (row[4], zip(kept, ours, strict=True)),
        (row[5], zip(ours, gone, strict=True)),
    ):
        interval = paired_t([a - b for a, b in pairs])
        assert cell.startswith(f"{100 * interval.estimate:+.1f} [{100 * interval.low:+.1f}")
    assert row[6] == "+4.0"
    assert cells(replacement(s2s_view), "6", "`bilstm`")[6] == "+0.4, **uninformative**"


def test_the_teacher_trained_on_for_longer_is_told_apart(s2s_view: View) -> None:
    told = replacement(s2s_view)
    assert cells(told, "none", "the teacher, trained on")[2] == "70.5"
    assert cells(told, "none", "the teacher, trained on, 40,000 samples")[2] == "73.5"
    assert "trained on 10,000 samples after its teacher was done, or on as many as it says" in told


def test_costs_traced_by_hand(s2s_view: View) -> None:
    told = replacement(s2s_view)
    row = cells(told, "4: 4-7", "`bilstm`")
    assert row[2] == "940,000 (-4.4 %)"
    assert row[4] == "63.5 (-4.0 %)"
    assert row[5] == "0.67x [0.65, 0.69] (0.95x)"
    # single layers cost the same wherever they stand, and share a line
    assert cells(told, "1: 0-7", "`identity`")[2] == "890,000 (+1.1 %)"


def test_no_column_of_head_budgets_and_sizes_in_pixels(s2s_view: View, text: str) -> None:
    told = results(s2s_view)
    for word in ("soft-mode", "mean k", "mean s", "controllers"):
        assert word not in told
    assert cells(told, "`teacher-80`")[4] == "78.0"
    assert cells(told, "`teacher`")[4] == "100.0"
    assert "missing" not in told
    assert "tokens kept" not in text
    assert cells(setting(s2s_view), "cifar-10")[-1] == "32 x 32 pixels"
    assert "inputs cut" not in setting(s2s_view)


def test_students_stand_in_their_own_tables_alone(s2s_view: View) -> None:
    assert [v.label for v in s2s_view.main["cifar-10"]] == ["teacher", "teacher-80", "teacher-50"]
    assert not s2s_view.studies
    assert not s2s_view.costs
    assert list(s2s_view.hybrids) == ["kernels"]


def test_students_of_several_teachers_are_told_apart(s2s_view: View) -> None:
    told = list(student_lines(s2s_view, "cifar-10"))
    for teacher, against in (("teacher", "teacher-continued"), ("teacher-80", "teacher-80")):
        start = f"Accuracy with layers 4-7 of `{teacher}` replaced, against `{against}`: `bilstm`"
        assert any(line.startswith(start) for line in told)


def test_where_attention_is_faster_it_is_said(s2s_view: View) -> None:
    told = summary(s2s_view, [])
    assert "`bilstm` 0.67x [0.65, 0.69] at batch 1, 0.75x" in told
    assert "Fused attention is faster than `bilstm` at batch 1 and 32, as the MACs say." in told


def test_a_promise_that_is_not_kept_is_said(s2s: Any, s2s_tuning: Any, monkeypatch: Any) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.meter.name in {"accuracy", "latency"}))
    monkeypatch.setattr(View, "promised", lambda *_: 1.3)
    told = summary(View(s2s.results()), [])
    assert "faster than `bilstm` at batch 1 and 32, although the MACs promise the opposite." in told


def test_the_first_reading_has_to_survive(s2s_view: View) -> None:
    told = sparser_cost_less(s2s_view)
    assert told.startswith('"Sparser layers cost less to replace": for `bilstm` ')
    assert "does not survive all that is held fixed" in told
    assert told.count("rho ") == 4
    found = correlations(s2s_view)
    assert {c.held for c in found} == {"nothing", "depth", "deletion", "both"}
    assert {c.n_layers for c in found} == {8}
    assert not any(c.name == "identity" for c in found)


@pytest.mark.parametrize(
    ("measure", "queries"), [("concentration", "all"), ("hoyer", "all"), ("hoyer", "class")]
)
def test_rhos_of_one_seed_traced_by_hand(
    s2s: Any, s2s_tuning: Any, reach: Any, measure: str, queries: str
) -> None:
    s2s.write(
        s2s_tuning(keep=lambda w: w.point.seed == 1 and w.meter.name in {"accuracy", "sparsity"})
    )
    view = View(s2s.results())
    found = {
        c.held: c.rho.estimate
        for c in correlations(view)
        if (c.name, c.measure, c.queries) == ("bilstm", measure, queries)
    }

    def lost(label: str) -> list[float]:
        # but for what the teacher reaches, which is the same for all layers
        return [
            -round(reach(v.points[1].point), 4)
            for v in view.variants
            if (v.sweep, v.label) == ("layers", label) and len(v.axes["replace"]) == 1
        ]

    of = {"measure": measure, "queries": queries}
    teacher = teachers(view)[0]
    sparse = [view.mean(teacher, "sparsity", "sparsity", **of, layer=i) for i in range(8)]
    both = np.array([sparse, lost("bilstm"), range(8), lost("identity")], dtype=float).T
    columns = {"depth": both[:, [0, 1, 2]], "deletion": both[:, [0, 1, 3]], "both": both}
    wanted = {"nothing": stats.spearmanr(both[:, 0], both[:, 1]).statistic}
    for held, own in columns.items():
        # a partial correlation is read from the inverse of all correlations
        inverse = np.linalg.inv(stats.spearmanr(own).statistic)
        wanted[held] = -inverse[0, 1] / (inverse[0, 0] * inverse[1, 1]) ** 0.5
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("plain", "held", "words"),
    [
        ((-0.9, -0.5), (-0.8, -0.2), "shown, and it survives"),
        ((-0.9, -0.5), (-0.8, 0.2), "does not survive"),
        ((-0.9, 0.1), (-0.8, -0.2), "not shown"),
        ((0.2, 0.6), (-0.8, -0.2), "the opposite is shown"),
        ((-0.9, -0.5), None, "nothing could be held fixed"),
    ],
)
def test_reading(
    s2s_view: View, plain: tuple[float, float], held: tuple[float, float] | None, words: str
) -> None:
    from dataclasses import replace

    def with_rho(held: str, ends: tuple[float, float]) -> Any:
        rho = Interval(sum(ends) / 2, *ends, "paired_t", 0.95, 3)
        return replace(correlations(s2s_view)[0], held=held, rho=rho)

    found = [with_rho("nothing", plain)] + ([with_rho("depth", held)] if held else [])
    assert words in reading(found)


def test_a_narrower_gap_is_no_better_student(s2s_view: View, reach: Any) -> None:
    pair = next(p for p in sparse_teachers(s2s_view) if p.sparse.teacher.label == "teacher-50")
    narrowed = []
    for seed in range(3):
        gaps = []
        for student in (pair.plain, pair.sparse):
            ours, theirs = (
                next(round(reach(p.point) * 1e4) / 1e4 for p in v.points if p.point.seed == seed)
                for v in (student.variant, student.teacher)
            )
            gaps.append(theirs - ours)
        narrowed.append(gaps[0] - gaps[1])
    assert pair.narrowed is not None
    assert pair.narrowed.estimate == pytest.approx(sum(narrowed) / 3)
    told = narrows_the_gap(s2s_view)
    assert "shown, narrower by +0.6" in told
    assert "accuracy of the student itself -5.4 points [-5.5, -5.3], lower" in told
    row = cells(replacement(s2s_view), "`teacher-50`")
    assert row[1:5] == ["0.50, 0.53", "4-7 by `bilstm`", "64.0", "63.6"]
    assert row[-1] == "39.3, 56.1, 63.6"


def test_break_even_is_named_or_denied(s2s_view: View, monkeypatch: Any) -> None:
    found = kernels(s2s_view)
    assert {k.tokens for k in found} == {197, 785, 1601}
    assert break_even(s2s_view, line(found, "bilstm", 12), 1) == "between N = 197 and 785"
    assert break_even(s2s_view, line(found, "conv", 12), 1).startswith("faster from N = 197, the")
    short = [k for k in line(found, "bilstm", 12) if k.tokens == 197]
    assert break_even(s2s_view, short, 1) == "not up to N = 197 (0.50x [0.48, 0.52], slower)"
    assert break_even(s2s_view, short, 8) == ""


def test_kernels_traced_by_hand(s2s_view: View) -> None:
    told = kernel_section(s2s_view)
    assert cells(told, "`bilstm`", "12", "0.50x [0.48, 0.52] (0.90x)")
    row = cells(told, "`bilstm`", "12", "1,020,000")
    found = kernels(s2s_view)
    ours = next(k for k in line(found, "bilstm", 12) if k.tokens == 197)
    theirs = next(k for k in found if not k.replaced and k.tokens == 197)
    a, b = (s2s_view.mean(k.variant, "flops", "macs", stat="mean") for k in (ours, theirs))
    assert a is not None
    assert b is not None
    assert row[3] == f"{a / 1e6:,.0f} ({100 * (1 - a / b):+.1f} %)"


def test_what_is_ours_is_of_this_paper(s2s_view: View) -> None:
    told = ours(s2s_view)
    assert "S2S (From Sparsity to Simplicity, arXiv 2605.18865)" in told
    assert told.count("FAR") == 1
    for word in (
        "stage1_share",
        "added once",
        "a centre of its own",
        "keep_ratio",
        "one point",
        "fused",
    ):
        assert word in told
    assert "budget network" not in told
    assert "a head that is not selected" not in told


def test_one_seed_decides_nothing(s2s: Any, s2s_tuning: Any) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.point.seed == 0))
    view = View(s2s.results())
    assert "one seed decides nothing" in sparser_cost_less(view)
    assert "on one seed, which decides nothing" in narrows_the_gap(view)
    told = page(view, [], [])
    assert "nan" not in told
    assert cells(told, "4-7", "`bilstm`")[3] == "+0.9"


@pytest.mark.parametrize(
    "meter", ["accuracy", "training", "sparsity", "deletion", "flops", "memory", "latency"]
)
def test_a_page_of_one_meter_alone(s2s: Any, s2s_tuning: Any, meter: str) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.meter.name == meter))
    told = page(View(s2s.results()), [], [])
    assert "partial" in told
    assert "nan" not in told.replace("naninf", "")


def test_a_page_of_no_records(s2s: Any) -> None:
    told = page(View(s2s.results()), [], [])
    assert "Nothing was measured yet" in told
    assert "missing" in cells(told, "4-7", "`bilstm`")


def test_the_claims_on_replaced_layers_are_decided(s2s_finished: Any) -> None:
    found = {c.id: evaluate_claim(c, s2s_finished).verdicts for c in load_claims("replacement")}
    outcomes = {name: [v.outcome for v in verdicts] for name, verdicts in found.items()}
    assert outcomes == {
        "late-bilstm-beats-nothing": ["holds"],
        "late-layers-free": ["refuted"],
        "s2s-fewer-parameters": ["refuted"],
        "s2s-speedup": ["refuted"],
    }
    (speed,) = found["s2s-speedup"]
    assert speed.estimate == pytest.approx(0.75)
    (size,) = found["s2s-fewer-parameters"]
    assert size.estimate == pytest.approx(940_000 / 900_000)
    assert size.caveats == ("counted, so the interval has no width",)
    # whether a text set needs attention is no question here
    assert found["late-layers-free"][0].caveats == ()


def test_a_claim_on_parameters_needs_both_counts(s2s: Any, s2s_tuning: Any) -> None:
    s2s.write(s2s_tuning(keep=lambda w: w.meter.name == "memory" and w.point.source is not None))
    (claim,) = (c for c in load_claims("replacement") if c.quantity == "parameters_ratio")
    (verdict,) = evaluate_claim(claim, s2s.results()).verdicts
    assert verdict.outcome == "unmeasured"
    assert verdict.reason.startswith("parameters of bilstm-last-half and teacher: not measured")


def test_layers_and_sizes_in_words() -> None:
    assert layers_text((4, 5, 6, 7)) == "4-7"
    assert layers_text((0, 2, 3, 7)) == "0, 2-3, 7"
    assert layers_text(()) == "none"
    assert axis_text("replace", [3]) == "layer 3 replaced"
    assert axis_text("replace", []) == "no layer replaced"
    assert axis_text("max_length", 224, images=True) == "224 x 224 pixels"
    assert axis_text("max_length", 64) == "max_length 64"
    assert axis_text("depth", None) == "depth -"
