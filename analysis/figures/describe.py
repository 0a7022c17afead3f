"""What a caption says: which logs, what was varied, what was held, and what the bands are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from faultsweep.analysis.figures.figure import BLACK, BLUE, ORANGE, PURPLE, VERMILION, Style
from faultsweep.analysis.statistics import describe_intervals
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.sweeps.open import fixed_parameters, has_result, status_code
from faultsweep.sweeps.store.opener import stored_spec

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SCHEDULERS = {
    "fcfs": "FCFS",
    "backfill": "Backfill",
    "conservative": "Conservative",
    "migration": "Migration",
    "backfill+migration": "B+M",
}
"""The names of schedulers as the papers print them."""

CAPACITIES = {
    "utilisation": ("utilised", BLUE),
    "lost_capacity": ("lost", VERMILION),
    "unused_capacity": ("unused", "#BBBBBB"),
}
"""Metric -> label and colour of a bar; together they are the whole capacity (krevat2003, equations 4.1 to 4.3)."""

STYLES = {
    "fcfs": Style(BLACK, "o"),
    "backfill": Style(BLUE, "s"),
    "conservative": Style(PURPLE, "v"),
    "migration": Style(ORANGE, "^"),
    "backfill+migration": Style(VERMILION, "D"),
}

_SAID_ELSEWHERE = ("log", "num_jobs", "offset", "seed", "replicate")


def short_number(value: float, digits: int = 3) -> str:
    """Return a number as a cell of a map or of a table has room for it: so many digits, or a whole number.

    Large ones are written as 47.2 G, and those far from 1 as 1.57 × 10⁴⁴.
    """
    size = abs(float(f"{value:.{digits}g}"))
    if 1000 <= size < 1e7:
        return f"{value:,.0f}"
    if not np.isfinite(value) or (size < 1000 and (size >= 1e-4 or not size)):
        return f"{value:.{digits}g}"
    mantissa, _, power = f"{value:.{digits - 1}e}".partition("e")
    if not 7 <= int(power) < 15:
        return f"{float(mantissa):g} × 10{str(int(power)).translate(_RAISED)}"
    return f"{float(mantissa) * 10 ** (int(power) % 3):.{digits}g} {'MGT'[int(power) // 3 - 2]}"


def machine_name(machine: str) -> str:
    """Return a machine in words: ``torus:4x4x8`` is "4×4×8 torus", ``flat:128`` is "flat machine of 128 nodes"."""
    kind, _, size = machine.partition(":")
    if kind == "torus":
        return f"{size.replace('x', '×')} torus"
    if kind == "midplanes":
        return f"machine of {size} midplanes with a menu of partitions"
    if kind == "clusters":
        return f"machine of {size.count('+') + 1} clusters, {size.replace('+', ' + ')} nodes"
    return f"flat machine of {size} nodes" if kind == "flat" else machine


def is_model(log: str) -> bool:
    """Tell whether a log's name is that of a workload model."""
    return log.endswith(("-model", ".toml")) or log.startswith("lublin")


def describe_logs(data: xr.Dataset) -> str:
    """Return a sentence that says which logs there are, and plainly where a model is the substitute of one."""
    logs = [str(log) for log in unique(data, "log")]
    real, models = [log for log in logs if not is_model(log)], [log for log in logs if is_model(log)]
    count = _count_jobs(data)
    parts = [f"Jobs: {count} of the log{'s' * (len(real) > 1)} {' and '.join(real)}."] if real else []
    parts += [describe_models(models, f"{count} of ")] if models else []
    return " ".join(parts)


def describe_models(models: Sequence[str], count: str = "") -> str:
    """Return a sentence that says which models are substitutes of logs; "" if there are none."""
    if not models:
        return ""
    plural = "s" * (len(models) > 1)
    return f"Substitute log{plural}: {count}the model{plural} {', '.join(models)}."


def describe_jobs(data: xr.Dataset) -> str:
    """Return a sentence that says which jobs of which logs and models there are; "" for a function of one's own."""
    logs = [str(log) for log in unique(data, "log")]
    return f"Jobs: {_count_jobs(data)} of {' and '.join(logs)}." if logs else ""


def _count_jobs(data: xr.Dataset) -> str:
    count, offset = describe_values(unique(data, "num_jobs")), unique(data, "offset")
    if count == "0":
        return "all jobs"
    if offset in ([], [0]):
        return f"the first {count} jobs"
    return f"{count} jobs from job {describe_values(offset)} on"


def workload_title(data: xr.Dataset, workload: str) -> str:
    """Return the title of a workload's panel, which says so where it is of a model and not of the log."""
    log = str(data.sel(workload=workload)["log"].values) if "log" in data.coords else ""
    return f"{workload} (model, not the log)" if is_model(log) else workload


