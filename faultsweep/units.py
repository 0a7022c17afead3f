"""Units that people read: hours and not 250,000 s."""

from __future__ import annotations

SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}
"""Unit -> the seconds that it has."""
_FROM = {"ms": 0.0, "s": 1.0, "min": 180.0, "h": 7200.0, "days": 1_728_000.0}
"""Unit -> the time, in seconds, from which on it is used: 3 minutes, 2 hours, 20 days."""


def time_unit(largest_s: float) -> tuple[str, float]:
    """Return the unit in which times up to so many seconds are read, and how many seconds it has."""
    if not largest_s:
        return "s", 1.0
    unit = next(unit for unit, start in reversed(_FROM.items()) if not abs(largest_s) < start)
    return unit, SECONDS[unit]


def counted(number: int, word: str) -> str:
    """Return a number with a noun that takes an s: "1 job", "12,345 jobs"."""
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
