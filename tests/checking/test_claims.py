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
from benchmarks.planning.expand import expand
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


def test_arrays_damaged_meanwhile_cost_the_evidence_alone(world: World) -> None:
    world.fill()
    results = collect("tiny")
    wanted = world.find("budget", 1, "accuracy")
    record = wanted.existing(world.store)
    assert record is not None
    assert record.arrays is not None
    (world.store.path_for(record).parent / record.arrays).write_bytes(b"half")
    (verdict,) = next(r.verdicts for r in evaluate(results) if r.claim.id == "accuracy")
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
        sweep = claim.check_names(expand(load_suite(claim.suite)))
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
        ('["budget"]', '["budget", "budget"]', "candidates: 'budget' is named twice"),
        ('["r8"]', '["r8", "r8"]', "datasets: 'r8' is named twice"),
        ("value = -0.01", "value = -1.01", "threshold.value: an accuracy_difference is a fraction"),
        ("value = -0.01", "value = 2", "from -1 to 1 (0.01 is one point), not 2.0"),
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


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("macs", "value = 0.979", "value = 0", "threshold.value: a ratio is above 0, not 0.0"),
        ("speed", "value = 1.0", "value = -1", "threshold.value: a ratio is above 0, not -1.0"),
        (
            "speed", "[source]", "confidence = 0.9\n[source]",
            "confidence: a record states the interval of speedup at 0.95 alone, not 0.9",
        ),
    ],
)  # fmt: skip
def test_number_that_no_record_can_answer_is_refused(
    world: World, name: str, old: str, new: str, message: str
) -> None:
    path = paths.resource_dir("claims") / f"{name}.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidFileError) as error:
        load_claim(path)
    assert str(error.value).endswith(f"{name}.toml: {message}")


def test_other_confidence_where_the_interval_is_made_here(world: World) -> None:
    path = paths.resource_dir("claims") / "accuracy.toml"
    path.write_text(path.read_text().replace("[source]", "confidence = 0.9\n[source]"))
    world.fill()
    interval = verdict_of(world, "accuracy").interval
    assert interval is not None
    assert interval.confidence == 0.9


def test_claim_about_what_its_suite_never_measures(world: World) -> None:
    claim = paths.resource_dir("claims") / "speed.toml"
    text = claim.read_text()
    claim.write_text(text.replace("batch_size = 32", "batch_size = 64"))
    message = r"batch_size: 'tiny' times no batch of 64 for 'budget' on r8; it has 1, 32$"
    with pytest.raises(InvalidFileError, match=message):
        evaluate(collect("tiny"))
    suite = paths.resource_dir("suites") / "tiny.toml"
    # another sweep times that size, but of other points
    other = 'axes = { depth = [2] }\noptions.latency.batch_sizes = [64]\nbaseline = "dense"'
    suite.write_text(
        with_budget(suite.read_text())
        .replace('["flops"]', '["flops", "latency"]')
        .replace("axes = { depth = [1, 2] }", other)
    )
    with pytest.raises(InvalidFileError, match=message):
        evaluate(collect("tiny"))
    claim.write_text(text)
    suite.write_text(suite.read_text().replace(', "latency"]', "]"))
    with pytest.raises(InvalidFileError, match="quantity: speedup is what the meter 'latency'"):
        evaluate(collect("tiny"))


def with_budget(suite: str) -> str:
    """The suite with the second model in the sweep `depths`, which comes last."""
    return f'{suite}[[sweep.variants]]\nlabel = "budget"\nmodel = "budgetformer"\n'


def test_claim_against_another_baseline_than_pairs_are_timed_with(world: World) -> None:
    for name in ("accuracy", "macs", "speed"):
        path = paths.resource_dir("claims") / f"{name}.toml"
        path.write_text(path.read_text().replace('"dense"', '"no-attention"'))
        claim = load_claim(path)
        if name != "speed":
            claim.check_names(expand(load_suite("tiny")))  # no pair is needed
            continue
        message = "baseline: 'budget' on r8 is timed against 'dense' alone, not 'no-attention'$"
        with pytest.raises(InvalidFileError, match=message):
            claim.check_names(expand(load_suite("tiny")))


@pytest.mark.parametrize("name", ["accuracy", "speed"])
def test_another_sweep_measures_a_claim_where_the_points_are_equal(world: World, name: str) -> None:
    suite = paths.resource_dir("suites") / "tiny.toml"
    text = with_budget(suite.read_text())
    suite.write_text(text)
    path = paths.resource_dir("claims") / f"{name}.toml"
    path.write_text(path.read_text().replace('"main"', '"depths"'))
    claim = load_claim(path)
    claim.check_names(expand(load_suite("tiny")))  # depth 1 is that of `main`
    suite.write_text(text.replace("depth = [1, 2]", "depth = [2]"))
    with pytest.raises(InvalidFileError) as error:
        claim.check_names(expand(load_suite("tiny")))
    both = "'budget'" if name == "speed" else "'budget' and 'dense'"
    assert str(error.value).endswith(f"no sweep with it has the points of {both} on r8")


def test_candidate_that_the_suite_skips_is_refused_only_where_no_other_is_left(
    world: World,
) -> None:
    suite = paths.resource_dir("suites") / "tiny.toml"
    skip = 'baseline = "dense"\nskip = [{ match = { variant = "budget" }, reason = "a test" }]'
    suite.write_text(suite.read_text().replace('baseline = "dense"', skip, 1))
    path = paths.resource_dir("claims") / "speed.toml"
    text = path.read_text()
    with pytest.raises(InvalidFileError, match="candidates: sweep 'main' skips or excludes every"):
        load_claim(path).check_names(expand(load_suite("tiny")))
    path.write_text(text.replace('["budget"]', '["budget", "no-attention"]'))
    load_claim(path).check_names(expand(load_suite("tiny")))
