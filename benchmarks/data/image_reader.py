"""What a card says of its images: their shape, how they are read, and what is done with odd ones."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from benchmarks.data.sources import Strict


class ImageReader(Strict):
    """How files become images of one mode."""

    format: Literal["csv", "parquet", "idx", "folders", "generated"] = Field(
        description="csv: a line is an image, a column its label; parquet: a column of image files; "
        "idx: MNIST's own form, a file of images and one of labels; folders: a folder a class; "
        "generated: this program makes them"
    )
    channels: Literal[1, 3] = Field(description="1: grey, 3: colour (RGB)")
    size: int | None = Field(
        default=None, ge=1, description="native side in pixels; none: images differ in size"
    )
    image: str | None = Field(default=None, description="parquet: column of the image files")
    label: int | str | None = Field(
        default=None, description="parquet: column of whole numbers; csv: column, from 0"
    )
    white: int = Field(default=255, ge=1, le=255, description="csv: value of the brightest pixel")
    other_modes: Literal["refuse", "convert"] = Field(
        default="refuse",
        description="grey images in a colour set, transparent ones and the like: an error, or "
        "converted as Pillow does and counted",
    )
    on_corrupt: Literal["stop", "skip"] = Field(
        default="stop",
        description="an image that cannot be decoded: an error, or left out and counted",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        columns = {"csv": (None, int), "parquet": (str, str)}.get(self.format, (None, None))
        for key, kind in zip(("image", "label"), columns, strict=True):
            value = getattr(self, key)
            if kind is None and value is not None:
                raise ValueError(f"{key}: format '{self.format}' has no such column")
            if kind is not None and not isinstance(value, kind):
                what = "a column's name" if kind is str else "a column's number"
                raise ValueError(f"{key}: format '{self.format}' needs {what}, not {value!r}")
        if self.format in {"csv", "idx"}:
            if self.channels != 1:
                raise ValueError(f"channels: format '{self.format}' holds grey images: 1, not 3")
            if self.size is None:
                raise ValueError(f"size: format '{self.format}' needs the native side")
        if self.white != 255 and self.format != "csv":
            raise ValueError("white: only csv has other values than 0 to 255")
        return self
