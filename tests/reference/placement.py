"""Which of the admissible boxes a job takes: largest remaining free partition, balancing, tie-breaking."""

from __future__ import annotations

from fractions import Fraction

from .machines import Flat, Torus
from .state import Options


def fails_within(failures, node, now, until) -> bool:
    """Whether the trace has a failure of the node in the open window (now, until) (oliner2004, 4)."""
    return any(failed == node and now < time < until for time, failed, _ in failures)


def base_rate(failures, nodes, window, begin, end):
    """The share of nodes and times in (begin, end) at which a window of this length holds a failure of the node.

    A failure is in the windows that open in the time before it; times that several failures share count once.
    """
    if end <= begin:
        return 0
    total = 0
    for node in range(nodes):
        covered = begin
        for time in sorted(time for time, failed, _ in failures if failed == node and begin < time <= end):
            total += time - max(covered, time - window)
            covered = time
    return Fraction(total) / (nodes * (end - begin))


def false_positive_rate(failures, nodes, window, begin, end, options: Options):
    """The probability that a node without a failure in the window is reported: given, or by the precision."""
    if options.precision == 1:
        return options.false_positive_rate
    rate = base_rate(failures, nodes, window, begin, end)
    if rate >= 1:
        return 0
    odds = Fraction(1 - options.precision) / options.precision
    return min(1, recall_of(options) * rate / (1 - rate) * odds)


def recall_of(options: Options):
    return options.a if options.placement == "tie-breaking" else options.recall


def reported_nodes(box, job, failures, now, until, false_rate, options: Options):
    """The nodes of a box that the predictor reports: a coin for each node, job and restart decides."""

    def lands(node, chance):
        if chance <= 0 or chance >= 1:
            return chance >= 1
        return options.coin(node, job.index, job.restarts) < chance

    recall = recall_of(options)
    return [node for node in box if lands(node, recall if fails_within(failures, node, now, until) else false_rate)]


def risk(reported, options: Options):
    """P_f of a box: 1 - product of (1 - p_n), or the largest p_n (oliner2004, 5.2.1 and 4.1)."""
    chances = [options.a for _ in reported]
    if options.partition_risk == "max":
        return max(chances, default=0)
    survives = Fraction(1)
    for chance in chances:
        survives *= 1 - chance
    return 1 - survives


def choose(machine: Torus | Flat, occupied, boxes, job, now, until, failures, options: Options, first, last, rule):
    """The box among ``boxes`` (in search order) that a job with the look-ahead (now, until) takes; submissions are
    from first to last."""
    if not machine.is_torus:
        return boxes[0]
    left = [machine.mfp(occupied | box) for box in boxes]
    best = [box for box, after in zip(boxes, left, strict=True) if after == max(left)]
    if rule == "mfp" or not failures:  # without failures no predictor is asked
        return best[0]
    false_rate = false_positive_rate(failures, machine.nodes, until - now, first, last, options)
    reported = {box: reported_nodes(box, job, failures, now, until, false_rate, options) for box in boxes}
    if rule == "balancing":
        before = machine.mfp(occupied)
        scores = [
            before - after + job.requested_size * risk(reported[box], options)
            for box, after in zip(boxes, left, strict=True)
        ]
        return boxes[scores.index(min(scores))]
    return next((box for box in best if not reported[box]), best[0])
