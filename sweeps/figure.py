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
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.target import Output

from faultsweep.errors import InputError, unknown_name

KINDS = ("curves", "bars")
FLAGS = ("log_x", "log_y", "delete_warm_up")
KEYS = ("kind", "x", "y", "curves", "panels", *FLAGS)
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
    log_x, log_y : whether scales are logarithmic; None for y lets its range decide.
    delete_warm_up : whether the means are of what follows the warm-up of each run.
    """

    kind: str
    x: str
    along: str
    y: tuple[str, ...]
    curves: tuple[str, ...] = ()
    panels: str = ""
    log_x: bool = False
    log_y: bool | None = None
    delete_warm_up: bool = False


def read_figure(
    raw: Mapping[str, Any],
    axes: Sequence[Axis],
    outputs: Sequence[Output],
    shipped: Mapping[str, Path],
    keep_jobs: bool = False,
) -> Layout:
    """Return the layout that a spec's table describes; a table without keys gives the default.

    The default is the first metric over the first axis of numbers, a curve per combination of the other axes, and with
    more than eight curves a panel per row of the first of these axes. Without an axis of numbers it is bars.

    Raises
    ------
    InputError
        All problems, one sentence a line, each of which names the key and what is valid.
    """
    rows = {axis.name: axis for axis in axes[:-1]}
    if not rows:
        raise InputError("a sweep without axes has nothing to draw over")
    metrics = [out.name for out in outputs if out.is_number]
    _check_names(raw, rows, metrics, shipped, keep_jobs)
    log_x, log_y, warm_up = (raw.get(key) for key in FLAGS)
    y = _listed(raw, "y") or tuple(metrics[:1])
    panels = "".join(_listed(raw, "panels"))
    curves = _listed(raw, "curves")
    x, along = _read_x(raw, rows, metrics, (panels, *curves))
    kind = _read_kind(raw, x, along, rows, metrics, shipped)
    rest = [name for name in rows if len(rows[name]) > 1 and name not in (along, panels, *curves)]
    if "curves" not in raw:
        many = math.prod(len(rows[name]) for name in rest) > _FEW_CURVES
        if many and len(rest) > 1 and "panels" not in raw:
            panels = rest.pop(0)
        curves, rest = tuple(rest), []
    _check_room(kind, rows, curves, rest)
    return Layout(kind, x, along, y, curves, panels, bool(log_x), log_y, bool(warm_up))


def _check_names(
    raw: Mapping[str, Any],
    rows: Mapping[str, Axis],
    metrics: Sequence[str],
    shipped: Mapping[str, Path],
    keep_jobs: bool,
) -> None:
    """Raise InputError with all that is wrong with the keys by themselves; how they fit together comes after."""
    kinds, places = (*KINDS, *shipped), tuple(dict.fromkeys([*rows, *_owners(rows), *metrics]))
    problems = [unknown_name("key", key, KEYS) for key in raw if key not in KEYS]
    flags = {key: raw.get(key, False) for key in FLAGS}
    problems += [
        InputError(f"{key}: expected true or false, got {value!r}")
        for key, value in flags.items()
        if not isinstance(value, bool)
    ]
    problems += [
        *_misnamed(raw, "y", metrics),
        *_misnamed(raw, "panels", rows, most=1),
        *_misnamed(raw, "curves", rows),
    ]
    if "x" in raw and raw["x"] not in places:
        problems.append(unknown_name("axis, varied parameter or metric", raw["x"], places, where="x"))
    if "kind" in raw and raw["kind"] not in kinds:
        problems.append(unknown_name("kind", raw["kind"], kinds, where="kind"))
    y = _listed(raw, "y") or metrics[:1]
    if flags["delete_warm_up"] is True and not (keep_jobs and all(str(name).startswith("mean_") for name in y)):
        problems.append(InputError("delete_warm_up: needs keep_jobs = true in the spec, and means over jobs as y"))
    if problems:
        raise InputError("\n".join(map(str, problems)))


def _misnamed(raw: Mapping[str, Any], key: str, valid: Collection[str], most: int = 99) -> Iterator[InputError]:
    """Yield what is wrong with the names that a key lists."""
    listed = _listed(raw, key)
    unknown = [name for name in listed if name not in tuple(valid)]
    yield from (unknown_name("metric" if key == "y" else "axis", name, valid, where=key) for name in unknown)
    if not unknown and (len(set(listed)) < len(listed) or len(listed) > most):
        wanted = "one name" if most == 1 else "different names"
        yield InputError(f"{key}: expected {wanted}, got {list(listed)!r}")


def _listed(raw: Mapping[str, Any], key: str) -> tuple[Any, ...]:
    """Return the names that a key lists, or the one that it is."""
    listed = raw.get(key, [])
    return tuple(listed) if isinstance(listed, list) else (listed,)


def _owners(rows: Mapping[str, Axis]) -> dict[str, str]:
    """Return the axis that each varied parameter is on."""
    return {column: name for name, axis in rows.items() for column in axis.columns}


def _read_x(
    raw: Mapping[str, Any], rows: Mapping[str, Axis], metrics: Collection[str], taken: Collection[str]
) -> tuple[str, str]:
    """Return what is on the horizontal axis, and the axis of the sweep along which it varies."""
    free = [name for name in rows if name not in taken]
    by_default = sorted(free, key=lambda name: (len(rows[name]) < 2, _is_text(rows[name].labels)))
    x = raw.get("x", by_default[0] if by_default else "")
    along = x if x in rows else _owners(rows).get(x, by_default[0] if by_default else "")
    if along not in free:
        raise InputError(f"x: no axis is left for it; {', '.join(filter(None, taken))} are curves or panels")
    return x, along


def _check_axes(kind: str, rows: Mapping[str, Axis], shipped: Path) -> None:
    """Raise InputError unless a sweep has the axes of the shipped one as which it is drawn, and varies nothing else."""
    needed = tomllib.loads(shipped.read_text("utf-8"))["axes"]
    missing = [name for name in needed if name not in rows]
    more = [name for name, axis in rows.items() if name not in needed and len(axis) > 1]
    found = [f"{verb} {', '.join(names)}" for verb, names in (("lacks", missing), ("varies", more)) if names]
    if found:
        raise InputError(f"kind: {kind} is drawn over {', '.join(needed)} alone; this sweep {' and '.join(found)}")


def _read_kind(
    raw: Mapping[str, Any],
    x: str,
    along: str,
    rows: Mapping[str, Axis],
    metrics: Collection[str],
    shipped: Mapping[str, Path],
) -> str:
    axis = rows[along]
    names = x not in metrics and _is_text(axis.columns.get(x, axis.labels))
    kind = raw.get("kind", "bars" if names else "curves")
    if kind in shipped:
        _check_axes(kind, rows, shipped[kind])
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
