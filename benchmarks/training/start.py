"""Models that start from another trained model's weights, and what they choose before they train on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.data.batches import eval_batches
from benchmarks.data.sample import at_most
from benchmarks.errors import UsageError
from benchmarks.training.evaluate import BATCH_SIZE
from benchmarks.training.importance import head_importance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from benchmarks.data.load import AnyData
    from models.interface import Classifier

CALIBRATION_ROWS = 1000
"""Most validation images that a gate is calibrated on, a fixed sample of the split."""


def start_from_base(model: Classifier, state: Mapping[str, Tensor], data: AnyData) -> None:
    """Gives a model its base's weights; then it makes the choice that it has to make on data.

    A model that keeps its most important heads (it has `set_importance`) learns their importance on
    the training split. One that halts tokens (it has `calibrate`) sets its gate so that it keeps the
    declared share of them on validation images. The test split is not looked at.

    Args:
        model: freshly built; its `start_from` takes the weights over.
        state: the trained base's weights.
        data: what the base was trained on.

    Raises:
        UsageError: the model starts from no other, the weights do not fit it, or there are no
            validation images.
    """
    of: Any = model
    if not hasattr(model, "start_from"):
        raise UsageError(f"{type(model).__name__} cannot start from another model's weights")
    try:
        of.start_from(state)
    except (RuntimeError, ValueError) as error:
        raise UsageError(
            f"the base's weights do not fit {type(model).__name__}, which needs a base of its own "
            f"kind and size: {error}"
        ) from error
    if hasattr(model, "set_importance"):
        train: Any = data.train
        of.set_importance(head_importance(of, train))
    if hasattr(model, "calibrate"):
        rows = at_most(data.validation, CALIBRATION_ROWS)
        if len(rows) == 0:
            raise UsageError(
                f"data set '{data.card.name}' has no validation images to calibrate the gate on"
            )
        of.calibrate([batch.inputs[0] for batch in eval_batches(rows, BATCH_SIZE)])
