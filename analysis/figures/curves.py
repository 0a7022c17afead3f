"""Curves of results over an axis, with their intervals."""

from __future__ import annotations

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.figure import Curve, Style


def curve_over(label: str, found: xr.Dataset, x: str, style: Style) -> Curve:
    """Return the curve of means with intervals (of ``mean_interval`` or ``paired_difference``) over the axis ``x``."""
    mean, low, high = (found[name].values for name in ("mean", "low", "high"))
    return Curve(label, found[x].values.astype(float), mean, low, high, style)


def means_over(label: str, found: xr.Dataset, x: str, style: Style) -> Curve:
    """Return the curve of means alone, beside which a panel of paired changes has the intervals.

    Under common random numbers the means of all curves go up and down together from replicate to replicate: their
    intervals would say nothing about the distances between the curves.
    """
    none = np.full(found.sizes[x], np.nan)
    return Curve(label, found[x].values.astype(float), found["mean"].values, none, none, style)
