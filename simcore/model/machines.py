"""The machines: their names, their nodes, and the job sizes they can hold (krevat2003 ch. 4, zhang2004)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from faultsweep.simcore.finders.boxes import possible_sizes
from faultsweep.simcore.model.menus import Menu, named_menu, read_menu
from faultsweep.simcore.model.nodes import NodeTable, is_menu_file, read_nodes
from numpy.typing import NDArray

from faultsweep.errors import InputError

FLAT = 0
TORUS = 1
CLUSTERS = 2
SITE = 3
MOST_CLUSTERS = 62
LONGEST_SIDES = (1023, 1023, 64)
"""Longest sides of a torus in x, y and z: a column of nodes along z is one machine word."""
_MAX_NODES = 4_000_000
_NUMBER = r"\d{1,18}"
_CLUSTER = rf"{_NUMBER}(?:@{_NUMBER}(?:\.{_NUMBER})?)?"


@dataclass(frozen=True)
class Machine:
    """A machine: ``torus`` with three sides, ``flat`` or ``clusters`` with sides (1, 1, nodes).

    A flat machine may have a menu of partitions. Clusters have their nodes numbered through, and after them their
    trunks; ``trunks_mbps`` are capacities, NaN where the parameter ``trunk_mbps`` gives it.
    """

    name: str
    kind: int
    sides: tuple[int, int, int]
    clusters: tuple[int, ...] = ()
    trunks_mbps: tuple[float, ...] = ()
    menu: Menu | None = None
    site: NodeTable | None = field(default=None, compare=False)

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        x, y, z = self.sides
        return x * y * z

    @property
    def largest(self) -> int:
        """Return the size of the largest job that the machine can hold: nodes, or cores on a site."""
        if self.site is not None:
            return self.site.total_cores
        return self.nodes if self.menu is None else int(self.menu.sizes[-1])

    @property
    def capacity(self) -> int:
        """Return what sizes and capacities are counted in: nodes, or cores on a site."""
        return self.nodes if self.site is None else self.site.total_cores

    @property
    def node_size(self) -> int:
        """Return how many nodes of a job log are one node here: on a machine with a menu, that is a midplane."""
        return 1 if self.menu is None else self.menu.nodes_per_midplane


MACHINE_FORMS = {
    "torus:XxYxZ": "X*Y*Z nodes (X and Y up to 1,023, Z up to 64); a job takes a contiguous box that may wrap around "
    "in every axis (krevat2003)",
    "flat:N": "N nodes; a job takes any free nodes (zhang2004)",
    "clusters:N+N+...": "clusters of N nodes, each with a trunk to a common switch; a job takes any free nodes, of one "
    "cluster or over several; N@MBPS gives the trunk's capacity (akshitha2011)",
    "midplanes:N": "N midplanes of 512 nodes; a job takes a partition of 1, 2, 4 ... or all of them; 80 is the Blue "
    "Gene/P Intrepid (tang2010)",
    "FILE.toml": "a site of shared nodes (site import makes one), or a menu of partitions of your own, which are sets "
    "of midplanes",
}


def parse_machine(name: str) -> Machine:
    """Return the machine of a name such as ``torus:4x4x8``, ``flat:320`` or ``midplanes:80``, or of a file.

    Raises
    ------
    InputError
        If the name has another form, a side is not positive or too long, or the file holds no site and no menu.
    """
    if not name.endswith(".toml"):
        return _named_machine(name)
    if is_menu_file(name):
        return _machine_with(name, read_menu(name))
    site = read_nodes(name)
    return Machine(name, SITE, (1, 1, len(site.cores)), site=site)


def may_be_site(name: str) -> bool:
    """Tell whether the name of a machine is that of a site's file; so is one that cannot be read, for all we know."""
    return name.endswith(".toml") and not is_menu_file(name)


def _machine_with(name: str, menu: Menu) -> Machine:
    return Machine(name, FLAT, (1, 1, menu.midplanes), menu=menu)


@lru_cache
def _named_machine(name: str) -> Machine:
    torus = re.fullmatch(rf"torus:({_NUMBER})x({_NUMBER})x({_NUMBER})", name, re.ASCII)
    flat = re.fullmatch(rf"flat:({_NUMBER})", name, re.ASCII)
    clusters = re.fullmatch(rf"clusters:{_CLUSTER}(\+{_CLUSTER})*", name, re.ASCII)
    midplanes = re.fullmatch(rf"midplanes:({_NUMBER})", name, re.ASCII)
    if torus:
        x, y, z = (int(side) for side in torus.groups())
        machine = Machine(name, TORUS, (x, y, z))
        if any(side > longest for side, longest in zip(machine.sides, LONGEST_SIDES, strict=True)):
            longest = ", ".join(f"{axis} up to {most}" for axis, most in zip("xyz", LONGEST_SIDES, strict=True))
            raise InputError(f"machine: {name!r} has a side that is too long (valid: {longest})")
    elif flat:
        machine = Machine(name, FLAT, (1, 1, int(flat.group(1))))
    elif clusters:
        machine = _parse_clusters(name)
    elif midplanes:
        machine = _machine_with(name, named_menu(int(midplanes.group(1))))
    else:
        raise InputError(
            f"machine: {name!r:.80} is not a machine (valid: {', '.join(MACHINE_FORMS)}, e.g. torus:4x4x8, flat:128 or "
            "clusters:100+100)"
        )
    if not 1 <= machine.nodes <= _MAX_NODES:
        raise InputError(f"machine: {name!r} has {machine.nodes} nodes (valid: 1 to {_MAX_NODES:,})")
    return machine


def _parse_clusters(name: str) -> Machine:
    """Return clusters of a name of the right form."""
    parts = [part.partition("@") for part in name.partition(":")[2].split("+")]
    sizes = tuple(int(size) for size, _, _ in parts)
    trunks = tuple(float(trunk) if trunk else math.nan for _, _, trunk in parts)
    if len(sizes) > MOST_CLUSTERS or min(sizes) < 1 or any(trunk == 0 for trunk in trunks):
        raise InputError(
            f"machine: {name!r} has {len(sizes)} clusters, the smallest of {min(sizes)} nodes "
            f"(valid: 1 to {MOST_CLUSTERS} clusters of 1 node or more, trunks of more than 0 Mbit/s)"
        )
    return Machine(name, CLUSTERS, (1, 1, sum(sizes)), sizes, trunks)


def round_up(machine: Machine, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, for sizes of 1 to the largest, the least possible sizes that are not smaller (krevat2003 ch. 2)."""
    if machine.menu is not None:
        return machine.menu.sizes[np.searchsorted(machine.menu.sizes, sizes)]
    if machine.kind != TORUS:
        return sizes
    possible = possible_sizes(machine.sides)
    return possible[np.searchsorted(possible, sizes)]
