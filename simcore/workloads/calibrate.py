"""Derive the calibrated models from the logs: ``python -m faultsweep.simcore.workloads.calibrate FOLDER-OF-LOGS``.

What is derived from the SDSC log stands in a file of its own, sdsc.toml, because that log has terms of its own.

The spans are those of krevat2003, Table 4.1. That of NASA is one of the raw log, which the archive's cleaned log only
gives without some 24,000 one-node jobs by which the system tested itself; their numbers are the gaps in the cleaned
log's, and their run times are taken from the beginning of the raw log. LLNL Atlas stands in for the LLNL T3D log of
oliner2004; its sizes are scaled to 128 nodes.
"""

from __future__ import annotations

import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Workload, take
from faultsweep.simcore.workloads.calibrated import HOUR_S, to_busy_time
from faultsweep.simcore.workloads.swf import read_swf
from faultsweep.simcore.workloads.transforms import map_sizes, span
from numpy.typing import NDArray

NASA, SDSC = "NASA-iPSC-1993-3.1-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz"
NASA_RAW = "NASA-iPSC-1993-3.wrench-excerpt.swf"
ATLAS = "LLNL-Atlas-2006-2.1-cln.swf.gz"
NODES = 128
NASA_FIRST_JOB, NUM_JOBS = 20_000, 10_000
SYSTEM_USER = 3

LEVELS = (0, 0.01, 0.05, *(round(0.1 * k, 1) for k in range(1, 10)), 0.95, 0.975, 0.99, 0.995, 0.999, 1)
CLASS_LIMITS = (1, 2, 4, 8, 16, 32, 64, 128)
RUN_LIMITS_S = (60, 300, 900, 1800, 3600, 7200, 14400, 28800, 43200)
NUM_POPULAR = 24
LEAST_GAP = 1e-3  # of the mean: gaps of 0 s have no logarithm

HEADER = """\
# Parameters of calibrated workload models, written by calibrate.py: change that, not this.
{origin}\
# Quantiles are given at `levels`; between them their logarithm is linear. Gaps are in units of their mean, in a time
# that runs by hour_weights x day_weights (Monday first).
"""
ORIGINS = {
    "models.toml": """\
# nasa-model: Parallel Workloads Archive, NASA iPSC/860 log; acknowledge: Bill Nitzberg.
# atlas-model: Parallel Workloads Archive, LLNL Atlas log; acknowledge: Moe Jette.
""",
    "sdsc.toml": """\
# SPDX-License-Identifier: LicenseRef-SDSC-SP2
# sdsc-model and requested-times: Parallel Workloads Archive, SDSC SP2 log; acknowledge: Victor Hazlewood. The JOBLOG
# data is Copyright 2000 The Regents of the University of California, All Rights Reserved; free for educational,
# research and non-profit purposes with this notice kept and the data referenced.
""",
}
"""File -> what its head says of the logs and their terms."""


def main(folder: str) -> dict[str, str]:
    """Return the text of each file of ORIGINS."""
    sdsc_log, atlas_log = read_swf(Path(folder) / SDSC), read_swf(Path(folder) / ATLAS)
    sdsc = span(sdsc_log, 0, NUM_JOBS)
    atlas = span(map_sizes(atlas_log, NODES, size_map="scale"), 0, NUM_JOBS)
    free = {
        "nasa-model": _nasa(Path(folder)),
        "atlas-model": _model(atlas_log, atlas, atlas.submit_s, _size_classes(atlas)),
    }
    of_sdsc = {
        "sdsc-model": _model(sdsc_log, sdsc, sdsc.submit_s, _size_classes(sdsc)),
        "requested-times": _requested(sdsc),
    }
    return {"models.toml": _text("models.toml", free), "sdsc.toml": _text("sdsc.toml", of_sdsc)}


def _text(file: str, tables: dict[str, dict[str, Any]]) -> str:
    text = f"{HEADER.format(origin=ORIGINS[file])}levels = {list(LEVELS)}\n"
    for name, table in tables.items():
        classes = table.pop("classes", [])
        text += f"\n[{name}]\n" + _lines(table)
        text += "".join(f"\n[[{name}.classes]]\n{_lines(of_class)}" for of_class in classes)
    return text


def _lines(table: dict[str, Any]) -> str:
    return "".join(f"{key} = {_toml(value)}\n" for key, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, list) and value and isinstance(value[0], (str, list)):
        return "[\n" + "".join(f"    {_toml(item)},\n" for item in value) + "]"
    return str(value)


