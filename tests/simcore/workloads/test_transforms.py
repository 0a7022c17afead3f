"""Transforms of workloads: spans, load and arrival scales, sizes, estimates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.workloads import transforms
from faultsweep.simcore.workloads.swf import read_swf
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError


def workload(sizes=(1, 2, 3, 4), gap=10.0, first=100.0, requested=np.nan, **fields):
    n = len(sizes)
    return Workload(
        job_id=np.arange(1, n + 1),
        submit_s=first + gap * np.arange(n),
        run_s=5.0 + np.arange(n),
        requested_s=np.full(n, requested),
        size=np.array(sizes, np.int64),
        user=np.full(n, -1),
        name="small",
        **fields,
    )


def test_a_span_keeps_times():
    log = workload()
    part = transforms.span(log, 1, 2)
    assert part.job_id.tolist() == [2, 3]
    assert part.submit_s.tolist() == [110, 120]
    assert len(transforms.span(log, 1, 0)) == 3


def test_times_of_a_run_begin_at_its_first_submission():
    part = transforms.from_origin(transforms.span(workload(), 1, 2))
    assert (part.submit_s.tolist(), part.origin_s) == ([0, 10], 110)
    again = transforms.from_origin(transforms.span(part, 1, 1))
    assert (again.submit_s.tolist(), again.origin_s) == ([0], 120)


@pytest.mark.parametrize(("offset", "num_jobs"), [(0, 5), (3, 2), (4, 0), (99, 1)])
def test_a_span_beyond_the_end_is_an_error(offset, num_jobs):
    with pytest.raises(InputError, match=r"small: .* only 4 valid jobs"):
        transforms.span(workload(), offset, num_jobs)


def test_load_scale_multiplies_run_and_requested_times():
    scaled = transforms.scale_load(workload(requested=60.0), 1.5)
    assert scaled.run_s.tolist() == [7.5, 9, 10.5, 12]
    assert scaled.requested_s.tolist() == [90] * 4
    assert scaled.submit_s.tolist() == workload().submit_s.tolist()


@pytest.mark.parametrize("size", [2**53, 2**62 // 1000])
def test_a_size_that_is_scaled_beyond_63_bits_is_too_large(size):
    jobs = workload(sizes=(1, 8, size), nodes=8)
    with pytest.raises(InputError, match=r"small: job 3 needs \d{16,} nodes and the machine has 100000"):
        transforms.map_sizes(jobs, 100_000, size_map="scale")
    jobs = workload(sizes=(1, 8, size), nodes=2 * size)
    assert transforms.map_sizes(jobs, 100_000, size_map="scale").size.tolist() == [1, 1, 50_000]


def test_arrival_scale_divides_gaps():
    scaled = transforms.scale_arrivals(workload(), 4.0)
    assert scaled.submit_s.tolist() == [100, 102.5, 105, 107.5]
    assert transforms.scale_arrivals(workload(gap=0.1), 1.0).submit_s.tolist() == workload(gap=0.1).submit_s.tolist()


@pytest.mark.parametrize(
    ("size_map", "machine_nodes", "expected"),
    [
        ("exact", 8, [1, 1, 3, 8]),
        ("scale", 4, [1, 1, 2, 4]),
        ("scale", 16, [2, 2, 6, 16]),
        ("clip", 4, [1, 1, 3, 4]),
        ("drop", 4, [1, 1, 3]),
        ("drop", 8, [1, 1, 3, 8]),
    ],
)
def test_size_maps(size_map, machine_nodes, expected):
    log = workload((1, 2, 5, 16), nodes=8, procs_per_node=2)
    mapped = transforms.map_sizes(log, machine_nodes, 0, size_map)
    assert mapped.size.tolist() == expected
    assert mapped.procs_per_node == 1
    assert mapped.dropped.get("larger than the machine", 0) == 4 - len(expected)


def test_procs_per_node_of_the_user_keeps_the_share_of_the_machine():
    log = workload((1, 2, 5, 16), nodes=8, procs_per_node=2)
    assert transforms.map_sizes(log, 16, 1).size.tolist() == [1, 2, 5, 16]
    assert transforms.map_sizes(log, 4, 1, "scale").size.tolist() == [1, 1, 2, 4]
    assert transforms.map_sizes(log, 8, 4).size.tolist() == [1, 1, 2, 4]


def test_a_job_larger_than_the_machine_is_an_error_that_names_it():
    log = workload((1, 9, 5, 16), nodes=8)
    with pytest.raises(InputError, match=r"small: job 2 needs 9 nodes and the machine has 8 .*scale, clip, drop"):
        transforms.map_sizes(log, 8)
    with pytest.raises(InputError, match=r"job 2 needs 5 nodes and the machine has 4 .*clip, drop"):
        transforms.map_sizes(log, 4, 0, "scale")
    with pytest.raises(InputError, match="number of nodes"):
        transforms.map_sizes(workload(), 4, 0, "scale")
    with pytest.raises(InputError, match="all jobs are larger"):
        transforms.map_sizes(workload((9, 9)), 8, 0, "drop")


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_scaled_sizes_are_the_smallest_share_that_is_enough(log_nodes, machine_nodes, data):
    sizes = data.draw(st.lists(st.integers(1, log_nodes), min_size=1, max_size=8))
    scaled = transforms.map_sizes(workload(sizes, nodes=log_nodes), machine_nodes, 0, "scale").size
    for size, result in zip(sizes, scaled.tolist(), strict=True):
        assert 1 <= result <= machine_nodes
        assert result * log_nodes >= size * machine_nodes
        assert result == 1 or (result - 1) * log_nodes < size * machine_nodes


def test_estimates():
    log = workload(requested=60.0)
    log.requested_s[1] = np.nan
    assert transforms.estimates(log, "actual").tolist() == log.run_s.tolist()
    assert transforms.estimates(log, "requested").tolist() == [60, 6, 60, 60]
    assert transforms.estimates(log, "requested", step_s=60).tolist() == [60, 6, 60, 60]
    assert transforms.estimates(log, "requested", step_s=25).tolist() == [75, 6, 75, 75]
    assert transforms.estimates(log, "actual", step_s=25).tolist() == log.run_s.tolist()
    with pytest.raises(InputError, match="unknown estimates 'guess'"):
        transforms.estimates(log, "guess")


@given(st.floats(1, 10), st.floats(0.01, 3), st.integers(0, 2**40))
def test_f_model_estimates_lie_between_the_run_time_and_f_times_it(factor, scale, seed):
    log = transforms.scale_load(workload(range(1, 40)), scale)
    estimate = transforms.estimates(log, "f-model", factor, seed)
    assert (estimate >= log.run_s).all()
    assert (estimate <= factor * log.run_s).all()
    if factor == 1:
        assert estimate.tolist() == log.run_s.tolist()


def test_f_model_is_uniform_seeded_and_whole_milliseconds():
    log = workload([1] * 4000)
    first = transforms.estimates(log, "f-model", 3.0, seed=7, replicate=1)
    share = (first / log.run_s - 1) / 2
    assert abs(share.mean() - 0.5) < 0.02
    assert abs(share.std() - 12**-0.5) < 0.02
    np.testing.assert_array_equal(first, np.rint(first * 1000) / 1000)
    np.testing.assert_array_equal(first, transforms.estimates(log, "f-model", 3.0, seed=7, replicate=1))
    assert (first != transforms.estimates(log, "f-model", 3.0, seed=7, replicate=2)).any()
    assert (first != transforms.estimates(log, "f-model", 3.0, seed=8, replicate=1)).any()


def test_prepare_applies_a_configuration():
    config = resolve(
        {
            "offset": 1,
            "num_jobs": 2,
            "size_map": "clip",
            "load_scale": 2.0,
            "arrival_scale": 2.0,
            "estimates": "requested",
        }
    )
    ready, estimate = transforms.prepare(workload(requested=50.0, nodes=4), config, machine_nodes=2)
    assert ready.job_id.tolist() == [2, 3]
    assert ready.submit_s.tolist() == [0, 5]
    assert ready.size.tolist() == [2, 2]
    assert ready.run_s.tolist() == [12, 14]
    assert estimate.tolist() == [100, 100]
    assert ready.origin_s == 110


def test_prepare_changes_nothing_but_the_clock_by_default():
    log = workload(nodes=4)
    ready, estimate = transforms.prepare(log, resolve({}), machine_nodes=128)
    for name in ("job_id", "run_s", "size"):
        assert getattr(ready, name).tolist() == getattr(log, name).tolist()
    assert (ready.submit_s + ready.origin_s).tolist() == log.submit_s.tolist()
    assert estimate.tolist() == log.run_s.tolist()


@pytest.mark.shared
def test_krevat2003_table_4_1_sdsc_span(job_logs):
    part = transforms.span(read_swf(job_logs / "SDSC-SP2-1998-4.2-cln.swf.gz"), 0, 10_000)
    assert round(part.size.mean(), 1) == 9.7
    assert round(part.size.std(), 1) == 14.8
    assert round((part.size * part.run_s).sum() / 128 / 1e6, 1) == 7.1


def test_jobs_without_a_requested_time_get_the_default_and_are_counted():
    log = workload(requested=np.nan)
    config = resolve({"estimates": "requested", "default_request_s": 60.0, "load_scale": 2.0})
    assert transforms.prepare(log, config, machine_nodes=4)[1].tolist() == [120] * 4
    assert transforms.doubts(log, config) == {
        "default_request_s": "small: 4 of 4 jobs have no requested time; their estimate is 60 s (default_request_s)"
    }
    [sentence] = transforms.doubts(log, resolve({"estimates": "requested"})).values()
    assert "their run time (default_request_s" in sentence
    assert transforms.doubts(log, resolve({})) == {}


def test_nodes_of_several_kinds_are_doubted():
    log = workload(header=("; MaxNodes: 184", "; MaxProcs: 1664"), nodes=184, procs_per_node=10)
    assert "1,664 processors on 184 nodes do not divide" in transforms.doubts(log, resolve({}))["procs_per_node"]
    assert "procs_per_node" not in transforms.doubts(log, resolve({"procs_per_node": 8}))
    even = workload(header=("; MaxNodes: 208", "; MaxProcs: 1664"), nodes=208, procs_per_node=8)
    assert "procs_per_node" not in transforms.doubts(even, resolve({}))


def test_a_header_with_more_nodes_than_processors_is_doubted():
    log = workload(header=("; MaxNodes: 1000", "; MaxProcs: 100"), nodes=1000, procs_per_node=1)
    said = transforms.doubts(log, resolve({}))["procs_per_node"]
    assert "fewer processors (100) than nodes (1,000): one of them is wrong" in said
    assert "several kinds" not in said


def test_jobs_that_share_nodes_in_the_log_are_doubted():
    log = workload(nodes=4, procs_per_node=4)
    held = -(-log.size // 4) * 4
    more = (held * log.run_s).sum() / (log.size * log.run_s).sum() - 1
    said = transforms.doubts(log, resolve({}))["offered_load"]
    assert f"{int((held > log.size).sum())} of {len(log)} jobs use a part" in said
    assert f"{100 * more:.3g} % above" in said
    assert "offered_load" not in transforms.doubts(log, resolve({"procs_per_node": 1}))
    whole = replace(log, size=held)
    assert "offered_load" not in transforms.doubts(whole, resolve({}))
