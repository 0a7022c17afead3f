"""What Python callers give that is no parameter: each of another type or shape is one sentence, and nothing is
simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.policies.failures.source import FailureSource

import faultsweep
from faultsweep import FailureTrace, InputError


@pytest.fixture(scope="module")
def log():
    return faultsweep.load_workload("sdsc-model", num_jobs=20)


def simulate(log, **arguments):
    return faultsweep.simulate(log, machine="flat:128", **arguments)


@pytest.mark.parametrize("failures", [3, [1.0, 2.0], ("weibull",), np.array([1.0]), b"weibull"])
def test_failures_of_another_type_are_not_taken_for_none(log, failures):
    with pytest.raises(InputError, match=r"^failures: expected a FailureTrace, a source, a name or the path of a log"):
        simulate(log, failures=failures)


def test_a_log_of_failures_may_be_named_by_a_path(log, tmp_path):
    path = tmp_path / "failures.csv"
    path.write_text("time_s,node,down_s\n100,3,60\n200,4,60\n")
    assert simulate(log, failures=path).metrics["failures_seen"] == 2


TIMES, NODES, DOWNS = np.array([1.0, 2.0]), np.array([3, 4]), np.array([5.0, 6.0])
BAD_TRACES = {
    "lists": ([1.0, 2.0], NODES, DOWNS, r"time_s: expected an array of 2 numbers, got \[1.0, 2.0\]"),
    "one node": (TIMES, NODES[:1], DOWNS, r"node: expected an array of 2 whole numbers, got array\(\[3\]\)"),
    "no time down": (TIMES, NODES, DOWNS[:0], "down_s: expected an array of 2 numbers"),
    "parts of nodes": (TIMES, NODES + 0.5, DOWNS, "node: expected an array of 2 whole numbers"),
    "words": (TIMES.astype(str), NODES, DOWNS, "time_s: expected an array of 2 numbers"),
    "truths": (TIMES, NODES, DOWNS > 0, "down_s: expected an array of 2 numbers"),
    "a table": (TIMES[None], NODES[None], DOWNS[None], "time_s: expected an array of 2 numbers"),
    "no last time": (np.array([1.0, np.nan]), NODES, DOWNS, r"failure 2 has no time \(it is NaN\)"),
    "no first time": (np.array([np.nan, 1.0]), NODES, DOWNS, r"failure 1 has no time \(it is NaN\)"),
    "order": (TIMES[::-1].copy(), NODES, DOWNS, "failures must be in order of time"),
}


@pytest.mark.parametrize("name", BAD_TRACES)
def test_arrays_that_are_no_failures_are_one_sentence(log, name):
    *arrays, problem = BAD_TRACES[name]
    with pytest.raises(InputError, match=f"^mine: {problem}"):
        simulate(log, failures=FailureTrace(*arrays, name="mine"))


@pytest.mark.parametrize("name", ["lists", "one node", "parts of nodes", "words", "no last time", "order"])
def test_a_source_of_ones_own_gives_what_a_trace_may_have(log, name):
    *arrays, _ = BAD_TRACES[name]

    class Own(FailureSource):
        name, content_hash, endless = "mine", "", False

        def until(self, time_s):
            return FailureTrace(*arrays, name="mine")

    with pytest.raises(InputError, match=r"^mine: .*(node|time)"):
        simulate(log, failures=Own())


def test_whole_numbers_are_times(log):
    found = simulate(log, failures=FailureTrace(TIMES.astype(int), NODES.astype(np.int32), DOWNS.astype(np.float32)))
    same = simulate(log, failures=FailureTrace(TIMES, NODES, DOWNS))
    assert found.metrics == pytest.approx(same.metrics, rel=0, abs=0, nan_ok=True)
    assert found.metrics["failures_seen"] == 2


@pytest.mark.parametrize("repeat", [0, -1, 2.5, "2", True, None])
def test_a_number_of_repetitions_is_whole_and_not_less_than_one(log, repeat):
    with pytest.raises(InputError, match=f"^repeat: expected a whole number of 1 or more, got {repeat!r}"):
        simulate(log, repeat=repeat)


@pytest.mark.parametrize("name", ["progress", "before_compiling"])
def test_what_is_called_is_a_function(log, name):
    with pytest.raises(InputError, match=f"^{name}: expected a function, got 3"):
        simulate(log, **{name: 3})


def test_recovery_groups_are_letters_and_for_a_recovery_policy(log):
    with pytest.raises(InputError, match=r"^options: expected letters A to E, one for each job, got 5"):
        simulate(log, options=5, recovery="mix")
    with pytest.raises(InputError, match=r"^options: there are none with recovery = arrival"):
        simulate(log, options="A" * 20)


@pytest.mark.parametrize("other", [3, "sdsc-model", None])
def test_a_log_is_written_of_a_workload_alone(other, tmp_path):
    with pytest.raises(InputError, match=r"^workload: expected a Workload \(load_workload gives that of a log\)"):
        faultsweep.write_swf(other, tmp_path / "a.swf")
    assert not (tmp_path / "a.swf").exists()


def test_a_prompt_shows_an_event_trace_in_one_line(log):
    events = simulate(log, events=True).events
    assert repr(events) == f"EventTrace({len(events)} events, {events.time_s[0]:.10g} to {events.time_s[-1]:.10g} s)"


BAD_PARTS = {
    "nodes": ["x", -1, 1.5, None],
    "procs_per_node": [0, "1"],
    "origin_s": ["a", float("nan"), None],
    "log_span_s": ["a", float("inf")],
    "epoch_s": ["2020"],
    "home": [[0] * 20, np.zeros(3, int), np.full(20, 0.5)],
    "demand": [3],
    "labels": [3, {"x": 1}, {"account": 1}],
    "dependencies": [3, []],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_PARTS.items() for value in values])
@pytest.mark.parametrize("machine", ["flat:128", "clusters:128+128"])
def test_what_a_workload_has_beside_its_arrays_is_checked(log, machine, name, value):
    with pytest.raises(InputError, match=rf"^sdsc-model: {name}: "):
        faultsweep.simulate(replace(log, **{name: value}), machine=machine)


@pytest.mark.parametrize("other", [3, [1.0] * 20, {}])
def test_what_jobs_communicate_is_a_communication(log, other):
    with pytest.raises(InputError, match=r"^communication: expected a Communication, got "):
        faultsweep.simulate(log, machine="clusters:128+128", communication=other)
