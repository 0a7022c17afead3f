"""Failures as a log has them, before they are mapped onto a machine and a span of jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class FailureRecords:
    """Node failures of a real (or synthetic) machine in order of time; failures of one instant keep the log's order.

    Attributes
    ----------
    time_s : float64 (k,), non-decreasing, seconds on the log's own clock.
    node : int64 (k,), index of the node in the log's machine, 0 <= node < num_nodes.
    down_s : float64 (k,), >= 0, or NaN where the log does not tell.
    num_nodes : nodes of the log's machine.
    name : what the log is called in tables and figures.
    kind : name of the format.
    node_name : what the log calls each node, (num_nodes,).
    numbered : whether ``node`` is the log's own numbering, so that identity is a sensible mapping.
    torus : sides of the torus whose node indices ``node`` are; empty if the log's machine is none.
    own : whether it is a trace of our own, whose times are seconds since the first submission (or on the job log's
        clock: failure_fit = calendar), rather than a log of a real machine.
    counts : what was read and what was left out or repaired, by description.
    content_hash : "sha256:..." of the uncompressed content, and of the choices made in reading it.
    """

    time_s: NDArray[np.float64]
    node: NDArray[np.int64]
    down_s: NDArray[np.float64]
    num_nodes: int
    name: str = "failures"
    kind: str = "csv"
    node_name: tuple[str, ...] = ()
    numbered: bool = True
    torus: tuple[int, ...] = ()
    own: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    content_hash: str = ""

    def __len__(self) -> int:
        """Return the number of failures."""
        return len(self.time_s)

    @property
    def span_s(self) -> float:
        """Seconds from the first failure to the last."""
        return float(self.time_s[-1] - self.time_s[0]) if len(self) else 0.0


@dataclass
class Table:
    """What a reader collects from the lines of a log; ``node`` holds the names or numbers that the log uses."""

    time_s: NDArray[np.float64]
    node: NDArray[np.int64]
    down_s: NDArray[np.float64]
    num_nodes: int
    node_name: tuple[str, ...] = ()
    numbered: bool = True
    torus: tuple[int, ...] = ()
    own: bool = False
    counts: dict[str, int] = field(default_factory=dict)


def compact(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (distinct labels in ascending order, the index of each label among them)."""
    distinct, index = np.unique(labels, return_inverse=True)
    return distinct, index.astype(np.int64)
