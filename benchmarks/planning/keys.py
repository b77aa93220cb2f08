"""Cache keys: whether a stored number, or a trained model, may be used again.

A key holds the identity of the point, the source code that makes the number, the data, and the
versions of the libraries that compute. It is found without training and without importing any of
that code: imports are followed in the syntax tree.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.canonical import digest
from benchmarks.catalog import MODELS
from benchmarks.data.weights import find_weights
from benchmarks.errors import InvalidFileError
from benchmarks.paths import CHECKOUT
from benchmarks.records import Key
from benchmarks.running.environment import library_version, machine_fingerprint

if TYPE_CHECKING:
    from benchmarks.meters.interface import MeterSpec
    from benchmarks.planning.points import Point

PACKAGES = ("benchmarks", "models")
"""Imports are followed inside these, and inside an outside model's or meter's own package; any other
code counts by its version, if at all."""

MACHINERY = frozenset(
    {
        "benchmarks",
        "benchmarks.canonical",
        "benchmarks.catalog",
        "benchmarks.checking",
        "benchmarks.cli",
        "benchmarks.data.card",
        "benchmarks.data.diagnostics",
        "benchmarks.data.fetch",
        "benchmarks.data.generated",
        "benchmarks.data.hub",
        "benchmarks.data.locks",
        "benchmarks.data.mirror",
        "benchmarks.data.packages",
        "benchmarks.data.sources",
        "benchmarks.data.weights",
        "benchmarks.data.weights_files",
        "benchmarks.errors",
        "benchmarks.meters.interface",
        "benchmarks.meters.specs",
        "benchmarks.paths",
        "benchmarks.planning",
        "benchmarks.records",
        "benchmarks.registry",
        "benchmarks.reporting",
        "benchmarks.results",
        "benchmarks.running",
        "benchmarks.training.artifacts",
    }
)
"""Modules and packages that find, order, check and store things but compute no number.

They are outside every closure, so that a change in them makes no stored number stale. What a card
says counts through the data hash.
"""

# What turns data and a configuration into fresh weights ...
FRESH_MODULES = ("benchmarks.training.build", "benchmarks.data.load", "benchmarks.data.batches")
# ... and these into trained ones, and what is kept of them for the points that depend on them.
TRAINING_MODULES = ("benchmarks.training.loop", "benchmarks.training.summary")
# What a model takes over from a base that is trained already, or learns from its teacher.
BASE_MODULES = ("benchmarks.training.start",)
TEACHER_MODULES = ("benchmarks.training.distil",)
TRAINING_LIBRARIES = ("torch", "numpy", "tokenizers")


@functools.cache
def source_closure(*modules: str) -> str:
    """Hash over these modules and every module beside them that they import, directly or not.

    Imports inside functions count, imports for type checkers do not. Comments, docstrings and
    layout change nothing; anything else does.

    Args:
        modules: dotted names of ours or of an outside package.

    Raises:
        InvalidFileError: there is no source file for one of them, or it is no Python.
    """
    return digest([[name, _module(name)[0]] for name in closure_modules(*modules)])


def closure_modules(*modules: str) -> tuple[str, ...]:
    """The modules that `source_closure` hashes, sorted."""
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or _is_machinery(name):
            continue
        seen.add(name)
        waiting += _module(name)[1]
    return tuple(sorted(seen))


def artifact_key(point: Point) -> str:
    """Address of a point's trained weights; a dependent point's holds its source's.

    Raises:
        ValueError: the point is never trained.
    """
    if not point.trained:
        raise ValueError(f"point {point.point_id} has fresh weights, so it has no artifact")
    return _state_key(point)


def record_key(
    point: Point,
    meter: MeterSpec,
    options: Mapping[str, Any],
    baseline: Point | None = None,
) -> Key:
    """The cache key of one meter's record, with the parts it was made of.

    Args:
        point: what is measured (of a pair: the candidate).
        meter: by what.
        options: the suite's options for this meter.
        baseline: the other half of a pair.
    """
    machine = machine_fingerprint() if meter.machine_bound else None
    parts = [point] if baseline is None else [point, baseline]
    code = {module for part in parts for module in _code_of(part)}
    source = source_closure(*sorted(code), meter.target.partition(":")[0])
    data = _data_hash(point)
    libraries = _libraries(meter.libraries)
    cache_key = digest(
        {
            "meter": meter.name,
            "target": meter.target,
            "states": [_state_key(part) for part in parts],
            "source": source,
            "data": data,
            "libraries": libraries,
            "options": dict(options),
            "machine": machine,
        }
    )
    return Key(cache_key=cache_key, source=source, data=data, libraries=libraries, machine=machine)


def _state_key(point: Point) -> str:
    """Everything that decides a point's weights, trained or fresh."""
    parts = {
        "point": point.point_id,
        "source": source_closure(*_code_of(point)),
        "data": _data_hash(point),
        "libraries": _libraries(),
        "of": None if point.source is None else _state_key(point.source),
    }
    if point.base is not None:
        parts["base"] = _state_key(point.base)
    if point.pretrained is not None:
        parts["pretrained"] = find_weights(point.pretrained).source.sha256
    return digest(parts)


