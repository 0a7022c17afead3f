"""The table ``[refine]`` of a spec: what is looked for along a numeric axis.

[refine]
along = "load_scale"             # the axis; the search begins between its least and its greatest label
find = "crossing"                # or "saturation"
axis = "scheduler"               # of the policies; the one that has them, or the first of names, if not given
policies = ["fcfs", "backfill"]  # the two labels that cross, or the one that saturates
metric = "mean_wait_s"           # that crosses; saturation is of the utilisation
width = 0.05                     # of the interval at its end
confidence = 0.95                # of all regions together: the combinations of labels of the other axes
most = 200                       # replicates at a point at most
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.selection import FEWEST
from faultsweep.sweeps.target import Output

from faultsweep.errors import InputError, unknown_name

KEYS = ("along", "find", "axis", "policies", "metric", "width", "confidence", "most")
FINDS = ("crossing", "saturation")
STEP = 1.05
"""Saturation is looked for between two loads, this factor below and above a point."""


@dataclass(frozen=True)
class Search:
    """What is looked for.

    Attributes
    ----------
    along : the numeric axis; ``low`` and ``high`` are where the search begins.
    find : one of ``FINDS``.
    axis, policies : the axis of the policies, "" if there is none, and their labels: two, or the one that saturates.
    metric, width, confidence, most : as in the table.
    at : labels of the other axes, by axis: the region.
    regions : how many regions share the chance of an error.
    higher_is_better : whether more of the metric is better.
    """

    along: str
    low: float
    high: float
    find: str
    axis: str
    policies: tuple[str, ...]
    metric: str
    width: float
    confidence: float = 0.95
    most: int = 200
    at: Mapping[str, Any] = field(default_factory=dict)
    regions: int = 1
    higher_is_better: bool = False

    def cells(self, x: float) -> list[tuple[float, str]]:
        """Return the two configurations, place and policy, whose means are compared at a point."""
        if self.find == "crossing":
            return [(x, self.policies[0]), (x, self.policies[1])]
        policy = self.policies[0] if self.policies else ""
        return [(_rounded(x * STEP), policy), (_rounded(x / STEP), policy)]

    @property
    def ratio(self) -> float:
        """Return the ratio of the two means at the place: one, or that of half the growth of the load."""
        return 1.0 if self.find == "crossing" else STEP


def read_search(
    raw: Any,
    axes: Sequence[Axis],
    outputs: Sequence[Output],
    plain_name: Callable[[str, Any], Any] = lambda axis, label: label,
) -> list[Search]:
    """Return the searches of a table, one for each region of the axes that are neither searched nor compared along.

    plain_name : of an axis and a label, which may be another name of one on the axis.

    Raises
    ------
    InputError
        One sentence that says which key is wrong and what is valid.
    """
    if not isinstance(raw, Mapping):
        raise InputError(f"refine: expected a table, got {raw!r}")
    for key in raw:
        if key not in KEYS:
            raise unknown_name("key", str(key), KEYS, where="refine")
    several = {axis.name: axis for axis in axes[:-1] if len(axis) > 1}
    numeric = [
        name for name, axis in several.items() if not isinstance(axis.labels[0], str) and list(axis.columns) == [name]
    ]
    along = raw.get("along", next(iter(numeric), None))
    if not numeric:
        raise InputError("refine: along: no axis of the sweep is a number with two labels or more; add one to search")
    if along not in numeric:
        raise unknown_name("axis of a number with two labels or more", str(along), numeric, where="refine: along")
    find = raw.get("find", "crossing")
    if find not in FINDS:
        raise unknown_name("find", str(find), FINDS, where="refine")
    others = {name: axis for name, axis in several.items() if name != along}
    axis, policies = _read_policies(raw, find, others, plain_name)
    known = {out.name: out for out in outputs if not out.dim}
    usual = "utilisation" if find == "saturation" else "mean_bounded_slowdown"
    metric = raw.get("metric", usual if usual in known else next(iter(known), usual) if find == "crossing" else usual)
    if metric not in known:
        raise unknown_name("metric", str(metric), known, where="refine: metric")
    low, high = (float(end) for end in (min(several[along].labels), max(several[along].labels)))
    width = _number(raw, "width", (high - low) / 16, 0, high - low)
    confidence = _number(raw, "confidence", 0.95, 0.5, 1)
    most = raw.get("most", 200)
    if isinstance(most, bool) or not isinstance(most, int) or most < FEWEST:
        raise InputError(f"refine: most: expected a whole number of at least {FEWEST}, got {most!r}")
    if find == "saturation" and low <= 0:
        raise InputError(f"refine: along: saturation needs loads above 0, got {low:g}")
    one = Search(along, low, high, find, axis, policies, metric, width, confidence, most)
    if find == "crossing":
        one = replace(one, higher_is_better=known[metric].higher_is_better)
    rest = [name for name in others if name != axis]
    places = [dict(zip(rest, labels, strict=True)) for labels in product(*(others[name].labels for name in rest))]
    return [replace(one, at=place, regions=len(places)) for place in places]


def _read_policies(
    raw: Mapping[str, Any], find: str, others: Mapping[str, Axis], plain_name: Callable[[str, Any], Any]
) -> tuple[str, tuple[str, ...]]:
    """Return the axis of the policies, and those that are compared; "" and none if saturation is looked for in all."""
    given = raw.get("policies")
    asked = [str(label) for label in given] if isinstance(given, list) else []
    if given is not None and not isinstance(given, list):
        raise InputError(f"refine: policies: expected a list of labels, got {given!r}")

    def named_on(axis: str) -> list[str]:
        return [str(plain_name(axis, label)) for label in asked]

    axis = raw.get("axis")
    if axis is not None and axis not in others:
        raise unknown_name("axis with two labels or more", str(axis), others, where="refine: axis")
    if axis is None:
        having = [name for name, one in others.items() if asked and set(named_on(name)) <= set(map(str, one.labels))]
        named = [name for name, one in others.items() if isinstance(one.labels[0], str)]
        usual = ["scheduler"] if "scheduler" in named else named
        axis = next(iter([*having, *usual, *others]), "")
    labels = [str(label) for label in others[axis].labels] if axis else []
    if find == "saturation" and given is None:
        return "", ()
    number = 2 if find == "crossing" else 1
    policies = named_on(axis) if given is not None else labels if len(labels) == number else []
    if len(policies) != number or len(set(policies)) < number:
        raise InputError(f"refine: policies: a {find} needs {number} of {', '.join(labels) or 'an axis of policies'}")
    for label in policies:
        if label not in labels:
            raise unknown_name(f"label of {axis}", label, labels, where="refine: policies")
    return axis, tuple(policies)


def _number(raw: Mapping[str, Any], key: str, default: float, low: float, high: float) -> float:
    value = raw.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low < value < high:
        raise InputError(f"refine: {key}: expected a number between {low:g} and {high:g}, got {value!r}")
    return float(value)


def _rounded(x: float) -> float:
    return float(f"{x:.9g}")
