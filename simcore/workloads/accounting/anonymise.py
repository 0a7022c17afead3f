"""A public-safe copy of jobs: numbers for all names, by a key that stays at home, and times that may be shifted.

The key is a JSON file with the number of each name and the shift. With the same key, later dumps get the same numbers
for the same names; who does not have it learns which jobs belong together, and no name.
"""

from __future__ import annotations

import json
import os
import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.workloads.accounting.records import COLUMNS, JobRecords, Text, arrays_of
from faultsweep.simcore.workloads.accounting.units import expand_hosts
from numpy.typing import NDArray

from faultsweep.errors import InputError, unknown_name
from faultsweep.files import writing

NAMED = ("user", "account", "partition", "qos", "reservation")
"""Columns of names, which become numbers; the names of nodes do, too. Dependencies and headers are left
away, and so are numbers of jobs; tasks of an array stay together."""
WEEK_S = 7 * 86_400
MOST_WEEKS = 520


def anonymise(jobs: JobRecords, key: dict[str, Any], keep: tuple[str, ...] = (), shift: bool = False) -> JobRecords:
    """Return jobs without names; ``key`` gets the numbers of names that are new.

    Parameters
    ----------
    keep : columns of NAMED whose names are public, such as partition.
    shift : move all times by the key's shift, a whole number of weeks: hours and days of the week stay.
    """
    for name in keep:
        if name not in NAMED:
            raise unknown_name("column", name, NAMED, "--keep")
    columns = dict(jobs.columns)
    columns.pop("dependency", None)
    columns["job"] = _numbered(arrays_of(jobs).codes)
    for name in NAMED:
        if name in columns and name not in keep:
            text = columns[name]
            columns[name] = Text(text.codes, tuple(_number(key, name, value) for value in text.names))
    if "node_list" in columns:
        text = columns["node_list"]
        columns["node_list"] = Text(text.codes, tuple(_nodes(key, value) for value in text.names))
    if shift:
        moved = float(key.setdefault("shift_weeks", secrets.randbelow(MOST_WEEKS) + 1)) * WEEK_S
        columns |= {n: values - moved for n, values in columns.items() if COLUMNS[n].kind == "time"}
    return replace(jobs, columns=columns, name="anonymous", header=(), timezone="", content_hash="")


def _numbered(arrays: NDArray[np.int32]) -> Text:
    """Return the numbers of rows as names of jobs; tasks of an array have that of its first one, and their own."""
    first: dict[int, int] = {}
    tasks: Counter[int] = Counter()
    names = []
    for row, array in enumerate(arrays.tolist(), start=1):
        if array < 0:
            names.append(str(row))
            continue
        tasks[array] += 1
        names.append(f"{first.setdefault(array, row)}_{tasks[array]}")
    return Text(np.arange(len(names), dtype=np.int32), tuple(names))


def _number(key: dict[str, Any], column: str, name: str) -> str:
    numbers = key.setdefault(column, {})
    return f"{column}{numbers.setdefault(name, len(numbers) + 1)}"


def _nodes(key: dict[str, Any], text: str) -> str:
    try:
        hosts = expand_hosts(text)
    except ValueError:
        hosts = [text]
    return ",".join(_number(key, "n", host) for host in hosts)


def read_key(path: Path) -> dict[str, Any]:
    """Return the key in a file, an empty one if there is no file."""
    try:
        key = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as a key ({error})") from None
    weeks = key.get("shift_weeks", 1) if isinstance(key, dict) else 0
    tables = [value for name, value in key.items() if name != "shift_weeks"] if isinstance(key, dict) else [0]
    numbers = all(isinstance(table, dict) and all(isinstance(n, int) for n in table.values()) for table in tables)
    if not (isinstance(weeks, int) and 0 < weeks <= MOST_WEEKS and numbers):
        raise InputError(f"{path}: not a key of logs anonymise")
    return key


def write_key(key: dict[str, Any], path: Path) -> None:
    """Write a key so that only its owner can read it; the one before stays until the new one is whole."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with writing(path):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(key, file, indent=1, ensure_ascii=False)
        temporary.replace(path)
