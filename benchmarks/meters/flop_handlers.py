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

    from benchmarks.data.batches import AnyBatch
    from models.interface import Classifier

MATMUL_OPS = frozenset(
    {
        *("addmm", "baddbmm", "bmm", "conv", "einsum", "linear", "matmul", "mm"),
        *("gru", "lstm", "scaled_dot_product_attention"),
    }
)
"""Names under which fvcore counts matrix-multiply work, our handlers included."""

UNCOUNTED_MATMUL_OPS = frozenset(
    {
        *("addbmm", "addmv", "addr", "bilinear", "cdist", "chain_matmul", "dot", "inner"),
        *("linalg_multi_dot", "mv", "outer", "tensordot", "vdot"),
        *("gru_cell", "lstm_cell", "rnn_relu", "rnn_tanh"),
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


def recurrent_macs(inputs: Sequence[Any], outputs: Sequence[Any]) -> Counter[str]:
    """Handler of LSTMs and GRUs: each token meets every matrix of every layer and direction once."""
    from fvcore.nn.jit_handles import get_shape

    del outputs
    sequence = get_shape(inputs[0])
    # states and weights come as lists; packed sequences have the tokens' counts before them
    lists = [part.node().inputs() for part in inputs if part.type().kind() == "ListType"]
    shapes = [get_shape(part) for part in list(lists[-1])]
    weights = sum(math.prod(shape) for shape in shapes if len(shape) == 2)
    kind = "lstm" if len(lists) > 1 else "gru"
    return Counter({kind: math.prod(sequence[:-1]) * weights})


def einsum_macs(inputs: Sequence[Any], outputs: Sequence[Any]) -> Counter[str]:
    """Handler of `einsum` of two tensors: matrix work if an index is summed over, else none.

    fvcore halves whatever numpy's path search calls flops, also where nothing is summed.

    Raises:
        MeterError: it has more or fewer than two tensors.
    """
    from fvcore.nn.jit_handles import get_shape

    del outputs
    equation = inputs[0].toIValue().replace(" ", "")
    shapes = [get_shape(part) for part in inputs[1].node().inputs()]
    terms, _, result = equation.partition("->")
    names = terms.split(",")
    if len(names) != 2 or "." in terms or not result:
        raise MeterError(
            f"einsum '{equation}' cannot be counted: use two tensors and explicit indices"
        )
    sizes = {
        index: size
        for name, shape in zip(names, shapes, strict=True)
        for index, size in zip(name, shape, strict=True)
    }
    shared = set(names[0]) & set(names[1])
    return Counter({"einsum": math.prod(sizes.values()) if shared - set(result) else 0})


HANDLERS: dict[str, Callable[[Sequence[Any], Sequence[Any]], Counter[str]]] = {
    "aten::scaled_dot_product_attention": sdpa_macs,
    "aten::baddbmm": baddbmm_macs,
    "aten::baddbmm_": baddbmm_macs,
    "aten::lstm": recurrent_macs,
    "aten::gru": recurrent_macs,
    "aten::einsum": einsum_macs,
}


def count_with_fvcore(model: Classifier, batch: AnyBatch) -> ForwardCount:
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
    unknown = MATMUL_OPS | UNCOUNTED_MATMUL_OPS
    uncounted = sorted(name for name in ignored if name.rstrip("_") in unknown)
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


def count_by_dispatch(model: Classifier, batch: AnyBatch) -> ForwardCount:
    """MACs of one forward pass in eval mode, by the operators that torch dispatches.

    Fused attention and fused LSTMs, in which torch counts nothing, are taken apart.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    counted = _TensorsOut(model)
    counter = FlopCounterMode(display=False, custom_mapping=_in_place())
    unfused_lstm = torch.backends.mkldnn.flags(enabled=False)
    with (
        warnings.catch_warnings(action="ignore"),  # of settings that only some GPUs have
        torch.no_grad(),
        sdpa_kernel(SDPBackend.MATH),
        unfused_lstm,
        counter,
    ):
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
    """A `FlopCounterMode` for whole passes as they really run, fused operators included.

    On CPU torch sends attention and LSTMs to operators that are missing in its own table.
    """
    from torch.utils.flop_counter import FlopCounterMode

    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
    return FlopCounterMode(
        display=False,
        custom_mapping={
            fused: _fused_attention_flops,
            torch.ops.aten.mkldnn_rnn_layer: _fused_lstm_flops,
            **_in_place(),
        },
    )


def _in_place() -> dict[Any, Any]:
    """Products that are added to what is there already, which torch's own table has not."""
    return dict.fromkeys((torch.ops.aten.addmm_, torch.ops.aten.baddbmm_), _product_flops)


def _product_flops(
    to: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    *_: Any,
    out_shape: Any = None,
    **__: Any,
) -> int:
    del to, out_shape
    return 2 * math.prod(left) * right[-1]


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


def _fused_lstm_flops(
    sequence: Sequence[int],
    from_input: Sequence[int],
    from_state: Sequence[int],
    *_: Any,
    out_shape: Any = None,
    **__: Any,
) -> int:
    """One layer in one direction."""
    del out_shape
    return 2 * math.prod(sequence[:-1]) * (math.prod(from_input) + math.prod(from_state))


class _TensorsOut(nn.Module):
    """The model as a tracer wants it, tensors in and out; keeps aside what each layer computed.

    What decided on it is returned too: it leaves the trace as a number, and a tracer drops work
    whose result it does not see used.
    """

    def __init__(self, model: Classifier) -> None:
        super().__init__()
        self.model = model
        self.k: tuple[int, ...] | None = None

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        output = self.model(*inputs)
        if output.work is not None:
            self.k = tuple(output.work[0].tolist())
        if output.heads is not None:
            return output.logits, output.heads.budget, output.heads.scores
        if output.tokens is not None:
            return output.logits, output.tokens.halting
        return (output.logits,)


def _tensors(batch: AnyBatch) -> tuple[Tensor, ...]:
    return tuple(part for part in batch.inputs if part is not None)
