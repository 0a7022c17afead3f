"""Workload models fitted to any log by size class, kept in a file: hyper-Erlang gaps and run times (zhang2004).

Each size class has its own arrivals, run times and frequencies of sizes; all are independent of each other. What is not
modelled: hours of the day, days of the week, and that users submit the same job again and again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.streams import round_ms, stream
from faultsweep.simcore.workloads.fitted_checks import problem_of
from faultsweep.simcore.workloads.hyper_erlang import HyperErlang, fit
from faultsweep.simcore.workloads.requested import requested_times
from faultsweep.simcore.workloads.summary import acknowledgement, size_classes, span_s
from numpy.typing import NDArray

from faultsweep.errors import InputError
from faultsweep.files import parse_toml, read_text

FORMAT = "hyper-erlang by size class, 1"


class Quality(NamedTuple):
    """How well a class is fitted: moments of log and model, and the largest distance of the distribution functions."""

    sizes: str
    jobs: int
    what: str
    order: int
    log: tuple[float, float, float]
    model: tuple[float, float, float]
    distance: float


def fit_model(workload: Workload, users: bool = False) -> dict[str, Any]:
    """Return the parameters of a model of a log; every size class has its gaps, run times and sizes.

    With ``users``, also how many jobs each user has, most first: jobs of the model get users in these shares.

    Raises
    ------
    InputError
        If the log has fewer than two jobs, or all come at once.
    """
    if len(workload) < 2 or span_s(workload) <= 0:
        raise InputError(f"{workload.name}: a model needs a log of jobs that come at different times")
    classes = []
    for _, _, rows in size_classes(workload):
        sizes, jobs = np.unique(workload.size[rows], return_counts=True)
        gaps, run = fit(_gaps(workload, rows)), fit(workload.run_s[rows])
        classes.append({"sizes": sizes.tolist(), "jobs": jobs.tolist(), "gap": _row(gaps), "run": _row(run)})
    of_users = np.sort(np.unique(workload.user, return_counts=True)[1])[::-1]
    return {
        "format": FORMAT,
        "name": f"{workload.name}-model",
        "log": workload.content_hash,
        "header": acknowledgement(workload),
        "nodes": workload.nodes or int(workload.size.max()),
        "procs_per_node": workload.procs_per_node,
        "log_span_s": span_s(workload),
        **({"users": of_users.tolist()} if users else {}),
        "classes": classes,
    }


def _gaps(workload: Workload, rows: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the gaps between the arrivals of a class, scaled so that it comes as often as in the whole log."""
    mean = span_s(workload) / np.count_nonzero(rows)
    gaps = np.diff(workload.submit_s[rows])
    return gaps * (mean / gaps.mean()) if gaps.sum() > 0 else np.array([mean])


def _row(found: HyperErlang) -> dict[str, Any]:
    return {"order": found.order, "share": found.share, "means_s": list(found.means)}


def fit_quality(workload: Workload, model: dict[str, Any]) -> Iterator[Quality]:
    """Yield how well gaps and run times of each class are fitted."""
    for (low, high, rows), of_class in zip(size_classes(workload), model["classes"], strict=True):
        for what, values in (("gap", _gaps(workload, rows)), ("run", workload.run_s[rows])):
            found = _distribution(of_class[what])
            levels = np.sort(values)
            model_at = found.cumulative(levels)
            steps = np.arange(len(levels) + 1) / len(levels)
            distance = max(np.abs(model_at - steps[1:]).max(), np.abs(model_at - steps[:-1]).max())
            first, second, third = (float(np.mean(values**k)) for k in (1, 2, 3))
            sizes, moments = str(high) if low == high else f"{low}-{high}", (first, second, third)
            yield Quality(sizes, int(rows.sum()), what, found.order, moments, found.moments(), float(distance))


def model_text(model: dict[str, Any]) -> str:
    """Return a model as TOML."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in model.items() if name != "classes"]
    for of_class in model["classes"]:
        lines += ["", "[[classes]]", f"sizes = {of_class['sizes']}", f"jobs = {of_class['jobs']}"]
        for what in ("gap", "run"):
            row = of_class[what]
            lines.append(f"{what} = {{ order = {row['order']}, share = {row['share']!r}, means_s = {row['means_s']} }}")
    return "\n".join(lines) + "\n"


def read_model(path: str | Path) -> dict[str, Any]:
    """Return the model in a file that ``logs fit`` has written.

    Raises
    ------
    InputError
        If it cannot be read or is no such model.
    """
    model = parse_toml(read_text(path), path)
    if model.get("format") != FORMAT:
        raise InputError(
            f"{path}: is no workload model (format = {FORMAT!r} expected; 'faultsweep logs fit' makes one)"
        )
    problem = problem_of(model)
    if problem:
        raise InputError(f"{path}: is damaged; fit it again, or mend {problem}")
    return model


def _distribution(row: dict[str, Any]) -> HyperErlang:
    first, second = row["means_s"]
    return HyperErlang(int(row["order"]), float(row["share"]), (float(first), float(second)))


def generate(model: dict[str, Any], num_jobs: int, seed: int = 0, replicate: int = 0) -> Workload:
    """Return the first ``num_jobs`` jobs of a model: all times in whole seconds."""
    drawn = _classes(model, num_jobs, seed, replicate)
    submit, run, size, requested = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    order = np.argsort(submit, kind="stable")[:num_jobs]
    run = run[order]
    return Workload(
        job_id=np.arange(1, num_jobs + 1),
        submit_s=submit[order],
        run_s=run,
        requested_s=requested_times(run, requested[order]),
        size=size[order],
        user=_users(model, num_jobs, seed, replicate),
        name=model["name"],
        nodes=model["nodes"],
        procs_per_node=model["procs_per_node"],
        log_span_s=model["log_span_s"],
        header=tuple(f"; {line}" for line in model["header"]),
        content_hash="sha256:" + hashlib.sha256(json.dumps(model, sort_keys=True, default=str).encode()).hexdigest(),
    )


def _users(model: dict[str, Any], num_jobs: int, seed: int, replicate: int) -> NDArray[np.int64]:
    """Return the user of each job, each job's independent of the others', from 1 on; -1 where the model has none."""
    if "users" not in model:
        return np.full(num_jobs, -1)
    weights = np.cumsum(model["users"])
    uniform = stream(seed, replicate, f"users of {model['name']}").random(num_jobs)
    return 1 + np.searchsorted(weights, uniform * weights[-1], side="right")


def _classes(model: dict[str, Any], num_jobs: int, seed: int, replicate: int) -> Iterator[tuple[NDArray[Any], ...]]:
    """Yield (submit_s, run_s, size, uniform numbers for requests) of as many jobs of each class as there may be."""
    for number, of_class in enumerate(model["classes"]):
        u = stream(seed, replicate, f"jobs of class {number} of {model['name']}").random((num_jobs, 6)).T
        gaps = round_ms(_distribution(of_class["gap"]).draw(u[0], u[1]))
        run = np.maximum(1.0, np.rint(_distribution(of_class["run"]).draw(u[2], u[3])))
        weights = np.cumsum(of_class["jobs"])
        size = np.array(of_class["sizes"], np.int64)[np.searchsorted(weights, u[4] * weights[-1], side="right")]
        yield np.floor(round_ms(gaps.cumsum())), run, size, u[5]
