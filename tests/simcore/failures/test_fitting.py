"""Logs brought to a machine, a span and a number: counts to the unit, and bursts and skew that survive."""

from __future__ import annotations

import math

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.failure_logs.fitting import bursts_of, map_nodes
from faultsweep.simcore.failure_logs.plain import write_failures
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.failures.bursts import synthetic_year
from faultsweep.simcore.policies.failures.fitted import fitted_source
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.failures import AS_SHIPPED

YEARS = Span(0.0, 736 * DAY_S, 736 * DAY_S)


def records_of(times, nodes, num_nodes=8, **more):
    unknown = np.full(len(times), np.nan)
    names = tuple(map(str, range(num_nodes)))
    return FailureRecords(
        np.array(times, float), np.array(nodes, np.int64), unknown, num_nodes, node_name=names, **more
    )


def fitted(records, nodes=8, span=YEARS, machine="", **parameters):
    return fitted_source(records, resolve({"machine": machine or f"flat:{nodes}", **parameters}), nodes, span)


def worst_tenth(node, nodes):
    """Share of the failures that the worst tenth of the nodes has (a node in part where a tenth is no whole number)."""
    shares = np.sort(np.bincount(node, minlength=nodes))[::-1] / len(node)
    whole = nodes // 10
    return shares[:whole].sum() + shares[whole] * (nodes / 10 - whole)


def variation(time_s):
    gaps = np.diff(time_s)
    return gaps.std() / gaps.mean()


@st.composite
def some_records(draw):
    size = draw(st.integers(2, 60))
    times = np.cumsum(draw(st.lists(st.sampled_from([0.0, 1.0, 7.5, 3600.0, 5e5]), min_size=size, max_size=size)))
    assume(times[-1] > times[0])
    nodes = draw(st.lists(st.integers(0, 7), min_size=size, max_size=size))
    return records_of(times, nodes, own=draw(st.booleans()))


@settings(max_examples=150)
@given(
    some_records(),
    st.sampled_from(["scale", "repeat", "exact", "calendar"]),
    st.integers(0, 300),
    st.sampled_from(["rank", "permutation", "identity", "auto"]),
    st.integers(8, 30),
    st.floats(1e5, 1e8),
)
def test_counts_are_exactly_as_asked(records, fit, count, node_map, nodes, length):
    span = Span(500.0, length, length)
    if fit == "calendar":
        assume(records.own)
    begin = 500.0 if fit == "calendar" else 0.0
    inside = (records.time_s >= begin) & (records.time_s <= begin + length)
    if fit in ("exact", "calendar") and records.own and not inside.any():
        assume(count > 0)
        with pytest.raises(InputError, match="no failure in the span"):
            fitted(records, nodes, span, num_failures=count, failure_fit=fit, node_map=node_map)
        return
    if fit == "repeat":  # a log with gaps longer than the span may have no failure there to repeat
        assume(np.diff(records.time_s).max(initial=0.0) <= length)
        assume(len(records) * length / records.span_s < 1e5)  # more take long
    source = fitted(records, nodes, span, num_failures=count, failure_fit=fit, node_map=node_map)
    trace = source.until(span.length_s)
    assert len(trace) == count
    assert (np.diff(trace.time_s) >= 0).all()
    assert (trace.time_s >= 0).all()
    assert ((trace.node >= 0) & (trace.node < nodes)).all()


@pytest.mark.parametrize("length", [1e8, 1e15])
@pytest.mark.parametrize("count", [-1, 8])
def test_a_short_log_is_not_repeated_until_memory_is_full(length, count):
    records = records_of([1.0, 1.0, 1.5], [1, 1, 3])
    with pytest.raises(InputError, match=r"lasts 0\.5 s, so failure_fit = repeat would need it .* 5,000,000 failures"):
        fitted(records, 8, Span(0.0, length, length), num_failures=count, failure_fit="repeat")


@pytest.mark.parametrize(
    ("gap_s", "length_s", "full_s", "asked"),
    [
        (1e-305, 1e6, 1e6, {"failure_fit": "scale"}),
        (10.0, 1e12, 1e12, {"failures_per_day": 1e300}),
        (10.0, 1e6, 1e-310, {"num_failures": 8}),
    ],
)
def test_more_failures_than_there_are_numbers_are_refused(gap_s, length_s, full_s, asked):
    records = records_of([0.0, gap_s], [1, 3])
    with pytest.raises(InputError, match="more than 5,000,000 failures"):
        fitted(records, 8, Span(0.0, length_s, full_s), **asked)


