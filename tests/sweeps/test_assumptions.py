"""What a log does not say and a sweep has to assume: told once for a log, and kept in the store."""

from __future__ import annotations

import json

import pytest
from faultsweep.sweeps.sweep import Sweep
from typer.testing import CliRunner

from faultsweep.cli import app
from faultsweep.errors import InputError

ROW = "{0} {1} -1 {2} {3} -1 -1 {3} {4} -1 1 1 1 1 1 1 -1 -1\n"
HEADER = "; MaxNodes: 3\n; MaxProcs: 10\n"


@pytest.fixture
def spec(tmp_path):
    """Write a spec of four cells on a log of a machine with nodes of 3 and 4 processors, half without requests."""
    rows = [ROW.format(job, 10 * job, 30 + job, 1 + job % 5, 60 if job % 2 else -1) for job in range(1, 21)]
    (tmp_path / "a.swf").write_text(HEADER + "".join(rows))
    path = tmp_path / "s.toml"
    path.write_text(
        'name = "s"\nreplicates = 1\n[fixed]\nlog = "a.swf"\nmachine = "flat:4"\n'
        '[axes]\nestimates = ["requested", "actual"]\nscheduler = ["fcfs", "backfill"]\n'
    )
    return path


SENTENCES = (
    "a.swf: 10 of 20 jobs have no requested time; their estimate is their run time",
    "a.swf: the log's 10 processors on 3 nodes do not divide",
    "a.swf: 16 of 20 jobs use a part of their last node of 4 processors",
)


def test_plan_and_run_say_it_once_and_the_store_keeps_it(spec, tmp_path):
    store = tmp_path / "s.zarr"
    for words in (["plan", "--no-measure"], ["run", "--workers", "1"]):
        result = CliRunner().invoke(app, [words[0], str(spec), "--store", str(store), *words[1:]])
        assert result.exit_code == 0, result.output
        said = result.output
        for sentence in SENTENCES:
            assert said.count(f"assumed: {sentence}") == 1
    root = json.loads((store / "zarr.json").read_text())
    [entry] = json.loads(root["attributes"]["provenance"])
    assert len(entry["assumptions"]) == len(SENTENCES)
    assert CliRunner().invoke(app, ["report", str(store), "--output", str(tmp_path / "r.html")]).exit_code == 0
    page = (tmp_path / "r.html").read_text()
    assert "10 of 20 jobs have no requested time" in page
    assert Sweep.from_toml(spec).plan(store, measure=False).assumptions == []  # nothing is left to simulate


def test_names_that_no_job_has_are_told_once(tmp_path):
    fixed = {"log": "sdsc-model", "num_jobs": 20, "machine": "flat:128", "num_users": 2, "queue_order": "lsf"}
    axes = {"scheduler": ["fcfs", "backfill"], "lsf_shares": ["1:3,nobody:5", "1:1,nobody:5", "1:3"]}
    told = Sweep(axes=axes, fixed=fixed, replicates=2).plan(tmp_path / "s.zarr", measure=False).assumptions
    assert told == ["lsf_shares names nobody, which is the user of no job (the jobs have 1, 2)"]


def test_what_the_reader_of_a_dump_left_out_is_told_once(tmp_path):
    times = "2026-01-01T00:{0}:00|2026-01-01T00:05:00|2026-01-01T00:15:00"
    rows = [f"{job}|anna|COMPLETED|{times.format(minute)}|1|4" for job, minute in ((1, "00"), (2, "10"))]
    (tmp_path / "d.psv").write_text("\n".join(["JobID|User|State|Submit|Start|End|AllocNodes|AllocCPUS", *rows, ""]))
    spec = tmp_path / "s.toml"
    text = 'name = "s"\n[fixed]\nlog = "d.psv"\nmachine = "flat:4"\n[axes]\nscheduler = ["fcfs", "backfill"]\n'
    spec.write_text(text)
    told = Sweep.from_toml(spec).plan(tmp_path / "s.zarr", measure=False).assumptions
    left_out = "d.psv: left out when it was read: 1 x starts before it was submitted"
    assert [left_out, True] == [told[0], told[1].startswith("d.psv: the times of 1 job of the file name no zone")]
    spec.write_text(text.replace("[axes]", 'timezone = "Europe/Berlin"\n[axes]'))
    assert Sweep.from_toml(spec).plan(tmp_path / "s.zarr", measure=False).assumptions == [left_out]
    spec.write_text(text.replace("[axes]", '[axes]\ntimezone = ["UTC", "Berlin"]'))
    with pytest.raises(InputError, match="timezone: 'Berlin' is not a time zone"):
        Sweep.from_toml(spec).plan(tmp_path / "s.zarr", measure=False)


def test_windows_of_one_log_are_told_once(spec, tmp_path):
    text = spec.read_text().replace('scheduler = ["fcfs", "backfill"]', "offset = [0, 5, 10]")
    spec.write_text(text.replace("[fixed]\n", "[fixed]\nnum_jobs = 5\n"))
    told = Sweep.from_toml(spec).plan(tmp_path / "s.zarr", measure=False).assumptions
    assert len(told) == len(SENTENCES)


UNIX_S = 1_300_000_000


@pytest.mark.parametrize(
    ("fit", "first_s", "told"), [("auto", UNIX_S, True), ("auto", 50, False), ("calendar", UNIX_S, False)]
)
def test_plan_and_run_tell_failures_of_another_clock(spec, tmp_path, fit, first_s, told):
    """As ``simulate`` does: no failure would be in any run, which nothing else shows."""
    log = (tmp_path / "a.swf").read_text().splitlines()
    rows = [line.split(" ", 2) for line in log[2:]]
    late = [f"{job} {int(submit) + UNIX_S} {rest}" for job, submit, rest in rows]
    (tmp_path / "a.swf").write_text("\n".join([*log[:2], *late]) + "\n")
    (tmp_path / "f.csv").write_text(f"# nodes 40\ntime_s,node,down_s\n{first_s + 15},1,5\n{first_s + 60},2,5\n")
    more = f'failures = "f.csv"\nfailure_fit = "{fit}"\n'
    spec.write_text(spec.read_text().replace("[fixed]\n", f"[fixed]\n{more}"))
    store = str(tmp_path / "s.zarr")
    for words in (["plan", "--no-measure"], ["run", "--workers", "1"]):
        result = CliRunner().invoke(app, [words[0], str(spec), "--store", store, *words[1:]])
        assert result.exit_code == 0, result.output
        said = " ".join(result.output.split())
        assert said.count("none of the 2 failures of f") == told
        assert ("their times are 1300000015 to 1300000060 s after the first submission" in said) == told
