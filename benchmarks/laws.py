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
from faultsweep.simcore.contract import CLUSTERS, FLAT, MENU, OWN, TORUS
from faultsweep.simcore.contract import SITE as SITE_OF_NODES
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.policies.catalogue import ROLES
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
MACHINES: dict[str, dict[str, Any]] = {
    "flat": {"machine": "flat:{128}"},
    "torus": {"machine": "torus:4x4x{8}"},
    "menu": {"machine": "midplanes:{80}", "log": INTREPID},
    "clusters": {"machine": "clusters:{50}+{50}+{50}+{50}"},
    "site": {"machine": SITE.format(nodes="{16}")},
}
"""A machine of each kind; the numbers in braces are doubled when it grows."""
KINDS = dict(zip(MACHINES, (FLAT, TORUS, MENU, CLUSTERS, SITE_OF_NODES), strict=True))
"""What policies call these kinds."""
FEATURES: dict[str, dict[str, Any]] = {
    "flat, backfill, multifactor": {"queue_order": "multifactor", "priority_share_weight": 0.0},
    "flat, backfill, failures, lff": {"node_choice": "lff", **FAILS},
    "flat, backfill, failures, checkpoints": {"checkpoint": "periodic", **FAILS},
    "menu, backfill, failures, mix": {"recovery": "mix", **FAILS},
    "clusters, backfill, ctmr": {"agent": "ctmr", "ppbw_mbps": 300.0},
}
"""What costs more than a scheduler alone."""


def _cases() -> dict[str, dict[str, Any]]:
    """Return runs by name: every scheduler on every kind of machine that it is for, without and with failures, and
    features."""
    cases: dict[str, dict[str, Any]] = {}
    for kind, machine in MACHINES.items():
        schedulers = [name for name, each in ROLES["scheduling"].policies.items() if KINDS[kind] in each.machines]
        for name in schedulers:
            if name != OWN:
                cases[f"{kind}, {name}"] = {**machine, "scheduler": name}
                cases[f"{kind}, {name}, failures"] = {**machine, "scheduler": name, **FAILS}
    return cases | {name: {**MACHINES[name.split(",")[0]], **given} for name, given in FEATURES.items()}


CASES = _cases()


LONG_S = 4.0
"""After so much processor time no further run is measured."""


class Axis(NamedTuple):
    """What grows: its values, the parameters of a run at one of them, and the kinds of machines; none named: all."""

    values: tuple[float, ...]
    jobs: int = 4000
    load: float = 1.0
    kinds: tuple[str, ...] = ()