def test_as_many_failures_as_fit_in_memory_are_not_refused():
    records = records_of(np.arange(1000.0), np.arange(1000) % 8)
    asked = {"failures_per_day": 5_000_000.4, "failure_fit": "scale"}
    assert len(fitted(records, 8, Span(0.0, DAY_S, DAY_S), **asked).until(math.inf)) == 5_000_000


@settings(max_examples=60)
@given(some_records(), st.sampled_from(["scale", "repeat"]), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_fewer_failures_are_a_part_of_more(records, fit, one, other):
    few, many = (
        fitted(records, num_failures=round(part * len(records)), failure_fit=fit, span=Span(0, 1e6, 1e6)).until(1e6)
        for part in sorted((one, other))
    )
    rows = [sorted(zip(trace.time_s.tolist(), trace.node.tolist(), strict=True)) for trace in (few, many)]
    rest = list(rows[1])
    for row in rows[0]:
        rest.remove(row)


def test_number_is_of_the_whole_log_and_scaled_to_the_jobs_used():
    records = synthetic_year(0, 0, AS_SHIPPED).records
    part = Span(0.0, 73.6 * DAY_S, 736 * DAY_S)
    assert len(fitted(records, 128, part, num_failures=4000).until(math.inf)) == 400
    assert len(fitted(records, 128, part, failures_per_day=2.5).until(math.inf)) == 184
    assert fitted(records, 128, part, num_failures=4000).failures_per_day == pytest.approx(400 / 73.6)
    with pytest.raises(InputError, match="num_failures or failures_per_day, not both"):
        fitted(records, 128, part, num_failures=4000, failures_per_day=2.0)


def test_default_number_keeps_failures_per_node_and_day():
    """The rule of oliner2004, section 6.2."""
    records = records_of(np.arange(1001) * 3600.0, np.arange(1001) % 8)
    span = Span(0.0, 2000 * 3600.0, 1e9)
    assert len(fitted(records, 4, span).until(math.inf)) == 1001
    assert len(fitted(records, 8, span).until(math.inf)) == 2002
    assert len(fitted(records, 4, span, failure_fit="repeat").until(span.length_s)) == 1000


def test_exact_keeps_the_trace():
    records = records_of([5, 70.25, 1e9], [1, 2, 7], own=True)
    span = Span(100, 200, 200)
    trace = fitted(records, span=span).until(math.inf)
    assert trace.time_s.tolist() == [5, 70.25, 1e9]
    assert trace.node.tolist() == [1, 2, 7]
    log = fitted(records_of([5, 70, 1000], [1, 2, 7]), failure_fit="exact", span=span).until(math.inf)
    assert log.time_s.tolist() == [0, 65, 995]


def test_a_trace_keeps_the_calendar_of_the_jobs_where_that_is_asked_for():
    span = Span(100, 200, 200)
    records = records_of([5, 170.25, 1e9], [1, 2, 7], own=True)
    source = fitted(records, failure_fit="calendar", span=span)
    assert source.until(math.inf).time_s.tolist() == [-95, 70.25, 1e9 - 100]
    later = fitted(records, failure_fit="calendar", span=Span(101, 200, 200))
    assert later.content_hash != source.content_hash
    with pytest.raises(InputError, match="a clock of its own, so failure_fit = calendar"):
        fitted(records_of([5, 70], [1, 2]), failure_fit="calendar", span=span)


def test_scale_spans_the_jobs():
    trace = fitted(records_of([10, 20, 40], [0, 1, 2]), num_failures=3, span=Span(100, 300, 300)).until(math.inf)
    assert trace.time_s.tolist() == [0, 100, 300]


def test_repeat_keeps_the_pace_and_goes_on():
    """Gaps 10, 20, and a mean gap of 15 before it begins again; half of that at the edges."""
    source = fitted(records_of([10, 20, 40], [0, 1, 2]), failure_fit="repeat", span=Span(100, 100, 100))
    trace = source.until(300)
    period = np.array([7.5, 17.5, 37.5, 52.5, 62.5, 82.5, 97.5])
    assert trace.time_s.tolist() == [*period, *(100 + period), *(200 + period)]
    assert trace.node.tolist() == [0, 1, 2, 0, 1, 2, 0] * 3
    assert source.endless


def test_bursts_are_closer_than_a_tenth_of_the_mean_gap():
    assert bursts_of(np.array([0, 1, 11, 12, 100.0])).tolist() == [0, 0, 1, 1, 2]
    assert bursts_of(np.array([3.0])).tolist() == [0]


def test_thinning_takes_whole_bursts():
    starts = np.arange(50) * 10_000.0
    records = records_of((starts[:, None] + np.arange(4)).ravel(), np.arange(200) % 8)
    trace = fitted(records, num_failures=40, failure_fit="repeat", span=Span(0, 500_000.0, 500_000.0)).until(500_000)
    assert len(trace) == 40
    assert np.bincount(bursts_of(trace.time_s)).tolist() == [4] * 10
    cut = fitted(records, num_failures=42, failure_fit="repeat", span=Span(0, 500_000.0, 500_000.0)).until(500_000)
    assert sorted(np.bincount(bursts_of(cut.time_s)).tolist()) == [2] + [4] * 10


@pytest.mark.parametrize("fit", ["scale", "repeat"])
@pytest.mark.parametrize("count", [1000, 2000, 4000, 8000])
def test_bursts_and_skew_of_the_synthetic_year_survive(fit, count):
    records = synthetic_year(3, 0, AS_SHIPPED).records
    trace = fitted(records, 128, num_failures=count, failure_fit=fit).until(YEARS.length_s)
    assert len(trace) == count
    kept = 0.75 if fit == "scale" or count <= len(records) else 0.5
    assert kept < variation(trace.time_s) / variation(records.time_s) < 1.25
    assert worst_tenth(trace.node, 128) == pytest.approx(worst_tenth(records.node, 350), abs=0.04)


LOGS = [
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 20),
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 18),
    ("failure-trace-archive/lanl-event_trace.tab.xz", 0),
    ("bluegene-l/bgl-ras-fatal-2005.txt.xz", 0),
    ("mira/mira-fatal-events-2013-2018.txt.xz", 0),
]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "system"), LOGS)
@pytest.mark.parametrize("count", [1000, 4000])
@pytest.mark.parametrize("node_map", ["rank", "permutation"])
def test_bursts_and_skew_of_real_logs_survive(shared, name, system, count, node_map):
    """With few of many failures the coefficient of variation falls: it is one of few and large bursts, by chance."""
    path = str(shared / "failure-logs" / name)
    records = read_failures(path, system=system)
    parameters = {"failures": path, "failure_system": system, "num_failures": count, "node_map": node_map}
    trace = source_for(resolve(parameters), 128, YEARS).until(math.inf)
    assert len(trace) == count
    kept = 0.8 if count >= len(records) / 2 else 0.55
    assert kept < variation(trace.time_s) / variation(records.time_s) < 1.2
    skew = worst_tenth(records.node, records.num_nodes)
    assert worst_tenth(trace.node, 128) == pytest.approx(skew, abs=0.04)


