"""Which jobs of a site may take the place of which others, and which come first for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.model.workload import Label
from numpy.typing import NDArray

from faultsweep.errors import InputError

Ints = NDArray[np.int64]
MOST_CLASSES = 62
"""The classes that jobs of a class may preempt are bits of one whole number."""


class Preempting(NamedTuple):
    """What the file of a site says of it.

    Attributes
    ----------
    by : ``partition``, ``qos``, or "" where no job preempts another.
    tiers : the priority tier of each partition.
    names, order : of the partitions or QOS, and which of their jobs have to leave first: those with the lowest number.
    preempts : of each of them, the places of those whose jobs it may preempt.
    """

    by: str = ""
    tiers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    preempts: tuple[frozenset[int], ...] = ()


NOBODY = Preempting()
"""No job preempts another."""


class Classes(NamedTuple):
    """Jobs by class.

    Attributes
    ----------
    of_job, rank : of each job, shape (jobs,): its class, and its rank in the queue, where the highest comes first.
    may_preempt : of each class, the bits of those that it may preempt.
    order : of each class, 0 for the one whose jobs leave first, and so on.
    """

    of_job: Ints
    rank: Ints
    may_preempt: Ints
    order: Ints

    @classmethod
    def one(cls, jobs: int) -> Classes:
        """Return one class for all jobs, which preempts nothing."""
        return cls(*(np.zeros(shape, np.int64) for shape in (jobs, jobs, 1, 1)))


def classes_of(preempting: Preempting, owners: Mapping[str, Label], partition: Ints) -> Classes:
    """Return the classes of jobs, whose partitions are numbers, shape (jobs,); one more is of jobs without a QOS."""
    tiers = np.array([*preempting.tiers, 1], np.int64)[partition]
    if not preempting.by:
        return Classes.one(len(partition))._replace(rank=tiers)
    codes = partition if preempting.by == "partition" else _codes(preempting.names, owners.get("qos"), len(partition))
    bits = [sum(1 << other for other in others) for others in preempting.preempts]
    depth = np.array([*_depths(preempting.preempts), 0], np.int64)[codes]
    order = np.unique(np.array([*preempting.order, 0]), return_inverse=True)[1].reshape(-1)
    rank = np.unique(np.stack([depth, tiers]), axis=1, return_inverse=True)[1].reshape(-1)
    return Classes(codes, rank.astype(np.int64), np.array([*bits, 0], np.int64), order.astype(np.int64))


def _codes(names: tuple[str, ...], label: Label | None, jobs: int) -> Ints:
    """Return the place of each job's QOS among some names, shape (jobs,); of none of them: behind the last."""
    if label is None:
        return np.full(jobs, len(names))
    places = [names.index(name) if name in names else len(names) for name in label.names]
    return np.array([*places, len(names)], np.int64)[label.codes]


def _depths(preempts: tuple[frozenset[int], ...]) -> list[int]:
    """Return for each class how long the longest chain is of classes that preempt each other, below it."""
    depths = [0] * len(preempts)
    for _ in preempts:
        depths = [max((depths[other] + 1 for other in others), default=0) for others in preempts]
    return depths


def check_preempting(preempting: Preempting, path: str) -> None:
    """Raise InputError if QOS preempt each other, or there are too many."""
    if len(preempting.names) > MOST_CLASSES:
        raise InputError(f"{path}: {len(preempting.names)} QOS (valid to simulate preemption: up to {MOST_CLASSES})")
    reached = [set(others) for others in preempting.preempts]
    for _ in reached:
        reached = [others.union(*(reached[other] for other in others)) for others in reached]
    round_about = next((name for place, name in enumerate(preempting.names) if place in reached[place]), "")
    if round_about:
        raise InputError(
            f"{path}: QOS {round_about} preempts itself, or others that preempt it (valid: an order in which each "
            "preempts only QOS behind it)"
        )
