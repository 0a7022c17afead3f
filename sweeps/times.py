"""Durations as people write them."""

from __future__ import annotations

UNITS_S = {"days": 86400, "h": 3600, "min": 60, "s": 1}
"""Unit -> seconds."""


def unit_of(seconds: float) -> str:
    """Return the unit for a duration: the largest of which there are two or more, or seconds."""
    return next((unit for unit, length in UNITS_S.items() if seconds >= 2 * length), "s")


def describe_time(seconds: float) -> str:
    """Return a duration in its unit, with one decimal: "6.3 min"."""
    unit = unit_of(seconds)
    value = seconds / UNITS_S[unit]
    return f"{value:,.1f} {unit}" if value >= 0.1 or not value else f"{value:.1g} {unit}"
