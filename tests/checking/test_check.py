from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import typer

from benchmarks.checking.check import check_suite
from benchmarks.cli.check import check
from benchmarks.errors import InvalidFileError
from benchmarks.running.store import RecordStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import World


def accept_as_they_are(world: World) -> None:
    """The current records as the reference, without a report."""
    store = RecordStore(world.root / "reports/reference/tiny/records", flat=True)
    for wanted in world.wanted:
        record = wanted.existing(world.store)
        if record is not None:
            store.write(record, world.store.read_arrays(record))
    shutil.rmtree(world.runs)


def code_of(**options: Any) -> int:
    try:
        check("tiny", **options)
    except typer.Exit as done:
        return done.exit_code
    return 0


def test_same_as_reference_is_green(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.fill()
    accept_as_they_are(world)
    world.fill()
    assert code_of(strict=True) == 0
    text = capsys.readouterr().out
    assert "no difference from the reference" in text
    assert "\x1b" not in text


def test_no_reference_is_said_and_not_red(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.fill()
    assert code_of() == 0
    assert "no reference yet" in capsys.readouterr().out


def lower_accuracy(world: World) -> None:
    world.accuracy["budget"] = (0.925, 0.927, 0.924)


def more_parameters(world: World) -> None:
    world.parameters["budget"] += 1


def dearer_at_k(world: World) -> None:
    world.at_k += 0.25


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        (lower_accuracy, "accuracy", "budget on r8, mean of 3 seed(s)"),
        (more_parameters, "parameters", "budget on r8, seed 0"),
        (dearer_at_k, "macs_at_k", "k = 2"),
    ],
)
def test_regression_each_way(
    world: World,
    change: Callable[[World], None],
    kind: str,
    what: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    world.fill()
    accept_as_they_are(world)
    change(world)
    world.fill()
    result = check_suite("tiny")
    assert {c.kind for c in result.regressions} == {kind}
    assert any(what in c.what for c in result.regressions)
    assert code_of() == 1
    assert f"{kind}, regression" in capsys.readouterr().out


def test_failed_point_is_red_even_without_a_reference(world: World) -> None:
    world.fill(without=[("budget", "memory")])
    world.fail(world.find("budget", 0, "memory"))
    (change,) = check_suite("tiny").changes
    assert (change.kind, change.red) == ("failed", True)
    assert change.current == "ValueError: it broke"
    assert code_of() == 1
    accept_as_they_are(world)
    world.fill()
    world.fail(world.find("budget", 0, "memory"))
    result = check_suite("tiny")
    assert [c.kind for c in result.changes] == ["failed"]


@pytest.mark.parametrize(
    ("reference", "current", "red"),
    [
        ((0.950, 0.952, 0.949), (0.931, 0.933, 0.930), False),  # less than 2 points
        ((0.950, 0.952, 0.949), (0.929, 0.931, 0.928), True),
        ((0.980, 0.900, 0.960), (0.920, 0.920, 0.920), False),  # inside the reference's interval
        ((0.930, 0.931, 0.929), (0.970, 0.970, 0.970), False),  # better
    ],
)
def test_accuracy_is_red_only_beyond_margin_and_interval(
    world: World, reference: tuple[float, ...], current: tuple[float, ...], red: bool
) -> None:
    world.accuracy["budget"] = reference
    world.fill()
    accept_as_they_are(world)
    world.accuracy["budget"] = current
    world.fill()
    assert bool(check_suite("tiny").regressions) is red


def test_what_follows_from_learned_weights_is_printed_and_never_red(world: World) -> None:
    world.fill()
    accept_as_they_are(world)
    world.macs["budget"] = (1.1e6, 1.12e6, 1.11e6)
    world.logs["budget"] = (-0.1, -0.12, -0.11)
    world.fill(without=[("no-attention", "memory")])
    result = check_suite("tiny")
    assert not result.regressions
    kinds = {c.kind for c in result.changes}
    assert kinds == {"macs", "speedup", "verdict", "missing"}
    verdicts = {(c.reference, c.current) for c in result.changes if c.kind == "verdict"}
    assert verdicts == {("holds", "refuted")}
    assert result.exit_code(strict=True) == 0  # a refuted claim is a finding


def test_a_ratio_that_moves_within_the_intervals_is_not_printed(world: World) -> None:
    world.fill()
    accept_as_they_are(world)
    world.logs["budget"] = (0.11, 0.13, 0.12)
    world.fill()
    assert check_suite("tiny").changes == []


def test_new_point_is_printed(world: World) -> None:
    world.fill(without=[("budget", "memory")])
    accept_as_they_are(world)
    world.fill()
    (change,) = check_suite("tiny").changes
    assert (change.kind, change.current, change.red) == ("new", "memory", False)


def test_undecided_is_three_only_with_strict(world: World) -> None:
    world.logs["budget"] = (-0.1, 0.0, 0.12)
    world.fill()
    assert code_of() == 0
    assert code_of(strict=True) == 3


@pytest.mark.parametrize("other", [(0.10, 0.12, 0.11), (-0.10, -0.12, -0.11)])
def test_strict_takes_an_unmeasured_claim_as_an_undecided_one(
    world: World, other: tuple[float, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    world.logs["budget"] = other  # one claim holds or is refuted, the others are unmeasured
    for wanted in world.wanted:
        if wanted.meter.name == "latency":
            world.write(wanted)
    assert {claim.outcome for claim in check_suite("tiny").claims} > {"unmeasured"}
    assert code_of() == 0
    assert code_of(strict=True) == 3
    assert "undecided or unmeasured (exit code 3" in capsys.readouterr().out


def test_strict_takes_an_unmeasured_candidate_of_a_refuted_claim_as_open(world: World) -> None:
    claims = world.root / "benchmarks/claims"
    for name in ("accuracy", "macs"):
        (claims / f"{name}.toml").unlink()
    text = (claims / "speed.toml").read_text()
    (claims / "speed.toml").write_text(text.replace('["budget"]', '["budget", "no-attention"]'))
    world.logs["budget"] = (-0.10, -0.12, -0.11)
    world.fill(without=[("no-attention", "latency")])
    (claim,) = check_suite("tiny").claims
    assert claim.outcome == "refuted"
    assert code_of() == 0
    assert code_of(strict=True) == 3
    world.fill()
    assert code_of(strict=True) == 0


@pytest.mark.parametrize("name", ["Tiny", "benchmarks/suites/tiny.toml", "tinny"])
def test_a_claim_whose_suite_there_is_not_is_refused(world: World, name: str) -> None:
    path = world.root / "benchmarks/claims/macs.toml"
    path.write_text(path.read_text().replace('"tiny"', f'"{name}"'))
    text = rf"macs\.toml: suite: unknown suite '{name}'; did you mean 'tiny'\?"
    with pytest.raises(InvalidFileError, match=text):
        check_suite("tiny")


def test_nothing_measured_is_four_and_regressions_come_first(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of() == 4
    assert code_of(strict=True) == 4
    assert "nothing could be checked" in capsys.readouterr().out
    world.fail(world.find("dense", 0, "accuracy"))
    assert code_of() == 1


def test_suite_that_no_claim_names(world: World) -> None:
    for path in (world.root / "benchmarks/claims").iterdir():
        path.unlink()
    assert code_of() == 4  # no record: nothing was checked
    world.fill()
    assert code_of() == 0  # a first look: nothing failed, and it says that nothing was compared
    accept_as_they_are(world)
    assert code_of() == 4  # nothing measured either
    world.fill()
    assert code_of() == 0


def test_json_says_all_of_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.fill()
    accept_as_they_are(world)
    more_parameters(world)
    world.fill()
    assert code_of(as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == 1
    assert {claim["id"]: claim["outcome"] for claim in document["claims"]} == {
        "accuracy": "holds", "macs": "holds", "speed": "holds",
    }  # fmt: skip
    assert document["regressions"][0]["reference"] == "4,321"
    assert document["claims"][0]["verdicts"][0]["interval"]["method"] == "paired_t"
