"""The nodes of a site as arrays: what each has, and which partitions it belongs to."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from faultsweep.simcore.model.limits import Rule
from faultsweep.simcore.model.preempting import NOBODY, Preempting
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.files import parse_toml, read_text

if TYPE_CHECKING:
    from faultsweep.simcore.sites.site import Site

MOST_PARTITIONS = MOST_WINDOWS = 62
"""A node's partitions and its reservations are bits of one whole number each."""
UNLIMITED = 1 << 60
"""Memory of a node of which the site does not say how much it has, MiB."""
ALL_NODES = ""
"""The partition of jobs that name none, where the site has no default one: all nodes."""

Ints = NDArray[np.int64]
Admitted = tuple[tuple[str, ...], tuple[str, ...]]
"""Users and accounts; a name with - before it is left out, and then all others are meant."""


@dataclass(frozen=True)
class NodeTable:
    """The nodes of a site; int64 arrays of shape (nodes,), classes one after another as in the file.

    Attributes
    ----------
    cores, gpus, memory_mb : of each node.
    members : bits of the partitions that it belongs to.
    classes : index of its class.
    mtbf_h : mean time between failures of each, float64 (nodes,); infinity where the file has none.
    partitions : names of the partitions.
    whole : whether their jobs share no nodes.
    default : index of the partition of jobs that name none.
    max_time_s, max_nodes : the longest time and the most nodes that a job of each partition may ask for; infinity where
        there is no limit.
    windows : begin and end of advance reservations, s; on the calendar of the file until ``on_clock`` moves them.
    window_names : their names.
    admitted : users and accounts, those below them among these, whose jobs may run in each; none: nobody's.
    reserved : bits of the windows that a node belongs to.
    shares : (account, user, parent account, shares) of each account and user of the file, user "" for an account.
    association_priorities : (account, user, priority) of those that have one, user "" for an account.
    partition_factors, qos_priorities : (name, number), as the file has them.
    limits, submit_limits : of running jobs, and of those that are submitted and have not ended.
    preempting : which jobs may take the place of others.
    graces_s : of the partitions or QOS by which they do: how long a preempted job goes on; empty where all have none.
    """

    cores: Ints
    gpus: Ints
    memory_mb: Ints
    members: Ints
    classes: Ints
    partitions: tuple[str, ...]
    whole: tuple[bool, ...]
    default: int
    max_time_s: tuple[float, ...] = ()
    max_nodes: tuple[float, ...] = ()
    windows: tuple[tuple[float, float], ...] = ()
    window_names: tuple[str, ...] = ()
    admitted: tuple[Admitted, ...] = ()
    reserved: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    shares: tuple[tuple[str, str, str, float], ...] = ()
    association_priorities: tuple[tuple[str, str, float], ...] = ()
    partition_factors: tuple[tuple[str, float], ...] = ()
    qos_priorities: tuple[tuple[str, float], ...] = ()
    limits: tuple[Rule, ...] = ()
    submit_limits: tuple[Rule, ...] = ()
    preempting: Preempting = NOBODY
    graces_s: tuple[float, ...] = ()
    mtbf_h: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    @property
    def total_cores(self) -> int:
        """Return the cores of all nodes."""
        return int(self.cores.sum())

    def on_clock(self, zero_s: float) -> NodeTable:
        """Return the site with its reservations in seconds since a time of their calendar."""
        return replace(self, windows=tuple((begin - zero_s, end - zero_s) for begin, end in self.windows))


def is_menu_file(path: str) -> bool:
    """Tell whether a file holds a menu of partitions, which says how many midplanes there are."""
    try:
        return _is_menu_text(read_text(path))
    except InputError:
        return False


@lru_cache(maxsize=16)  # it is asked several times for each configuration
def _is_menu_text(text: str) -> bool:
    return "midplanes" in parse_toml(text, "")


def read_nodes(path: str) -> NodeTable:
    """Return the nodes of a site's file.

    Raises
    ------
    InputError
        If it cannot be read or is no site; the message names file and key.
    """
    return _nodes_of_text(read_text(path, "machine: "), path)


@lru_cache(maxsize=16)
def _nodes_of_text(text: str, path: str) -> NodeTable:
    from faultsweep.simcore.sites.site import site_of_text

    return node_table(site_of_text(text, path), path)


