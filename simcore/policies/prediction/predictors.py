"""Failure predictors: what a scheduler is told about the nodes of a partition (oliner2004, sections 4 and 5).

This is the reference form, over a whole ``FailureTrace`` and all nodes at once; the engine has the same compiled.

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
from faultsweep.simcore.streams import coins
from numpy.typing import NDArray


def fails_within(trace: FailureTrace, nodes: int, now_s: float, window_s: float) -> NDArray[np.bool_]:
    """Tell of every node whether it has a failure in the open window (now_s, now_s + window_s); shape (nodes,)."""
    first = np.searchsorted(trace.time_s, now_s, side="right")
    last = np.searchsorted(trace.time_s, now_s + window_s, side="left")
    fails = np.zeros(nodes, np.bool_)
    fails[trace.node[first:last]] = True
    return fails


def reported(
    fails: NDArray[np.bool_], accuracy: float, key: int, job: int, restarts: int, false_positive_rate: float = 0.0
) -> NDArray[np.bool_]:
    """Tell of every node whether the predictor reports it.

    Parameters
    ----------
    fails : which nodes have a failure in the window, shape (nodes,).
    accuracy : a, probability that such a node is reported; 1 - a is that of a false negative.
    key : from ``coin_key``.
    job : index of the job in the workload.
    restarts : of the job so far.
    false_positive_rate : probability that a node without a failure in the window is reported.
    """
    thrown = coins(key, np.arange(len(fails)), job, restarts)
    return thrown < np.where(fails, accuracy, false_positive_rate)


class BaseRate(NamedTuple):
    """How often a node has a failure in a window, by the length of the window.

    Made by ``base_rate_table``: ``gap_s`` float64 (k,), sorted; ``sum_s`` float64 (k + 1,), their sums from the
    smallest on; ``node_seconds``: number of nodes x length of the trace.
    """

    gap_s: NDArray[np.float64]
    sum_s: NDArray[np.float64]
    node_seconds: float

    def of(self, window_s: float) -> float:
        """Return the share of all nodes and times at which a window of this length holds a failure of the node.

        A failure is in the window of the times before it, back to the window's length or to the node's failure before:
        the share is the sum of min(gap, window) over all gaps, divided by the node-seconds. In O(log k).
        """
        below = int(np.searchsorted(self.gap_s, window_s))
        return float(self.sum_s[below] + (len(self.gap_s) - below) * window_s) / self.node_seconds


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


def false_positive_rate(precision: float, recall: float, base_rate: float) -> float:
    """Return the probability with which a node without a failure in the window is to be reported.

    With it the share of true among all reports is ``precision`` (in (0, 1]): of the share b of nodes and times with a
    failure in the window, recall x b are reported; recall x b (1 - precision) / precision false reports come from the
    other 1 - b. At most 1: where the base rate is above the precision and the recall is high, no predictor is as
    imprecise as asked.
    """
    if base_rate >= 1.0:
        return 0.0
    return min(1.0, recall * base_rate / (1.0 - base_rate) * (1.0 - precision) / precision)
