"""Validation: a log that the simulator itself made is explained wholly, and its cut continues as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from faultsweep.analysis.pictures.validation import draw, summary, write_page
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.accounting.records import JobRecords, to_text
from faultsweep.simcore.workloads.accounting.write import write_records
from faultsweep.sweeps import validation
from faultsweep.sweeps.logs import load_records, load_workload

from faultsweep import cli
from faultsweep.errors import InputError

NODES = 128


def records_of(scheduler="backfill", num_jobs=3000):
    """A log whose real schedule is that of the simulator."""
    workload = load_workload("sdsc-model", num_jobs=num_jobs)
    run = simulate(workload, machine=f"flat:{NODES}", scheduler=scheduler, estimates="requested", load_scale=1.2)
    submit, start = workload.submit_s, run.jobs["start_s"]
    columns = {
        "submit_s": submit + 1e9,
        "start_s": start + 1e9,
        "end_s": start + 1.2 * workload.run_s + 1e9,
        "nodes": workload.size.astype(float),
        "requested_s": 1.2 * workload.requested_s,
        "run_s": 1.2 * workload.run_s,
        "partition": to_text(["small" if size < 9 else "large" for size in workload.size]),
        "state": to_text(["completed"] * len(workload)),
    }
    return JobRecords(columns, "made", "jobs", nodes=NODES)


@pytest.fixture(scope="module")
def records():
    return records_of()


def test_a_log_of_the_simulator_is_explained_wholly(records):
    found = validation.validate(records, NODES, {"scheduler": "backfill"}, cut=0)
    assert found.explained.value == pytest.approx(1.0, abs=1e-9)
    assert found.rank_correlation.value == pytest.approx(1.0)
    assert found.judged == found.jobs == len(records)
    for what in ("nodes", "waiting"):
        assert found.curves[f"sim {what}"] == pytest.approx(found.curves[f"real {what}"], abs=1e-6)
    assert found.curves["real nodes"].max() <= NODES + 1e-6


def test_a_log_without_cores_takes_whole_nodes_of_a_site(records, tmp_path):
    path = tmp_path / "site.toml"
    path.write_text(f'format = "faultsweep site, 1"\n[[nodes]]\nname = "a"\ncount = {NODES}\ncores = 4\n')
    found = validation.validate(records.take(slice(500)), NODES, {}, cut=0, machine=str(path))
    assert found.explained.value == pytest.approx(1.0, abs=1e-9)
    assert any("jobs take whole nodes" in note for note in found.notes)


def test_a_warm_start_goes_on_as_it_was(records):
    """EASY's reservations at the cut depend on nothing but the jobs that run and wait, so all waits come out again."""
    found = validation.validate(records, NODES, {"scheduler": "backfill"}, cut=0.5)
    assert found.judged > 500
    assert found.explained.value > 0.98
    cold = validation.validate(records.take(slice(len(records) // 2, None)), NODES, {"scheduler": "backfill"}, cut=0)
    assert cold.explained.value < found.explained.value


def test_jobs_at_the_cut_are_those_that_ran_and_waited(records):
    real = validation.real_jobs(records)
    cut_s = validation.cut_of(real, 0.5)
    part, rows = validation.warm_start(real, cut_s)
    start = real.workload.submit_s + real.wait_s
    old = rows[part.submit_s == cut_s]
    running = old[start[old] < cut_s]
    assert running.tolist() == old[: len(running)].tolist()  # they start first
    assert real.workload.size[running].sum() <= NODES
    left = start[running] + real.workload.run_s[running] - cut_s
    assert part.run_s[: len(running)] == pytest.approx(left)
    over = np.flatnonzero((real.workload.submit_s < cut_s) & (start + real.workload.run_s <= cut_s))
    assert not set(over) & set(rows.tolist())


def test_calibration_finds_the_scheduler_that_made_the_log():
    records = records_of("fcfs", 1500)
    best, tried = validation.calibrate(records, NODES, {})
    assert (best["scheduler"], best["queue_order"]) == ("fcfs", "fcfs")
    assert tried[0][1] == pytest.approx(1.0)
    assert all(tried[0][1] >= explained for _, explained, _ in tried)
    assert min(explained for _, explained, _ in tried) < 0.9
    fixed, _ = validation.calibrate(records, NODES, {"scheduler": "backfill", "estimates": "requested"})
    assert fixed["scheduler"] == "backfill"


def test_explained_share_by_hand():
    real = np.array([0.0, 10.0, 50.0])
    assert validation.explained_share(real, real) == 1
    assert validation.explained_share(np.full(3, 10.0), real) == 0
    assert validation.explained_share(np.array([0.0, 10.0, 25.0]), real) == 0.5
    assert np.isnan(validation.explained_share(real, np.ones(3)))


def test_levels_by_hand():
    begin, end, amount = np.array([0.0, 5.0]), np.array([10.0, 7.0]), np.array([2.0, 3.0])
    assert validation._level(np.array([0.0, 5.0, 7.0, 10.0, 11.0]), begin, end, amount).tolist() == [2, 5, 2, 0]
    assert validation._level(np.array([0.0, 4.0, 8.0, 12.0]), begin, end, amount).tolist() == [2, 3.5, 1]


def test_jobs_that_come_on_the_hour_are_in_use_as_long_as_they_run():
    hourly = records_of().take(slice(400))
    columns = dict(hourly.columns)
    columns["submit_s"] = columns["start_s"] = np.arange(400.0) * 3600.0 + 1e9
    columns["end_s"] = columns["start_s"] + 900.0
    columns["run_s"] = np.full(400, 900.0)
    columns["nodes"] = np.ones(400)
    found = validation.validate(replace(hourly, columns=columns), NODES, {}, cut=0)
    assert found.real_utilisation == pytest.approx(0.25 / NODES)
    assert found.sim_utilisation == pytest.approx(0.25 / NODES)
    assert np.isnan(found.explained.value)
    assert "explained share undefined, rank correlation undefined" in summary(found)
    assert "all real waits are the same: no share is explained, and no rank is" in found.notes


def test_logs_that_cannot_be_judged(records):
    with pytest.raises(InputError, match="has no real start times"):
        validation.validate(
            replace(records, columns=records.columns | {"start_s": np.full(len(records), np.nan)}), 9, {}
        )
    with pytest.raises(InputError, match="0 jobs can be judged, too few"):
        validation.validate(records.take(slice(0, 60)), NODES, {}, cut=0.9)
    with pytest.raises(InputError, match="a model has no real schedule"):
        load_records("sdsc-model")


def run_cli(monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["faultsweep", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return end.value.code


def test_commands_print_a_table_and_write_picture_and_page(records, tmp_path, monkeypatch, capsys):
    log = tmp_path / "made.parquet"
    write_records(records, log)
    page, picture = tmp_path / "page.html", tmp_path / "picture.png"
    code = run_cli(monkeypatch, "validate", log, "--cut", "0.4", "--picture", picture, "--page", page)
    assert code == 0
    printed = capsys.readouterr().out
    assert "partition small" in printed
    assert "size 17-32" in printed
    assert "2 partitions or queues are simulated as one" in printed
    assert "data:image/png;base64" in page.read_text()
    assert picture.stat().st_size > 50_000
    assert run_cli(monkeypatch, "calibrate", log, "--set", "estimates=requested", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["settings"]["scheduler"] == "backfill"
    assert len(content["tried"]) >= 3
    assert {group["by"] for group in content["groups"]} == {"all", "partition", "size", "hour"}
    assert run_cli(monkeypatch, "validate", log, "--machine", "torus:2x2x2") == 2
    assert "has a shape" in capsys.readouterr().err
    assert run_cli(monkeypatch, "validate", log, "--set", "hold_nodes=yes") == 2
    assert "hold_nodes is 'yes' (valid: true, false)" in capsys.readouterr().err
    assert run_cli(monkeypatch, "validate", log, "--set", "schedular=fcfs") == 2
    assert "did you mean 'scheduler'" in capsys.readouterr().err
    assert run_cli(monkeypatch, "validate", log, "--set", "timezone=UTC") == 2
    assert "--set: timezone has an option of its own (--timezone)" in capsys.readouterr().err


def test_malformed_rows_can_be_left_out(tmp_path, monkeypatch, capsys):
    rows = [f"{number}|COMPLETED|{number * 600}|{number * 600 + 30}|{number * 600 + 300}|2" for number in range(1, 301)]
    times = [row.split("|") for row in [*rows, "301|COMPLETED|yesterday|now|then|2"]]
    stamps = [[n, s, *(_stamp(value) for value in values[:3]), values[3]] for n, s, *values in times]
    header = "JobID|State|Submit|Start|End|NNodes"
    (tmp_path / "dump.psv").write_text("\n".join([header, *("|".join(row) for row in stamps)]) + "\n")
    words = ("validate", tmp_path / "dump.psv", "--machine", "flat:4")
    assert run_cli(monkeypatch, *words) == 2
    assert "skip-malformed" in capsys.readouterr().err
    assert run_cli(monkeypatch, *words, "--skip-malformed") == 0
    assert "nan" not in capsys.readouterr().out  # all waits are the same
    assert run_cli(monkeypatch, "calibrate", *words[1:], "--skip-malformed") == 0
    assert "nan" not in capsys.readouterr().out


def _stamp(seconds: str) -> str:
    return str(np.datetime64(int(seconds), "s")) if seconds.isdigit() else seconds


def test_a_page_escapes_names(records, tmp_path):
    found = validation.validate(records, NODES, {})
    found = replace(found, log="<b>", notes=["<script>"])
    write_page(found, tmp_path / "page.html")
    assert "<script>" not in (tmp_path / "page.html").read_text()
    draw(found, tmp_path / "page.svg")


def test_intervals_over_weeks_hold_the_value_and_narrow_with_weeks():
    draw_ = np.random.default_rng(1)
    real = draw_.exponential(100, 4000)
    sim = real + draw_.normal(0, 80, 4000)
    weeks = np.arange(4000) // 100
    for measure in (validation._explained_interval, validation._spearman_interval):
        found = measure(sim, real, weeks)
        assert found.low < found.value < found.high
        fewer = measure(sim[:800], real[:800], weeks[:800])
        assert fewer.high - fewer.low > found.high - found.low
        assert np.isnan(measure(sim[:700], real[:700], weeks[:700]).low)


def test_a_job_that_was_held_counts_as_submitted_when_it_was_eligible(records):
    """Every fifth job is submitted an hour before it may start: the waits are those without that hour."""
    plain = validation.validate(records, NODES, {"scheduler": "backfill"}, cut=0)
    submit = records.columns["submit_s"]
    early = np.where(np.arange(len(records)) % 5 == 4, submit - 3600.0, submit)
    order = np.argsort(early, kind="stable")
    held = replace(records, columns={**records.columns, "submit_s": early, "eligible_s": submit}).take(order)
    found = validation.validate(held, NODES, {"scheduler": "backfill"}, cut=0)
    assert found.explained.value == plain.explained.value == pytest.approx(1.0, abs=1e-9)
    assert (found.real_mean_s, found.groups) == (plain.real_mean_s, plain.groups)
    assert any(f"{len(records) // 5:,} jobs held at first" in note for note in found.notes)


def test_when_a_job_was_eligible_may_be_unknown_or_wrong(records):
    """Without that time, or with one before the submission or after the start, nothing is odd."""
    few = records.take(slice(200))
    submit, start = few.columns["submit_s"], few.columns["start_s"]
    for eligible in (np.full(200, np.nan), submit - 50.0, start + 1e6):
        moved, held = replace(few, columns={**few.columns, "eligible_s": eligible}).from_eligible()
        assert (moved.columns["submit_s"] <= moved.columns["start_s"]).all()
        assert (np.diff(moved.columns["submit_s"]) >= 0).all()
        assert held == int((np.fmin(eligible, start) > submit).sum() if np.isfinite(eligible).all() else 0)
