"""What checkpoints cost and save: intervals from the mean time between failures, waste, rounding, inert parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import canonical, resolve
from faultsweep.simcore.policies.failures.source import FailureSource, Span
from faultsweep.simcore.simulate import simulate

from faultsweep.errors import InputError


def jobs(*rows):
    """Rows (submit, run, size)."""
    submit, run, size = (np.array(column, float) for column in zip(*rows, strict=True))
    number = np.arange(len(rows))
    return Workload(number, submit, run, np.full(len(rows), np.nan), size.astype(np.int64), number, name="case")


def failures(*rows):
    """Rows (time, node); the nodes are up again at once."""
    time, node = zip(*rows, strict=True)
    return FailureTrace(np.array(time, float), np.array(node, np.int64), np.zeros(len(rows)), name="case")


def young_s(cost, mtbf):
    return math.sqrt(2 * cost * mtbf)


def daly_s(cost, mtbf):
    return young_s(cost, mtbf) * (1 + math.sqrt(cost / (2 * mtbf)) / 3 + cost / (2 * mtbf) / 9) - cost


@pytest.mark.parametrize(("policy", "interval"), [("young", young_s), ("daly", daly_s)])
def test_interval_from_a_given_mtbf_is_that_of_the_nodes_of_the_job(policy, interval):
    """One failure of the 8 nodes in 2 h is one in 8 h for a job on 2 of them."""
    workload = jobs((0, 50_000, 2), (0, 90_000, 2), (10, 70_000, 2))
    trace = failures((20_000, 0), (31_000, 3), (60_000, 2))
    options = {"failures": trace, "machine": "flat:8", "checkpoint_cost_s": 60.0}
    found = simulate(workload, checkpoint=policy, checkpoint_mtbf_h=2.0, **options)
    same = simulate(workload, checkpoint="periodic", checkpoint_interval_s=interval(60.0, 8 * 3600.0), **options)
    assert found.metrics["checkpoints"] > 20
    assert found.jobs["finish_s"] == pytest.approx(same.jobs["finish_s"], rel=1e-12)
    assert found.jobs["checkpoints"].tolist() == same.jobs["checkpoints"].tolist()


@pytest.mark.parametrize(("policy", "interval"), [("young", young_s), ("daly", daly_s)])
def test_interval_from_the_observed_mtbf(policy, interval):
    """No checkpoint while no failure was seen; then one failure in 1000 s."""
    run = simulate(
        jobs((0, 1500, 1)), failures=failures((1000, 0)), machine="flat:1", checkpoint=policy, checkpoint_cost_s=2.0
    )
    count = math.floor(1500 / interval(2.0, 1000.0)) - 1
    assert run.jobs["work_lost_s"].tolist() == [1000]
    assert run.jobs["checkpoints"].tolist() == [count]
    assert run.jobs["finish_s"] == pytest.approx([2500 + 2 * count])


def test_checkpoints_that_no_restart_uses_are_wasted():
    """Of the checkpoints complete at 110, 220 and 330 only the last before the failure was of use."""
    options = {"machine": "flat:1", "checkpoint": "periodic", "checkpoint_interval_s": 100.0, "checkpoint_cost_s": 10.0}
    run = simulate(jobs((0, 500, 1)), failures=failures((225, 0)), **options)
    assert run.metrics["checkpoints"] == 4  # after 100, 200, 300 and 400 s of work
    assert run.metrics["checkpoints_wasted"] == 3
    again = simulate(jobs((0, 500, 1)), failures=failures((225, 0), (230, 0)), **options)
    assert again.metrics["checkpoints"] - again.metrics["checkpoints_wasted"] == 1  # both restarts from the same one


def test_exact_checkpoint_is_complete_at_the_failure_whatever_the_rounding():
    for k in range(200):
        at = round(1000 + 0.1 * k, 1)
        run = simulate(
            jobs((0.3, 2000, 1)),
            failures=failures((at, 0)),
            machine="flat:1",
            checkpoint="exact",
            checkpoint_cost_s=0.7,
        )
        assert run.metrics["checkpoints"] == 1, at
        assert run.jobs["work_lost_s"].tolist() == [0.0], at


@pytest.mark.parametrize(("gap_s", "bucket_s"), [(500.0, 80_000.0), (1.0, 1000.0)])
@pytest.mark.parametrize("policy", ["exact", "bucket", "risk"])
def test_foreseen_failures_of_an_endless_source_are_those_of_its_trace(policy, gap_s, bucket_s):
    """The failures are known far enough ahead, also at the end of what has been drawn, and where more are drawn."""
    workload = jobs(*((gap_s * k, 900, 4) for k in range(60)))
    parameters = {
        "machine": "flat:8",
        "checkpoint": policy,
        "checkpoint_cost_s": 100.0,
        "checkpoint_interval_s": 300.0,
        "bucket_s": bucket_s,
        "bucket_repeat_s": 200.0,
        "accuracy": 0.95,
        "weibull_scale_s": 900.0,
        "scheduler": "fcfs",
    }
    run = simulate(workload, failures="weibull", **parameters)
    last = float(run.jobs["finish_s"].max())
    span = Span(0.0, 59 * gap_s, 59 * gap_s)
    trace = source_for(resolve({"failures": "weibull", **parameters}), 8, span).until(last + 200_000.0)
    same = simulate(workload, failures=trace, **parameters)
    assert run.metrics["checkpoints"] > 5
    assert np.array_equal(run.jobs["finish_s"], same.jobs["finish_s"])
    assert run.metrics["checkpoints"] == same.metrics["checkpoints"]


class OneInFourThousandSeconds(FailureSource):
    """A failure of node 0 each 4000 s, for ever."""

    endless = True

    def until(self, time_s):
        """Return the failures up to a time."""
        time = np.arange(1150.0, min(time_s, 1e6), 4000.0)
        return FailureTrace(time, np.zeros(len(time), np.int64), np.zeros(len(time)))


@pytest.mark.parametrize("horizon_s", [1010.0, 1050.0, 1090.0])
def test_a_horizon_beyond_what_is_drawn_cuts_no_checkpoints(horizon_s):
    """The checkpoints of the bucket [1000, 1200) are those of the whole trace, though failures were drawn to 802."""
    parameters = {"checkpoint": "bucket", "checkpoint_cost_s": 5.0, "bucket_s": 200.0, "bucket_repeat_s": 20.0}
    parameters |= {"machine": "flat:8", "horizon_s": horizon_s}
    source = OneInFourThousandSeconds()
    first, second = (
        simulate(jobs((0, 400, 8), (1, 700, 8)), failures=failures, **parameters)
        for failures in (source, source.until(1e9))
    )
    assert first.status == second.status == "truncated"
    assert first.metrics["checkpoints"] == second.metrics["checkpoints"] == (horizon_s - 990.0) // 20.0


NO_FAILURES = {"machine": "flat:8", "failures": "none"}
WEIBULL = {"machine": "flat:8", "failures": "weibull"}


@pytest.mark.parametrize(
    ("values", "same"),
    [
        (NO_FAILURES | {"checkpoint": "exact", "checkpoint_cost_s": 7.0}, NO_FAILURES),
        (NO_FAILURES | {"checkpoint": "bucket", "bucket_s": 60.0, "bucket_jobs": "biggest"}, NO_FAILURES),
        (NO_FAILURES | {"checkpoint": "young", "restart_cost_s": 5.0}, NO_FAILURES),
        (NO_FAILURES | {"checkpoint": "risk", "accuracy": 0.5, "partition_failure": "max"}, NO_FAILURES),
        (WEIBULL | {"checkpoint": "risk", "accuracy": 0.0, "checkpoint_interval_s": 60.0}, WEIBULL),
        (WEIBULL | {"checkpoint": "risk", "accuracy": 0.5, "recall": 0.0}, WEIBULL),
        (WEIBULL | {"recall": 0.5, "precision": 0.5, "checkpoint": "exact"}, WEIBULL | {"checkpoint": "exact"}),
        (WEIBULL | {"checkpoint_cost_s": 60.0, "checkpoint_interval_s": 60.0, "bucket_s": 60.0}, WEIBULL),
        (WEIBULL | {"checkpoint": "exact", "bucket_jobs": "long"}, WEIBULL | {"checkpoint": "exact"}),
        (WEIBULL | {"checkpoint": "bucket", "bucket_long_s": 9.0}, WEIBULL | {"checkpoint": "bucket"}),
        (WEIBULL | {"checkpoint": "periodic", "checkpoint_mtbf_h": 9.0}, WEIBULL | {"checkpoint": "periodic"}),
    ],
)
def test_inert_parameters(values, same):
    assert canonical(values) == canonical(same)


@pytest.mark.parametrize(
    "values",
    [
        NO_FAILURES | {"checkpoint": "periodic"},
        NO_FAILURES | {"checkpoint": "daly", "checkpoint_mtbf_h": 5.0},
        WEIBULL | {"checkpoint": "risk", "accuracy": 0.5},
        WEIBULL | {"checkpoint": "risk", "accuracy": 0.5, "partition_failure": "max"},
        WEIBULL | {"checkpoint": "risk", "accuracy": 0.5, "recall": 0.5, "precision": 0.5},
        WEIBULL | {"checkpoint": "risk", "accuracy": 0.5, "recall": 0.0, "false_positive_rate": 0.5},
        WEIBULL | {"restart_cost_s": 5.0},
        WEIBULL | {"checkpoint": "bucket", "bucket_jobs": "biggest", "bucket_biggest": 2},
    ],
)
def test_parameters_that_matter(values):
    for name, value in values.items():
        assert canonical(values)[name] == value


def test_checkpoints_need_the_order_of_instants():
    with pytest.raises(InputError, match="event_order: 'ends-first' is for runs without checkpoints"):
        simulate(jobs((0, 10, 1)), machine="flat:1", checkpoint="periodic", event_order="ends-first")


def test_an_interval_within_buckets_is_a_second_at_least():
    with pytest.raises(InputError, match=r"bucket_repeat_s: 0\.5 is too short"):
        simulate(jobs((0, 10, 1)), machine="flat:1", checkpoint="bucket", bucket_repeat_s=0.5)


def test_buckets_begin_at_the_first_submission():
    workload = jobs((30, 10, 1), (1030, 500, 1))
    options = {"machine": "flat:1", "checkpoint": "bucket", "bucket_s": 100.0, "checkpoint_cost_s": 5.0}
    whole = simulate(workload, failures=failures((1285, 0)), **options)
    assert whole.jobs["work_lost_s"].tolist() == [0, 80]  # saved 1200 s after the first submission, went on at 1205
    later = simulate(workload, failures=failures((260, 0)), offset=1, **options)
    assert later.jobs["work_lost_s"].tolist() == [55]
