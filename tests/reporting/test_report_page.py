from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.catalog import DATASETS
from benchmarks.reporting.report import README, write
from benchmarks.reporting.sections.caveats import caveats
from benchmarks.reporting.sections.overview import machines, state
from benchmarks.reporting.sections.tables import (
    accuracy_table,
    cost_table,
    residuals,
)
from benchmarks.reporting.sections.times import time_note, time_table
from benchmarks.reporting.view import View

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def text(finished: Any, drawn_before: None, tmp_path: Path) -> str:
    return (write(finished, [], tmp_path / "out") / README).read_text(encoding="utf-8")


def accuracy_only(wanted: Any) -> bool:
    return wanted.meter.name == "accuracy" and wanted.planned.sweep == "main"


def rows(markdown: str) -> dict[str, list[str]]:
    """Rows of a Markdown table by their first cell."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return {row[0].strip("`*"): row[1:] for row in cells}


def test_sections_stand_in_their_order(text: str) -> None:
    headings = re.findall(r"^#+ .*$", text, re.MULTILINE)
    assert [h for h in headings if h.startswith(("# ", "## "))] == [
        "# A made-up suite",
        "## In short",
        "## Read this first",
        "## What was run on what",
        "## Results on r8 (stand-in for AG News)",
        "## Results on rotten-tomatoes (stand-in for Yelp, IMDB)",
        "## Sweep `study` on r8",
        "## Does s follow the complexity of inputs?",
        "## Figures",
        "## What is ours where the paper is silent",
        "## What is a stand-in, what is partial",
        "## What failed, was noisy or is missing",
        "## How to repeat it",
    ]
    assert "BudgetFormer (Adaptive Head Budgeting, arXiv 2604.22583)" in text
    assert "State: complete, 3 seeds (0, 1, 2)." in text


def test_every_table_is_whole_and_every_link_leads_somewhere(
    text: str, finished: Any, tmp_path: Path
) -> None:
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1, block
        assert not re.search(r"\b(nan|inf|None)\b", block)
    links = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    assert len(links) == 9
    for link in links:
        assert (tmp_path / "out" / link).is_file()


def test_accuracy_table_pairs_over_seeds_and_shows_the_yardstick(finished: Any) -> None:
    view = View(finished)
    table = rows(accuracy_table(view, "r8", view.main["r8"]))
    assert table["dense"][1] == "baseline"
    low = next(v for v in view.main["r8"] if v.label == "budget-low")
    dense = next(v for v in view.main["r8"] if v.label == "dense")
    ours, theirs = (view.values(v, "accuracy", "accuracy") for v in (low, dense))
    difference = sum(ours[s].value - theirs[s].value for s in (0, 1, 2)) / 3
    assert table["budget-low"][1].startswith(f"{100 * difference:+.1f} [")
    assert table["budget-low"][4] == f"{view.mean(low, 'accuracy', 'mean_k'):.2f} of 8"
    assert table["dense"][4] == "-"
    yardstick = DATASETS.get("r8").yardsticks[0]
    assert table["yardstick: TF-IDF"][0] == f"*{100 * yardstick.value:.1f}*"


def test_a_matched_control_tells_the_heads_and_macs_of_every_seed(finished: Any) -> None:
    view = View(finished)
    [line] = residuals(view, view.main["r8"])
    assert re.findall(r"seed (\d): \[2, 1\] heads, [-+]\d+\.\d % MACs", line) == ["0", "1", "2"]


def test_models_without_heads_have_none(text: str) -> None:
    configuration = {
        cells[1]: cells[3]
        for cells in (line.split("|")[1:-1] for line in text.splitlines() if "| main " in line)
        for cells in [[cell.strip(" `") for cell in cells]]
    }
    assert "no heads" in configuration["no-attention"]
    assert "at most 8 heads" in configuration["fewer-heads"]
    assert ", 8 heads" in configuration["dense"]


def test_cost_table_names_three_cuts(finished: Any) -> None:
    view = View(finished)
    table = rows(cost_table(view, view.main["r8"]))
    whole, attention, core = (float(cell) for cell in table["budget-low"][2:5])
    assert 0 < whole < attention
    assert core > whole
    assert table["dense"][2] == "baseline"
    assert table["dense"][5] == "250,000"


def test_time_table_puts_the_promise_beside_what_was_realised(finished: Any) -> None:
    view = View(finished)
    table = rows(time_table(view, view.main["r8"]))
    low = next(v for v in view.main["r8"] if v.label == "budget-low")
    promised = view.promised(low)
    assert promised is not None
    assert table["budget-low"][0] == f"{promised:.2f}"
    assert re.fullmatch(r"\d\.\d\d \[\d\.\d\d, \d\.\d\d\]", table["budget-low"][2])
    assert float(table["dense"][3]) > float(table["budget-low"][3])
    assert "J; constant; 71 % of it for RAM; single pass" in time_table(view, view.main["r8"])


def test_more_time_saved_than_work_is_explained(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(promise=1.05, keep=lambda w: w.meter.name == "latency"))
    view = View(made_up.results())
    note = time_note(view, view.main["r8"])
    assert "above the promise for `budget-low` at batch 32, " in note
    assert "softmax, memory traffic and operator calls" in note
    assert "budget-low` at batch 1" not in note


def test_equal_peaks_are_explained_and_others_are_not(made_up: Any, tuning: Any) -> None:
    def note(**changes: Any) -> str:
        made_up.write(tuning(keep=lambda w: w.planned.sweep == "main", **changes))
        view = View(made_up.results())
        return time_note(view, view.main["r8"])

    assert "it is reached in the feed-forward part" in note()
    assert "feed-forward part" not in note(peak={"budget-high": 0.9})


def test_s_is_shown_of_models_that_have_a_budget_network(finished: Any) -> None:
    view = View(finished)
    table = rows(accuracy_table(view, "r8", view.main["r8"]))
    assert table["random-trained"][5] == "-"
    for label in ("budget-low", "random-at-test"):
        assert table[label][5].startswith("0.")


def test_batch_sizes_are_those_that_were_timed(made_up: Any, tuning: Any) -> None:
    text = made_up.path.read_text(encoding="utf-8")
    made_up.path.write_text(
        text.replace("[recipe]", "[options.latency]\nbatch_sizes = [1]\n[recipe]")
    )
    made_up.write(tuning(batch_sizes=(1,), keep=lambda w: w.planned.sweep == "main"))
    view = View(made_up.results())
    headers, _, *table = time_table(view, view.main["r8"]).splitlines()
    assert "realised, batch 1 (x)" in headers
    assert "batch 32" not in headers
    assert "missing" not in "".join(table)


def test_a_single_seed_says_so(made_up: Any, tuning: Any, tmp_path: Path) -> None:
    made_up.write(tuning(keep=lambda wanted: wanted.point.seed == 0))
    view = View(made_up.results())
    table = rows(accuracy_table(view, "r8", view.main["r8"]))
    assert re.fullmatch(r"\d\d\.\d \[\d\d\.\d, \d\d\.\d\] single", table["budget-low"][0])
    assert table["budget-low"][1].endswith(" single")
    assert re.fullmatch(r"partial: \d+ of \d+ records missing \(all of seeds 1, 2\)\.", state(view))


def test_a_half_measured_seed_is_not_called_there(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: w.point.seed == 0 or w.meter.name == "accuracy"))
    assert state(View(made_up.results())).endswith("missing (some of seeds 1, 2).")


def test_nothing_measured_yet_is_a_report_too(made_up: Any, tmp_path: Path) -> None:
    text = (write(made_up.results(), [], tmp_path / "out") / README).read_text(encoding="utf-8")
    first = text.split("\n\n")[2]
    assert first.startswith("**Nothing was measured yet: this page shows what the suite asks for")
    assert "State: nothing was measured yet, " in text
    assert text.count("*No figure: ") == 9
    assert not (tmp_path / "out" / "figures").exists()
    assert "missing: training, accuracy, flops of 21 points of sweep `main` on r8" in text
    assert "## In short" not in text


def test_failures_and_warnings_keep_their_text(
    made_up: Any, tuning: Any, not_drawn: None, tmp_path: Path
) -> None:
    made_up.write(
        tuning(
            fail=lambda w: w.meter.name == "flops" and w.point.label == "fewer-heads",
            warn=lambda w: ["noisy at batch 1: 14 %"] if w.meter.name == "latency" else [],
        )
    )
    results = made_up.results()
    text = (write(results, [], tmp_path / "out") / README).read_text(encoding="utf-8")
    assert f"{len(results.failed)} measurements failed" in text
    assert (
        "**failed**: flops of `fewer-heads` on r8, seed 0: RuntimeError: made to fail | here"
        in text
    )
    assert text.count("noisy at batch 1: 14 %") == 1
    view = View(results)
    assert rows(cost_table(view, view.main["r8"]))["fewer-heads"][0] == "missing"


def test_a_set_that_needs_no_attention_is_called_that(made_up: Any, tuning: Any) -> None:
    equal = tuning(spread=0.0, keep=accuracy_only, accuracy={("r8", "no-attention"): 0.954})
    assert "**r8**: this set does not need attention" in caveats(
        View(made_up.write(equal).results())
    )


def test_a_set_that_needs_attention_is_not(made_up: Any, tuning: Any) -> None:
    worse = tuning(spread=0.0, keep=accuracy_only, accuracy={("r8", "no-attention"): 0.80})
    text = caveats(View(made_up.write(worse).results()))
    assert "need attention" not in "".join(line for line in text.splitlines() if "**r8**" in line)


def test_controls_that_do_as_well_take_the_credit(made_up: Any, tuning: Any) -> None:
    equal = tuning(
        spread=0.0,
        keep=accuracy_only,
        accuracy={("r8", "random-trained"): 0.949, ("r8", "fewer-heads"): 0.90},
    )
    text = caveats(View(made_up.write(equal).results()))
    assert "**r8**: `random-trained` is not a point less accurate than `budget-low`" in text
    assert "**r8**: `fewer-heads`" not in text


@pytest.mark.parametrize(
    ("accuracy", "spread", "said"),
    [
        (0.960, 0.0, "`random-trained` is more accurate than `budget-low`"),
        (0.949, 0.0, "`random-trained` is not a point less accurate than `budget-low`"),
        (0.942, 0.0, "`random-trained` is not a point less accurate than `budget-low`"),
        (0.949, 0.02, "cannot be told apart at 3 seeds"),
        (0.930, 0.0, ""),
    ],
)
def test_a_controls_warning_says_what_its_interval_shows(
    made_up: Any, tuning: Any, accuracy: float, spread: float, said: str
) -> None:
    made_up.write(
        tuning(spread=spread, keep=accuracy_only, accuracy={("r8", "random-trained"): accuracy})
    )
    lines = [
        re.sub(r"\([^)]*\)", "(*)", line)
        for line in caveats(View(made_up.results())).splitlines()
        if "**r8**" in line and "`random-trained`" in line
    ]
    assert [said in line for line in lines] == ([True] if said else [])
    assert not any("matters" in line for line in lines)


def test_one_seed_decides_nothing_about_controls(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: accuracy_only(w) and w.point.seed == 0))
    text = caveats(View(made_up.results()))
    assert text.count("one seed decides nothing between `budget-low` and its controls") == 2
    assert "less accurate than `budget-low`" not in text


def test_slow_at_batch_1_is_said_however_fast_at_32(finished: Any) -> None:
    text = caveats(View(finished))
    for dataset in ("r8", "rotten-tomatoes"):
        [line] = [x for x in text.splitlines() if f"**{dataset}**: slower than `dense`" in x]
        assert "`budget-low` at batch 1 (0." in line
        assert "at batch 32" not in line


def test_a_bag_of_words_is_compared_as_it_was_trained(made_up: Any, tuning: Any) -> None:
    made_up.write(tuning(keep=lambda w: w.meter.name in {"accuracy", "training"}))
    [line] = [x for x in caveats(View(made_up.results())).splitlines() if "- **r8**: a bag" in x]
    assert "(TF-IDF) reaches 97.1 % on test, trained on train and validation together" in line
    assert "`dense`, trained on the train split alone for 9.0 s a seed, reaches 95." in line


@pytest.mark.parametrize(("source", "said"), [("constant", True), ("model", True), ("rapl", False)])
def test_modelled_energy_is_said_to_restate_time(
    made_up: Any, tuning: Any, source: str, said: bool
) -> None:
    made_up.write(tuning(energy_source=source, keep=lambda w: w.meter.name == "carbon"))
    text = caveats(View(made_up.results()))
    assert ("Energy is not metered" in text) is said
    assert ("71 % of it for RAM; single pass" in text) is said


def test_several_machines_are_told_apart(finished: Any) -> None:
    first, *others = finished.records
    moved = first.model_copy(
        update={"environment": first.environment.model_copy(update={"cpu": "Other CPU"})}
    )
    lines = machines([moved, *others])
    assert len(lines) == 2
    assert lines[1].startswith("Machine: Other CPU")
    assert lines[1].endswith("(1 record).")
