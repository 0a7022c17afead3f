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


def bursts(starts: Sequence[float], sizes: Sequence[float], rows: Sequence[tuple[float, int, bool]], adjacent: bool):
    """(time, node of the record, nodes behind it) of each failure: bursts one after the other until rows run out.

    rows : what was drawn for each failure: time since the one before, node, whether it is of the node of the first.
    """
    rows, found = list(rows), []
    for start, size in zip(starts, sizes, strict=False):
        elapsed, behind = 0.0, 0
        first = rows[0][1] if rows else 0
        for place in range(int(size)):
            if not rows:
                return found
            gap, node, same = rows.pop(0)
            elapsed += gap if place else 0.0
            if adjacent:
                behind += 0 if same or not place else 1
                found.append((start + elapsed, first, behind if not same and place else 0))
            else:
                found.append((start + elapsed, first if same else node, 0))
    return found


COST = {"A": 1, "B": 2, "C": 3, "D": 4, "E": 5}


def credits(option: str, balance: Any, node_hours: Any, beta: int = 3) -> tuple[str, Any]:
    """The option that an account can pay for, and its balance after it (tang2010): the lowest if it cannot."""
    charge = (COST[option] - beta) * Fraction(node_hours)
    if balance - charge < 0:
        return credits("A", balance, node_hours, beta)
    return option, balance - charge
