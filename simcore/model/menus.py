"""Machines whose jobs take one partition of a fixed menu, as the Blue Gene/P of tang2010.

A partition is a set of midplanes. Two partitions conflict, and are never in use at the same time, if they share a
midplane (one contains the other, or they overlap) or a wire: a cable that both need to close their torus. Wires have
names; what they connect does not matter here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.files import parse_toml, read_text

WORD = 64
ROW = 16
"""Midplanes in a row of racks of a Blue Gene/P: eight racks of two midplanes."""
_MOST_MIDPLANES = 4096
_MOST_PARTITIONS = 4096
_NUMBER = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class Partition:
    """One entry of a menu: a name, its midplanes in ascending order, and the names of the wires that it needs."""

    name: str
    midplanes: tuple[int, ...]
    wires: tuple[str, ...] = ()


@dataclass(frozen=True)
class Menu:
    """The partitions of a machine, by rising size; equal sizes in the order of the menu.

    Attributes
    ----------
    name : what the menu is called.
    midplanes : their number, 0 .. midplanes - 1.
    nodes_per_midplane : nodes in each of them: a job of so many nodes or less asks for one midplane.
    partitions : at least one of them holds all midplanes that any other one does.
    """

    name: str
    midplanes: int
    nodes_per_midplane: int
    partitions: tuple[Partition, ...]

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the midplanes of each partition, int64 (partitions,), ascending."""
        return np.array([len(partition.midplanes) for partition in self.partitions], np.int64)

    @cached_property
    def resources(self) -> NDArray[np.uint64]:
        """Return what each partition takes as bits, uint64 (partitions, words): midplanes, and from the next whole
        word on wires."""
        wires = sorted({wire for partition in self.partitions for wire in partition.wires})
        first_wire = -(-self.midplanes // WORD) * WORD
        number = {wire: first_wire + place for place, wire in enumerate(wires)}
        words = np.zeros((len(self.partitions), -(-(first_wire + len(wires)) // WORD)), np.uint64)
        for row, partition in enumerate(self.partitions):
            for bit in (*partition.midplanes, *(number[wire] for wire in partition.wires)):
                words[row, bit // WORD] |= np.uint64(1 << bit % WORD)
        return words

    @cached_property
    def conflicts(self) -> NDArray[np.bool_]:
        """Return the conflict matrix, bool (partitions, partitions), symmetric; every partition conflicts with
        itself."""
        taken = self.resources
        shared: NDArray[np.bool_] = np.any(taken[:, None, :] & taken[None, :, :], axis=2)
        return shared


def row_menu(midplanes: int, name: str = "") -> Menu:
    """Return the menu of ``midplanes:N``: powers of two of neighbouring midplanes, and the whole machine.

    Up to a row of 16 midplanes, a partition of 2^k midplanes begins at a multiple of 2^k; a larger one begins with any
    row. A midplane has 512 nodes.
    """
    if not 1 <= midplanes <= _MOST_MIDPLANES:
        raise InputError(f"machine: midplanes:{midplanes} is too small or too large (valid: 1 to {_MOST_MIDPLANES})")
    found: list[Partition] = []
    size = 1
    while size < midplanes:
        for first in range(0, midplanes - size + 1, min(size, ROW)):
            found.append(Partition(_range_name(first, size), tuple(range(first, first + size))))
        size *= 2
    found.append(Partition(_range_name(0, midplanes), tuple(range(midplanes))))
    return Menu(name or f"midplanes:{midplanes}", midplanes, 512, tuple(found))


def _range_name(first: int, size: int) -> str:
    return f"{first}" if size == 1 else f"{first}-{first + size - 1}"


@lru_cache
def named_menu(midplanes: int) -> Menu:
    """Return the menu of ``midplanes:N``; that of 80 is Intrepid's, from the file ``intrepid.toml``."""
    if midplanes == 80:
        text = (files("faultsweep.simcore.model") / "intrepid.toml").read_text("utf-8")
        return menu_of_text(text, "intrepid.toml")
    return row_menu(midplanes)


def read_menu(path: str | Path) -> Menu:
    """Return the menu in a TOML file.

    Raises
    ------
    InputError
        If it cannot be read, or is no menu; it names what is wrong, and where.
    """
    return _menu_of_file(read_text(path, "machine: "), str(path))


@lru_cache(maxsize=16)
def _menu_of_file(text: str, path: str) -> Menu:
    return menu_of_text(text, path)


def menu_of_text(text: str, path: str) -> Menu:
    """Return the menu that a TOML text describes; ``path`` is what messages call it."""
    table = parse_toml(text, path)
    _only(table, ("name", "midplanes", "nodes_per_midplane", "partitions"), path)
    midplanes = _whole(table, "midplanes", _MOST_MIDPLANES, path)
    per_midplane = _whole(table, "nodes_per_midplane", 1 << 40, path, 512)
    name = table.get("name", Path(path).stem)
    rows = table.get("partitions")
    if not isinstance(name, str) or not isinstance(rows, list) or not rows:
        raise InputError(f'{path}: a menu needs partitions = [{{ name = "...", midplanes = "0-15" }}, ...]')
    if len(rows) > _MOST_PARTITIONS:
        raise InputError(f"{path}: has {len(rows):,} partitions (valid: up to {_MOST_PARTITIONS:,})")
    partitions = [_partition(row, place, midplanes, path) for place, row in enumerate(rows, 1)]
    names = [partition.name for partition in partitions]
    twice = next((one for one in names if names.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: two partitions are called {twice!r}")
    return Menu(name, midplanes, per_midplane, tuple(sorted(partitions, key=lambda one: len(one.midplanes))))


def menu_hash(menu: Menu) -> str:
    """Return the content hash of a menu: what it means, not how it is written."""
    return (
        "sha256:"
        + hashlib.sha256(repr((menu.midplanes, menu.nodes_per_midplane, menu.partitions)).encode()).hexdigest()
    )


def _only(table: dict[str, Any], valid: Iterable[str], where: str) -> None:
    unknown = [name for name in table if name not in valid]
    if unknown:
        raise InputError(f"{where}: unknown entry {unknown[0]!r} (valid: {', '.join(valid)})")


def _whole(table: dict[str, Any], name: str, most: int, path: str, default: int | None = None) -> int:
    value = table.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise InputError(f"{path}: {name} = {value!r} is not valid (valid: a whole number from 1 to {most:,})")
    return value


def _partition(row: Any, place: int, midplanes: int, path: str) -> Partition:
    where = f"{path}, partition {place}"
    if not isinstance(row, dict):
        raise InputError(f'{where}: expected {{ name = "...", midplanes = "0-15" }}, got {row!r:.60}')
    _only(row, ("name", "midplanes", "wires"), where)
    name, wires = row.get("name"), row.get("wires", [])
    if not isinstance(name, str) or not name:
        raise InputError(f"{where}: needs a name")
    if not isinstance(wires, list) or not all(isinstance(wire, str) for wire in wires):
        raise InputError(f"{where} ({name}): wires = {wires!r:.60} is not a list of names")
    found = _midplanes(row.get("midplanes"), f"{where} ({name})")
    if not found or len(set(found)) != len(found):
        raise InputError(f"{where} ({name}): names no midplane, or one twice")
    outside = [number for number in found if not 0 <= number < midplanes]
    if outside:
        raise InputError(f"{where} ({name}): midplane {outside[0]} is not one of 0 to {midplanes - 1}")
    return Partition(name, tuple(sorted(found)), tuple(dict.fromkeys(wires)))


def _midplanes(value: Any, where: str) -> list[int]:
    """Return the numbers of a list of whole numbers, or of a text such as "0-15, 20"."""
    if isinstance(value, list) and all(isinstance(one, int) and not isinstance(one, bool) for one in value):
        return value
    found: list[int] = []
    for part in value.split(",") if isinstance(value, str) else ["?"]:
        first, _, last = part.strip().partition("-")
        if not _NUMBER.fullmatch(first) or (last and not _NUMBER.fullmatch(last)):
            raise InputError(f'{where}: midplanes = {value!r:.60} is neither a list of numbers nor like "0-15, 20"')
        if int(last or first) - int(first) >= _MOST_MIDPLANES:
            raise InputError(f"{where}: midplanes = {value!r:.60} are more than {_MOST_MIDPLANES}")
        found += range(int(first), int(last or first) + 1)
    return found
