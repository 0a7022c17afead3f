"""The failures of a run, as arrays: what every failure source produces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from faultsweep.simcore.model.dtypes import as_dtype
from numpy.typing import NDArray

from faultsweep.errors import InputError

LATEST_S = 2.0**42
"""No time may be further from zero, 139,000 years: up to there a float tells times apart to the millisecond."""


@dataclass(frozen=True)
class FailureTrace:
    """Node failures in order of time; failures at one time keep the order of the trace.

    Attributes
    ----------
    time_s : float64 (k,), non-decreasing, seconds since the first submission of the jobs that are simulated.
    node : int64 (k,), index of the node that fails, 0 <= node < nodes of the machine.
    down_s : float64 (k,), >= 0: how long the node stays down; 0 is a transient failure.
    name : what the trace is called in tables and figures.
    content_hash : "sha256:..." of its source (the file's uncompressed content, or the generator's parameters).
    """

    time_s: NDArray[np.float64]
    node: NDArray[np.int64]
    down_s: NDArray[np.float64]
    name: str = "trace"
    content_hash: str = ""

    def __post_init__(self) -> None:
        """Take arrays of other whole numbers and floats."""
        for name, dtype in (("time_s", np.float64), ("node", np.int64), ("down_s", np.float64)):
            object.__setattr__(self, name, as_dtype(getattr(self, name), dtype))

    def __len__(self) -> int:
        """Return the number of failures."""
        return len(self.time_s)


def check_trace(trace: FailureTrace) -> None:
    """Raise InputError, naming the array, unless the arrays are what a FailureTrace has."""
    count = np.size(trace.time_s)
    for name, kinds, what in (
        ("time_s", "fiu", "numbers"),
        ("node", "iu", "whole numbers"),
        ("down_s", "fiu", "numbers"),
    ):
        array = getattr(trace, name)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds or array.shape != (count,):
            raise InputError(f"{trace.name}: {name}: expected an array of {count} {what}, got {array!r:.60}")
    unknown = np.isnan(trace.time_s)
    if unknown.any():
        raise InputError(f"{trace.name}: failure {int(np.argmax(unknown)) + 1} has no time (it is NaN)")


NO_FAILURES = FailureTrace(np.empty(0), np.empty(0, np.int64), np.empty(0), name="none")
"""The trace of a machine that never fails."""
