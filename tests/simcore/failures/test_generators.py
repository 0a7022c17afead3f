"""The failure generators: exact laws, correlation and skew, streams that do not depend on how they are asked for."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.parameters import PARAMETERS, canonical, resolve
from faultsweep.simcore.policies.failures.bursts import NODES, NUM_FAILURES, synthetic_year
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from faultsweep.simcore.policies.failures.weibull import (
    draw_nodes,
    exponentials,
    order_segments,
    weibull_gaps_ms,
    zipf_cumulative,
)
from faultsweep.simcore.streams import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from faultsweep.errors import InputError
from tests.failures import AS_SHIPPED
from tests.reference.generators import bursts as reference_bursts
from tests.reference.generators import zipf

SPAN = Span(0.0, 62 * DAY_S, 62 * DAY_S)
KINDS = [
    {"failures": "weibull", "burst_window": 8, "zipf_alpha": 0.99},
    {"failures": "weibull-copula", "copula_rho": 0.7},
    {"failures": "mtbf", "mtbf_h": 6.0, "mttr_h": 2.0, "repair_distribution": "lognormal"},
    {"failures": "mtbf", "node_mtbf_h": 500.0, "repair_distribution": "exponential"},
    {"failures": "bursts", "failure_fit": "repeat", "failures_per_day": 3.0},
]


def source(nodes=64, span=SPAN, **parameters):
    return source_for(resolve({"machine": f"flat:{nodes}", **parameters}), nodes, span)


def gaps_of(trace):
    return np.diff(trace.time_s, prepend=0.0)


def lag_one(values):
    return np.corrcoef(values[:-1], values[1:])[0, 1]


def test_none():
    assert source(failures="none") is None


# The worked example of the segments: gaps 1, 5, 4, 2, 3, 8, 7, 6.
@pytest.mark.parametrize(
    ("window", "used", "times"),
    [
        (2, [1, 5, 4, 2, 3, 8, 7, 6], [1, 6, 10, 12, 15, 23, 30, 36]),
        (4, [5, 1, 2, 4, 8, 3, 6, 7], [5, 6, 8, 12, 20, 23, 29, 36]),
        (8, [5, 4, 2, 1, 3, 6, 7, 8], [5, 9, 11, 12, 15, 21, 28, 36]),
    ],
)
def test_segments(window, used, times):
    ordered = order_segments(np.array([1, 5, 4, 2, 3, 8, 7, 6]), window)
    assert ordered.tolist() == used
    assert np.cumsum(ordered).tolist() == times


def test_window_changes_the_order_of_gaps_and_nothing_else():
    traces = {w: source(failures="weibull", burst_window=w).until(3e7) for w in (2, 8, 32, 64)}
    count = min(map(len, traces.values())) // 64 * 64
    gaps = {w: np.rint(gaps_of(trace)[:count] * 1000).astype(np.int64) for w, trace in traces.items()}
    for w in (8, 32, 64):
        assert np.array_equal(np.sort(gaps[w]), np.sort(gaps[2]))
        assert np.array_equal(gaps[w].reshape(-1, 64).sum(axis=1), gaps[2].reshape(-1, 64).sum(axis=1))
        assert np.array_equal(traces[w].node[:count], traces[2].node[:count])
    assert np.array_equal(order_segments(gaps[2], 32), gaps[32])
    measured = [lag_one(gaps[w]) for w in (2, 8, 32, 64)]
    assert abs(measured[0]) < 0.08
    assert measured == sorted(measured)
    assert measured[1] > 0.3
    assert measured[3] > 0.7


def test_odd_window():
    with pytest.raises(InputError, match="burst_window: 3 is odd"):
        source(failures="weibull", burst_window=3)


def test_zipf_shares():
    """P(node k) = (k + 1)^-alpha / sum: the worked example, and uniform shares for alpha = 0."""
    shares = np.diff(zipf_cumulative(3, 0.99), prepend=0)
    assert shares == pytest.approx([0.543332583067, 0.273555880023, 0.183111536911], abs=1e-12)
    assert np.diff(zipf_cumulative(7, 0.0), prepend=0) == pytest.approx(np.full(7, 1 / 7))


@given(st.integers(1, 5000), st.floats(0, 50), st.integers(0, 2**32))
def test_nodes_are_those_that_a_search_finds(nodes, alpha, seed):
    drawn = np.random.default_rng(seed).random(200)
    expected = np.searchsorted(zipf_cumulative(nodes, alpha), drawn, side="right")
    assert np.array_equal(draw_nodes(np.random.default_rng(seed), 200, nodes, alpha), expected)


def test_tables_of_many_skews_are_not_kept():
    nodes = 100_000
    tracemalloc.start()
    for alpha in range(10):
        draw_nodes(np.random.default_rng(0), 1, nodes, 0.5 + alpha / 100)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4 * 8 * nodes


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99])
def test_nodes_follow_zipfs_law_exactly(alpha):
    trace = source(320, failures="weibull", zipf_alpha=alpha, seed=5).until(1e9)
    expected = np.diff(zipf_cumulative(320, alpha), prepend=0) * len(trace)
    assert len(trace) > 50_000
    assert stats.chisquare(np.bincount(trace.node, minlength=320), expected).pvalue > 1e-3


def test_skew_grows_with_alpha():
    worst = []
    for alpha in (0.01, 0.5, 0.99):
        node = source(320, failures="weibull", zipf_alpha=alpha).until(2e7).node
        worst.append(np.sort(np.bincount(node, minlength=320))[::-1][:32].sum() / len(node))
    assert worst[0] < 0.25 < worst[1] < 0.5 < worst[2]


def weibull_cdf(shape, scale):
    return lambda t: stats.weibull_min.cdf(t, shape, scale=scale)


def first_gaps(source, count):
    time_s = 1e6
    while len(trace := source.until(time_s)) < count:
        time_s *= 2
    return gaps_of(trace)[:count]


@pytest.mark.parametrize(
    "parameters",
    [{"failures": "weibull", "burst_window": 64}, {"failures": "weibull-copula", "copula_rho": 0.0}],
)
@pytest.mark.parametrize("shape", [0.2, 0.55, 0.85, 1.0])
def test_marginal_distribution(parameters, shape):
    gaps = first_gaps(source(**parameters, weibull_shape=shape, seed=3), 4096)
    assert stats.kstest(gaps, weibull_cdf(shape, 18_000)).pvalue > 1e-3


def test_copula_leaves_the_marginal_and_correlates():
    """Thinned to every 40th, the gaps are nearly independent, so the goodness-of-fit test is a fair one."""
    trace = source(failures="weibull-copula", copula_rho=0.8, seed=1).until(8e8)
    gaps = gaps_of(trace)
    assert stats.kstest(gaps[::40], weibull_cdf(0.85, 18_000)).pvalue > 1e-3
    normal = stats.norm.ppf(stats.weibull_min.cdf(gaps, 0.85, scale=18_000))
    assert lag_one(normal[np.isfinite(normal)]) == pytest.approx(0.8, abs=0.02)
    assert lag_one(gaps_of(source(failures="weibull-copula", copula_rho=-0.8).until(1e8))) < -0.3
    halves = np.array_split(normal[np.isfinite(normal)], 2)
    assert lag_one(halves[0]) == pytest.approx(lag_one(halves[1]), abs=0.03)  # stationary


def test_system_mtbf():
    trace = source(failures="mtbf", mtbf_h=5.0, mttr_h=2.0).until(3e8)
    gaps = gaps_of(trace)
    assert gaps.mean() == pytest.approx(5 * 3600, rel=0.04)
    assert stats.kstest(gaps, weibull_cdf(0.7, 5 * 3600 / math.gamma(1 + 1 / 0.7))).pvalue > 1e-3
    assert set(trace.down_s.tolist()) == {7200.0}
    assert stats.chisquare(np.bincount(trace.node, minlength=64)).pvalue > 1e-3


def test_node_mtbf_makes_each_node_a_renewal_process():
    trace = source(8, failures="mtbf", node_mtbf_h=100.0, mtbf_shape=0.7).until(1e9)
    scale = 100 * 3600 / math.gamma(1 + 1 / 0.7)
    for node in range(8):
        assert stats.kstest(gaps_of_node(trace, node), weibull_cdf(0.7, scale)).pvalue > 1e-3
    assert len(trace) / 1e9 * DAY_S == pytest.approx(8 * 24 / 100, rel=0.04)


CLASSES = """
format = "faultsweep site, 1"
[[nodes]]
name = "old"
count = 3
cores = 4
mtbf_h = 50.0
[[nodes]]
name = "login"
count = 2
cores = 4
[[nodes]]
name = "new"
count = 4
cores = 8
mtbf_h = 50000.0
"""


@pytest.fixture
def classes(tmp_path):
    """A site, and the failures of it."""
    path = tmp_path / "site.toml"

    def failures(text=CLASSES, **parameters):
        path.write_text(text)
        return source_for(resolve({"machine": str(path), "failures": "mtbf", **parameters}), 9, SPAN)

    return failures


def test_classes_of_nodes_fail_as_often_as_their_site_says(classes):
    found = classes()
    trace = found.until(3e9)
    assert (np.diff(trace.time_s) >= 0).all()
    counts = np.bincount(trace.node, minlength=9)
    assert counts[3:5].tolist() == [0, 0]
    for nodes, mean_h in ((range(3), 50.0), (range(5, 9), 50_000.0)):
        expected = len(nodes) * 3e9 / 3600 / mean_h
        assert abs(counts[list(nodes)].sum() - expected) < 4 * 1.5 * math.sqrt(expected)
    scale = 50 * 3600 / math.gamma(1 + 1 / 0.7)
    for node in range(3):  # after the first gap, which is what is left of one
        assert stats.kstest(gaps_of_node(trace, node)[1:], weibull_cdf(0.7, scale)).pvalue > 1e-3
    assert found.failures_per_day == pytest.approx(24 * (3 / 50 + 4 / 50_000))
    early = classes().until(1e8)  # a later time only appends
    assert early.time_s.tolist() == trace.time_s[: len(early.time_s)].tolist()


def test_nodes_that_are_all_alike_fail_as_nodes_of_one_mtbf(classes):
    alike = CLASSES.replace("50000.0", "50.0").replace("count = 2\ncores = 4", "count = 2\ncores = 4\nmtbf_h = 50.0")
    found, given = classes(alike).until(1e8), classes(node_mtbf_h=50.0).until(1e8)
    assert found.time_s.tolist() == given.time_s.tolist()
    assert found.node.tolist() == given.node.tolist()


def test_what_is_given_comes_before_what_the_site_says(classes):
    assert set(classes(node_mtbf_h=50.0).until(1e8).node.tolist()) == set(range(9))
    assert classes().content_hash != classes(CLASSES.replace("50.0", "51.0")).content_hash
    with pytest.raises(InputError, match=r"neither is given, and no class of nodes of .*site.toml has an mtbf_h"):
        classes(CLASSES.replace("mtbf_h", "# mtbf_h"))
    with pytest.raises(InputError, match="mtbf_h of a class of nodes: 1e-08 h is less than one millisecond"):
        classes(CLASSES.replace("50.0", "1e-8"))


def gaps_of_node(trace, node):
    return np.diff(trace.time_s[trace.node == node], prepend=0.0)


@pytest.mark.parametrize(("kind", "spread"), [("exponential", 1.0), ("lognormal", math.sqrt(math.exp(0.25) - 1))])
def test_repair_times(kind, spread):
    trace = source(failures="mtbf", mtbf_h=1.0, mttr_h=3.0, repair_distribution=kind, repair_sigma=0.5).until(1e8)
    assert trace.down_s.mean() == pytest.approx(3 * 3600, rel=0.04)
    assert trace.down_s.std() / trace.down_s.mean() == pytest.approx(spread, rel=0.05)
    assert stats.spearmanr(trace.down_s, gaps_of(trace)).pvalue > 1e-3


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({}, "neither is given"), ({"mtbf_h": 1.0, "node_mtbf_h": 1.0}, "both are given")],
)
def test_mtbf_is_of_the_system_or_of_a_node(parameters, message):
    with pytest.raises(InputError, match=message):
        source(failures="mtbf", **parameters)


def test_down_time():
    assert set(source(failures="weibull").until(1e6).down_s.tolist()) == {120.0}
    for kind in KINDS:
        assert set(source(**kind, down_time_s=0.0).until(1e6).down_s.tolist()) == {0.0}


@settings(max_examples=40)
@given(st.sampled_from(KINDS), st.lists(st.floats(0, 5e6), min_size=1, max_size=6), st.integers(0, 3))
def test_streams_do_not_depend_on_the_steps(kind, steps, replicate):
    """Whatever was asked for before, in whatever order, the failures up to a time are the same."""
    straight = source(**kind, replicate=replicate).until(5e6)
    assert (np.diff(straight.time_s) >= 0).all()
    asked = source(**kind, replicate=replicate)
    for time_s in steps:
        trace = asked.until(time_s)
        count = np.count_nonzero(straight.time_s <= time_s)
        assert len(trace) == count
        for name in ("time_s", "node", "down_s"):
            assert np.array_equal(getattr(trace, name), getattr(straight, name)[:count])


@pytest.mark.parametrize("kind", KINDS)
def test_seed_and_replicate_matter_and_times_are_whole_milliseconds(kind):
    traces = [source(**kind, **more).until(5e6) for more in ({}, {"seed": 1}, {"replicate": 1}, {})]
    assert np.array_equal(traces[0].time_s, traces[3].time_s)
    for other in traces[1:3]:
        assert not np.array_equal(traces[0].time_s[:50], other.time_s[:50])
    assert np.array_equal(traces[0].time_s, np.rint(traces[0].time_s * 1000) / 1000)
    assert np.array_equal(traces[0].down_s, np.rint(traces[0].down_s * 1000) / 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_the_clock_of_the_jobs_changes_no_failure(kind):
    shifted = source(span=Span(1e9, SPAN.length_s, SPAN.full_s), **kind)
    plain = source(**kind)
    for name in ("time_s", "node", "down_s"):
        assert np.array_equal(getattr(shifted.until(3e6), name), getattr(plain.until(3e6), name))
    assert shifted.content_hash == plain.content_hash


def test_endless_sources_refuse_infinity_and_too_much():
    with pytest.raises(ValueError, match="finite"):
        source(failures="weibull").until(math.inf)
    with pytest.raises(InputError, match=r"more than 5,000,000 failures .* or shorter down times"):
        source(failures="mtbf", mtbf_h=1e-4).until(1e9)


@pytest.mark.parametrize("rate", [{"mtbf_h": 1e-4}, {"node_mtbf_h": 0.01}], ids=str)
def test_too_many_expected_failures_are_refused_before_they_are_drawn(rate):
    endless = source(failures="mtbf", **rate)
    until_s = 1.15 * 5e6 / endless.failures_per_day * DAY_S
    blocks, drawn = endless._blocks, []
    endless._blocks = (drawn.append(len(block.time_ms)) or block for block in blocks)
    with pytest.raises(InputError, match="more than 5,000,000 failures"):
        endless.until(until_s)
    assert sum(drawn) < 500_000


def test_policies_do_not_move_the_failures():
    """Parameters of other parts of a run leave the stream alone."""
    plain = source(failures="weibull").until(1e6)
    other = source(failures="weibull", scheduler="fcfs", load_scale=1.5, num_failures=3, mttr_h=4.0).until(1e6)
    assert np.array_equal(plain.time_s, other.time_s)
    assert plain.content_hash == other.content_hash
    assert source(failures="weibull", weibull_shape=0.5).content_hash != plain.content_hash


def test_synthetic_year_has_bursts_and_skew():
    for replicate in range(3):
        records = synthetic_year(0, replicate, AS_SHIPPED).records
        assert len(records) == NUM_FAILURES
        assert (np.diff(records.time_s) >= 0).all()
        assert records.time_s[-1] <= 366 * DAY_S
        gaps = np.diff(records.time_s)
        assert gaps.std() / gaps.mean() > 2
        assert np.mean(gaps < 60) > 0.4
        per_node = np.sort(np.bincount(records.node, minlength=NODES))[::-1]
        assert 0.55 < per_node[:14].sum() / NUM_FAILURES < 0.75
        together = np.mean((gaps < 60) & (np.diff(records.node) != 0)) / np.mean(gaps < 60)
        assert together > 0.4  # many of a burst are of different nodes


@pytest.mark.parametrize("locality", ["scattered", "adjacent"])
@pytest.mark.parametrize(
    ("tail", "largest", "spacing_s", "same_node"), [(1.5, 100, 20.0, 0.3), (0.5, 7, 0.0, 0.0), (9.0, 1, 5.0, 1.0)]
)
def test_a_year_is_what_is_drawn_put_together_failure_by_failure(locality, tail, largest, spacing_s, same_node):
    bursts = AS_SHIPPED._replace(
        tail=tail, largest=largest, spacing_s=spacing_s, same_node=same_node, locality=locality
    )
    times, places = stream(5, 2, "failures/times"), stream(5, 2, "failures/nodes")
    sizes = [min(math.floor((1 - u) ** (-1 / tail)), largest) for u in times.random(NUM_FAILURES)]
    count, total = 0, 0
    while total < NUM_FAILURES:
        total += sizes[count]
        count += 1
    gaps = np.cumsum(weibull_gaps_ms(exponentials(times, count), 0.6, 1000.0))
    starts = np.rint(gaps * (365 * 86_400_000 / gaps[-1]))
    spaces = np.rint(exponentials(times, NUM_FAILURES) * spacing_s * 1000)
    nodes = np.searchsorted(np.cumsum(zipf(NODES, 1.2)), places.random(NUM_FAILURES), side="right")
    same = places.random(NUM_FAILURES) < same_node
    expected = reference_bursts(starts, sizes, list(zip(spaces, nodes, same, strict=True)), locality == "adjacent")
    expected.sort(key=lambda row: row[0])
    records, behind = synthetic_year(5, 2, bursts)
    assert (records.time_s * 1000).tolist() == pytest.approx([row[0] for row in expected])
    assert records.node.tolist() == [row[1] for row in expected]
    assert behind.tolist() == [row[2] for row in expected]


def test_nodes_of_a_burst_are_neighbours_if_wanted():
    """All failures of a burst come at once, the first anywhere; each other one is of the next node."""
    given = {"burst_spacing_s": 0.0, "burst_same_node": 0.0, "burst_locality": "adjacent", "burst_largest": 6}
    trace = source(60, Span(0.0, 300 * DAY_S, 300 * DAY_S), failures="bursts", burst_tail=0.3, **given).until(math.inf)
    at_once = trace.node[1:][np.diff(trace.time_s) == 0.0]
    before = trace.node[:-1][np.diff(trace.time_s) == 0.0]
    assert len(at_once) > 500
    assert ((at_once - before) % 60 == 1).mean() > 0.99  # but where two bursts begin at once
    scattered = source(
        60, Span(0.0, 300 * DAY_S, 300 * DAY_S), failures="bursts", **given | {"burst_locality": "scattered"}
    )
    drawn = scattered.until(math.inf).node
    assert (np.diff(drawn) % 60 == 1).mean() < 0.2


@pytest.mark.parametrize(
    "extreme",
    [
        {"burst_tail": 0.05, "burst_largest": 1000, "burst_spacing_s": 0.0, "burst_shape": 0.05},
        {"burst_tail": 20.0, "burst_zipf_alpha": 20.0},
        {"burst_tail": 0.05, "burst_largest": 1000, "burst_spacing_s": 1e6, "burst_same_node": 1.0},
    ],
)
def test_bursts_of_any_kind_have_the_rate_that_is_asked_for(extreme):
    span = Span(0.0, 100 * DAY_S, 100 * DAY_S)
    for replicate in range(5):
        found = source(64, span, failures="bursts", failures_per_day=3.0, replicate=replicate, **extreme).until(
            math.inf
        )
        assert len(found) == pytest.approx(300, abs=2)


def test_default_rate_of_the_synthetic_year_is_that_of_the_paper():
    """4,000 failures on 128 nodes in the 736 days of SDSC (oliner2004, section 6.2)."""
    span = Span(0.0, 736 * DAY_S, 736 * DAY_S)
    assert len(source(128, span, failures="bursts").until(math.inf)) == pytest.approx(4000, abs=10)


FINGERPRINT = """
import hashlib, json, sys
from faultsweep.simcore.policies.failures.source import Span
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.parameters import resolve
for kind in json.loads(sys.argv[1]):
    trace = source_for(resolve({"machine": "flat:320", **kind}), 320, Span(0.0, 5e6, 5e6)).until(2e7)
    columns = (trace.time_s, trace.node, trace.down_s)
    print(len(trace), [hashlib.sha256(column.tobytes()).hexdigest() for column in columns])