def site_hash(site: NodeTable) -> str:
    """Return the content hash of the nodes of a site: what they are, not how the file is written."""
    columns = b"".join(getattr(site, name).tobytes() for name in ("cores", "gpus", "memory_mb", "members"))
    names = repr((site.partitions, site.whole, site.default)).encode()
    if np.isfinite([*site.max_time_s, *site.max_nodes]).any():
        names += repr((site.max_time_s, site.max_nodes)).encode()
    if site.windows:
        names += repr(site.windows).encode() + site.reserved.tobytes()
    if any(users or accounts for users, accounts in site.admitted):
        names += repr((site.window_names, site.admitted)).encode()
    if site.shares or site.qos_priorities or len({factor for _, factor in site.partition_factors}) > 1:
        names += repr((site.shares, site.partition_factors, site.qos_priorities)).encode()
    if site.association_priorities:
        names += repr((site.association_priorities, site.shares)).encode()
    if site.limits:
        names += repr([_rule_row(rule) for rule in site.limits]).encode()
    if site.submit_limits:
        names += repr(("submit", [_rule_row(rule) for rule in site.submit_limits])).encode()
    if site.preempting.by or len(set(site.preempting.tiers)) > 1:
        names += repr(site.preempting._replace(preempts=())).encode()
        names += repr([sorted(others) for others in site.preempting.preempts]).encode()
    if site.graces_s:
        names += repr(site.graces_s).encode()
    if np.isfinite(site.mtbf_h).any():
        names += site.mtbf_h.tobytes()
    return "sha256:" + hashlib.sha256(names + columns).hexdigest()


def _rule_row(rule: Rule) -> tuple[Any, ...]:
    """Return what a rule says, its names in order."""
    parts = [[(label, sorted(names)) for label, names in part] for part in (rule.where, rule.also, rule.unless)]
    return (rule.each, *parts, float(rule.most_jobs), float(rule.most_nodes))


def _least(*limits: float | None) -> float:
    """Return the least of some limits; infinity where there is none."""
    return min((limit for limit in limits if limit is not None), default=math.inf)


def _members(site: Site, counts: list[int]) -> Ints:
    """Return of each node the bits of the partitions that have it; a partition has the first nodes of each class."""
    first = dict(zip((of_class.name for of_class in site.nodes), np.cumsum([0, *counts]).tolist(), strict=False))
    members = np.zeros(sum(counts), np.int64)
    for bit, partition in enumerate(site.partitions):
        for name, count in partition.nodes.items():
            members[first[name] : first[name] + count] |= 1 << bit
    return members


def node_table(site: Site, path: str = "site") -> NodeTable:
    """Return the nodes of a site."""
    from faultsweep.simcore.sites.hosts import nodes_of
    from faultsweep.simcore.sites.limits import admitted_accounts, limits_of, submit_limits_of
    from faultsweep.simcore.sites.preempting import graces_of, preempting_of

    if len(site.partitions) > MOST_PARTITIONS:
        raise InputError(f"{path}: {len(site.partitions)} partitions (valid to simulate: up to {MOST_PARTITIONS})")
    counts = [of_class.count for of_class in site.nodes]
    members = _members(site, counts)
    names = [partition.name for partition in site.partitions]
    whole = [partition.exclusive for partition in site.partitions]
    default = next((place for place, partition in enumerate(site.partitions) if partition.default), len(names))
    walls = {qos.name: qos.max_wall_s for qos in site.qos}
    longest = [_least(partition.max_time_s, walls.get(partition.qos)) for partition in site.partitions]
    unnamed = int(default == len(names))
    longest += [math.inf] * unnamed
    if unnamed:
        members |= 1 << default
        names.append(ALL_NODES)
        whole.append(False)

    if len(site.reservations) > MOST_WINDOWS:
        raise InputError(f"{path}: {len(site.reservations)} reservations (valid to simulate: up to {MOST_WINDOWS})")
    reserved = np.zeros(sum(counts), np.int64)
    for bit, window in enumerate(site.reservations):
        reserved[nodes_of(site, window, path)] |= 1 << bit

    def column(values: Any) -> Ints:
        return np.repeat(np.array(list(values), np.int64), counts)

    return NodeTable(
        cores=column(of_class.cores for of_class in site.nodes),
        gpus=column(of_class.gpus for of_class in site.nodes),
        memory_mb=column(of_class.memory_mb or UNLIMITED for of_class in site.nodes),
        members=members,
        classes=column(range(len(counts))),
        partitions=tuple(names),
        whole=tuple(whole),
        default=default,
        max_time_s=tuple(longest),
        max_nodes=tuple(_least(partition.max_nodes) for partition in site.partitions) + (math.inf,) * unnamed,
        windows=tuple((window.start_s, window.end_s) for window in site.reservations),
        window_names=tuple(window.name for window in site.reservations),
        admitted=tuple((tuple(window.users), admitted_accounts(site, window.accounts)) for window in site.reservations),
        reserved=reserved,
        shares=tuple((a.account, a.user, a.parent, 1.0 * (1 if a.shares is None else a.shares)) for a in site.accounts),
        association_priorities=tuple(
            (row.account, row.user, float(row.priority)) for row in site.accounts if row.priority is not None
        ),
        partition_factors=tuple((each.name, float(each.priority_factor)) for each in site.partitions),
        qos_priorities=tuple((each.name, float(each.priority)) for each in site.qos),
        limits=limits_of(site),
        submit_limits=submit_limits_of(site),
        preempting=preempting_of(site, path),
        graces_s=graces_of(site),
        mtbf_h=np.repeat([_least(of_class.mtbf_h) for of_class in site.nodes], counts),
    )
