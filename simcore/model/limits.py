"""Limits of running jobs as rules, and the groups of jobs that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.model.workload import Label
from numpy.typing import NDArray

Ints = NDArray[np.int64]
NO_LIMIT = 1 << 60


class Rule(NamedTuple):
    """A limit of the jobs that share something.

    Attributes
    ----------
    name : what messages call it.
    each : the labels, such as user, whose jobs share a limit if they agree in all of them; none: all jobs do.
    where : the label and the names of the jobs that it is for, in each of its labels; none: all jobs.
    also : those of other jobs that it is for, too; none: no others.
    unless : the label and the names of jobs for which another rule stands above this one, so that they only count.
    most_jobs : running at a time; infinity: no limit.
    most_nodes : that they ask for together, on a site cores; infinity: no limit.
    """

    name: str
    each: tuple[str, ...] = ()
    where: tuple[tuple[str, frozenset[str]], ...] = ()
    also: tuple[tuple[str, frozenset[str]], ...] = ()
    unless: tuple[tuple[str, frozenset[str]], ...] = ()
    most_jobs: float = math.inf
    most_nodes: float = math.inf


class Groups(NamedTuple):
    """Groups of jobs that share a limit.

    Attributes
    ----------
    of_job : the groups of each job, shape (jobs, most of a job); (0, 1) without groups: first those that limit it, then
        -2 - group for those that only count it, and -1 behind the last.
    most_jobs, most_nodes : of each group, shape (groups,).
    """

    of_job: Ints
    most_jobs: Ints
    most_nodes: Ints

    @classmethod
    def none(cls) -> Groups:
        """Return no groups."""
        return cls(np.full((0, 1), -1), np.zeros(0, np.int64), np.zeros(0, np.int64))


def heeds(rule: Rule, owners: Mapping[str, Label], jobs: int) -> NDArray[np.bool_]:
    """Tell of each job whether a rule limits it; not of one whose owner is unknown."""
    found = _counts(rule, owners, jobs)
    for label, names in rule.unless:
        found &= ~_is_of(owners.get(label), names, jobs)
    return found


def _counts(rule: Rule, owners: Mapping[str, Label], jobs: int) -> NDArray[np.bool_]:
    """Tell of each job whether a rule counts it."""
    found = _are_of(rule.where, owners, jobs)
    if rule.also:
        found |= _are_of(rule.also, owners, jobs)
    for label in rule.each:
        found &= owners[label].codes >= 0 if label in owners else False
    return found


def _are_of(
    wheres: tuple[tuple[str, frozenset[str]], ...], owners: Mapping[str, Label], jobs: int
) -> NDArray[np.bool_]:
    found = np.ones(jobs, np.bool_)
    for label, names in wheres:
        found &= _is_of(owners.get(label), names, jobs)
    return found


def _is_of(label: Label | None, names: frozenset[str], jobs: int) -> NDArray[np.bool_]:
    if label is None:
        return np.zeros(jobs, np.bool_)
    return np.array([*(name in names for name in label.names), False])[label.codes]


def groups_of(rules: Sequence[Rule], owners: Mapping[str, Label], jobs: int) -> Groups:
    """Return the groups of jobs by rules.

    owners : user, account, partition and QOS of each job, as far as they are known.
    """
    members: list[tuple[Ints, Ints, NDArray[np.bool_]]] = []
    most: list[tuple[int, int]] = []
    for rule in rules:
        limited = heeds(rule, owners, jobs)
        if not limited.any():
            continue
        rows = np.flatnonzero(_counts(rule, owners, jobs))
        keys = np.array([owners[label].codes[rows] for label in rule.each]).reshape(len(rule.each), len(rows))
        number = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1) if rule.each else np.zeros_like(rows)
        members.append((rows, len(most) + number, limited[rows]))
        limit = (int(min(rule.most_jobs, NO_LIMIT)), int(min(rule.most_nodes, NO_LIMIT)))
        most += [limit] * (int(number.max()) + 1)
    if not members:
        return Groups.none()
    row, group, limits = (np.concatenate(parts) for parts in zip(*members, strict=True))
    group = np.where(limits, group, -2 - group)
    order = np.lexsort((~limits, row))
    row, group = row[order], group[order]
    place = np.arange(len(row)) - np.searchsorted(row, row)
    table = np.full((jobs, int(place.max()) + 1), -1)
    table[row, place] = group
    columns = np.array(most, np.int64).T
    return Groups(table, columns[0].copy(), columns[1].copy())
