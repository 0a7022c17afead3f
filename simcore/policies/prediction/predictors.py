"""Failure predictors: what a scheduler is told about the nodes of a partition (oliner2004, sections 4 and 5).

A predictor is asked at a time ``now_s`` about a window, the open interval (now_s, now_s + window_s), where window_s is
the run time that is still estimated of the job. A failure at either end is outside.

- *balancing* (4.1): a node with a failure in the window fails with probability a, the confidence; others with 0.
- *tie-breaking* (4.2): a node with a failure in the window is reported with probability a, the accuracy; no others are.
- With *false positives*, a node without a failure in the window is reported with a probability of its own.
- With a *recall* below 1, balancing heeds only nodes that are reported, too: those that fail with the probability of
  the recall. Under tie-breaking the accuracy is the recall.
- With a *precision* below 1, false positives are just frequent enough that the precision, over all times at which one
  may ask between the first and the last submission, is the one given.

Whether a node is reported is decided by one coin for each node, job and restart: asking again, or about more failures
of the same node, is no new chance. A higher accuracy reports what a lower one does, and more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from faultsweep.simcore.model.failure_trace import FailureTrace
from numpy.typing import NDArray


class BaseRate(NamedTuple):
    """How often a node has a failure in a window, by the length of the window.

    Made by ``base_rate_table``: ``gap_s`` float64 (k,), sorted; ``sum_s`` float64 (k + 1,), their sums from the
    smallest on; ``node_seconds``: number of nodes x length of the trace.
    """

    gap_s: NDArray[np.float64]
    sum_s: NDArray[np.float64]
    node_seconds: float


def base_rate_table(trace: FailureTrace, nodes: int, start_s: float, end_s: float) -> BaseRate:
    """Return the table of base rates of the failures in (start_s, end_s]; a node's first gap begins at the start."""
    first, last = np.searchsorted(trace.time_s, (start_s, end_s), side="right")
    time_s, node = trace.time_s[first:last], trace.node[first:last]
    order = np.lexsort((time_s, node))
    gap = np.diff(time_s[order], prepend=start_s)
    new = np.diff(node[order], prepend=-1) != 0
    gap[new] = time_s[order][new] - start_s
    gap.sort()
    return BaseRate(gap, np.concatenate([[0.0], np.cumsum(gap)]), nodes * (end_s - start_s))
