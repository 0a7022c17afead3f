"""What Python callers give that is no parameter: each of another type or shape is one sentence, and nothing is
simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.dependencies import Dependencies
from faultsweep.simcore.model.workload import Demand, Label
from faultsweep.simcore.policies.failures.source import FailureSource

import faultsweep
from faultsweep import FailureTrace, InputError, Workload


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
    "demand": [3, Demand(*[np.ones(3, int)] * 7), Demand(*[[1] * 20] * 7)],
    "labels": [3, {"x": 1}, {"account": 1}, {"account": Label([0] * 20, ("a",))}],
    "dependencies": [3, [], Dependencies([1], [0], [0.0]), Dependencies(*[np.zeros((1, 1), int)] * 3)],
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


@pytest.fixture(scope="module")
def whole():
    """Jobs whose numbers all fit into eight bits or into floats of four bytes, some of them for others."""
    random = np.random.default_rng(1)
    count = 100
    submit_s, run_s = (
        np.sort(random.integers(0, 120, count)).astype(float),
        random.integers(1, 100, count).astype(float),
    )
    sizes, users, ids = random.integers(1, 100, count), random.integers(0, 9, count), np.arange(count)
    return Workload(
        *(ids, submit_s, run_s, run_s + random.integers(0, 20, count), sizes, users),
        nodes=100,
        home=random.integers(0, 2, count),
        labels={"account": Label(random.integers(-1, 3, count), ("a", "b", "c"))},
        dependencies=Dependencies(np.array([5, 40, 99]), np.array([2, 5, 98]), np.array([0.0, 10.0, 30.0])),
    )


FEW_BITS = [
    *[(name, dtype) for name in ("job_id", "size", "user", "home") for dtype in ("int8", "uint8", "uint64", ">i4")],
    *[
        (name, dtype)
        for name in ("submit_s", "run_s", "requested_s")
        for dtype in ("uint8", "int16", "float32", "float16")
    ],
]
CONFIGURATIONS = [
    {"machine": "flat:128", "fairness": True, "queue_order": "multifactor"},
    {"machine": "flat:64", "size_map": "scale", "estimates": "requested", "scheduler": "conservative"},
    {"machine": "torus:4x4x8", "size_map": "scale", "procs_per_node": 2, "load_scale": 1.7},
    {"machine": "flat:128", "target_utilisation": 0.9, "queue_order": "saf"},
    {"machine": "flat:128", "recovery": "mix", "credits": True, "failures": "weibull", "weibull_scale_s": 300.0},
    {"machine": "clusters:128+128", "load_scale": 0.5},
]


@pytest.mark.compiled
@pytest.mark.parametrize("given", CONFIGURATIONS, ids=str)
def test_numbers_of_few_bits_are_simulated_as_those_of_many(whole, given):
    expected = faultsweep.simulate(whole, **given).metrics
    for name, dtype in FEW_BITS:
        array = getattr(whole, name).astype(dtype)
        assert (array == getattr(whole, name)).all()
        found = faultsweep.simulate(replace(whole, **{name: array}), **given).metrics
        assert found == pytest.approx(expected, rel=0, abs=0, nan_ok=True), (name, dtype)


def test_parts_of_a_workload_take_numbers_of_few_bits(whole):
    codes = whole.labels["account"].codes.astype(np.int8)
    pairs = Dependencies(*(array.astype(np.uint8) for array in whole.dependencies.arrays().values()))
    few = replace(whole, labels={"account": Label(codes, ("a", "b", "c"))}, dependencies=pairs)
    given = {"machine": "flat:128", "dependencies": "log", "account_max_nodes": 60, "size_map": "drop"}
    assert few.labels["account"].codes.dtype == np.int64
    expected = faultsweep.simulate(whole, **given).metrics
    assert faultsweep.simulate(few, **given).metrics == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_arrays_without_dimension_are_no_jobs(log):
    names = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
    with pytest.raises(InputError, match=r"^sdsc-model: job_id: expected an array of whole numbers, got array\(1\)$"):
        simulate(replace(log, **{name: np.array(getattr(log, name)[0]) for name in names}))


def test_whole_numbers_that_are_too_large_are_none(log):
    sizes = log.size.astype(np.uint64)
    sizes[3] = 2**63
    with pytest.raises(InputError, match=r"^sdsc-model: size: expected an array of 20 whole numbers"):
        simulate(replace(log, size=sizes))
