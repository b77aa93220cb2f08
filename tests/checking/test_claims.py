from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import paths
from benchmarks.checking.attention import attention_need
from benchmarks.checking.claim_files import DECIDES, Threshold, load_claim, load_claims
from benchmarks.checking.claims import evaluate
from benchmarks.checking.verdicts import judge, overall
from benchmarks.errors import InvalidFileError
from benchmarks.planning.suite import load_suite
from benchmarks.results import collect
from benchmarks.statistics.intervals import Interval

if TYPE_CHECKING:
    from conftest import World

    from benchmarks.checking.verdicts import ClaimResult, Verdict


def results_of(world: World) -> dict[str, ClaimResult]:
    return {result.claim.id: result for result in evaluate(collect("tiny"))}


def verdict_of(world: World, claim: str) -> Verdict:
    (verdict,) = results_of(world)[claim].verdicts
    return verdict


def test_every_claim_holds_where_the_numbers_are_clear(world: World) -> None:
    world.fill()
    results = results_of(world)
    assert {name: result.outcome for name, result in results.items()} == {
        "accuracy": "holds", "macs": "holds", "speed": "holds",
    }  # fmt: skip
    accuracy = results["accuracy"].verdicts[0]
    assert accuracy.estimate == pytest.approx((0.001 + 0.0 + 0.001) / 3)
    assert accuracy.interval is not None
    assert (accuracy.interval.method, accuracy.n) == ("paired_t", 3)
    assert len(accuracy.records) == 6
    assert all((world.store.root / name).is_file() for name in accuracy.records)
    assert accuracy.caveats == ()  # no-attention is 5 points worse, so attention is needed


def test_accuracy_carries_the_bootstrap_over_examples_of_each_seed(world: World) -> None:
    world.fill()
    evidence = verdict_of(world, "accuracy").evidence
    assert [*evidence] == [f"seed {seed}, over examples" for seed in (0, 1, 2)]
    first = evidence["seed 0, over examples"]
    assert (first.method, first.n) == ("paired_bootstrap", 1000)
    assert first.estimate == pytest.approx(0.001)
    assert first.low == 0.0  # joined by row id: one example differs, none the other way


@pytest.mark.parametrize(
    ("budget", "outcome"),
    [
        ((0.900, 0.902, 0.899), "refuted"),
        ((0.951, 0.930, 0.960), "undecided"),
        ((0.941, 0.943, 0.940), "holds"),  # -0.9 points on every seed, within the margin
    ],
)
def test_accuracy_verdict_follows_the_interval(
    world: World, budget: tuple[float, ...], outcome: str
) -> None:
    world.accuracy["budget"] = budget
    world.fill()
    verdict = verdict_of(world, "accuracy")
    assert verdict.outcome == outcome
    assert "at least -0.01 (paired_t, n = 3)" in verdict.reason


@pytest.mark.parametrize(
    ("budget", "outcome"),
    [
        ((1.05e6, 1.06e6, 1.04e6), "refuted"),
        ((0.7e6, 1.0e6, 1.3e6), "undecided"),
        ((0.99e6,) * 3, "refuted"),
    ],
)
def test_macs_verdict_follows_the_interval(
    world: World, budget: tuple[float, ...], outcome: str
) -> None:
    world.macs["budget"] = budget
    world.fill()
    assert verdict_of(world, "macs").outcome == outcome


def test_identical_macs_on_every_seed_are_an_interval_without_width(world: World) -> None:
    world.macs["budget"] = (0.9e6,) * 3
    world.fill()
    verdict = verdict_of(world, "macs")
    assert verdict.outcome == "holds"
    assert verdict.interval is not None
    assert verdict.interval.low == verdict.interval.high == pytest.approx(0.9)
    assert verdict.caveats == ("the same on every seed, so the interval has no width",)


@pytest.mark.parametrize(
    ("logs", "outcome"),
    [((-0.10, -0.12, -0.11), "refuted"), ((-0.1, 0.0, 0.12), "undecided")],
)
def test_speed_verdict_follows_the_recorded_interval(
    world: World, logs: tuple[float, ...], outcome: str
) -> None:
    world.logs["budget"] = logs
    world.fill()
    verdict = verdict_of(world, "speed")
    assert verdict.outcome == outcome
    assert verdict.caveats == ("the MACs of the same weights and inputs promise 1.25x",)


def test_speed_without_an_interval_is_undecided_and_noise_is_said(world: World) -> None:
    world.fill()
    wanted = world.find("budget", 0, "latency")
    record = world.write(wanted, warnings=["noisy: IQR/median 14 %"])
    assert "noisy: IQR/median 14 %" in verdict_of(world, "speed").caveats
    bare = [value.model_copy(update={"low": None, "high": None}) for value in record.values]
    world.write(wanted, values=bare)
    verdict = verdict_of(world, "speed")
    assert (verdict.outcome, verdict.interval) == ("undecided", None)
    assert verdict.estimate == pytest.approx(record.values[1].value)


def test_one_seed_is_single_and_undecided(world: World) -> None:
    for wanted in world.wanted:
        if wanted.point.seed == 0:
            world.write(wanted)
    verdict = verdict_of(world, "accuracy")
    assert (verdict.outcome, verdict.interval) == ("undecided", None)
    assert verdict.estimate == pytest.approx(0.001)
    assert "single" in verdict.reason


def test_nothing_measured_is_its_own_verdict(world: World) -> None:
    assert {result.outcome for result in results_of(world).values()} == {"unmeasured"}
    world.fill(without=[("dense", "accuracy")])
    verdict = verdict_of(world, "accuracy")
    assert (verdict.outcome, verdict.estimate) == ("unmeasured", None)
    world.fail(world.find("dense", 0, "accuracy"))
    world.fail(world.find("budget", 0, "accuracy"))
    assert "a point failed" in verdict_of(world, "accuracy").reason


