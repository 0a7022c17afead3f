"""What a workload is like: figures for people who look at a log before they use it."""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads.swf import header_number
from numpy.typing import NDArray


def span_s(workload: Workload) -> float:
    """Return the time from the first submission to the last, in seconds."""
    return float(workload.submit_s[-1] - workload.submit_s[0])


def work(workload: Workload) -> NDArray[np.float64]:
    """Return size x run time of each job, in processor-seconds."""
    return workload.size * workload.run_s


def processors(workload: Workload) -> int:
    """Return the processors of the log's machine, 0 when unknown.

    Where they do not divide into its nodes, processors per node are rounded up, and the header says how many there are.
    """
    rounded = workload.nodes * workload.procs_per_node
    stated = header_number(workload.header, "MaxProcs")
    return stated if rounded - workload.nodes < stated <= rounded else rounded


def capacity(workload: Workload) -> float:
    """Return processors x span in processor-seconds; 0 when the machine is unknown or all jobs come at once."""
    return processors(workload) * span_s(workload)


def offered_load(workload: Workload) -> float:
    """Return submitted work / capacity; NaN when there is no capacity to compare with."""
    return float(work(workload).sum() / capacity(workload)) if capacity(workload) else float("nan")


def offered_load_of_nodes(workload: Workload) -> float:
    """Return nodes that no other job may use x run time / (nodes x span): what a simulation offers the log's machine.

    NaN when there is no capacity to compare with.
    """
    nodes = -(-workload.size // workload.procs_per_node)
    room = workload.nodes * span_s(workload)
    return float((nodes * workload.run_s).sum() / room) if room else float("nan")


def size_classes(workload: Workload) -> list[tuple[int, int, NDArray[np.bool_]]]:
    """Return (smallest, largest, which jobs) of the classes of size 1, 2, 3-4, 5-8, ... that have jobs."""
    exponent = np.ceil(np.log2(workload.size)).astype(int)
    largest = int(workload.size.max())
    return [(2 ** (k - 1) + 1 if k > 0 else 1, min(2**k, largest), exponent == k) for k in np.unique(exponent).tolist()]


def acknowledgement(workload: Workload) -> list[str]:
    """Return what the log's header says of its origin and terms: Computer to Information, without the rest."""
    kept, keys = [], ("computer", "installation", "acknowledge", "copyright")
    inside = False
    for line in workload.header:
        text = line.strip().lstrip(";").rstrip()
        key, colon, _ = text.partition(":")
        if colon and not text.startswith("  "):
            inside = key.strip().lower() in keys
        if inside and text.strip():
            kept.append(text.strip())
    return kept
