from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

import benchmarks.registry
from benchmarks.catalog import DATASETS, METERS, MODELS, config_class, load_target
from benchmarks.errors import InvalidFileError, UsageError
from benchmarks.registry import Entry, Registry
from models.config import ModelConfig


def entry(
    name: str, value: Any, origin: str = "here", loads: list[str] | None = None
) -> Entry[Any]:
    def load() -> Any:
        if loads is not None:
            loads.append(name)
        return value

    return Entry(name, load, origin, value)


def test_names_are_sorted_and_load_nothing() -> None:
    loads: list[str] = []
    registry: Registry[int] = Registry(
        "number", discover=lambda: [entry("two", 2, loads=loads), entry("one", 1, loads=loads)]
    )
    assert registry.names() == ("one", "two")
    assert "one" in registry
    assert "three" not in registry
    assert loads == []
    assert (registry.get("one"), registry.get("one")) == (1, 1)
    assert loads == ["one"]


def test_an_unknown_name_suggests_its_neighbours() -> None:
    registry: Registry[int] = Registry("number")
    registry.register("seven", 7)
    with pytest.raises(UsageError, match=r"unknown number 'sevn'; did you mean 'seven'\?"):
        registry.get("sevn")
    with pytest.raises(UsageError, match=r"unknown number 'SEVEN'; did you mean 'seven'\?"):
        registry.get("SEVEN")
    with pytest.raises(UsageError, match="unknown number 'x'"):
        registry.origin("x")


def test_the_same_target_twice_is_harmless_and_another_one_is_not() -> None:
    registry: Registry[int] = Registry("number")
    registry.register("one", 1, origin="first.py")
    registry.register("one", 1, origin="first.py")
    with pytest.raises(UsageError, match=r"called 'one': one from first\.py, one from second\.py"):
        registry.register("one", 2, origin="second.py")
    assert registry.get("one") == 1
    assert registry.origin("one") == "first.py"


def test_a_collision_in_discovery_is_reported_every_time() -> None:
    registry: Registry[int] = Registry(
        "number", discover=lambda: [entry("one", 1, "a"), entry("one", 2, "b")]
    )
    for _ in range(2):
        with pytest.raises(UsageError, match="one from a, one from b"):
            registry.names()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A package from outside that adds three numbers, one of which cannot be imported."""
    (tmp_path / "outside_numbers.py").write_text("FIVE = 5\nWORD = 'five'\n")
    info = tmp_path / "outside_numbers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-numbers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[test.numbers]\nfive = outside_numbers:FIVE\nword = outside_numbers:WORD\n"
        "lost = outside_lost:LOST\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(benchmarks.registry, "_entry_points", importlib.metadata.entry_points)
    return tmp_path


def whole(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError(f"expected a whole number, found {value!r}")
    return value


@pytest.mark.usefixtures("outside")
def test_an_outside_package_adds_names_and_is_loaded_on_use() -> None:
    registry: Registry[int] = Registry("number", group="test.numbers", accept=whole)
    assert registry.names() == ("five", "lost", "word")
    assert registry.get("five") == 5
    assert registry.origin("five") == "package outside-numbers (outside_numbers:FIVE)"
    with pytest.raises(UsageError, match=r"'lost' from package outside-numbers .* cannot be"):
        registry.get("lost")
    with pytest.raises(UsageError, match="expected a whole number, found 'five'"):
        registry.get("word")


@pytest.mark.usefixtures("outside")
def test_an_outside_package_cannot_take_a_name() -> None:
    registry: Registry[int] = Registry(
        "number", group="test.numbers", discover=lambda: [entry("five", 55, "numbers.py")]
    )
    with pytest.raises(UsageError, match=r"from numbers\.py, one from package outside-numbers"):
        registry.names()


def test_models_are_found_by_file_name() -> None:
    assert {"dense", "budgetformer", "fewer-heads", "no-attention"} <= set(MODELS.names())
    for name in MODELS.names():
        config = MODELS.get(name)
        assert issubclass(config, ModelConfig)
        assert config.target.startswith(f"models.{name.replace('-', '_')}:")
        assert config.summary
        assert MODELS.origin(name) == f"models/{name.replace('-', '_')}_config.py"


def test_a_config_module_defines_exactly_one_model() -> None:
    with pytest.raises(InvalidFileError, match=r"models/schedules\.py must define exactly one"):
        config_class("models.schedules")


def test_cards_and_meters_carry_their_registry_names() -> None:
    assert {"r8", "rotten-tomatoes", "sts-b", "random-tokens"} <= set(DATASETS.names())
    for name in DATASETS.names():
        assert DATASETS.get(name).name == name
    assert METERS.names() == (
        "accuracy",
        "carbon",
        "complexity",
        "deletion",
        "flops",
        "latency",
        "memory",
        "sparsity",
        "training",
    )
    for name in METERS.names():
        assert METERS.get(name).name == name


@pytest.mark.parametrize("name", ["training", "accuracy", "flops", "memory", "latency", "carbon"])
def test_a_meter_s_target_exists(name: str) -> None:
    spec = METERS.get(name)
    target = load_target(spec.target)
    wanted = ("sample", "combine") if spec.replicates else ("__call__",)
    assert all(hasattr(target, method) for method in wanted)


@pytest.mark.parametrize("name", ["flops", "memory", "latency", "carbon"])
def test_the_options_that_a_suite_may_set_are_those_of_the_meter(name: str) -> None:
    spec = METERS.get(name)
    assert load_target(f"{spec.target.partition(':')[0]}:DEFAULTS").keys() == set(spec.options)
