from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.catalog import METERS, MODELS
from benchmarks.data import identity
from benchmarks.errors import InvalidFileError
from benchmarks.paths import CHECKOUT
from benchmarks.planning import keys
from benchmarks.planning.expand import expand
from benchmarks.planning.points import Point
from benchmarks.planning.suite import load_suite

LOW = Point("budgetformer", {"s_max": 0.3}, "r8", 64)
DENSE = Point("dense", {}, "r8", 64)
RANDOM = Point("random-trained", {}, "r8", 64, source=LOW)

FILES = {
    "benchmarks/__init__.py": "from benchmarks.far import x\n",
    "benchmarks/a.py": '''"""What it is."""
from __future__ import annotations
from typing import TYPE_CHECKING
import models.plain
from . import near
if TYPE_CHECKING:
    from benchmarks.types_only import T

def f(x: int) -> int:
    """Adds."""
    from benchmarks.inner import g
    return g(x) + 1  # one
''',
    "benchmarks/near.py": "from .deep.leaf import y as y\nimport os\n",
    "benchmarks/deep/__init__.py": "",
    "benchmarks/deep/leaf.py": "y = 1\n",
    "benchmarks/inner.py": "from benchmarks.planning import points\ndef g(x): return x\n",
    "benchmarks/planning/__init__.py": "",
    "benchmarks/planning/points.py": "from benchmarks import far\n",
    "benchmarks/types_only.py": "T = int\n",
    "benchmarks/far.py": "x = 1\n",
    "models/__init__.py": "",
    "models/plain.py": "import benchmarks.a\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(keys, "CHECKOUT", tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    keys.source_closure.cache_clear()
    keys._module.cache_clear()
    keys._root.cache_clear()


def closure(tree: Path, **changes: str) -> str:
    for name, text in changes.items():
        (tree / "benchmarks" / f"{name}.py").write_text(text)
    forget()
    return keys.source_closure("benchmarks.a")


@pytest.mark.usefixtures("tree")
def test_a_closure_follows_our_imports_also_those_in_functions_and_in_circles() -> None:
    assert keys.closure_modules("benchmarks.a") == (
        "benchmarks.a", "benchmarks.deep.leaf", "benchmarks.inner", "benchmarks.near",
        "models.plain",
    )  # fmt: skip


def test_only_code_counts(tree: Path) -> None:
    before = closure(tree)
    source = FILES["benchmarks/a.py"]
    for old, new in [
        ("Adds.", "Adds one."),
        ("What it is.", "Something else."),
        ("# one", "# two"),
        ("x) + 1", "x)  +   1"),
        ("import T\n", "import T, U\n"),
    ]:
        assert old in source
        assert closure(tree, a=source.replace(old, new)) == before
    assert closure(tree, a=source.replace("+ 1", "+ 2")) != before
    assert closure(tree, a=source) == before
    assert closure(tree, types_only="T = str\n", far="x = 2\n") == before
    assert closure(tree, inner="def g(x): return -x\n") != before


def test_an_outside_package_is_followed_too(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "outside").mkdir()
    for name, text in {
        "outside/__init__.py": "",
        "outside/model.py": "import models.plain\nfrom . import part\nimport json\n",
        "outside/part.py": "x = 1\n",
        "outside_alone.py": "import outside.model\n",
    }.items():
        (tree / name).write_text(text)
    monkeypatch.syspath_prepend(str(tree))
    found = keys.closure_modules("outside.model")
    assert {"outside", "outside.model", "outside.part", "models.plain"} <= set(found)
    assert not any(name.startswith("json") for name in found)
    assert keys.closure_modules("outside_alone") == ("outside_alone",)
    before = keys.source_closure("outside.model")
    (tree / "outside/part.py").write_text("x = 2\n")
    forget()
    assert keys.source_closure("outside.model") != before


def test_a_module_without_source_is_an_error() -> None:
    with pytest.raises(InvalidFileError, match="no_such_module"):
        keys.source_closure("no_such_module")


def test_a_docstring_that_is_all_of_a_body_may_go(tree: Path) -> None:
    before = closure(tree, near='class A:\n    """One."""\n')
    assert closure(tree, near='class A:\n    """Two."""\n') == before


def test_a_change_deep_in_the_closure_counts(tree: Path) -> None:
    before = closure(tree)
    (tree / "benchmarks/deep/leaf.py").write_text("y = 2\n")
    forget()
    assert keys.source_closure("benchmarks.a") != before


def test_machinery_is_in_no_closure() -> None:
    meters = [METERS.get(name).target.partition(":")[0] for name in METERS.names()]
    configs = [MODELS.get(name) for name in MODELS.names()]
    code = [c.__module__ for c in configs] + [c.target.partition(":")[0] for c in configs]
    found = keys.closure_modules(*code, *meters, *keys.FRESH_MODULES, *keys.TRAINING_MODULES)
    packages = {".".join(name.split(".")[:2]) for name in found}
    assert not packages & {
        "benchmarks.cli", "benchmarks.planning", "benchmarks.running", "benchmarks.reporting",
        "benchmarks.checking", "benchmarks.results", "benchmarks.catalog", "benchmarks.registry",
    }  # fmt: skip
    assert {"benchmarks.data.load", "benchmarks.training.loop", "models.encoder"} <= set(found)


def test_every_name_in_the_list_of_machinery_exists() -> None:
    for name in keys.MACHINERY:
        path = CHECKOUT.joinpath(*name.split("."))
        assert path.is_dir() or path.with_suffix(".py").is_file(), name


def test_an_artifact_key_changes_with_all_that_decides_the_weights() -> None:
    others = [
        replace(LOW, seed=1),
        replace(LOW, max_length=32),
        replace(LOW, train_fraction=0.5),
        replace(LOW, dataset="rotten-tomatoes"),
        replace(LOW, params={}),
        replace(LOW, recipe={"epochs": 1}),
        DENSE,
        RANDOM,
        replace(RANDOM, source=replace(LOW, params={})),
    ]
    found = {keys.artifact_key(point) for point in [LOW, *others]}
    assert len(found) == 1 + len(others)
    assert keys.artifact_key(replace(LOW, label="another")) == keys.artifact_key(LOW)


def test_a_dependent_s_key_holds_its_source_s_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The random-trained control does not import BudgetFormer, but rests on what it trained."""
    before = keys.artifact_key(RANDOM)
    own = keys.closure_modules(*keys._code_of(RANDOM))
    original = keys._module
    assert "models.budgetformer" not in own

    def changed(name: str) -> tuple[str, tuple[str, ...]]:
        text, imports = original(name)
        return (text + "!" if name == "models.budgetformer" else text), imports

    monkeypatch.setattr(keys, "_module", changed)
    keys.source_closure.cache_clear()
    after, other = keys.artifact_key(RANDOM), keys.artifact_key(DENSE)
    keys.source_closure.cache_clear()
    monkeypatch.undo()
    assert after != before
    assert other == keys.artifact_key(DENSE)


def test_fresh_weights_have_no_artifact_but_a_record_key() -> None:
    point = replace(DENSE, recipe=None, dataset="random-tokens")
    with pytest.raises(ValueError, match="fresh weights"):
        keys.artifact_key(point)
    assert keys.record_key(point, METERS.get("flops"), {}).cache_key


def test_training_code_does_not_count_for_fresh_weights() -> None:
    fresh = keys.closure_modules(*keys._code_of(replace(DENSE, recipe=None)))
    assert "benchmarks.training.loop" not in fresh
    assert "benchmarks.training.build" in fresh


def test_a_record_key_changes_with_meter_options_baseline_and_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flops, latency = METERS.get("flops"), METERS.get("latency")
    monkeypatch.setattr("benchmarks.planning.keys.machine_fingerprint", lambda: "one")
    records = [
        keys.record_key(LOW, flops, {}),
        keys.record_key(LOW, flops, {"batch_size": 8}),
        keys.record_key(LOW, METERS.get("accuracy"), {}),
        keys.record_key(DENSE, flops, {}),
        keys.record_key(LOW, latency, {}, DENSE),
        keys.record_key(LOW, latency, {}, replace(DENSE, seed=1)),
    ]
    monkeypatch.setattr("benchmarks.planning.keys.machine_fingerprint", lambda: "two")
    assert keys.record_key(LOW, flops, {}) == records[0]
    records.append(keys.record_key(LOW, latency, {}, DENSE))
    assert len({key.cache_key for key in records}) == len(records)
    assert [key.machine for key in records] == [None] * 4 + ["one", "one", "two"]
    assert "fvcore" in records[0].libraries
    assert {"torch", "numpy", "tokenizers", "python"} <= set(records[-1].libraries)


def test_a_library_s_version_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys.artifact_key(DENSE)
    monkeypatch.setattr(keys, "library_version", lambda name: "0.0" if name == "torch" else "1.0")
    assert keys.artifact_key(DENSE) != before


def calls_of(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> Counter[Any]:
    """How often a function is called from here on, by its arguments."""
    calls: Counter[Any] = Counter()
    original = getattr(owner, name)

    def spy(*arguments: Any, **options: Any) -> Any:
        calls[(*arguments, *options.items())] += 1
        return original(*arguments, **options)

    monkeypatch.setattr(owner, name, spy)
    return calls


def test_all_keys_of_quick_read_every_source_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of keys rest on the same code and data: the first that needs a part looks at it."""
    points = expand(load_suite("quick")).points
    forget()
    keys._hash_of_data.cache_clear()
    read = calls_of(monkeypatch, Path, "read_bytes")
    parsed = calls_of(monkeypatch, ast, "parse")
    followed = calls_of(monkeypatch, keys, "closure_modules")
    hashed = calls_of(monkeypatch, identity, "data_hash")
    found = {
        keys.record_key(
            p.point, METERS.get(name), {}, p.baseline if name == "latency" else None
        ).cache_key
        for p in points
        for name in p.meters
    }
    sources = {path: times for (path,), times in read.items() if path.suffix == ".py"}
    assert {CHECKOUT / "models/budgetformer.py", CHECKOUT / "models/dense.py"} <= set(sources)
    assert set(sources.values()) == {1}
    assert parsed.total() == len(sources)
    assert set(followed.values()) == {1}
    assert set(hashed.values()) == {1}
    assert len(found) == sum(len(p.meters) for p in points)


def test_keys_are_the_same_in_another_process_and_import_nothing_heavy() -> None:
    code = (
        "import sys; from benchmarks.planning import keys; "
        "from benchmarks.planning.points import Point; "
        "print(keys.artifact_key(Point('dense', {}, 'r8', 64))); "
        "print([m for m in ('torch', 'pandas', 'scipy', 'numpy', 'tokenizers') if m in sys.modules])"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.split("\n")[:2] == [keys.artifact_key(DENSE), "[]"]
