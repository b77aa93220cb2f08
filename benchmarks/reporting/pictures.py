"""A few validation images for a figure, where they may be shown and are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.errors import FrugalbenchError

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

    from benchmarks.reporting.variant import Variant
    from benchmarks.reporting.view import View

MOST = 200_000
"""Images of a set that is made ready only for a figure, if no run has done so before."""


def pictures(
    view: View, variant: Variant, row_ids: Collection[int]
) -> dict[int, npt.NDArray[np.uint8]]:
    """Pixels (side, side, channels) as the variant's models get them, by row id.

    Empty where no image may stand in the report, or where the data are not here.
    """
    from benchmarks.data.fetch import data_path
    from benchmarks.data.image_cache import ImageCache

    card, point = view.card(variant.dataset), variant.points[0].point
    if not view.may_show(variant.dataset) or card.images is None:
        return {}
    try:
        cache = ImageCache(card, point.max_length, point.train_fraction, data_path(card))
        found = cache.cached("validation")
        if found is None and card.n_rows("train") <= MOST:
            found = cache.read("validation")
    except FrugalbenchError:
        return {}
    if found is None:
        return {}
    places = {int(row): place for place, row in enumerate(found.split.row_ids)}
    wanted = [row for row in row_ids if row in places]
    return {row: found.split.pixels[places[row]].transpose(1, 2, 0) for row in wanted}
