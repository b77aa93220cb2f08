"""How hard each test input is, by explicit measures; the model measured plays no part in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.complexity.measure import UNITS, measures
from benchmarks.data.load import TextData, load_card_text
from benchmarks.errors import UsageError
from benchmarks.meters.inputs import data_used
from benchmarks.meters.interface import Measurement, Subject
from benchmarks.records import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def measure(subject: Subject, options: Mapping[str, Any]) -> Measurement:
    """Measures of each test input; one record serves every model on the same inputs.

    Args:
        subject: any point on the data set.
        options: none.

    Raises:
        UsageError: the data set has images.

    Returns:
        The mean of each measure; in `arrays` row_id and a column for each measure (NaN where an
        input has none), no texts; in `info.unmeasured` the reason for each that is missing.
    """
    import pandas as pd

    del options
    data = subject.data
    if not isinstance(data, TextData):
        raise UsageError(f"meter 'complexity' measures texts, and '{data.card.name}' has images")
    test = data.test()
    if subject.point.vocabulary is not None:
        # word measures look at words, whatever pieces the model reads
        data = load_card_text(
            data.card,
            max_length=data.max_length,
            train_fraction=subject.point.train_fraction,
        )
    found = measures(data, test.lengths)
    values = [_mean(name, column) for name, column in found.columns.items()]
    columns = {name: column.astype(np.float32) for name, column in found.columns.items()}
    return Measurement(
        values=values,
        data=data_used(subject.data),
        info={"unmeasured": found.unmeasured},
        arrays=pd.DataFrame({"row_id": test.row_ids, **columns}),
    )


def _mean(name: str, column: NDArray[np.float64]) -> Value:
    known = column[np.isfinite(column)]
    mean = float(known.mean()) if len(known) else 0.0
    return Value(name=name, value=mean, unit=UNITS.get(name, "count"), n=len(known))
