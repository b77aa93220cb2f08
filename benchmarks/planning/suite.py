"""The suite file: a declarative sweep in TOML, checked against the registries when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from benchmarks.errors import InvalidFileError, UsageError, suggest
from benchmarks.paths import resource_dir
from benchmarks.planning.declared import LARGEST, LARGEST_SEED
from benchmarks.toml_files import in_toml_words, read_toml, shown

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Whole = Annotated[int, Field(strict=True, ge=1, le=LARGEST)]
Seed = Annotated[int, Field(strict=True, ge=0, le=LARGEST_SEED)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1)]


class Strict(BaseModel):
    """Refuses unknown keys, and names the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    other_names: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            known += cls.other_names
            for key in values:
                if key not in known:
                    raise ValueError(suggest(str(key), known, kind="key"))
        return values


class Sized(Strict):
    """What has a length, which goes by the name of image_size too."""

    other_names = ("image_size",)

    @model_validator(mode="before")
    @classmethod
    def _image_size_is_a_length(cls, values: Any) -> Any:
        if not (isinstance(values, Mapping) and "image_size" in values):
            return values
        if "max_length" in values:
            raise ValueError(
                "image_size: is max_length under its name for images; give one of them"
            )
        try:
            TypeAdapter(Whole).validate_python(values["image_size"])
        except ValidationError as error:
            found = error.errors()[0]
            raise ValueError(f"image_size: {found['msg']}{_found(found['input'])}") from error
        return _as_length(values)


def _as_length(values: Mapping[str, Any]) -> dict[str, Any]:
    return {"max_length" if k == "image_size" else k: v for k, v in values.items()}


def axes_as_length(values: Any) -> Any:
    """A table by axes, whose image_size is max_length too."""
    if not isinstance(values, Mapping):
        return values
    if "image_size" in values and "max_length" in values:
        raise ValueError("image_size is max_length under its name for images; give one of them")
    return _as_length(values)


ByAxis = Annotated[dict[str, Any], BeforeValidator(axes_as_length)]
AxisValues = Annotated[list[Any], Field(min_length=1)]


class Variant(Strict):
    """One model as a sweep uses it."""

    label: Name = Field(description="short name in tables and plots")
    model: str = Field(description="registry name")
    params: dict[str, Any] = Field(default_factory=dict, description="over the sweep's params")
    source: str | None = Field(
        default=None, description="label of the variant that this one depends on"
    )
    base: str | None = Field(
        default=None, description="label of the variant whose weights this one starts from"
    )

    @property
    def needs(self) -> tuple[str, ...]:
        """Labels of the variants that have to be trained before this one."""
        return tuple(label for label in (self.source, self.base) if label is not None)


class Skip(Strict):
    """Combinations that are not run, with the reason that `plan` and the report print."""

    match: Annotated[ByAxis, Field(min_length=1)]
    reason: Annotated[str, StringConstraints(min_length=1)]


class Sweep(Sized):
    """Variants x data sets x axes x seeds."""

    name: Name
    datasets: tuple[str, ...] = Field(min_length=1)
    max_length: Whole = Field(
        description="tokens kept of each text; of images, their side in pixels (key `image_size`)"
    )
    train_fraction: float = Field(default=1.0, gt=0, le=1)
    stage: int = Field(
        default=0, strict=True, ge=0, le=LARGEST, description="later stages run later"
    )
    seeds: Seeds | None = Field(default=None, description="instead of the suite's")
    trained: bool = Field(default=True, description="false: fresh weights, one seed")
    meters: tuple[str, ...] = Field(min_length=1)
    baseline: str | None = Field(
        default=None, description="label of the variant that every other one is paired with"
    )
    params: dict[str, Any] = Field(
        default_factory=dict, description="model fields, for every variant that has them"
    )
    recipe: dict[str, Any] = Field(
        default_factory=dict, description="recipe values, over the suite's"
    )
    axes: Annotated[dict[str, AxisValues], BeforeValidator(axes_as_length)] = Field(
        default_factory=dict
    )
    include: list[ByAxis] = Field(
        default_factory=list, description="combinations beside the product of the axes"
    )
    exclude: list[ByAxis] = Field(
        default_factory=list, description="combinations taken out of the product"
    )
    skip: list[Skip] = Field(default_factory=list)
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="by meter; over the suite's"
    )
    variants: tuple[Variant, ...] = Field(min_length=1)

    def variant(self, label: str) -> Variant:
        """The variant with this label.

        Raises:
            KeyError: there is none.
        """
        for variant in self.variants:
            if variant.label == label:
                return variant
        raise KeyError(label)