"""


def test_the_same_failures_on_processors_with_other_instructions(tmp_path):
    from numpy._core import _multiarray_umath

    dispatched = [name for name in _multiarray_umath.__cpu_dispatch__ if _multiarray_umath.__cpu_features__.get(name)]
    tunables = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4"
    plain, other = (
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT, json.dumps(KINDS)],
            cwd=tmp_path,
            env=os.environ | env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for env in ({}, {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched), "GLIBC_TUNABLES": tunables})
    )
    assert plain == other
    assert len(plain.splitlines()) == len(KINDS)


def failure_parameters():
    return {name: p for name, p in PARAMETERS.items() if p.group == "failures"}


def changed(parameter):
    """A valid value that is not the default."""
    if parameter.choices:
        return list(parameter.choices)[-1]
    valid = (value for value in (4, 2, 0.25) if parameter.minimum <= value <= parameter.maximum)
    return parameter.kind(next(value for value in valid if value != parameter.default))


@pytest.mark.parametrize(
    "off",
    [{}, {"failures": "bursts", "num_failures": 0}, {"failures": "x.csv", "failures_per_day": 0.0}],
)
def test_without_failures_all_parameters_of_failures_are_inert(off):
    values = {name: changed(p) for name, p in failure_parameters().items() if name != "failures"}
    values.pop("num_failures" if "failures_per_day" in off else "failures_per_day")
    assert canonical(values | off) == canonical({})


@pytest.mark.parametrize("kind", KINDS)
def test_inert_parameters_do_nothing(kind):
    """Whatever the canonical form neutralises leaves the failures as they are; whatever it keeps changes the hash."""
    plain = source(**kind)
    for name, parameter in failure_parameters().items():
        if name in kind or name in ("failures", "num_failures"):
            continue
        other = {**kind, name: changed(parameter)}
        if canonical(other) == canonical(kind):
            trace = source(**other).until(1e6)
            assert np.array_equal(trace.time_s, plain.until(1e6).time_s), name
            assert np.array_equal(trace.down_s, plain.until(1e6).down_s), name
        elif name not in ("mtbf_h", "node_mtbf_h"):
            assert source(**other).content_hash != plain.content_hash, name


@pytest.mark.parametrize("shape", [0.3, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("rate", [{"node_mtbf_h": 4096.0}, {"mtbf_h": 4.0}], ids=["of-a-node", "of-the-system"])
def test_mtbf_is_stationary(rate, shape):
    """On a fixed horizon (a makespan would depend on the failures) there are horizon / MTBF failures on average."""
    given = {"failures": "mtbf", "mtbf_shape": shape, **rate}
    counts = [
        len(source(nodes=1024, span=SPAN, replicate=replicate, **given).until(30 * DAY_S)) for replicate in range(40)
    ]
    error = np.std(counts, ddof=1) / len(counts) ** 0.5
    assert abs(np.mean(counts) - 180) < 4 * error
    assert error < 15


def test_new_nodes_fail_more_at_first():
    given = {"failures": "mtbf", "node_mtbf_h": 4096.0}
    new, old = (source(nodes=1024, failure_start=start, **given).until(30 * DAY_S) for start in ("new", "stationary"))
    assert len(new) > 1.8 * len(old)
    halves = [np.count_nonzero(new.time_s < 15 * DAY_S), np.count_nonzero(new.time_s >= 15 * DAY_S)]
    assert halves[0] > 1.2 * halves[1]


def test_exponential_times_have_no_age():
    given = {"failures": "mtbf", "node_mtbf_h": 500.0, "mtbf_shape": 1.0}
    new, old = (source(nodes=64, failure_start=start, **given).until(30 * DAY_S) for start in ("new", "stationary"))
    assert np.array_equal(new.time_s, old.time_s)
