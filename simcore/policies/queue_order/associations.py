"""The tree of accounts whose shares decide who comes first, and the factors of jobs that do not change while they wait.

A user of an account is an association, a leaf of the tree; accounts are in accounts, and all are in the root. Without
accounts, all users are in the root. Shares are those of the parameter, of the site, or the same for all on a level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.contract import Run
from faultsweep.simcore.model.machines import Machine
from faultsweep.simcore.model.nodes import NodeTable
from numpy.typing import NDArray

from faultsweep.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Arrays = Mapping[str, NDArray[Any]]
Shares = tuple[tuple[str, str, str, float], ...]
"""(account, user, parent, shares), as a site's file has them."""

ROOT = "root"
"""The account of all accounts, as SLURM calls it."""


class Associations(NamedTuple):
    """A tree whose leaves come first and whose root comes last, and what jobs are in it.

    Attributes
    ----------
    of_job : leaf of each job, -1 where there is no tree, shape (jobs,).
    parent : of each association, -1 of the root, shape (associations,).
    due : its part of the shares of those with the same parent.
    inverse_share : 1 / its part of all, infinity where that is 0.
    path : what each leaf is in, from the root's children down to itself, -1 behind it, shape (leaves, depth).
    names : (account, user) of each leaf.
    """

    of_job: Ints
    parent: Ints
    due: Floats
    inverse_share: Floats
    path: Ints
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def none(cls, jobs: int) -> Associations:
        """Return a tree of the root alone."""
        one = np.ones(1)
        return cls(np.full(jobs, -1), np.full(1, -1), one, one, np.zeros((0, 1), np.int64))


@dataclass
class _Tree:
    """Shares of accounts and users by (account, user), user "" for an account, and the accounts they are in."""

    shares: dict[tuple[str, str], float] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)

    def declare(self, rows: Iterable[tuple[str, str, str, float]]) -> None:
        """Add what (account, user, parent, shares) say, and the accounts that they name without a row."""
        for account, user, parent, shares in rows:
            if user or account != ROOT:
                self.shares[account, user] = shares
            if not user and account != ROOT:
                self.parents[account] = parent or ROOT
        for account in [*self.parents.values(), *(account for account, _ in self.shares)]:
            self.add(account, "")

    def add(self, account: str, user: str, shares: float = 1.0) -> None:
        """Add a user, with one share if no other number is given, and the account; what is known stays as it is."""
        if account != ROOT and account not in self.parents:
            self.parents[account] = ROOT
            self.shares[account, ""] = 1.0
        if user:
            self.shares.setdefault((account, user), shares)

    def way(self, account: str) -> list[str]:
        """Return an account and those that it is in, up to the root's child."""
        way: list[str] = []
        while account != ROOT:
            if account in way:
                raise InputError(f"account {account!r} is in itself, by way of {' in '.join(way)} (valid: a tree)")
            way.append(account)
            account = self.parents[account]
        return way


def associations(jobs: Arrays, machine: Machine, run: Run) -> Associations:
    """Return the tree of a run.

    Raises
    ------
    InputError
        If no job has a user, or accounts are no tree.
    """
    if run["priority_share_weight"] == 0:
        return Associations.none(len(jobs["submit_s"]))
    if run["priority_fair_share"] != "users":
        _check_users(jobs, "priority_share_weight", "priority_share_weight = 0")
        return _tree_of(jobs, _shares(machine, run))
    return users_of(jobs, {}, "priority_share_weight", "priority_share_weight = 0")


def users_of(jobs: Arrays, shares: Mapping[str, float], parameter: str, otherwise: str) -> Associations:
    """Return the users of jobs with their shares by name, 1 of those that have none, all in one account.

    Raises
    ------
    InputError
        If no job has a user: it names a parameter, and what else is valid.
    """
    _check_users(jobs, parameter, otherwise)
    tree, names = _Tree(), jobs.get("user_names", np.empty(0, np.str_))
    numbers, of_job = np.unique(np.maximum(jobs["user"], -1), return_inverse=True)
    for number in numbers.tolist():
        name = str(names[number]) if 0 <= number < len(names) else str(number)
        tree.add(ROOT, str(number), shares.get(name, 1.0))
    return _arrays(tree, list(tree.shares), of_job.reshape(-1))