def _code_of(point: Point) -> tuple[str, ...]:
    config = MODELS.get(point.model)
    training = TRAINING_MODULES if point.trained else ()
    base = BASE_MODULES if point.base is not None else ()
    taught = TEACHER_MODULES if point.trained and config.source == "teacher" else ()
    target = config.target.partition(":")[0]
    return (config.__module__, target, *FRESH_MODULES, *training, *base, *taught)


@functools.cache
def _hash_of_data(
    dataset: str,
    max_length: int,
    train_fraction: float,
    vocabulary: str | None,
    mirror: str | None,
) -> str:
    del mirror  # another one in use gives another hash
    from benchmarks.data.identity import data_hash

    return data_hash(
        dataset, max_length=max_length, train_fraction=train_fraction, vocabulary=vocabulary
    )


def _data_hash(point: Point) -> str:
    return _hash_of_data(
        point.dataset,
        point.max_length,
        point.train_fraction,
        point.vocabulary,
        os.environ.get("FRUGALBENCH_DATA"),
    )


def _libraries(more: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions of what computes, by distribution; Python's as major.minor."""
    names = sorted({*TRAINING_LIBRARIES, *more})
    minor = ".".join(platform.python_version_tuple()[:2])
    return {"python": minor, **{name: library_version(name) for name in names}}


def _is_machinery(name: str) -> bool:
    parents = [name]
    while "." in parents[-1]:
        parents.append(parents[-1].rpartition(".")[0])
    return name in MACHINERY or any(parent in MACHINERY - {"benchmarks"} for parent in parents)


@functools.cache
def _module(name: str) -> tuple[str, tuple[str, ...]]:
    """Hash of one module's code, and the modules that it imports from `PACKAGES` or its own."""
    path = _file_of(name)
    if path is None:
        raise InvalidFileError(f"there is no source file for module {name}")
    try:
        tree: ast.AST = _Stripper().visit(ast.parse(path.read_bytes(), filename=path.name))
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise InvalidFileError(f"{name.replace('.', '/')}.py: {where}{error.msg}") from error
    imports = {
        found
        for node in ast.walk(tree)
        for found in _imports(node, name, is_package=path.name == "__init__.py")
    }
    text = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    return text, tuple(sorted(imports))


def _file_of(name: str) -> Path | None:
    root = _root(name.partition(".")[0])
    if root is None:
        return None
    base = root.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@functools.cache
def _root(package: str) -> Path | None:
    """The folder that a package or a lone module lies in."""
    if package in PACKAGES:
        return CHECKOUT
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parents[0 if spec.submodule_search_locations is None else 1]


def _imports(node: ast.AST, importer: str, *, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parts = importer.split(".")
            kept = parts[: len(parts) - node.level + is_package]
            base = ".".join([*kept, *([base] if base else [])])
        names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
    else:
        return
    followed = (*PACKAGES, importer.partition(".")[0])
    yield from (
        name for name in names if name.partition(".")[0] in followed and _file_of(name) is not None
    )


class _Stripper(ast.NodeTransformer):
    """Takes docstrings and `if TYPE_CHECKING:` blocks out of a syntax tree."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
        return node

    def visit_If(self, node: ast.If) -> Any:
        test = ast.unparse(node.test)
        if test in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            return [self.visit(child) for child in node.orelse]
        return self.generic_visit(node)