def _nasa(folder: Path) -> dict[str, Any]:
    """Return the model of the span of the raw log, put together from the cleaned log and the removed jobs' numbers."""
    log = read_swf(folder / NASA)
    listed = _job_numbers(folder / NASA)
    numbers = np.arange(NASA_FIRST_JOB, listed.max() + 1)
    unusable = listed[~np.isin(listed, log.job_id)]
    numbers = numbers[~np.isin(numbers, unusable)][:NUM_JOBS]
    users = take(log, np.isin(log.job_id, numbers))
    submit = np.interp(numbers, users.job_id, users.submit_s)
    raw = read_swf(folder / NASA_RAW)
    system = raw.run_s[(raw.user == SYSTEM_USER) & (raw.size == 1)]
    classes = [_class([1], [len(numbers) - len(users)], system), *_size_classes(users)]
    return _model(log, users, submit, classes)


def _job_numbers(path: Path) -> NDArray[np.int64]:
    return np.loadtxt(path, comments=";", usecols=0).astype(np.int64)


def _size_classes(jobs: Workload) -> list[dict[str, Any]]:
    number = np.searchsorted(CLASS_LIMITS, jobs.size)
    classes = []
    for k in np.unique(number):
        sizes, counts = np.unique(jobs.size[number == k], return_counts=True)
        classes.append(_class(sizes.tolist(), counts.tolist(), jobs.run_s[number == k]))
    return classes


def _class(sizes: list[int], counts: list[int], run_s: NDArray[np.float64]) -> dict[str, Any]:
    return {"sizes": sizes, "jobs": counts, "run_quantiles_s": _quantiles(run_s, run_s.mean(), digits=1)}


def _quantiles(sample: NDArray[np.float64], mean: float, digits: int) -> list[float]:
    """Return the quantiles of a sample at LEVELS, scaled so that the interpolated distribution has this mean."""
    values = np.quantile(sample, LEVELS)
    logs = np.diff(np.log(values))
    means = np.where(logs > 0, np.diff(values) / np.where(logs > 0, logs, 1), values[1:])
    return [round(v, digits) for v in (values * (mean / (means * np.diff(LEVELS)).sum())).tolist()]


def _model(
    log: Workload, part: Workload, submit_s: NDArray[np.float64], classes: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the table of a part of a log, with the submissions and the size classes given."""
    clock = submit_s + _seconds_into_week(log.header)
    hours = np.bincount((clock / HOUR_S).astype(int) % 24, minlength=24)
    days = np.bincount((clock / HOUR_S / 24).astype(int) % 7, minlength=7)
    hour_weights = [round(w, 3) for w in (hours / hours.mean()).tolist()]
    day_weights = [round(w, 3) for w in (days / days.mean()).tolist()]
    gaps = np.diff(to_busy_time(hour_weights, day_weights, clock))
    mean = float(gaps.mean())
    return {
        "header": _acknowledgement(log),
        "nodes": part.nodes,
        "log_span_s": float(log.submit_s[-1]),
        "mean_gap_s": round(mean, 2),
        "hour_weights": hour_weights,
        "day_weights": day_weights,
        "gap_quantiles": _quantiles(np.maximum(gaps / mean, LEAST_GAP), 1.0, digits=5),
        "classes": classes,
    }


def _seconds_into_week(header: tuple[str, ...]) -> float:
    """Return the local time of the log's start, counted from Monday at midnight."""
    found = next(f for line in header if (f := re.match(r"; StartTime: \w+ (\w+ \d+ [\d:]+) \w+ (\d+)", line)))
    start = datetime.strptime(f"{found[1]} {found[2]}", "%b %d %H:%M:%S %Y")
    return start.weekday() * 86400.0 + start.hour * 3600 + start.minute * 60 + start.second


def _acknowledgement(log: Workload) -> list[str]:
    """Return what the log's header says of its origin and terms."""
    lines = [line.lstrip("; ") for line in log.header]
    first = next(i for i, line in enumerate(lines) if line.startswith("Computer"))
    last = next(i for i, line in enumerate(lines) if line.startswith("Information"))
    return [f"Note: model calibrated to the log {log.name}", *(line for line in lines[first:last] if line)]


def _requested(log: Workload) -> dict[str, Any]:
    values, counts = np.unique(log.requested_s, return_counts=True)
    popular = np.sort(values[np.argsort(-counts, kind="stable")[:NUM_POPULAR]])
    row = np.searchsorted(RUN_LIMITS_S, log.run_s, side="left")
    weights = [
        [int(((row == k) & (log.requested_s == value) & (log.run_s <= value)).sum()) for value in popular]
        for k in range(len(RUN_LIMITS_S) + 1)
    ]
    return {"values_s": [int(v) for v in popular], "run_limits_s": list(RUN_LIMITS_S), "weights": weights}


if __name__ == "__main__":
    for file, content in main(sys.argv[1]).items():
        (Path(__file__).parent / file).write_text(content, encoding="utf-8")