def _check_users(jobs: Arrays, parameter: str, otherwise: str) -> None:
    if not (jobs["user"] >= 0).any():
        raise InputError(
            f"{parameter}: fair share needs the users of jobs, and the workload has none "
            f"(valid: a log with users, num_users above 0, or {otherwise})"
        )


def due_of(jobs: Arrays, machine: Machine, run: Run, owners: Ints, count: int) -> Floats:
    """Return the part of all shares of each user or account that has jobs, shape (count,); without shares all the same.

    owners : that of each job, from 0 on, -1 where it is unknown.
    """
    shares, known = _shares(machine, run), owners >= 0
    if not shares:
        due = (np.bincount(owners[known], minlength=count) > 0).astype(np.float64)
    else:
        tree = _tree_of(jobs, shares)
        leaves, first = np.unique(np.where(known, tree.of_job, -1), return_index=True)
        leaves, first = leaves[leaves >= 0], first[leaves >= 0]
        due = np.asarray(np.bincount(owners[first], 1.0 / tree.inverse_share[leaves], count), np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(due / due.sum(), np.float64)


def _shares(machine: Machine, run: Run) -> Shares:
    """Return the shares of the parameter, or of the site."""
    given = parse_shares(run["priority_shares"])
    return given if given or machine.site is None else machine.site.shares


def _tree_of(jobs: Arrays, shares: Shares) -> Associations:
    """Return the tree of shares and of the users and accounts of jobs."""
    tree = _Tree()
    tree.declare(shares)
    leaves, of_job = _leaves(tree, jobs)
    every = [key for key in tree.shares if key[1]]
    places = {key: place for place, key in enumerate(every)}
    return _arrays(tree, every, np.array([places[leaf] for leaf in leaves], np.int64)[of_job])


def _leaves(tree: _Tree, jobs: Arrays) -> tuple[list[tuple[str, str]], Ints]:
    """Return the associations of jobs, and the place of that of each job among them."""
    pairs, of_job = np.unique(np.stack((_codes(jobs, "account"), jobs["user"])), axis=1, return_inverse=True)
    return [_leaf(tree, jobs, account, user) for account, user in pairs.T.tolist()], of_job.reshape(-1)


def _codes(jobs: Arrays, label: str) -> Ints:
    return jobs.get(f"{label}_codes", np.full(len(jobs["user"]), -1))


def _leaf(tree: _Tree, jobs: Arrays, account: int, user: int) -> tuple[str, str]:
    """Return the association of a user's jobs in an account, added with one share unless it is known; of jobs without
    an account the first one of the user's."""
    names = jobs.get("user_names", np.empty(0, np.str_))
    who = str(names[user]) if 0 <= user < len(names) else str(user)
    if account < 0:
        found = next((key for key in tree.shares if key[1] == who), (ROOT, who))
    else:
        found = (str(jobs["account_names"][account]), who)
    tree.add(*found)
    return found


def _arrays(tree: _Tree, leaves: list[tuple[str, str]], of_job: Ints) -> Associations:
    """Return the tree as arrays."""
    accounts = [key for key in tree.shares if not key[1]]
    place = {key: at for at, key in enumerate([*leaves, *accounts])}
    root = len(place)
    parent = np.full(root + 1, -1)
    for (account, user), at in place.items():
        above = account if user else tree.parents[account]
        parent[at] = place.get((above, ""), root)
    shares = np.array([*(tree.shares[key] for key in place), 1.0])
    level = np.zeros(root + 1)
    np.add.at(level, parent[:-1], shares[:-1])
    ways = [
        [*(place[each, ""] for each in reversed(tree.way(account))), place[account, user]] for account, user in leaves
    ]
    path = np.full((len(leaves), max(map(len, ways))), -1)
    inverse, due = np.ones(root + 1), np.ones(root + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        due[:-1] = np.where(level[parent[:-1]] > 0, shares[:-1] / level[parent[:-1]], 0.0)
        parts = np.where(shares[:-1] > 0, level[parent[:-1]] / shares[:-1], np.inf)
    for leaf, way in enumerate(ways):
        path[leaf, : len(way)] = way
        inverse[leaf] = np.prod(parts[way])
    return Associations(np.asarray(of_job, np.int64), parent, due, inverse, path, tuple(leaves))


def parse_shares(text: str) -> Shares:
    """Return (account, user, parent, shares) of a text such as "physics:50,optics in physics:2,physics/anna:2".

    Raises
    ------
    InputError
        Naming the part that is wrong; also if accounts are no tree.
    """
    rows: list[tuple[str, str, str, float]] = []
    for name, shares in parse_numbers(text, "priority_shares", "physics:50,optics in physics:2,physics/anna:2"):
        account, _, parent = name.partition(" in ")
        account, _, user = account.partition("/")
        if user and parent:
            raise InputError(f"priority_shares: {name!r} is not valid (valid: a user without ' in', as physics/anna)")
        if any(row[:2] == (account, user) for row in rows):
            raise InputError(f"priority_shares: {name!r} is not valid (valid: each account and user once)")
        rows.append((account, user, parent, shares))
    tree = _Tree()
    tree.declare(rows)
    for account in tree.parents:
        tree.way(account)
    return tuple(rows)


def parse_numbers(text: str, parameter: str, example: str) -> tuple[tuple[str, float], ...]:
    """Return names and numbers of 0 or more of a text such as "high:100,low:1"; none of "".

    Raises
    ------
    InputError
        Naming the parameter and the part that is wrong.
    """
    rows: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, number = part.strip().rpartition(":")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not name or name in rows or not 0 <= value <= 1e12:
            raise InputError(f"{parameter}: {part!r} is not valid (valid: each name once with a number, as {example})")
        rows[name] = value
    return tuple(rows.items())


def parts_of_largest(jobs: Arrays, label: str, rows: Iterable[tuple[str, float]], otherwise: float) -> Floats:
    """Return the factor of each job by what it belongs to: its number, of the largest of all; 0 where that is unknown.

    rows : names and numbers; without any, each job has the factor ``otherwise``.
    """
    numbers = dict(rows)
    largest = max(numbers.values(), default=0.0)
    count = len(jobs["submit_s"])
    if largest <= 0:
        return np.full(count, 0.0 if numbers else otherwise)
    names = jobs.get(f"{label}_names", np.empty(0, np.str_))
    of_code = np.array([*(numbers.get(str(name), 0.0) / largest for name in names), 0.0])
    return np.asarray(of_code[_codes(jobs, label)], np.float64)


def partition_factors(machine: Machine, run: Run) -> tuple[tuple[str, float], ...]:
    """Return the factor of each partition: of the parameter, or of the site."""
    given = parse_numbers(run["priority_partition_factors"], "priority_partition_factors", "long:1,short:10")
    return given or (() if machine.site is None else machine.site.partition_factors)


def lasting_priority(jobs: Arrays, machine: Machine, run: Run) -> Floats:
    """Return what the factors of size, partition, QOS, association and TRES give each job, with its site factor and
    less its nice value, shape (jobs,)."""
    share = _size(jobs, machine)
    found = run["priority_size_weight"] * (1.0 - share if run["priority_small_first"] else share)
    partitions = partition_factors(machine, run)
    priorities = parse_numbers(run["priority_qos_factors"], "priority_qos_factors", "normal:10,high:100")
    if machine.site is not None:
        priorities = priorities or machine.site.qos_priorities
    if run["priority_partition_weight"]:
        found = found + run["priority_partition_weight"] * parts_of_largest(jobs, "partition", partitions, 1.0)
    if run["priority_qos_weight"]:
        found = found + run["priority_qos_weight"] * parts_of_largest(jobs, "qos", priorities, 0.0)
    if run["priority_association_weight"] and machine.site is not None:
        found = found + run["priority_association_weight"] * association_factors(jobs, machine.site)
    for name, weight in parse_numbers(run["priority_tres_weights"], "priority_tres_weights", "cpu:1000,gpu:5000"):
        found = found + weight * _part_of_partition(jobs, machine, name)
    if run["priority_nice"]:
        found = found - numbers_of(jobs, "nice")
    if run["priority_site_factor"]:
        found = found + numbers_of(jobs, "site_factor")
    return np.asarray(found, np.float64)


def association_factors(jobs: Arrays, site: NodeTable) -> Floats:
    """Return the priority of each job's association, of the largest of the site, shape (jobs,).

    A user without one has that of the account, and an account that of the one which it is in; the root has 0.
    """
    given = {(account, user): priority for account, user, priority in site.association_priorities}
    largest = max(given.values(), default=0.0)
    if largest == 0.0:
        return np.zeros(len(jobs["submit_s"]))
    tree = _Tree()
    tree.declare(site.shares)
    leaves, of_job = _leaves(tree, jobs)
    ways = [((account, user), *((each, "") for each in (*tree.way(account), ROOT))) for account, user in leaves]
    found = [next((given[key] for key in way if key in given), 0.0) for way in ways]
    return np.array(found)[of_job] / largest


def numbers_of(jobs: Arrays, label: str) -> Floats:
    """Return the number that each job has by a label, such as its nice value; 0 where it is unknown, shape (jobs,)."""
    if f"{label}_codes" not in jobs:
        return np.zeros(len(jobs["submit_s"]))
    return np.array([*map(float, jobs[f"{label}_names"]), 0.0])[jobs[f"{label}_codes"]]


def _size(jobs: Arrays, machine: Machine) -> Floats:
    """Return the share of the machine that each job asks for: on a site the mean of that of the nodes, as few as it may
    take, and of the cores."""
    share = jobs["requested"] / machine.capacity
    if machine.site is None:
        return np.asarray(share, np.float64)
    return np.asarray((fewest_nodes(jobs) / machine.nodes + share) / 2.0, np.float64)


def fewest_nodes(jobs: Arrays) -> Ints:
    """Return the nodes that each job of a site takes at least, as far as it says how many chunks may be on one."""
    per_node = jobs["per_node"]
    return np.asarray(np.where(per_node > 0, -(-jobs["chunks"] // np.maximum(per_node, 1)), 1), np.int64)


TRES = ("cpu", "gpu", "mem", "node")
"""What jobs ask for of their partition, as SLURM names it (gpu: gres/gpu)."""


def _part_of_partition(jobs: Arrays, machine: Machine, name: str) -> Floats:
    """Return the part that each job asks for of one of TRES in its partition; of the machine if that is no site, whose
    nodes are all alike, without GPUs and memory."""
    site = machine.site
    if site is None:
        return np.asarray(jobs["requested"] / machine.capacity * (name in ("cpu", "node")), np.float64)
    has = {"cpu": site.cores, "gpu": site.gpus, "mem": site.memory_mb, "node": np.ones(len(site.cores))}
    column = {"cpu": "cores", "gpu": "gpus", "mem": "memory_mb"}
    wants = jobs["chunks"] * jobs[column[name]] if name in column else fewest_nodes(jobs)
    here = site.members[:, None] >> np.arange(len(site.whole)) & 1
    total = (has[name].astype(np.float64) @ here)[jobs["partition"]]
    return np.divide(wants, total, out=np.zeros(len(total)), where=total > 0)
