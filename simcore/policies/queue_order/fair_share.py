"""The ways to reckon fair share, and their factors once more for the checks of debug mode, which share no code with
kernels."""

from __future__ import annotations

import math

FAIR_SHARES = {
    "users": "All users are due the same share: 2^(-usage / share / damping).",
    "classic": "Users are due their shares of their accounts' ones: 2^(-effective usage / share / damping).",
    "fair-tree": "By the rank among users of accounts, level by level, as SLURM's Fair Tree, its default.",
}


def expected_factor(
    used: list[float], parent: list[int], due: list[float], leaf: int, damping: float, fair_tree: bool
) -> float:
    """Return the fair-share factor of a leaf.

    used : of each leaf, node-seconds.
    parent : of each leaf, then of each account, -1 of the root, which is last.
    due : their parts of the shares of those with the same parent.
    """
    usage = used + [0.0] * (len(parent) - len(used))
    for at, amount in enumerate(used):
        above = parent[at]
        while above >= 0:
            usage[above] += amount
            above = parent[above]
    if fair_tree:
        return _ranks(usage, parent, due, len(used))[leaf]
    return _classic(usage, parent, due, leaf, damping)


def _classic(usage: list[float], parent: list[int], due: list[float], leaf: int, damping: float) -> float:
    share, at = 1.0, leaf
    while parent[at] >= 0:
        share, at = share * due[at], parent[at]
    if share == 0.0:
        return 0.0
    return float(2.0 ** -(_effective(usage, parent, due, leaf) / share / damping)) if usage[-1] > 0 else 1.0


def _effective(usage: list[float], parent: list[int], due: list[float], at: int) -> float:
    part, above = usage[at] / usage[-1], parent[at]
    if parent[above] < 0:
        return part
    return part + (_effective(usage, parent, due, above) - part) * due[at]


def _ranks(usage: list[float], parent: list[int], due: list[float], leaves: int) -> dict[int, float]:
    """Return the factor of each leaf: the tree is walked, and accounts that are equal are walked as one."""

    def left(at: int) -> float:
        if due[at] <= 0:
            return -math.inf
        return math.inf if usage[at] <= 0 else round(math.log2(due[at] * usage[parent[at]] / usage[at]), 9)

    factors: dict[int, float] = {}

    def walk(above: list[int], tied: bool) -> None:
        groups: dict[tuple[float, bool], list[int]] = {}
        for at in range(len(parent) - 1):
            if parent[at] in above:
                groups.setdefault((left(at), at < leaves), []).append(at)
        before = None
        for value, are_users in sorted(groups, reverse=True):
            members = groups[value, are_users]
            tied = tied or value == before
            before = value
            if not are_users:
                walk(members, tied)
                tied = False
                continue
            factor = list(factors.values())[-1] if tied else (leaves - len(factors)) / leaves
            factors.update(dict.fromkeys(members, factor))
            tied = False

    walk([len(parent) - 1], False)
    return factors
