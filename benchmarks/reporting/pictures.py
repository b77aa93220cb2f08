"""A few images of a data set for a figure, where they may be shown and are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.errors import FrugalbenchError

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

    from benchmarks.reporting.view import View


def pictures(
    view: View, dataset: str, row_ids: Collection[int], side: int
) -> dict[int, npt.NDArray[np.uint8]]:
    """Pixels (side, side, channels) as the model sees them, by row id; nothing else is decoded.

    Empty where no image may stand in the report, or where the data are not here.
    """
    from benchmarks.data.fetch import data_path
    from benchmarks.data.image_rows import decoded, read_image_rows
    from benchmarks.data.pixels import square

    card = view.card(dataset)
    if not view.may_show(dataset) or card.images is None:
        return {}
    try:
        path = data_path(card)
        found = decoded(card, path, read_image_rows(card, path), set(row_ids))
        return {row: square(pixels, side).transpose(1, 2, 0) for row, pixels in found}
    except FrugalbenchError:
        return {}
