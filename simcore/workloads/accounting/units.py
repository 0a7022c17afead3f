"""What fields of accounting records say: durations, memory, counts of resources, times of a zone, lists of hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from faultsweep.errors import InputError

Numbers = NDArray[np.float64]
NAN, ENDLESS = float("nan"), float("inf")
FIRST_S, LAST_S = 0.0, 7.3e9  # 1970 to 2201: a time outside is none of a job or of a failure
LARGEST = 2.0**53  # above it float64 no longer holds every whole number

_CLOCK = re.compile(
    r"(?:(?P<days>\d{1,7})-)?(?:(?:(?P<h>\d{1,9}):)?(?P<m>\d{1,9}):)?(?P<s>\d{1,9})(?:\.\d{1,9})?", re.A
)
_STAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.A)
_NUMBER = re.compile(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})([eE][+-]?\d{1,3})?", re.A)
_COUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTP]?)", re.A)
_MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTPE]?)(?:i?[bB])?([nc]?)", re.A | re.I)
_MEBI = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_KILO = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}


class Memo(dict[str, object]):
    """Remembers what a field means: few texts stand in many rows."""

    def __init__(self, parse: Callable[[str], object]) -> None:
        """Parse with this function, once for each text."""
        super().__init__()
        self.parse = parse

    def __missing__(self, text: str) -> object:
        """Parse a text that is new."""
        value = self[text] = self.parse(text)
        return value


def number(text: str) -> float:
    """Return a plain number; ValueError otherwise. Empty and unknown is NaN."""
    if text in ("", "Unknown", "None", "N/A", "(null)", "NULL", "-"):
        return NAN
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    value = float(text)
    if not abs(value) <= LARGEST:
        raise ValueError("too large (above 2^53)")
    return value


def count(text: str) -> float:
    """Return a number of things, 0 or more, such as 16 or 1.5K; ValueError otherwise."""
    if text in ("", "Unknown", "None", "N/A", "(null)"):
        return NAN
    found = _COUNT.fullmatch(text)
    if not found:
        raise ValueError("not a count")
    value = float(found[1]) * _KILO[found[2]]
    if value > LARGEST:
        raise ValueError("too large (above 2^53)")
    return float(round(value))


def clock(text: str) -> float:
    """Return a duration such as 1-02:03:04, 26:03:04, 03:04 or 40 in seconds; ValueError otherwise."""
    if text in ("", "Unknown", "None", "N/A", "(null)", "INVALID"):
        return NAN
    found = _CLOCK.fullmatch(text)
    if not found:
        raise ValueError("not a duration (such as 1-12:00:00)")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    if found["days"] is not None and found["m"] is None:  # 2-06: days and hours
        hours, seconds = seconds, 0
    elif found["days"] is not None and found["h"] is None:  # 2-06:30: days, hours and minutes
        hours, minutes, seconds = minutes, seconds, 0
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def memory_mb(text: str) -> tuple[float, str]:
    """Return MiB and "" (of the job), "n" (of each node) or "c" (of each core) of a text such as 64Gn or 400mb.

    A number without a unit is in MiB.
    """
    found = _MEMORY.fullmatch(text)
    if not found:
        raise ValueError("not an amount of memory (such as 4000M)")
    plain_bytes = not found[2] and text.lower().rstrip("nc").endswith("b")
    return float(found[1]) * (2.0**-20 if plain_bytes else _MEBI[found[2].upper()]), found[3].lower()


def stamp(text: str) -> tuple[datetime, bool]:
    """Return a time such as 2026-11-22T10:00:38 and whether it has a zone of its own; ValueError otherwise."""
    found = _STAMP.fullmatch(text)
    if not found:
        raise ValueError("not a time (such as 2026-11-22T10:00:38)")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    when = datetime(year, month, day, hour, minute, second)
    if not found[7]:
        return when, False
    if found[7] == "Z":
        return when, True
    sign = -1 if found[7][0] == "-" else 1
    return when - sign * timedelta(hours=int(found[7][1:3]), minutes=int(found[7][-2:])), True


class Zone:
    """A time zone: local times to UTC, with the hour that the end of summer time repeats.

    ``early`` and ``late`` give both readings of a local time; they differ only there and in the hour that is skipped.
    """

    def __init__(self, name: str) -> None:
        """Look the zone up by its name, such as Europe/Berlin."""
        try:
            self._info = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InputError(f"timezone: {name!r} is not a time zone (valid: UTC, Europe/Berlin, ...)") from None
        self.name = name
        self.fixed = name in ("UTC", "Etc/UTC", "GMT")

    def early(self, local_s: Numbers) -> Numbers:
        """Return UTC seconds of local seconds since 1970; in a repeated hour, the first time."""
        return self._utc(local_s, 0)

    def late(self, local_s: Numbers) -> Numbers:
        """Return UTC seconds of local seconds since 1970; in a repeated hour, the second time."""
        return self._utc(local_s, 1)

    def _utc(self, local_s: Numbers, fold: int) -> Numbers:
        if self.fixed or not np.isfinite(local_s).any():
            return local_s
        hours = np.floor(np.nan_to_num(local_s) / 900)  # offsets change at quarters of an hour
        values, places = np.unique(hours, return_inverse=True)
        offsets = np.array([self._offset(int(value) * 900, fold) for value in values.tolist()])
        return local_s - offsets[places]

    @lru_cache(maxsize=1 << 16)  # noqa: B019 (a zone lives as long as the reading of one dump)
    def _offset(self, local_s: int, fold: int) -> float:
        try:
            local = datetime.fromtimestamp(local_s, UTC).replace(tzinfo=self._info, fold=fold)
            return (local.utcoffset() or timedelta()).total_seconds()
        except (OverflowError, ValueError, OSError):
            return 0.0


GUESSED_HOUR = "times in the hour that the end of summer time repeats, or its begin skips"


def settle(
    zone: Zone,
    times: dict[str, Numbers],
    order: Sequence[str],
    elapsed_s: Numbers | None,
    in_utc: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Numbers], int]:
    """Return UTC times of times of jobs, and in how many jobs one had to be guessed: ``GUESSED_HOUR``.

    in_utc : by name, which times are in UTC already (a truth value, or one for each job); none if it is not given.

    In the hour that the end of summer time repeats, start and end are read so that the run lasts as long as
    ``elapsed_s`` says, and no time comes before the one that it follows in ``order``. What is still open is the first
    reading. A time in the hour that the begin of summer time skips is guessed in any case.
    """
    in_utc = in_utc or {}
    early, late = (
        {name: np.where(in_utc.get(name, False), values, read(values)) for name, values in times.items()}
        for read in (zone.early, zone.late)
    )
    twice = {name: np.isfinite(early[name]) & (early[name] != late[name]) for name in times}
    if not any(rows.any() for rows in twice.values()):
        return early, 0
    skipped = {name: early[name] > late[name] for name in times}
    chosen = dict(early)
    open_ = {name: rows.copy() for name, rows in twice.items()}
    if elapsed_s is not None and {"start_s", "end_s"} <= times.keys():
        _settle_runs(early, late, chosen, open_, elapsed_s)
    before = np.full(len(elapsed_s if elapsed_s is not None else next(iter(times.values()))), -np.inf)
    for name in (name for name in order if name in times):
        second = open_[name] & (early[name] < before) & ~skipped[name]
        chosen[name] = np.where(second, late[name], chosen[name])
        open_[name] &= ~second
        before = np.fmax(before, chosen[name])
    return chosen, int(np.logical_or.reduce([*open_.values(), *skipped.values()]).sum())


def _settle_runs(
    early: dict[str, Numbers],
    late: dict[str, Numbers],
    chosen: dict[str, Numbers],
    open_: dict[str, NDArray[np.bool_]],
    elapsed_s: Numbers,
) -> None:
    """Choose starts and ends whose distance is the run's length; the first pair of readings that fits best."""
    pairs = [(a, b) for a, b in ((early, early), (early, late), (late, late), (late, early))]
    off = np.array([np.abs(ends["end_s"] - starts["start_s"] - elapsed_s) for starts, ends in pairs])
    off = np.where(np.isnan(off), np.inf, off)
    best = np.argmin(off, axis=0)
    known = np.isfinite(off.min(axis=0))
    for number, (starts, ends) in enumerate(pairs):
        here = known & (best == number)
        chosen["start_s"] = np.where(here, starts["start_s"], chosen["start_s"])
        chosen["end_s"] = np.where(here, ends["end_s"], chosen["end_s"])
    both = open_["start_s"] & open_["end_s"] & (best == 0)  # both may be an hour later
    for name in ("start_s", "end_s"):
        open_[name] &= ~known | both