def set_parameters(data: xr.Dataset) -> list[str]:
    """Return the parameters that a spec sets to another value than their default, but for which jobs and which seed."""
    fixed = stored_spec(data.attrs).get("fixed", {})
    rows = [name for name in data.coords if name not in data.dims or data.sizes[name] == 1]
    found = [str(name) for name in (*fixed, *rows) if name not in _SAID_ELSEWHERE]
    if data.attrs.get("target", "simulator") != "simulator":
        return found
    known = [name for name in found if name in PARAMETERS]  # an axis may have a name of its own
    return [name for name in known if unique(data, name) != [PARAMETERS[name].default]]


def describe_held(data: xr.Dataset, names: Iterable[str]) -> str:
    """Return a sentence with the values of parameters that are the same everywhere."""
    words = {
        "machine": lambda value: machine_name(str(value)),
        "scheduler": lambda value: SCHEDULERS.get(str(value), str(value)),
        "start_delay_s": lambda value: f"start delay {value:g} s",
        "estimates": lambda value: f"{value} estimates",
        "load_scale": lambda value: f"load scale c = {value:g}",
        "growth_limit": lambda value: f"growth limit I = {value}",
        "migration_free_frac": lambda value: f"FN_tor = {value:g}",
        "migration_mfp_frac": lambda value: f"FN_max = {value:g}",
        "slowdown_bound_s": lambda value: f"bounded at {value:g} s",
    }
    values = {name: found[0] for name in names if len(found := unique(data, name)) == 1}
    held = [words[name](value) if name in words else f"{name} = {_value(value)}" for name, value in values.items()]
    return f"Held: {', '.join(held)}." if held else ""


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_varied(data: xr.Dataset, names: Iterable[str] = ("load_scale",), panels: str = "workload") -> str:
    """Return a sentence with the parameters that vary along the curves, of each panel if some leave values out."""
    words = {"load_scale": "load scale c (multiplies run times)"}
    parts = []
    for name in names:
        ranges = {row: describe_values(_values_with_results(data, name, {panels: row})) for row in _rows(data, panels)}
        each = [f"{values} ({row})" for row, values in ranges.items()]
        same = len(set(ranges.values())) <= 1
        shown = describe_values(_values_with_results(data, name, {})) if same else ", ".join(each)
        parts.append(f"{words.get(name, name)} {shown}")
    return f"Varied along each curve: {'; '.join(parts)}."


def _rows(data: xr.Dataset, axis: str) -> list[str]:
    return names(data, axis) if axis in data.dims else []


def _values_with_results(data: xr.Dataset, name: str, part: Mapping[str, str]) -> list[Any]:
    """Return the values of a parameter at which a part of the cells has results."""
    if name not in data.dims:
        return unique(data, name)
    known = has_result(data["status"].sel(part))
    return data[name].values[known.any([dim for dim in known.dims if dim != name]).values].tolist()


def describe_replicates(found: xr.Dataset, of: str = "", dots: bool = False) -> str:
    """Return a sentence that says of how many replicates means are, and what their intervals are.

    ``of`` names what alone has intervals, such as "changes"; ``dots`` tells whether replicates are drawn, too.
    """
    most = int(found["n"].max()) if found["n"].size else 0
    if most < 2:
        return "One simulation a point: nothing is random, so there is no interval."
    of = f" of the {of}" if of else ""
    drawn = " and dashes the replicates" if dots else ""
    return f"Means of {most} replicates; intervals{of} are {describe_intervals(found)}{drawn}."


def describe_truncated(data: xr.Dataset) -> str:
    """Return a sentence that says how many runs ended before all their jobs had, "" if none did."""
    status = data["status"]
    cut = status == status_code(status, "truncated")
    if not bool(cut.any()):
        return ""
    runs = int((cut | (status == status_code(status, "done"))).sum())
    left = int(data["unfinished_jobs"].where(cut).max())
    return (
        f"{int(cut.sum()):,} of {runs:,} runs were cut short because a job had restarted too often; their figures are "
        f"of the jobs that finished (all but {left:,} at most)."
    )


def describe_values(values: list[Any]) -> str:
    """Return values as text, a long list of numbers by its ends."""
    if len(values) > 3 and all(isinstance(value, int | float) for value in values):
        return f"{values[0]:g} to {values[-1]:g} in {len(values)} steps"
    return ", ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in values)


def names(data: xr.Dataset, axis: str) -> list[str]:
    """Return the labels of an axis as text."""
    return [str(label) for label in data[axis].values]


def unique(data: xr.Dataset, name: str) -> list[Any]:
    """Return the different values of a parameter in a Dataset, fixed or varied, as Python values."""
    if name in data.coords:
        return list(dict.fromkeys(np.asarray(data[name].values).ravel().tolist()))
    fixed = fixed_parameters(data)
    return [fixed[name]] if name in fixed else []
