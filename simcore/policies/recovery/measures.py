"""What a recovery policy achieves: RESP and FSD by group, against the run without failures (tang2010, slide 15)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.policies.recovery import OPTIONS
from numpy.typing import NDArray

from faultsweep.files import write_csv

LETTERS = "".join(OPTIONS).lower()


def recovery_measures(jobs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Return the metrics of recovery; NaN where there is no such job. Without groups there are none.

    Parameters
    ----------
    jobs : per-job arrays of shape (jobs,): ``finish_s``, ``response_s``, ``run_s``, ``restarts``, ``recovery_group``,
        ``recovery_asked``, ``recovery_option``, ``credits_granted``, ``credits_charged``, ``failure_free_response_s``
        (of the same jobs without failures; NaN where that was not simulated).

    Either every job has a group or none has (-1). FSD is over the jobs that failed and finished; a job is regular if it
    never failed.
    """
    if (jobs["recovery_group"][:1] < 0).all():
        return {}
    found = _of_all(jobs) | _by_group(jobs)
    found["credits_granted"] = float(np.sum(jobs["credits_granted"]))
    found["credits_charged"] = float(np.sum(jobs["credits_charged"]))
    found["credit_refusals"] = float(np.count_nonzero(jobs["recovery_option"] != jobs["recovery_asked"]))
    return found


def _of_all(jobs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    if np.isnan(jobs["failure_free_response_s"]).all():
        return dict.fromkeys(("failure_slowdown", "mean_delay_regular_s", "max_delay_regular_s"), np.nan)
    finished, hit = ~np.isnan(jobs["finish_s"]), jobs["restarts"] > 0
    failed, regular = finished & hit, finished & ~hit
    delay = jobs["response_s"] - jobs["failure_free_response_s"]
    return {
        "failure_slowdown": _mean(delay[failed] / jobs["run_s"][failed]),
        "mean_delay_regular_s": _mean(delay[regular]),
        "max_delay_regular_s": float(np.max(delay[regular])) if regular.any() else np.nan,
    }


def _by_group(jobs: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    finished, hit = ~np.isnan(jobs["finish_s"]), jobs["restarts"] > 0
    slowdown = (jobs["response_s"] - jobs["failure_free_response_s"]) / jobs["run_s"]
    found = {}
    for number, letter in enumerate(LETTERS):
        group = jobs["recovery_group"] == number
        found[f"mean_response_{letter}_s"] = _mean(jobs["response_s"][finished & group])
        found[f"failure_slowdown_{letter}"] = _mean(slowdown[finished & hit & group])
        found[f"jobs_hit_{letter}"] = float(np.sum(group & hit)) if group.any() else np.nan
    return found


def option_report(jobs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return what became of the jobs by the option that they got: arrays of shape (options,), in the order of OPTIONS.

    ``asked`` and ``jobs``: jobs that asked for the option, and that got it; the others are of the latter: ``hit`` by a
    failure, ``mean_response_s``, ``failure_slowdown`` (FSD), credits ``granted`` and ``charged``. NaN where there is no
    such job. The per-job results are those that ``recovery_measures`` takes.
    """
    finished, hit = ~np.isnan(jobs["finish_s"]), jobs["restarts"] > 0
    slowdown = (jobs["response_s"] - jobs["failure_free_response_s"]) / jobs["run_s"]
    rows: dict[str, list[Any]] = {}
    for number, letter in enumerate(OPTIONS):
        got = jobs["recovery_option"] == number
        row = {
            "option": letter,
            "asked": int((jobs["recovery_asked"] == number).sum()),
            "jobs": int(got.sum()),
            "hit": int((got & hit).sum()),
            "mean_response_s": _mean(jobs["response_s"][got & finished]),
            "failure_slowdown": _mean(slowdown[got & finished & hit]),
            "granted": float(jobs["credits_granted"][got].sum()),
            "charged": float(jobs["credits_charged"][got].sum()),
        }
        for name, value in row.items():
            rows.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in rows.items()}


def write_option_report(found: Mapping[str, NDArray[Any]], path: str | Path) -> None:
    """Write the report by option as CSV, a row per option; what there is not is empty."""
    columns = [["" if value != value else value for value in values.tolist()] for values in found.values()]
    write_csv(path, found, zip(*columns, strict=True))


def _mean(values: NDArray[np.float64]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