@pytest.mark.parametrize(
    ("control", "need", "text"),
    [
        ((0.951, 0.952, 0.950), "not needed", "a small head budget proves nothing here"),
        ((0.951, 0.930, 0.960), "unclear", "not shown that this set needs attention"),
        ((0.900, 0.903, 0.898), "needed", ""),
    ],
)
def test_caveat_where_attention_is_not_needed(
    world: World, control: tuple[float, ...], need: str, text: str
) -> None:
    world.accuracy["no-attention"] = control
    world.fill()
    found = attention_need(collect("tiny"), "main", "r8")
    assert found.need == need
    assert text in found.text
    assert verdict_of(world, "accuracy").caveats == ((found.text,) if found.text else ())


def test_attention_need_unmeasured_without_the_control(world: World) -> None:
    world.fill(without=[("no-attention", "accuracy")])
    assert attention_need(collect("tiny"), "main", "r8").need == "unmeasured"


def test_damaged_arrays_cost_the_evidence_alone(world: World) -> None:
    world.fill()
    wanted = world.find("budget", 1, "accuracy")
    record = wanted.existing(world.store)
    assert record is not None
    assert record.arrays is not None
    (world.store.path_for(record).parent / record.arrays).write_bytes(b"half")
    verdict = verdict_of(world, "accuracy")
    assert verdict.outcome == "holds"
    assert len(verdict.evidence) == 2


THRESHOLD = {"value": 0.0, "why": "test"}


@given(
    st.sampled_from(["at least", "above", "at most", "below"]),
    st.floats(-1, 1),
    st.floats(0, 1),
)
def test_judge_holds_on_one_side_and_is_refuted_on_the_other(
    direction: str, low: float, width: float
) -> None:
    interval = Interval(low, low, low + width, "paired_t", 0.95, 3)
    mirrored = Interval(-low, -low - width, -low, "paired_t", 0.95, 3)
    flip = {"at least": "at most", "above": "below", "at most": "at least", "below": "above"}
    outcome = judge(interval, Threshold(direction=direction, **THRESHOLD))
    assert outcome == judge(mirrored, Threshold(direction=flip[direction], **THRESHOLD))
    opposite = {"at least": "below", "above": "at most", "at most": "above", "below": "at least"}
    other = judge(interval, Threshold(direction=opposite[direction], **THRESHOLD))
    assert {outcome, other} in ({"holds", "refuted"}, {"undecided"})
    if low < 0 < low + width:
        assert outcome == "undecided"


def test_overall() -> None:
    assert overall(["holds", "holds"]) == "holds"
    assert overall(["holds", "undecided", "refuted"]) == "refuted"
    assert overall(["holds", "unmeasured"]) == "undecided"
    assert overall(["unmeasured"]) == overall([]) == "unmeasured"


def test_committed_claims_are_valid_and_fit_their_suites() -> None:
    claims = load_claims()
    assert {claim.quantity for claim in claims} == set(DECIDES)
    for claim in claims:
        sweep = claim.check_names(load_suite(claim.suite))
        if claim.quantity == "speedup":  # pairs are timed with this one alone
            assert sweep.baseline == claim.baseline


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("paired_t", "log_ratio_t", "decided_by: accuracy_difference is decided by paired_t"),
        ("title =", "titel =", "unknown key 'titel'; did you mean 'title'"),
        ("why =", "wy =", "unknown key 'wy'"),
        ('id = "accuracy"', 'id = "other"', "must be the file's name, 'accuracy'"),
        ("value = -0.01", 'value = "low"', "threshold.value: "),
        ("value = -0.01", "value = nan", "threshold.value: "),
        ('["budget"]', "[]", "candidates: "),
        ('["budget"]', '["dense"]', "'dense' is the baseline itself"),
        ("[source]", "batch_size = 1\n[source]", "accuracy_difference takes no batch_size"),
        ("[source]", "[source", "is not valid TOML"),
    ],
)
def test_bad_claim_file_is_one_clear_message(
    world: World, old: str, new: str, message: str
) -> None:
    path = paths.resource_dir("claims") / "accuracy.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InvalidFileError) as error:
        load_claim(path)
    assert message in str(error.value)
    assert "accuracy.toml: " in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"main"', '"mian"', "sweep: unknown sweep 'mian'; did you mean 'main'"),
        ('["budget"]', '["bugdet"]', "candidates: unknown label 'bugdet'; did you mean 'budget'"),
        ('["r8"]', '["r52"]', "datasets: unknown data set 'r52'"),
    ],
)
def test_claim_that_names_what_its_suite_has_not(
    world: World, old: str, new: str, message: str
) -> None:
    path = paths.resource_dir("claims") / "accuracy.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidFileError, match=r"accuracy\.toml") as error:
        evaluate(collect("tiny"))
    assert message in str(error.value)


def test_claim_about_what_its_suite_never_measures(world: World) -> None:
    claim = paths.resource_dir("claims") / "speed.toml"
    claim.write_text(claim.read_text().replace("batch_size = 32", "batch_size = 64"))
    with pytest.raises(InvalidFileError, match=r"batch_size: 'tiny' times no batch of 64; it has "):
        evaluate(collect("tiny"))
    suite = paths.resource_dir("suites") / "tiny.toml"
    suite.write_text(suite.read_text().replace(', "latency"]', "]"))
    with pytest.raises(InvalidFileError, match="quantity: speedup is what the meter 'latency'"):
        evaluate(collect("tiny"))
