"""The reference predictors: worked cases, laws, and that the engine's coins are the same."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import entry_kernel
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures.source import Span
from faultsweep.simcore.policies.placement.rules import coin
from faultsweep.simcore.policies.prediction.predictors import base_rate_table
from faultsweep.simcore.streams import coin_key, coins
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

NODES = 32


def trace_of(*rows):
    rows = sorted(rows)
    time_s, node = (
        np.array(column, kind) for column, kind in zip(zip(*rows, strict=True), (float, np.int64), strict=True)
    )
    return FailureTrace(time_s, node, np.zeros(len(rows)))


traces = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3)), min_size=1, max_size=25).map(
    lambda rows: trace_of(*rows)
)


def generated(until_s=3e7, **parameters):
    config = resolve({"failures": "weibull", "machine": f"flat:{NODES}", "zipf_alpha": 0.5, **parameters})
    return source_for(config, NODES, Span(0.0, until_s, until_s)).until(until_s)


def fails_within(trace, nodes, now_s, window_s):
    """Whether each node has a failure in the open window (now_s, now_s + window_s)."""
    first = np.searchsorted(trace.time_s, now_s, side="right")
    last = np.searchsorted(trace.time_s, now_s + window_s, side="left")
    return np.isin(np.arange(nodes), trace.node[first:last])


def reported(fails, accuracy, key, job, restarts, false_positive_rate=0.0):
    """Whether the predictor reports each node."""
    return coins(key, np.arange(len(fails)), job, restarts) < np.where(fails, accuracy, false_positive_rate)


def base_rate(table, window_s):
    """The share of nodes and times at which a window of this length holds a failure of the node."""
    return np.minimum(table.gap_s, window_s).sum() / table.node_seconds


def false_positive_rate(precision, recall, base_rate):
    """The rate of false reports with which ``precision`` of all reports are true; at most 1."""
    return min(1.0, recall * base_rate / (1.0 - base_rate) * (1.0 - precision) / precision)


@entry_kernel
def throw(key, node, job, restarts):
    return coin(key, node, job, restarts)


@given(st.integers(0, 2**62 - 1), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**4))
def test_the_engine_throws_the_same_coins(key, node, job, restarts):
    assert coins(key, node, job, restarts) == throw(key, node, job, restarts)


def test_coins_are_uniform_and_independent():
    key = coin_key(0, 0)
    thrown = coins(key, np.arange(40)[:, None, None], np.arange(50)[:, None], np.arange(20))
    assert thrown.shape == (40, 50, 20)
    assert stats.kstest(thrown.ravel(), "uniform").pvalue > 1e-3
    for axis in range(3):  # neighbours along every axis
        low, high = np.delete(thrown, 0, axis).ravel(), np.delete(thrown, -1, axis).ravel()
        assert abs(np.corrcoef(low, high)[0, 1]) < 4 / np.sqrt(len(low))
        table = np.histogram2d(low, high, bins=8)[0]
        assert stats.chisquare(table.ravel()).pvalue > 1e-4
    keys = {coin_key(seed, replicate) for seed in range(20) for replicate in range(20)}
    assert len(keys) == 400
    assert max(keys) < 2**62


@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 1000), st.integers(0, 10))
def test_reports(one, other, job, restarts):
    """Nothing at a = 0, everything at a = 1, never a node that does not fail; more accuracy, no fewer reports."""
    fails = np.arange(64) % 3 == 0
    key = coin_key(4, 2)
    low, high = (reported(fails, a, key, job, restarts) for a in sorted((one, other)))
    assert not (low & ~high).any()
    assert not (high & ~fails).any()
    assert not reported(fails, 0.0, key, job, restarts).any()
    assert np.array_equal(reported(fails, 1.0, key, job, restarts), fails)
    assert reported(fails, 1.0, key, job, restarts, false_positive_rate=1.0).all()


def test_several_failures_of_a_node_are_one_chance():
    """A burst of ten failures of a node is reported as often as one failure."""
    one, ten = trace_of((5, 0)), trace_of(*((5 + k, 0) for k in range(10)))
    key = coin_key(0, 0)
    told = [[reported(fails_within(t, 1, 0, 100), 0.5, key, job, 0)[0] for job in range(2000)] for t in (one, ten)]
    assert told[0] == told[1]
    assert np.mean(told[0]) == pytest.approx(0.5, abs=0.05)
    again = [reported(fails_within(ten, 1, 0, 100), 0.5, key, job, 1)[0] for job in range(2000)]
    assert np.mean(np.array(told[0]) == np.array(again)) == pytest.approx(0.5, abs=0.05)  # a restart is a new chance


def test_false_positive_rate_is_that_of_nodes_that_do_not_fail():
    fails = np.arange(1000) % 5 == 0
    told = np.array([reported(fails, 0.7, 99, job, 0, false_positive_rate=0.03) for job in range(300)])
    assert told[:, fails].mean() == pytest.approx(0.7, abs=0.01)
    assert told[:, ~fails].mean() == pytest.approx(0.03, abs=0.002)


@given(traces, st.integers(0, 80))
def test_base_rate_by_brute_force(trace, window):
    """Asked in the middle of every second of (0, 60): failures are at whole seconds, so nothing changes within one."""
    table = base_rate_table(trace, 4, 0.0, 60.0)
    asked = [fails_within(trace_up_to_60(trace), 4, second + 0.5, window) for second in range(60)]
    assert base_rate(table, window) == pytest.approx(np.mean(asked), abs=1e-9)


def trace_up_to_60(trace):
    kept = (trace.time_s > 0) & (trace.time_s <= 60)
    return FailureTrace(trace.time_s[kept], trace.node[kept], trace.down_s[kept])


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("precision", "recall"), [(0.9, 0.5), (0.5, 0.8), (0.2, 0.3)])
@pytest.mark.parametrize("window_s", [3600.0, 86400.0])
@pytest.mark.parametrize("source", [{"burst_window": 2}, {"burst_window": 64}])
@pytest.mark.compiled
def test_precision_and_recall_come_out_as_given(precision, recall, window_s, source):
    """Asked at random times, over bursty and plain failures of unequal nodes."""
    end = 3e7
    trace = generated(end, **source)
    rate = false_positive_rate(precision, recall, base_rate(base_rate_table(trace, NODES, 0.0, end), window_s))
    rng = np.random.default_rng(7)
    true = false = missed = 0
    for job, now in enumerate(rng.random(6000) * (end - window_s)):
        fails = fails_within(trace, NODES, now, window_s)
        told = reported(fails, recall, 1234, job, 0, rate)
        true += np.count_nonzero(told & fails)
        false += np.count_nonzero(told & ~fails)
        missed += np.count_nonzero(~told & fails)
    assert true / (true + missed) == pytest.approx(recall, abs=0.03)
    assert true / (true + false) == pytest.approx(precision, abs=0.035)
