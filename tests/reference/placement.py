"""Which of the admissible boxes a job takes: largest remaining free partition, balancing, tie-breaking."""

from __future__ import annotations

from fractions import Fraction

from .machines import Flat, Torus
from .state import Options


def fails_within(failures, node, now, until) -> bool:
    """Whether the trace has a failure of the node in the open window (now, until) (oliner2004, 4)."""
    return any(failed == node and now < time < until for time, failed, _ in failures)


def reported(node, job, options: Options) -> bool:
    """The predictor's coin for a node that will fail: one for each node, job and restart."""
    return options.coin(node, job.index, job.restarts) if options.coin else options.a == 1


def risk(box, failures, now, until, options: Options):
    """P_f of a box: 1 - product of (1 - p_n), or the largest p_n (oliner2004, 5.2.1 and 4.1)."""
    chances = [options.a if fails_within(failures, node, now, until) else 0 for node in box]
    if options.partition_risk == "max":
        return max(chances)
    survives = Fraction(1)
    for chance in chances:
        survives *= 1 - chance
    return 1 - survives


def choose(machine: Torus | Flat, occupied, boxes, job, now, until, failures, options: Options, oblivious=False):
    """The box among ``boxes`` (in search order) that a job with the look-ahead (now, until) takes."""
    if not machine.is_torus:
        return boxes[0]
    left = [machine.mfp(occupied | box) for box in boxes]
    if options.placement == "balancing" and not oblivious:
        before = machine.mfp(occupied)
        scores = [
            before - after + job.requested_size * risk(box, failures, now, until, options)
            for box, after in zip(boxes, left, strict=True)
        ]
        return boxes[scores.index(min(scores))]
    best = [box for box, after in zip(boxes, left, strict=True) if after == max(left)]
    if options.placement == "tie-breaking" and not oblivious:
        for box in best:
            if not any(fails_within(failures, node, now, until) and reported(node, job, options) for node in box):
                return box
    return best[0]
