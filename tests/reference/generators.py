"""What the random generators and the accounts must compute, once the random numbers are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any


def segments(gaps: Sequence[Any], width: int) -> list[Any]:
    """Gaps between failures in segments of ``width``: the first half of each descending, the second ascending.

    Temporal correlation of zhang2004 (section 3): no gap leaves its half, so the marginal distribution is untouched.
    """
    half = width // 2
    ordered = []
    for begin in range(0, len(gaps), width):
        ordered += sorted(gaps[begin : begin + half], reverse=True) + sorted(gaps[begin + half : begin + width])
    return ordered


def zipf(nodes: int, alpha: float) -> list[float]:
    """The share of failures of each node: rank 1 is node 0."""
    weights = [rank**-alpha for rank in range(1, nodes + 1)]
    return [weight / sum(weights) for weight in weights]


COST = {"A": 1, "B": 2, "C": 3, "D": 4, "E": 5}


def credits(option: str, balance: Any, node_hours: Any, beta: int = 3) -> tuple[str, Any]:
    """The option that an account can pay for, and its balance after it (tang2010): the lowest if it cannot."""
    charge = (COST[option] - beta) * Fraction(node_hours)
    if balance - charge < 0:
        return credits("A", balance, node_hours, beta)
    return option, balance - charge