@pytest.mark.shared
def test_blue_gene_keeps_its_midplanes(shared):
    path = str(shared / "failure-logs" / "bluegene-l" / "bgl-ras-fatal-2005.txt.xz")
    records = read_failures(path)
    count = {"failures": path, "num_failures": len(records)}
    on_torus = source_for(resolve(count), 128, YEARS).until(math.inf)
    assert np.array_equal(on_torus.node, records.node)
    assert np.array_equal(
        source_for(resolve({**count, "machine": "flat:128"}), 128, YEARS).until(math.inf).node, records.node
    )
    elsewhere = source_for(resolve({**count, "machine": "torus:2x8x8"}), 128, YEARS).until(math.inf)
    assert not np.array_equal(elsewhere.node, records.node)


@pytest.mark.parametrize("nodes", [4, 5, 8, 20])
def test_rank_gives_the_worst_nodes_the_lowest_numbers(nodes):
    times = np.arange(360) * 1e4
    node = np.repeat([5, 2, 0, 7, 1, 3, 4, 6], [80, 70, 60, 50, 40, 30, 20, 10])
    records = records_of(times, node)
    mapped = map_nodes(records, nodes, "rank", np.random.default_rng(0))
    shares = np.bincount(mapped, minlength=nodes) / 360
    log_share = np.interp(
        np.arange(1, nodes + 1) / nodes, np.arange(9) / 8, np.cumsum([0, 80, 70, 60, 50, 40, 30, 20, 10]) / 360
    )
    assert np.cumsum(shares) == pytest.approx(log_share, abs=0.02)
    if nodes == 8:
        assert (mapped[0], mapped[-1]) == (0, 7)