AXES = {
    "jobs": Axis((2000, 4000, 8000)),
    "jobs at load x 1.5": Axis((2000, 4000, 8000), load=1.5),
    "load": Axis((0.7, 1.0, 1.4)),
    "nodes": Axis((1, 2, 4, 8), jobs=2000),
    "nodes and jobs": Axis((1, 4, 16), jobs=500, kinds=("flat", "site")),
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
    """Return the processor time of a job, s: the median of some runs, fewer where they take long."""
    at, given = AXES[axis], {"estimates": "requested", "size_map": "scale", **case}
    jobs = int(value) if axis.startswith("jobs") else at.jobs
    if axis == "nodes and jobs":  # each job as large as on the smallest machine
        given["size_map"], jobs = "exact", int(value) * at.jobs
    machine = machine_of(given.pop("machine"), int(value) if axis.startswith("nodes") else 1, folder)
    if axis == "failures":
        given["weibull_scale_s"] /= value
    if machine.startswith("clusters"):
        given.pop("estimates")
    load = value if axis in ("load", "nodes and jobs") else at.load
    workload = _workload(given.pop("log", SDSC), jobs)
    times: list[float] = []
    while len(times) < repeat and sum(times) < LONG_S:
        times.append(simulate(workload, machine=machine, load_scale=load, max_restarts=10_000, **given).processor_s)
    return median(times) / jobs


def exponent(values: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the power of a value that the times grow by, by least squares of the logarithms."""
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def measure(names: Sequence[str], axes: Sequence[str], folder: Path) -> list[dict[str, Any]]:
    """Measure and print each case along each axis that concerns it."""
    rows = []
    for name in names:
        for axis in axes:
            case = CASES[name]
            kinds = AXES[axis].kinds
            if (axis == "failures" and "failures" not in case) or (kinds and _kind(name) not in kinds):
                continue
            values = AXES[axis].values
            times = [time_of_a_job(case, axis, value, folder) for value in values]
            rows.append({"case": name, "axis": axis, "values": values, "seconds": times})
            rows[-1]["exponent"] = exponent(values, times)
            each = "  ".join(f"{1e6 * seconds:8.2f}" for seconds in times)
            print(f"{name:36} {axis:20} {each} µs a job   exponent {rows[-1]['exponent']:5.2f}", flush=True)
    return rows


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the time of a job: a row of panels for each kind of machine, a column for each axis; dashed with
    failures."""
    from matplotlib import pyplot as plt

    axes = [axis for axis in AXES if any(row["axis"] == axis for row in rows)]
    kinds = [kind for kind in MACHINES if any(_kind(row["case"]) == kind for row in rows)]
    size = (2.6 * len(axes) + 3, 2.5 * len(kinds) + 0.6)
    figure, panels = plt.subplots(
        len(kinds), len(axes), figsize=size, sharex="col", sharey=True, squeeze=False, layout="constrained"
    )
    for kind, line in zip(kinds, panels, strict=True):
        own = [row for row in rows if _kind(row["case"]) == kind]
        for axis, panel in zip(axes, line, strict=True):
            _draw_panel(panel, [row for row in own if row["axis"] == axis], axis, _styles(own))
        handles = {curve.get_label(): curve for panel in line for curve in panel.get_lines()}
        names = [name for name in _styles(own) if name in handles]
        line[-1].legend(
            [handles[name] for name in names], names, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize="small"
        )
        line[0].set(ylabel=f"{kind}: µs of a job")
    for axis, panel in zip(axes, panels[-1], strict=True):
        panel.set(xlabel=f"{axis}, times as many" if axis.startswith(("nodes", "failures")) else axis)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _kind(case: str) -> str:
    """Return the kind of machine of a case."""
    return case.split(",")[0]


def _styles(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how the curve of each case looks: what is without failures and with them has one colour."""
    names = list(dict.fromkeys(str(row["case"]).split(", ", 1)[1] for row in rows))
    plain = [name for name in names if name.removesuffix(", failures") == name]
    bases = list(dict.fromkeys([*plain, *(name.removesuffix(", failures") for name in names)]))
    return {
        name: {
            "color": f"C{bases.index(name.removesuffix(', failures'))}",
            "linestyle": "--" if "failures" in name else "-",
            "marker": "o",
            "markersize": 3,
        }
        for name in names
    }


def _draw_panel(panel: Any, rows: Sequence[Mapping[str, Any]], axis: str, styles: Mapping[str, Any]) -> None:
    """Draw the curves of one kind of machine along one axis; a panel without any is left out."""
    panel.set_visible(bool(rows))
    for row in rows:
        name = str(row["case"]).split(", ", 1)[1]
        panel.loglog(row["values"], 1e6 * np.array(row["seconds"]), label=name, **styles[name])
    panel.set_xticks(AXES[axis].values, [f"{value:g}" for value in AXES[axis].values])
    panel.minorticks_off()


def _beside_earlier(rows: Sequence[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Return results with those of earlier runs, in a file, of other cases and axes, in the order of the cases."""
    earlier = json.loads(path.read_text()) if path.exists() else []
    found = {(row["case"], row["axis"]): row for row in (*earlier, *rows)}
    return [found[case, axis] for case in CASES for axis in AXES if (case, axis) in found]


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, write and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    named = "only this one, such as 'torus, conservative'; may be repeated; results of others stay"
    parser.add_argument("--case", action="append", choices=CASES, metavar="CASE", help=named)
    parser.add_argument("--axis", action="append", choices=AXES, help="only this one; may be repeated")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder of laws.json and laws.png")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(arguments.case or list(CASES), arguments.axis or list(AXES), Path(folder))
    arguments.output.mkdir(parents=True, exist_ok=True)
    rows = _beside_earlier(rows, arguments.output / "laws.json")
    (arguments.output / "laws.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw(rows, arguments.output / "laws.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
