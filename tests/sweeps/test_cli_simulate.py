"""``faultsweep simulate`` as a user types it."""

import csv
import json
import subprocess
import sys

import pytest

LOG = """; MaxNodes: 8
; MaxProcs: 8
1 0 -1 100 2 -1 -1 2 100 -1 1 1 1 1 1 1 -1 -1
2 0 -1 20 3 -1 -1 3 20 -1 1 1 1 1 1 1 -1 -1
3 1 -1 30 4 -1 -1 4 30 -1 1 1 1 1 1 1 -1 -1
4 2 -1 50 2 -1 -1 2 50 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "four.swf"
    path.write_text(LOG)
    return path


def simulate(*arguments):
    command = [sys.executable, "-m", "faultsweep", "simulate", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_json_jobs_and_events_agree(log, tmp_path):
    jobs, events, failures = tmp_path / "jobs.csv", tmp_path / "events.csv", tmp_path / "failures.csv"
    done = simulate(
        *("--log", log, "--machine", "torus:1x1x8", "--scheduler", "backfill", "--json", "--repeat", 3),
        *("--jobs-out", jobs, "--events-out", events, "--failures-out", failures),
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == "done"
    assert found["jobs_per_s"] == pytest.approx(4 / found["elapsed_s"])
    assert [row["start_s"] for row in rows(jobs)] == ["0", "0", "20", "2"]
    assert list(rows(jobs)[0])[:6] == ["job_id", "submit_s", "start_s", "finish_s", "size", "requested_size"]
    waits = [float(row["start_s"]) - float(row["submit_s"]) for row in rows(jobs)]
    assert found["mean_wait_s"] == pytest.approx(sum(waits) / 4)
    starts = {row["job_id"]: row["nodes"] for row in rows(events) if row["kind"] == "start"}
    assert starts == {"1": "0 1", "2": "2 3 4", "3": "2 3 4 5", "4": "6 7"}
    assert list(rows(events)[0]) == ["time_s", "kind", "job_id", "attempt", "nodes"]
    assert rows(failures) == []


def test_table_names_metrics_and_units(log):
    done = simulate("--log", log, "--machine", "flat:8")
    assert done.returncode == 0, done.stderr
    assert "mean_wait_s" in done.stdout
    assert "jobs per second" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--machine", "torus:1x1x3"), ("job 3", "4", "3")),
        (("--scheduler", "backfil"), ("scheduler", "'backfil'", "did you mean 'backfill'", "conservative")),
        (("--machine", "ring:8"), ("ring:8", "torus:XxYxZ", "flat:N")),
        (("--load-scale", "-1"), ("load_scale", "-1")),
        (("--jobs-out", "nowhere/jobs.csv"), ("nowhere/jobs.csv", "does not exist")),
        (("--num-jobs", "5"), ("num_jobs", "4")),
        (("--machine", "flat:3"), ("four.swf: job 3 needs 4 nodes",)),
        (("--jobs-out", "/dev/null", "--events-out", "/dev/../dev/null"), ("two outputs would be this file",)),
        (("--jobs-out", "/proc/sys/jobs.csv"), ("/proc/sys/jobs.csv: cannot be written", "where you may write")),
        (("--seed", "x"), ("faultsweep simulate: --seed:",)),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(log, arguments, words):
    done = simulate("--log", log, "--machine", "torus:1x1x8", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_bad_input_is_found_before_anything_is_compiled(log, tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTSWEEP_CACHE_DIR", str(tmp_path / "cache"))
    done = simulate("--log", log, "--machine", "flat:3")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{log}: job 3 needs 4 nodes")


def test_missing_log_is_one_sentence(tmp_path):
    done = simulate("--log", tmp_path / "missing.swf")
    assert done.returncode == 2
    assert "missing.swf" in done.stderr
    assert "Traceback" not in done.stderr
