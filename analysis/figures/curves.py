"""Curves of results over an axis, with their intervals."""

from __future__ import annotations

import xarray as xr
from faultsweep.analysis.figures.figure import Curve, Style


def curve_over(label: str, found: xr.Dataset, x: str, style: Style) -> Curve:
    """Return the curve of means with intervals (of ``mean_interval`` or ``paired_difference``) over the axis ``x``."""
    mean, low, high = (found[name].values for name in ("mean", "low", "high"))
    return Curve(label, found[x].values.astype(float), mean, low, high, style)