def test_permutation_is_a_seeded_one_of_rank():
    records = synthetic_year(0, 0, AS_SHIPPED).records
    rank, one, again, other = (
        fitted(records, 128, node_map=how, seed=seed).until(math.inf).node
        for how, seed in (("rank", 0), ("permutation", 0), ("permutation", 0), ("permutation", 1))
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    pairs = {*zip(rank.tolist(), one.tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


def test_auto_is_identity_where_the_machines_agree():
    records = records_of(np.arange(8) * 100.0, np.arange(8)[::-1])
    count = {"num_failures": 8}
    assert fitted(records, 8, **count).until(math.inf).node.tolist() == list(range(8))[::-1]
    assert fitted(records, 9, **count).until(math.inf).node.tolist() != list(range(8))[::-1]
    ours = records_of([1, 2], [6, 3], own=True)
    assert fitted(ours, 100).until(math.inf).node.tolist() == [6, 3]
    with pytest.raises(
        InputError, match=r"names node 6, the machine has nodes 0 to 3 \(node_map = rank or permutation"
    ):
        fitted(ours, 4)


def test_down_times():
    records = FailureRecords(
        np.array([0.0, 1, 2]), np.zeros(3, np.int64), np.array([60, np.nan, 0]), 1, node_name=("0",)
    )
    assert fitted(records, 1, failure_fit="exact").until(math.inf).down_s.tolist() == [60, 0, 0]
    assert fitted(records, 1, failure_fit="exact", down_time_s=5.0).until(math.inf).down_s.tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("records", "parameters", "message"),
    [
        (records_of([1, 1], [0, 1]), {}, "all its failures are at one time"),
        (records_of([1], [0]), {"failure_fit": "repeat"}, "all its failures are at one time"),
        (records_of([1e9, 2e9], [0, 1], own=True), {"num_failures": 5}, "no failure in the span of the jobs"),
    ],
)
def test_logs_that_do_not_fit(records, parameters, message):
    with pytest.raises(InputError, match=message):
        fitted(records, **parameters)


def test_jobs_of_one_instant():
    records = records_of([1, 5], [0, 1])
    now = Span(3.0, 0.0, 3.0)
    with pytest.raises(InputError, match="no span to fit failures to"):
        fitted(records, span=now)
    assert len(fitted(records, span=now, failure_fit="exact").until(math.inf)) == 2


def test_a_written_trace_is_what_was_simulated(tmp_path):
    config = resolve({"failures": "weibull", "machine": "flat:16"})
    trace = source_for(config, 16, YEARS).until(1e7)
    write_failures(trace, tmp_path / "f.csv", num_nodes=16)
    back = source_for({**config, "failures": str(tmp_path / "f.csv")}, 16, YEARS).until(math.inf)
    for name in ("time_s", "node", "down_s"):
        assert np.array_equal(getattr(back, name), getattr(trace, name))


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "f.csv"
    config = resolve({"failures": str(path), "machine": "flat:16"})
    for count in (1, 2):
        write_failures(FailureTrace(np.arange(count, dtype=float), np.zeros(count, np.int64), np.zeros(count)), path)
        assert len(source_for(config, 16, YEARS).until(math.inf)) == count


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("weibul", r"failures: unknown source of failures 'weibul'; did you mean 'weibull'\?"),
        ("no/such.csv", "failures: 'no/such.csv' cannot be read"),
        ("x\0y", "failures: expected text without null characters"),
    ],
)
def test_unknown_sources(name, message):
    with pytest.raises(InputError, match=message):
        source_for(resolve({"failures": name}), 128, YEARS)