_RANGE = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?", re.A)
MOST_HOSTS = 10_000_000
TOO_MANY = f"more than {MOST_HOSTS:,} hosts"


def expand_hosts(text: str) -> list[str]:
    """Return the hosts of a list such as n[1-3,7],login1 or r[0-1]n[00-15]; ValueError if it is none."""
    hosts: list[str] = []
    for item in split_outside(text):
        hosts += _expand_one(item)
        if len(hosts) > MOST_HOSTS:
            raise ValueError(TOO_MANY)
    return hosts


def split_outside(text: str) -> Iterable[str]:
    """Yield what stands between commas outside of brackets."""
    depth = start = 0
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError("brackets do not match")
        if letter == "," and not depth:
            yield text[start:place]
            start = place + 1
    if depth:
        raise ValueError("brackets do not match")
    yield text[start:]


def _expand_one(text: str) -> list[str]:
    open_ = text.find("[")
    if open_ < 0:
        return [text] if text else []
    close = text.index("]", open_)
    tails = _expand_one(text[close + 1 :]) or [""]
    numbers = list(_numbers(text[open_ + 1 : close]))
    if len(numbers) * len(tails) > MOST_HOSTS:
        raise ValueError(TOO_MANY)
    return [text[:open_] + middle + tail for middle in numbers for tail in tails]


def _numbers(text: str) -> Iterable[str]:
    for part in text.split(","):
        found = _RANGE.fullmatch(part)
        if not found:
            raise ValueError("not a range of numbers")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first:
            raise ValueError("a range goes from the lower number to the higher one")
        if last - first >= MOST_HOSTS:
            raise ValueError(TOO_MANY)
        width = len(found[1]) if found[1].startswith("0") else 0
        for value in range(first, last + 1):
            yield f"{value:0{width}d}" if width else str(value)
