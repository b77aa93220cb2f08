"""Whether head budgets have degenerated: to the least everywhere, or to all heads. Torch-free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def degenerate_shares(s: NDArray[Any], k: NDArray[Any], n_heads: int) -> dict[str, float]:
    """Shares of the budgets, one for each input and layer, that lie at an end.

    Args:
        s: (n, depth) share of heads asked for.
        k: (n, depth) heads computed.
        n_heads: heads there are.

    Returns:
        "one": one head is computed; "zero": less than one was asked for, which would be none
        without the minimum of one (these are among "one"); "all": every head is computed.
    """
    return {
        "one": float((k == 1).mean()),
        # a constant budget of exactly one head may lie a rounding below it
        "zero": float((s * n_heads < 1 - 1e-6).mean()),
        "all": float((k == n_heads).mean()),
    }
