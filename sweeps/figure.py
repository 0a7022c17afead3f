"""The table ``[figure]`` of a spec: what is drawn over what; each part has a default that is read off the axes.

[figure]
kind = "curves"                    # or "bars", or a shipped experiment whose figure the sweep has the axes for
x = "load_scale"                   # an axis, a parameter that varies along one, or a metric
y = "mean_bounded_slowdown"        # a metric, or a list of them
curves = ["scheduler"]             # axes: a curve (or a series of bars) per combination of their rows
panels = "machine"                 # an axis: a panel per row
log_y = true
delete_warm_up = true              # of means over jobs, by MSER-5; needs keep_jobs = true
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from faultsweep.simcore.errors import InputError, unknown_name
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.target import Output

KINDS = ("curves", "bars")
KEYS = ("kind", "x", "y", "curves", "panels", "log_x", "log_y", "delete_warm_up")
MOST_CURVES = 12
"""Curves of a panel that can be told apart."""
_FEW_CURVES = 8


@dataclass(frozen=True)
class Layout:
    """What a figure shows.

    Attributes
    ----------
    kind : "curves" or "bars", or the name of a shipped figure, which needs nothing of the rest.
    x, along : what is on the horizontal axis, and the axis of the sweep along which it varies.
    y : metrics; each has panels of its own.
    curves, panels : axes of the sweep; "" for a single panel.
    log_x, log_y : whether scales are logarithmic.
    delete_warm_up : whether the means are of what follows the warm-up of each run.
    """

    kind: str
    x: str
    along: str
    y: tuple[str, ...]
    curves: tuple[str, ...] = ()
    panels: str = ""
    log_x: bool = False
    log_y: bool = False
    delete_warm_up: bool = False


def read_figure(
    raw: Mapping[str, Any],
    axes: Sequence[Axis],
    outputs: Sequence[Output],
    shipped: Collection[str],
    keep_jobs: bool = False,
) -> Layout:
    """Return the layout that a spec's table describes; a table without keys gives the default.

    The default is the first metric over the first axis of numbers, a curve per combination of the other axes, and with
    more than eight curves a panel per row of the first of these axes. Without an axis of numbers it is bars.

    Raises
    ------
    InputError
        One sentence that names the key and what is valid.
    """
    for key in raw:
        if key not in KEYS:
            raise unknown_name("key", key, KEYS)
    rows = {axis.name: axis for axis in axes[:-1]}
    if not rows:
        raise InputError("a sweep without axes has nothing to draw over")
    metrics = [out.name for out in outputs if not out.dim]
    log_x, log_y, warm_up = (_flag(raw, key) for key in ("log_x", "log_y", "delete_warm_up"))
    y = _names(raw, "y", metrics) or tuple(metrics[:1])
    if warm_up and not (keep_jobs and all(name.startswith("mean_") for name in y)):
        raise InputError("delete_warm_up: needs keep_jobs = true in the spec, and means over jobs as y")
    panels = "".join(_names(raw, "panels", rows, most=1))
    curves = _names(raw, "curves", rows)
    x, along = _read_x(raw, rows, metrics, (panels, *curves))
    kind = _read_kind(raw, x, rows[along], metrics, shipped)
    rest = [name for name in rows if len(rows[name]) > 1 and name not in (along, panels, *curves)]
    if "curves" not in raw:
        many = math.prod(len(rows[name]) for name in rest) > _FEW_CURVES
        if many and len(rest) > 1 and "panels" not in raw:
            panels = rest.pop(0)
        curves, rest = tuple(rest), []
    _check_room(kind, rows, curves, rest)
    return Layout(kind, x, along, y, curves, panels, log_x, log_y, warm_up)


def _flag(raw: Mapping[str, Any], key: str) -> bool:
    value = raw.get(key, False)
    if not isinstance(value, bool):
        raise InputError(f"{key}: expected true or false, got {value!r}")
    return value


def _names(raw: Mapping[str, Any], key: str, valid: Collection[str], most: int = 99) -> tuple[str, ...]:
    """Return the names that a key lists, or the one that it is."""
    listed = raw.get(key, [])
    listed = listed if isinstance(listed, list) else [listed]
    for name in listed:
        if name not in valid:
            raise unknown_name("metric" if key == "y" else "axis", name, valid, where=key)
    if len(set(listed)) < len(listed) or len(listed) > most:
        raise InputError(f"{key}: expected {'one name' if most == 1 else 'different names'}, got {listed!r}")
    return tuple(listed)


def _read_x(
    raw: Mapping[str, Any], rows: Mapping[str, Axis], metrics: Collection[str], taken: Collection[str]
) -> tuple[str, str]:
    """Return what is on the horizontal axis, and the axis of the sweep along which it varies."""
    free = [name for name in rows if name not in taken]
    owners = {column: name for name, axis in rows.items() for column in axis.columns}
    by_default = sorted(free, key=lambda name: (len(rows[name]) < 2, _is_text(rows[name].labels)))
    x = raw.get("x", by_default[0] if by_default else "")
    if "x" in raw and x not in (*rows, *owners, *metrics):
        raise unknown_name("axis, varied parameter or metric", x, {*rows, *owners, *metrics}, where="x")
    along = x if x in rows else owners.get(x, by_default[0] if by_default else "")
    if along not in free:
        raise InputError(f"x: no axis is left for it; {', '.join(filter(None, taken))} are curves or panels")
    return x, along


def _read_kind(raw: Mapping[str, Any], x: str, axis: Axis, metrics: Collection[str], shipped: Collection[str]) -> str:
    names = x not in metrics and _is_text(axis.columns.get(x, axis.labels))
    kind = raw.get("kind", "bars" if names else "curves")
    if kind not in (*KINDS, *shipped):
        raise unknown_name("kind", kind, (*KINDS, *shipped), where="kind")
    if kind == "curves" and names:
        raise InputError(f'kind: curves need numbers along x, and {x!r} has names; use kind = "bars" or another x')
    if kind == "bars" and x in metrics:
        raise InputError(f"kind: bars stand over an axis or a varied parameter, and x is the metric {x!r}")
    return str(kind)


def _check_room(kind: str, rows: Mapping[str, Axis], curves: Sequence[str], rest: Sequence[str]) -> None:
    if kind not in KINDS:
        return
    if rest:
        raise InputError(f"curves: {', '.join(rest)} vary and are none of x, curves and panels; name them in one")
    count = math.prod(len(rows[name]) for name in curves)
    if count > MOST_CURVES:
        raise InputError(
            f"curves: {' x '.join(curves)} are {count} {kind} in a panel, at most {MOST_CURVES} can be told apart;"
            " name one of these axes in panels, or exclude rows"
        )


def _is_text(values: Sequence[Any]) -> bool:
    return any(isinstance(value, str | bool) for value in values)