class Suite(Strict):
    """A validated suite file."""

    schema_version: Literal[1] = Field(alias="schema")
    title: str
    description: str = ""
    seeds: Seeds = (0,)
    recipe: dict[str, Any] = Field(default_factory=dict, description="training.recipe.Recipe's")
    options: dict[str, dict[str, Any]] = Field(default_factory=dict, description="by meter")
    sweeps: tuple[Sweep, ...] = Field(alias="sweep", min_length=1)

    _path: Path = PrivateAttr(default=Path("suite.toml"))

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self._path.stem

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def shown_path(self) -> str:
        """The file as messages name it: relative to the checkout where it lies in it."""
        return shown(self._path)

    def options_for(self, sweep: str, meter: str) -> dict[str, Any]:
        """A meter's options in a sweep: the suite's, with the sweep's own over them."""
        own = {s.name: s.options for s in self.sweeps}[sweep]
        return {**self.options.get(meter, {}), **own.get(meter, {})}

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        from benchmarks.planning.lint import problems

        found = list(problems(self))
        if found:
            raise ValueError("\n".join(found))
        return self


def suite_names() -> tuple[str, ...]:
    """Names of the suites that lie beside the harness, sorted."""
    return tuple(sorted(path.stem for path in resource_dir("suites").glob("*.toml")))


def load_suite(name_or_path: str) -> Suite:
    """Reads and validates a suite.

    Args:
        name_or_path: a name from `suite_names`, or the path of a .toml file.

    Raises:
        UsageError: no suite of that name.
        InvalidFileError: the file cannot be read or is wrong; one line for each problem, with
            file, key path, value found and what would be right.
    """
    path = suite_path(name_or_path)
    return parse_suite(read_toml(path), path)


def suite_path(name_or_path: str) -> Path:
    """The file of a suite; arguments and errors as `load_suite`'s.

    Raises:
        UsageError: no suite of that name.
    """
    if name_or_path.endswith(".toml"):
        return Path(name_or_path)
    if name_or_path in suite_names():
        return resource_dir("suites") / f"{name_or_path}.toml"
    hint = suggest(name_or_path, suite_names(), kind="suite")
    raise UsageError(f"{hint} A suite of your own is given as the path of a .toml file.")


def parse_suite(values: Mapping[str, Any], path: Path) -> Suite:
    """A suite from a file's content; `path` names it.

    Raises:
        UsageError: it reduces a suite that there is not.
        InvalidFileError: as `load_suite`.
    """
    from benchmarks.planning.reduced import REDUCES, in_full

    if REDUCES in values:
        values = in_full(values, path)
    try:
        suite = Suite.model_validate(values)
    except ValidationError as error:
        lines = [f"{shown(path)}: {text}" for text in texts(error)]
        raise InvalidFileError("\n".join(lines)) from error
    suite._path = path  # noqa: SLF001 - the file is no part of its own content
    return suite


def texts(error: ValidationError) -> Iterator[str]:
    """Every problem that a check found, as "key path: what is wrong"."""
    items = error.errors()
    for item in items:
        depth = len(item["loc"])
        if any(len(o["loc"]) > depth and o["loc"][:depth] == item["loc"] for o in items):
            continue  # e.g. "too short" for a list whose items were refused
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in item["loc"])
        text = item["msg"].removeprefix("Value error, ")
        if item["type"] == "missing" and item["loc"][-1] == "max_length":
            where = where.removesuffix(".max_length")
            text = "image_size or max_length: Field required"
            axes = item["input"].get("axes")
            if isinstance(axes, Mapping) and {"image_size", "max_length"} & axes.keys():
                text += ", beside the axis too"
        text = re.sub(r" or instance of \w+", "", in_toml_words(text))
        for line in text.splitlines():
            shown_value = _found(item["input"]) if item["type"] != "value_error" else ""
            yield f"{where.lstrip('.')}: {line}{shown_value}" if where else line


def _found(value: Any) -> str:
    text = repr(value)
    return "" if isinstance(value, (dict, list)) or len(text) > 80 else f", not {text}"
