"""What the file of a fitted workload model must hold: fitted by us, and perhaps changed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from faultsweep.simcore.model.failure_trace import LATEST_S
from faultsweep.simcore.workloads.hyper_erlang import MAX_ORDER

_MOST = 1 << 40
"""Sums of so large numbers, one for each size of a log, are exact as floats."""


def problem_of(model: Mapping[str, Any]) -> str:
    """Return the first thing that is wrong with a model, as a sentence; "" if nothing is."""
    return next(_problems(model), "")


def _problems(model: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(model.get("name"), str) or not model["name"]:
        yield "name: expected a text that is not empty"
    header = model.get("header")
    if not isinstance(header, list) or not all(isinstance(line, str) for line in header):
        yield "header: expected a list of lines"
    for key in ("nodes", "procs_per_node"):
        if not _is_whole(model.get(key), 1):
            yield f"{key}: expected a whole number from 1 to {_MOST:,}"
    if not _is_time(model.get("log_span_s")):
        yield "log_span_s: expected a time of 0 s or more"
    users = model.get("users", [1])
    if not isinstance(users, list) or not users or not all(_is_weight(each) and each > 0 for each in users):
        yield f"users: expected numbers of jobs above 0, up to {_MOST:,}, one for each user"
    classes = model.get("classes")
    if not isinstance(classes, list) or not classes or not all(isinstance(each, dict) for each in classes):
        yield "classes: expected a table [[classes]] for each class of sizes"
        return
    for place, of_class in enumerate(classes):
        for sentence in _problems_of_class(of_class):
            yield f"classes.{place}.{sentence}"


def _problems_of_class(of_class: Mapping[str, Any]) -> Iterator[str]:
    sizes, jobs = of_class.get("sizes"), of_class.get("jobs")
    if not isinstance(sizes, list) or not sizes or not all(_is_whole(size, 1) for size in sizes):
        yield f"sizes: expected whole numbers from 1 to {_MOST:,}"
        return
    if not isinstance(jobs, list) or len(jobs) != len(sizes) or not all(map(_is_weight, jobs)):
        yield f"jobs: expected a number from 0 to {_MOST:,} for each of the {len(sizes)} sizes"
    elif not any(jobs):
        yield "jobs: expected a size that has some"
    for what in ("gap", "run"):
        row = of_class.get(what)
        if not isinstance(row, dict) or not _is_distribution(row):
            yield (
                f"{what}: expected an order from 0 to {MAX_ORDER}, a share from 0 to 1, and two means_s of 0 s or more "
                "(such as {order = 2, share = 0.5, means_s = [10, 300]})"
            )


def _is_distribution(row: Mapping[str, Any]) -> bool:
    means, share = row.get("means_s"), row.get("share", -1.0)
    has_means = isinstance(means, list) and len(means) == 2 and all(map(_is_time, means))
    return has_means and _is_number(share) and 0 <= share <= 1 and _is_whole(row.get("order"), 0, MAX_ORDER)


def _is_whole(value: Any, least: int, most: int = _MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _is_weight(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= _MOST


def _is_time(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= LATEST_S
