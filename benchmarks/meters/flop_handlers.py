"""Two counts of matrix-multiply work that know nothing of our formulas, for one forward pass.

`count_with_fvcore` walks fvcore's trace, with handlers for the operators that fvcore skips.
`count_by_dispatch` sums what torch dispatches while attention runs unfused, as plain matrix
multiplications, so that no formula for attention is involved at all.

fvcore's "flops" are multiply-accumulates; torch counts two operations for each. Both are MACs here.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from benchmarks.errors import MeterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.data.batches import Batch
    from models.interface import Classifier

MATMUL_OPS = frozenset(
    {
        *("addmm", "baddbmm", "bmm", "conv", "einsum", "linear", "matmul", "mm"),
        "scaled_dot_product_attention",
    }
)
"""Names under which fvcore counts matrix-multiply work, our handlers included."""

UNCOUNTED_MATMUL_OPS = frozenset(
    {
        *("addbmm", "addmv", "addr", "bilinear", "cdist", "chain_matmul", "dot", "inner"),
        *("linalg_multi_dot", "mv", "outer", "tensordot", "vdot"),
        *("gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_tanh"),
        *("_native_multi_head_attention", "_transformer_encoder_layer_fwd"),
    }
)
"""Operators with such work that nothing here counts: a model with one cannot be vouched for."""


@dataclass(frozen=True)
class ForwardCount:
    """MACs of one forward pass.

    Attributes:
        macs: matrix-multiply work.
        k: heads computed per layer in this very pass; None for a model without head decisions.
        by_operator: MACs of each operator that does such work.
        excluded: what the counter also counts and `macs` leaves out (norms).
        ignored: calls of operators that the counter does not count.
    """

    macs: float
    k: tuple[int, ...] | None
    by_operator: dict[str, float]
    excluded: dict[str, float]
    ignored: dict[str, int]


def sdpa_macs(inputs: Sequence[Any], outputs: Sequence[Any]) -> Counter[str]:
    """Handler of fused attention: scores (query x key) and weighted sum (weights x value)."""
    from fvcore.nn.jit_handles import get_shape

    del outputs
    query, key, value = (get_shape(part) for part in inputs[:3])
    scores = math.prod(query[:-1]) * key[-2]
    return Counter({"scaled_dot_product_attention": scores * (query[-1] + value[-1])})


def baddbmm_macs(inputs: Sequence[Any], outputs: Sequence[Any]) -> Counter[str]:
    """Handler of a batched product that is added to something."""
    from fvcore.nn.jit_handles import get_shape

    del outputs
    left, right = get_shape(inputs[1]), get_shape(inputs[2])
    return Counter({"baddbmm": math.prod(left) * right[-1]})


HANDLERS: dict[str, Callable[[Sequence[Any], Sequence[Any]], Counter[str]]] = {
    "aten::scaled_dot_product_attention": sdpa_macs,
    "aten::baddbmm": baddbmm_macs,
}


def count_with_fvcore(model: Classifier, batch: Batch) -> ForwardCount:
    """MACs of one forward pass in eval mode, by fvcore's trace.

    Raises:
        MeterError: the trace holds an operator with matrix-multiply work that nothing here counts.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fvcore's imports, and the tracer's on data-dependent code
        from fvcore.nn import FlopCountAnalysis

        traced = _TensorsOut(model)
        with torch.no_grad():
            analysis = FlopCountAnalysis(traced, _tensors(batch))
            analysis.set_op_handle(**HANDLERS)
            analysis.unsupported_ops_warnings(False)
            analysis.uncalled_modules_warnings(False)
            analysis.tracer_warnings("none")
            counts: Counter[str] = analysis.by_operator()
            ignored = {
                name.rpartition("::")[2]: n for name, n in analysis.unsupported_ops().items()
            }
    uncounted = sorted(UNCOUNTED_MATMUL_OPS & ignored.keys())
    if uncounted:
        raise MeterError(
            f"fvcore cannot count {', '.join(uncounted)}, which multiplies matrices: add a handler "
            "in benchmarks/meters/flop_handlers.py"
        )
    matmuls = {name: float(n) for name, n in counts.items() if name in MATMUL_OPS}
    return ForwardCount(
        macs=sum(matmuls.values()),
        k=traced.k,
        by_operator=matmuls,
        excluded={name: float(n) for name, n in counts.items() if name not in MATMUL_OPS},
        ignored=dict(sorted(ignored.items())),
    )


def count_by_dispatch(model: Classifier, batch: Batch) -> ForwardCount:
    """MACs of one forward pass in eval mode, by the operators that torch dispatches."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    counted = _TensorsOut(model)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), counter:
        counted(*_tensors(batch))
    by_operator = {
        str(op).rpartition(".")[2]: flops / 2
        for op, flops in counter.get_flop_counts().get("Global", {}).items()
    }
    return ForwardCount(
        macs=counter.get_total_flops() / 2,
        k=counted.k,
        by_operator=by_operator,
        excluded={},
        ignored={},
    )


def executed_counter() -> Any:
    """A `FlopCounterMode` for whole passes as they really run, fused attention included.

    On CPU torch sends fused attention to an operator that is missing in its own table.
    """
    from torch.utils.flop_counter import FlopCounterMode

    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
    return FlopCounterMode(display=False, custom_mapping={fused: _fused_attention_flops})


def _fused_attention_flops(
    query: Sequence[int],
    key: Sequence[int],
    value: Sequence[int],
    *_: Any,
    out_shape: Any = None,
    **__: Any,
) -> int:
    del out_shape
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


class _TensorsOut(nn.Module):
    """The model as a tracer wants it, tensors in and out; keeps the pass's head counts aside.

    The controllers' outputs are returned too: what decides k leaves the trace as a number, and a
    tracer drops work whose result it does not see used.
    """

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model
        self.k: tuple[int, ...] | None = None

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        output = self.model(*inputs)
        if output.heads is None:
            return (output.logits,)
        self.k = tuple(output.heads.k[0].tolist())
        return output.logits, output.heads.budget, output.heads.scores


def _tensors(batch: Batch) -> tuple[Tensor, ...]:
    parts = (batch.input_ids, batch.key_padding_mask, batch.segment_ids)
    return tuple(part for part in parts if part is not None)
