"""How the time of a run grows: ``python -m benchmarks.laws``.

For each policy, the processor time of a job is measured at several numbers of jobs, loads, sizes of the machine and
rates of failures, and an exponent is fitted: 0 means that a job costs the same whatever there are, 1 that twice as many
cost twice as much each. Writes ``benchmarks/results/laws.json`` and ``laws.png``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload

RESULTS = Path(__file__).parent / "results"
SITE = """
format = "faultsweep site, 1"
[[nodes]]
name = "node"
count = {nodes}
cores = 8
[[partitions]]
name = "all"
nodes = {{ node = {nodes} }}
"""
SDSC, INTREPID = "sdsc-model", "intrepid-model"
FAILS = {"failures": "weibull", "weibull_scale_s": 32000.0}
CASES: dict[str, dict[str, Any]] = {
    "flat, FCFS": {"machine": "flat:{128}", "scheduler": "fcfs"},
    "flat, EASY": {"machine": "flat:{128}"},
    "flat, conservative": {"machine": "flat:{128}", "scheduler": "conservative"},
    "flat, EASY by multifactor priority": {
        "machine": "flat:{128}",
        "queue_order": "multifactor",
        "priority_share_weight": 0.0,
    },
    "flat, EASY, failures": {"machine": "flat:{128}", **FAILS},
    "flat, EASY, LFF": {"machine": "flat:{128}", "node_choice": "lff", **FAILS},
    "flat, EASY, checkpoints": {"machine": "flat:{128}", "checkpoint": "periodic", **FAILS},
    "torus, EASY": {"machine": "torus:4x4x{8}"},
    "torus, B+M": {"machine": "torus:4x4x{8}", "scheduler": "backfill+migration"},
    "torus, conservative": {"machine": "torus:4x4x{8}", "scheduler": "conservative"},
    "menu, EASY": {"machine": "midplanes:{80}", "log": INTREPID},
    "menu, EASY, recovery": {"machine": "midplanes:{80}", "log": INTREPID, "recovery": "mix", **FAILS},
    "clusters, CTMR": {"machine": "clusters:{50}+{50}+{50}+{50}", "agent": "ctmr", "ppbw_mbps": 300.0},
    "site, EASY": {"machine": SITE.format(nodes="{16}")},
}
"""Machines and policies; the number in braces is what is doubled when the machine grows."""


class Axis(NamedTuple):
    """What grows: its values, and the parameters of a run at one of them."""

    values: tuple[float, ...]
    jobs: int = 4000
    load: float = 1.0


AXES = {
    "jobs": Axis((2000, 4000, 8000)),
    "jobs at load x 1.5": Axis((2000, 4000, 8000), load=1.5),
    "load": Axis((0.7, 1.0, 1.4)),
    "nodes": Axis((1, 2, 4, 8), jobs=2000),
    "failures": Axis((1, 4, 16)),
}


@cache
def _workload(log: str, jobs: int) -> Workload:
    return load_workload(log, num_jobs=jobs)


def machine_of(machine: str, factor: int, folder: Path) -> str:
    """Return a machine with the numbers in braces multiplied; a site as a file."""
    text = machine
    while "{" in text and "}" in text and (begin := _marked(text)) is not None:
        first, last = begin
        text = text[:first] + str(int(text[first + 1 : last]) * factor) + text[last + 1 :]
    if "format = " not in text:
        return text
    path = folder / f"site-{factor}.toml"
    path.write_text(text)
    return str(path)


def _marked(text: str) -> tuple[int, int] | None:
    """Return where a number in braces is."""
    for first in (at for at, mark in enumerate(text) if mark == "{"):
        last = text.index("}", first)
        if text[first + 1 : last].isdigit():
            return first, last
    return None


def time_of_a_job(case: Mapping[str, Any], axis: str, value: float, folder: Path, repeat: int = 3) -> float:
    """Return the processor time of a job, s: the median of some runs."""
    at, given = AXES[axis], {"estimates": "requested", "size_map": "scale", **case}
    jobs = int(value) if axis.startswith("jobs") else at.jobs
    machine = machine_of(given.pop("machine"), int(value) if axis == "nodes" else 1, folder)
    if axis == "failures":
        given["weibull_scale_s"] /= value
    if machine.startswith("clusters"):
        given.pop("estimates")
    load = value if axis == "load" else at.load
    workload = _workload(given.pop("log", SDSC), jobs)
    return median(
        simulate(workload, machine=machine, load_scale=load, max_restarts=10_000, **given).processor_s / jobs
        for _ in range(repeat)
    )


def exponent(values: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the power of a value that the times grow by, by least squares of the logarithms."""
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def measure(names: Sequence[str], axes: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Measure and print each case along each axis that concerns it."""
    rows = []
    for name in names:
        for axis in axes:
            case = CASES[name]
            if axis == "failures" and "failures" not in case:
                continue
            values = AXES[axis].values
            times = [time_of_a_job(case, axis, value, folder) for value in values]
            rows.append({"case": name, "axis": axis, "values": values, "seconds": times})
            rows[-1]["exponent"] = exponent(values, times)
            each = "  ".join(f"{1e6 * seconds:8.2f}" for seconds in times)
            print(f"{name:36} {axis:20} {each} µs a job   exponent {rows[-1]['exponent']:5.2f}", flush=True)
    return rows


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the time of a job along each axis, a panel each, with names at the ends of the curves."""
    from matplotlib import pyplot as plt

    axes = [axis for axis in AXES if any(row["axis"] == axis for row in rows)]
    names = list(dict.fromkeys(row["case"] for row in rows))
    colours = plt.get_cmap("tab20")(np.linspace(0, 1, 20))
    figure, panels = plt.subplots(1, len(axes), figsize=(3.6 * len(axes), 5.2), sharey=True, layout="constrained")
    for panel, axis in zip(np.atleast_1d(panels), axes, strict=True):
        for row in (row for row in rows if row["axis"] == axis):
            style = {"color": colours[names.index(row["case"]) % 20], "marker": "o", "markersize": 3}
            panel.loglog(row["values"], 1e6 * np.array(row["seconds"]), label=row["case"], **style)
        times = axis in ("nodes", "failures")
        panel.set(xlabel=f"{axis}, times as many" if times else axis)
        panel.set_xticks(AXES[axis].values, [f"{value:g}" for value in AXES[axis].values])
        panel.minorticks_off()
    np.atleast_1d(panels)[0].set(ylabel="processor time of a job, µs")
    lines = {line.get_label(): line for panel in np.atleast_1d(panels) for line in panel.get_lines()}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=5, fontsize="small", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=CASES, help="only this one; may be repeated")
    parser.add_argument("--axis", action="append", choices=AXES, help="only this one; may be repeated")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of laws.json and laws.png")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(arguments.case or list(CASES), arguments.axis or list(AXES), Path(folder))
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "laws.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(rows, arguments.output / "laws.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
