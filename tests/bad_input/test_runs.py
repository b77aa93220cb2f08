"""What can go wrong in a run costs its own points only, and loses nothing that is finished."""

from __future__ import annotations

import errno
import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.cli.app import run
from benchmarks.meters.interface import Measurement
from benchmarks.records import Value
from benchmarks.running.runner import exclusive_use
from benchmarks.running.store import DamagedRecordWarning, RecordStore

if TYPE_CHECKING:
    from conftest import MakeData, WriteSuite

BOTH_RATES = ('baseline = "dense"', 'baseline = "dense"\naxes = { peak_lr = [3e-3, 1e6] }')


def records(runs: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in runs.glob("records/*/*.json")}


def statuses(runs: Path) -> dict[str, set[str]]:
    """Label: the statuses of its records."""
    found: dict[str, set[str]] = {}
    for record in RecordStore(runs / "records").all():
        found.setdefault(record.label, set()).add(record.status)
    return found


def test_a_training_that_diverges_fails_alone_and_every_command_says_so(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite(BOTH_RATES)
    assert run(["run", path, *inline]) == 1
    out = capsys.readouterr().out
    failed = next(line for line in out.splitlines() if "FAILED tiny dense seed 0" in line)
    assert "training diverged in epoch 1, step 2 of 3" in failed
    found = RecordStore(own_runs / "records").all()
    rates = {r.point["recipe"].get("peak_lr", 0.003): r.status for r in found}
    assert rates == {0.003: "ok", 1000000: "failed"}
    assert run(["check", path]) == 1
    assert "regression or failed point" in capsys.readouterr().out
    assert run(["report", path]) == 0
    assert "training diverged" in (own_runs / "reports/mine/README.md").read_text("utf-8")
    failed = next(r for r in found if r.status == "failed")
    assert run(["show", failed.point_id]) == 0
    assert "DivergedError: training diverged" in capsys.readouterr().out


def test_weights_that_diverge_in_the_last_step_are_no_artifact(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe = "epochs = 1\nwarmup = 0.0\npeak_lr = 1e38\nclip = 1e30"
    path = write_suite(("epochs = 1", recipe), ("batch_size = 4", "batch_size = 64"))
    assert run(["run", path, "--only", "dense", *inline]) == 1
    assert "training diverged in its last step: " in capsys.readouterr().out
    assert not list(own_runs.rglob("weights.safetensors"))


@pytest.mark.parametrize(
    ("measurement", "said"),
    [
        (
            Measurement([Value(name="macs", value=float("nan"), unit="MACs")]),
            "macs is nan, not a number",
        ),
        (
            Measurement([Value(name="x", value=1, low=float("-inf"), unit="s")]),
            "low of x is -inf",
        ),
        (Measurement([], series={"loss": [0.5, float("nan")]}), "series.loss[1] is nan"),
        (Measurement([], info={"thing": {"x": object()}}), "info.thing.x is <object"),
    ],
)
def test_a_meter_s_nan_is_a_failed_record_and_not_a_broken_file(
    measurement: Measurement,
    said: str,
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("benchmarks.meters.flops.measure", lambda *_: measurement)
    path = write_suite()
    assert run(["run", path, "--only", "dense", *inline]) == 1
    assert f"meter 'flops': {said}" in capsys.readouterr().out

    def refuse(constant: str) -> Any:
        raise AssertionError(constant)

    found = [json.loads(text, parse_constant=refuse) for text in records(own_runs).values()]
    assert {r["meter"]: r["status"] for r in found} == {
        "training": "ok",
        "accuracy": "ok",
        "flops": "failed",
    }


class Samples:
    """A replicated meter whose samples hold an object that no file can, or make NaN."""

    def sample(self, items: Any, replicate: int, options: Mapping[str, Any]) -> list[Any]:
        del replicate, options
        return [{"x": object() if items[0][0].point.label == "low" else 1.0} for _ in items]

    def combine(self, samples: Any, options: Mapping[str, Any]) -> Measurement:
        del samples, options
        return Measurement([Value(name="x", value=float("nan"), unit="s")])


def test_samples_that_no_file_can_hold_are_failed_records_too(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.meters.carbon.Carbon", Samples)
    path = write_suite(('"flops"', '"carbon"'))
    assert run(["run", path, *inline]) == 1
    found = RecordStore(own_runs / "records").all()
    failures = {r.label: r.failure.message for r in found if r.failure is not None}
    assert failures["dense"] == "meter 'carbon': x is nan, not a number"
    assert "not JSON serializable" in failures["low"]
    assert len([r for r in found if r.status == "ok"]) == 6
    assert not list((own_runs / "samples").iterdir())


def test_altered_weights_fail_what_needs_them_and_say_what_to_delete(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite(('"flops"', '"training"'), ('["training", ', "["))
    assert run(["run", path, *inline]) == 0
    before = records(own_runs)
    for file in own_runs.glob("artifacts/*/*/artifact.json"):
        if json.loads(file.read_text())["declared"]["model"] == "budgetformer":
            weights = file.with_name("weights.safetensors")
            weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    capsys.readouterr()
    assert run(["run", write_suite(('"training", ', "")), *inline]) == 1
    out = capsys.readouterr().out
    folder = weights.parent.relative_to(own_runs).as_posix()
    assert f"{folder}/weights.safetensors cannot be used: its SHA-256 is" in out
    assert f"Delete the folder {folder} inside the runs folder" in out
    assert statuses(own_runs) == {
        "dense": {"ok"},
        "low": {"ok", "failed"},
        "random": {"ok", "failed"},
    }
    assert {p: p.read_bytes() for p in before} == before
    for file in weights.parent.iterdir():
        file.unlink()
    weights.parent.rmdir()
    assert run(["run", path, *inline]) == 0
    assert run(["run", path, "--engine", "gpu"]) == 2  # though nothing is left to run


def test_a_missing_or_altered_package_is_one_message_before_anything_runs(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite()
    with zipfile.ZipFile(tiny, "a") as archive:
        archive.writestr("more.txt", "x")
    assert run(["run", path, *inline]) == 2
    err = capsys.readouterr().err
    assert re.search(r"tiny-1-py3-none-any\.whl was altered: .*`frugalbench fetch tiny`", err)
    tiny.unlink()
    assert run(["run", path, *inline]) == 2
    assert "data not here yet: tiny. Fetch it with `frugalbench fetch tiny`" in (
        capsys.readouterr().err
    )
    assert records(own_runs) == {}


def test_a_class_that_training_lacks_is_told(
    make_data: MakeData,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_data([f"{'a' if i < 12 else 'b'}\tred thing" for i in range(20)])
    assert run(["run", write_suite(), "--only", "dense", *inline]) == 1
    assert "data set 'tiny': no training row is of class 'b'" in capsys.readouterr().out
    assert statuses(own_runs) == {"dense": {"failed"}}


def test_empty_texts_and_texts_beyond_the_positions_are_no_mistake(
    make_data: MakeData, inline: list[str], write_suite: WriteSuite, own_runs: Path
) -> None:
    texts = ["", "red " * 50, "...", "red thing"]
    make_data([f"{'ab'[i % 2]}\t{texts[i % 4]}" for i in range(20)])
    assert run(["run", write_suite(), *inline]) == 0
    store = RecordStore(own_runs / "records")
    (record,) = [r for r in store.all() if (r.meter, r.label) == ("accuracy", "dense")]
    arrays = store.read_arrays(record)
    assert arrays is not None
    assert sorted(arrays["length"]) == [1, 2, 3, 8]  # one [UNK] for nothing; cut to max_length


def test_a_disk_that_fills_up_ends_the_run_and_loses_nothing(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite()
    replace, room = Path.replace, [6]

    def full(self: Path, target: Path) -> Path:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", full)
    assert run(["run", path, *inline]) == 2
    err = capsys.readouterr().err
    assert "No space left on device. Free some space" in err
    assert "everything finished is kept" in err
    kept = records(own_runs)
    assert kept
    assert not list(own_runs.rglob("*.part"))
    room[0] = 1000
    assert run(["run", path, *inline]) == 0
    assert {p: p.read_bytes() for p in kept} == kept
    assert len(records(own_runs)) == 9


def test_a_half_written_record_is_named_and_measured_again_alone(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite()
    assert run(["run", path, *inline]) == 0
    before = records(own_runs)
    torn = next(p for p in before if p.name.startswith("flops"))
    torn.write_bytes(before[torn][:200])
    capsys.readouterr()
    with pytest.warns(DamagedRecordWarning, match=torn.name):
        assert run(["run", path, *inline]) == 0
    assert "3 points, 8 of 9 records are here" in capsys.readouterr().out
    after = records(own_runs)
    assert {p for p in before if after[p] != before[p]} <= {torn}
    assert json.loads(after[torn])["status"] == "ok"


def test_a_second_run_of_the_suite_is_told_who_has_it(
    tiny: Path,
    inline: list[str],
    write_suite: WriteSuite,
    own_runs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = write_suite()
    with exclusive_use(own_runs, "mine"):
        assert run(["run", path, *inline]) == 2
    assert "is in use by process" in capsys.readouterr().err
    assert run(["run", path, *inline]) == 0
