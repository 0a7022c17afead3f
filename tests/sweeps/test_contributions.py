"""What each thing of a log adds: logs that the simulator made with one of them are explained once it counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Label, Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.accounting.records import JobRecords, to_text
from faultsweep.simcore.workloads.accounting.write import write_records
from faultsweep.simcore.workloads.transforms import take
from faultsweep.sweeps.contributions import contributions, outages
from faultsweep.sweeps.logs import load_workload
from faultsweep.sweeps.validation import Clock, real_jobs
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.strategies import examples
from tests.sweeps.test_validation import run_cli

NODES = 64
QUEUES = ("slow", "quick")


def made_with(**settings) -> JobRecords:
    """A log whose real schedule is that of EASY with some settings; jobs of fewer than six nodes are in a queue."""
    workload = load_workload("sdsc-model", num_jobs=1500)
    workload = take(workload, np.flatnonzero(workload.size <= NODES))
    workload = replace(workload, run_s=np.maximum(0.8 * workload.run_s, 1.0))
    quick, user = (workload.size < 6).astype(np.int64), np.arange(len(workload)) % 7
    labelled = replace(workload, user=user, labels={"partition": Label(quick, QUEUES)})
    run = simulate(labelled, machine=f"flat:{NODES}", scheduler="backfill", estimates="requested", **settings)
    return records_of(labelled, run.jobs["start_s"], [QUEUES[code] for code in quick])


def records_of(workload: Workload, start_s, queues) -> JobRecords:
    columns = {
        "submit_s": workload.submit_s + 1e9,
        "start_s": start_s + 1e9,
        "end_s": start_s + workload.run_s + 1e9,
        "nodes": workload.size.astype(float),
        "requested_s": workload.requested_s,
        "run_s": workload.run_s,
        "partition": to_text(queues),
        "user": to_text([f"u{number}" for number in workload.user]),
        "state": to_text(["completed"] * len(workload)),
    }
    return JobRecords(columns, "made", "jobs", nodes=NODES)


BY_QUEUE = {
    "queue_order": "multifactor",
    "priority_share_weight": 0,
    "priority_age_weight": 10_000_000,
    "priority_max_age_h": 8760.0,
    "priority_partition_weight": 100_000_000,
    "priority_partition_factors": "quick:2,slow:1",
}


@pytest.mark.parametrize(
    ("settings", "what"),
    [({}, "no more than this"), (BY_QUEUE, "queue names"), ({"user_max_jobs": 3}, "limits")],
    ids=["nothing", "queues", "limits"],
)
def test_a_log_is_explained_once_what_made_it_counts(settings, what):
    steps = contributions(made_with(**settings), NODES, {})
    assert [step.what for step in steps] == STEPS
    at = STEPS.index(what)
    assert all(step.explained.value < 0.9 for step in steps[:at])
    assert all(step.explained.value == pytest.approx(1.0, abs=1e-9) for step in steps[at:])
    assert all(step.added == {} for step in steps if step.what != what)
    assert steps[at].added == settings


def test_an_order_of_the_queue_explains_more_but_for_what_happened_before_the_cut():
    steps = contributions(made_with(queue_order="saf"), NODES, {})
    assert steps[2].added == {"queue_order": "saf"}
    assert steps[2].explained.value > steps[0].explained.value + 1


def test_what_is_set_is_not_tried():
    records = made_with(**BY_QUEUE)
    steps = contributions(records, NODES, {"queue_order": "fcfs"})
    assert [step.added for step in steps[1:3]] == [{}, {}]
    assert steps[1].tried == steps[2].tried == 0


def with_outages() -> tuple[JobRecords, list[tuple[float, float]]]:
    """Jobs of all nodes, one every 600 s for 300 s or less; the machine is out of service three times."""
    count = 400
    submit, run = 600.0 * np.arange(count), 300.0 - np.arange(count) % 5
    spans = [(600.0 * first + 400.0, 600.0 * first + 400.0 + length) for first, length in SPANS]
    start, free = [], 0.0
    for at, length in zip(submit, run, strict=True):
        free = max(free, at)
        free = next((end for begin, end in spans if begin <= free < end), free)
        start.append(free)
        free += length
    numbers = np.arange(count)
    workload = Workload(numbers, submit, run, run + 30.0, np.full(count, NODES), numbers % 3)
    return records_of(workload, np.array(start), ["q"] * count), spans


SPANS = ((50, 5000.0), (250, 4000.0), (300, 30_000.0))


def test_outages_are_found_and_the_clock_stands_still_meanwhile():
    records, spans = with_outages()
    found = outages(real_jobs(records), NODES)
    waits = [200.0, 200.0, 200.0]  # the first job comes so long after the begin of each: before that nobody waits
    assert found == [(begin + wait, end) for (begin, end), wait in zip(spans, waits, strict=True)]
    steps = contributions(records, NODES, {})
    assert steps[-1].explained.value == pytest.approx(1.0, abs=1e-9)
    assert steps[-1].added == {"hours out of service": pytest.approx(33_600 / 3600, abs=0.06)}
    assert steps[-2].explained.value < 0.5


def test_a_machine_that_waits_for_a_large_job_is_not_out_of_service():
    """One node works on for a day; the job that waits needs all of them."""
    numbers = np.arange(2)
    workload = Workload(
        numbers, np.array([0.0, 10.0]), np.array([86_400.0, 5.0]), np.full(2, 9e4), 1 + 63 * numbers, numbers
    )
    blocked = records_of(workload, np.array([0.0, 86_400.0]), ["q", "q"])
    assert outages(real_jobs(blocked), NODES) == []
    fits = records_of(replace(workload, size=1 + 62 * numbers), np.array([0.0, 86_400.0]), ["q", "q"])
    assert outages(real_jobs(fits), NODES) == [(10.0, 86_400.0)]


@given(
    st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)), max_size=5),
    st.lists(st.floats(0, 400), min_size=1, max_size=20),
)
@examples(60)
def test_a_clock_shows_the_time_in_service(gaps, times):
    edges = np.cumsum(np.array(gaps).reshape(-1))
    spans = [(float(begin), float(end)) for begin, end in edges.reshape(-1, 2)]
    clock, time = Clock(spans), np.array(times)
    shown = clock.without_outages(time)
    for at, seen in zip(times, shown.tolist(), strict=True):
        assert seen == pytest.approx(at - sum(min(at, end) - begin for begin, end in spans if begin < at), abs=1e-9)
    again = clock.with_outages(shown)
    for at, back in zip(times, again.tolist(), strict=True):
        inside = [end for begin, end in spans if begin - 1e-9 <= at < end]
        assert back == pytest.approx(inside[0] if inside else at, abs=1e-6)


def test_the_command_prints_a_table_and_says_what_is_missing(tmp_path, monkeypatch, capsys):
    log = tmp_path / "made.parquet"
    write_records(made_with(user_max_jobs=3), log)
    assert run_cli(monkeypatch, "validate", log, "--contributions") == 0
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if "user_max_jobs = 3" in line and "and limits" in line]
    assert run_cli(monkeypatch, "validate", log, "--contributions", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert [step["what"] for step in content["contributions"]] == STEPS
    assert run_cli(monkeypatch, "validate", log, "--contributions", "--cut", "0") == 2
    assert "--cut > 0" in capsys.readouterr().err
    with pytest.raises(InputError, match="are before the cut, too few to choose settings"):
        contributions(made_with().take(slice(900)), NODES, {}, cut=0.001)


STEPS = ["no more than this", "queue names", "priorities", "limits", "outages"]
