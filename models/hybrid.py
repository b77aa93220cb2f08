"""What hybrids have in common: trained models in which some layers mix their tokens otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from models.interface import Classifier
from models.state_dict import fill


class Hybrid(Classifier):
    """Adds to a model's class what a student needs; comes before that class among the bases.

    Attributes:
        config: a `Distillation` beside the model's own.
        output: name of W^O in an attention layer, and in the new modules that have one.
    """

    config: Any
    output: ClassVar[str] = "proj"

    if TYPE_CHECKING:

        def mixers(self) -> Any:
            """The token mixer of each layer."""

    def replaced(self) -> dict[str, nn.Module]:
        """The new module of each replaced layer, by the place where the teacher has its attention."""
        raise NotImplementedError

    def load_teacher(self, state: Mapping[str, Tensor]) -> None:
        """Takes over a trained teacher's weights; new modules stay fresh but for W^O.

        Args:
            state: the teacher's state dict.

        Raises:
            ValueError: a tensor is missing, left over or of another shape; names the first.
        """
        fresh: list[str] = []
        kept = dict(state)
        for place, module in self.replaced().items():
            output = f"{place}.{self.output}."
            own = [f"{place}.{name}" for name in module.state_dict()]
            fresh += [name for name in own if not name.startswith(output)]
            for name in [name for name in kept if name.startswith(f"{place}.")]:
                # the queries, keys and values go; W^O too, where the new module has none
                if not (name.startswith(output) and name in own):
                    del kept[name]
        fill(self, kept, fresh)

    def new_parameters(self) -> list[nn.Parameter]:
        """The parameters that the teacher has not: those of the new modules, without W^O."""
        return [
            parameter
            for module in self.replaced().values()
            for name, parameter in module.named_parameters()
            if not name.startswith(f"{self.output}.")
        ]
