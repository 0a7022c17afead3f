"""``faultsweep simulate`` as a user types it."""

import csv
import gzip
import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from faultsweep.simcore.engine.metrics import METRICS

from faultsweep import __main__
from faultsweep.cli.output import headline

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


@pytest.fixture
def simulate(command):
    return lambda *arguments: command("simulate", *arguments)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


DUMP = """JobID|User|State|Submit|Start|End|Timelimit|AllocNodes|AllocCPUS
1|anna|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:05:00|2026-01-01T00:15:00|00:30:00|1|4
2|anna|COMPLETED|2026-01-01T00:10:00|2026-01-01T00:05:00|2026-01-01T00:15:00|00:30:00|1|4
"""
SITE = """format = "faultsweep site, 1"
nodes = [{name = "n", count = 4, cores = 4}]
partitions = [{name = "batch", nodes = {n = 4}, default = true}]
reservations = [{name = "m", start_s = 1767222300, end_s = 1767225900, nodes = 4, maintenance = true}]
"""  # 00:05 to 01:05 in Berlin on 1 January 2026


def test_a_dump_without_a_zone_is_read_in_the_zone_that_is_given(tmp_path, simulate):
    (tmp_path / "d.psv").write_text(DUMP)
    (tmp_path / "s.toml").write_text(SITE)
    given = "--log", tmp_path / "d.psv", "--machine", tmp_path / "s.toml", "--estimates", "requested", "--json"
    in_utc, in_berlin = (json.loads(simulate(*given, *zone)[1]) for zone in ((), ("--timezone", "Europe/Berlin")))
    assert (in_utc["mean_wait_s"], in_berlin["mean_wait_s"]) == (300, 3900)
    [left_out, guessed] = in_utc["doubts"]
    assert left_out.endswith("d.psv: left out when it was read: 1 x starts before it was submitted")
    assert "d.psv: the times of 1 job of the file name no zone, and are taken as UTC (timezone" in guessed
    assert in_berlin["doubts"] == [left_out]
    assert in_berlin["config"]["timezone"] == "Europe/Berlin"
    _, out, _ = simulate(*given[:-1])
    assert left_out in out.replace("\n", "")
    code, _, err = simulate(*given, "--timezone", "Mars/Olympus")
    assert (code, err.strip()) == (2, "timezone: 'Mars/Olympus' is not a time zone (valid: UTC, Europe/Berlin, ...)")


def test_a_zone_that_changes_nothing_is_said(log, simulate):
    given = "--log", log, "--machine", "flat:8", "--json"
    [doubt] = json.loads(simulate(*given, "--timezone", "Europe/Berlin")[1])["doubts"]
    assert "timezone = Europe/Berlin changes nothing" in doubt
    assert simulate(*given, "--timezone", "Berlin")[0] == 2


def test_json_jobs_and_events_agree(log, tmp_path):
    jobs, events, failures = tmp_path / "jobs.csv", tmp_path / "events.csv", tmp_path / "failures.csv"
    command = [sys.executable, "-m", "faultsweep", "simulate", "--log", log, "--machine", "torus:1x1x8"]
    command += ["--scheduler", "backfill", "--json", "--repeat", "3"]
    command += ["--jobs-out", jobs, "--events-out", events, "--failures-out", failures]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
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


def test_table_names_metrics_and_units(log, simulate):
    code, out, err = simulate("--log", log, "--machine", "flat:8")
    assert (code, err) == (0, "")
    assert "mean_wait_s" in out
    assert "jobs per second" in out
    assert "failures" not in out
    _, every, _ = simulate("--log", log, "--machine", "flat:8", "--all")
    assert len(every.splitlines()) > 3 * len(out.splitlines()) > 30
    assert "lost_to_failures" in every
    assert "--all" in out
    assert "--all" not in every


@pytest.mark.parametrize(
    ("metrics", "config", "has", "lacks"),
    [
        ({}, {}, {"utilisation", "makespan_s"}, {"failures_seen", "restarts", "unfinished_jobs"}),
        ({}, {"failures": "mtbf"}, {"failures_seen", "lost_to_failures"}, {"restarts", "jobs_taken"}),
        ({"unfinished_jobs": 2.0, "migrations_attempted": 3.0}, {}, {"unfinished_jobs", "migrations_attempted"}, set()),
        ({"failure_slowdown": 1.5, "restarts": 4.0}, {"failures": "mtbf"}, {"failure_slowdown", "restarts"}, set()),
    ],
)
def test_ten_metrics_are_those_that_matter(metrics, config, has, lacks):
    shown = headline({**dict.fromkeys(METRICS, 0.0), "failure_slowdown": math.nan, **metrics}, config)
    assert len(shown) == 10
    assert has <= set(shown)
    assert not lacks & set(shown)


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
        (("--jobs-out", "four.swf"), ("four.swf: is read by this command",)),
        (("--jobs-out", "link.csv"), ("link.csv: is read by this command",)),
        (("--jobs-out", "/dev/full"), ("/dev/full: cannot be written (No space left on device)",)),
        (("--events-out", "/dev/full"), ("/dev/full: cannot be written (No space left on device)",)),
        (("--failures-out", "/dev/full"), ("/dev/full: cannot be written (No space left on device)",)),
        (("--jobs-out", ""), ("--jobs-out '': an argument is empty",)),
        (("--jobs-out=",), ("--jobs-out=: an argument is empty",)),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(log, simulate, arguments, words, monkeypatch):
    monkeypatch.chdir(log.parent)
    Path("link.csv").symlink_to(log)
    code, out, err = simulate("--log", log, "--machine", "torus:1x1x8", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    for word in words:
        assert word in err
    assert log.read_text() == LOG


def test_an_interrupt_that_an_import_turns_into_another_error_is_still_one(monkeypatch, capsys):
    def interrupted():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise SystemError("a module returned a result with an exception set") from error

    monkeypatch.setattr("faultsweep.cli.main", interrupted)
    with pytest.raises(SystemExit) as end:
        __main__.main()
    assert (end.value.code, capsys.readouterr().err) == (130, "stopped\n")


@pytest.mark.parametrize("kind", ["parameters", "machines"])
def test_a_reader_of_the_output_may_leave(kind):
    """As head does, when it has seen enough; a short output is in a buffer until the end."""
    command = [sys.executable, "-m", "faultsweep", "list", kind]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 1


DAMAGES = {
    "letters": ("3 1 -1 30", "3 1 -1 3o", "four.swf:5: ", "'3o'"),
    "negative run time": ("3 1 -1 30", "3 1 -1 -30", "four.swf:5: ", "-30"),
    "too few fields": ("3 1 -1 30 4 -1 -1 4 30 -1 1 1 1 1 1 1 -1 -1", "3 1 -1", "four.swf:5: ", "18"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_one_sentence_or_left_out_when_asked(log, simulate, damage):
    good, bad, *words = DAMAGES[damage]
    assert good in LOG
    log.write_text(LOG.replace(good, bad))
    code, out, err = simulate("--log", log, "--machine", "flat:8")
    assert (code, out, err.count("\n")) == (2, "", 1)
    for word in words:
        assert word in err
    code, out, _ = simulate("--log", log, "--machine", "flat:8", "--skip-malformed")
    assert code == 0
    assert "1 job of the log was not simulated: " in out


def test_a_truncated_archive_is_one_sentence(log, tmp_path, simulate):
    whole = gzip.compress(log.read_bytes() * 50)
    (tmp_path / "cut.swf.gz").write_bytes(whole[: len(whole) // 2])
    code, out, err = simulate("--log", tmp_path / "cut.swf.gz", "--machine", "flat:8")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"{tmp_path / 'cut.swf.gz'}:")
    assert "cut short here" in err


def test_bad_input_is_found_before_anything_is_compiled(log, tmp_path):
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "faultsweep", "simulate", "--log", log, "--machine", "flat:3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr.startswith(f"{log}: job 3 needs 4 nodes")
    assert not list((tmp_path / "cache").rglob("*.nb[ci]"))


def test_missing_log_is_one_sentence(tmp_path, simulate):
    code, out, err = simulate("--log", tmp_path / "missing.swf")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "missing.swf" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("simulate", "--log", "sdsc-model", "--num-jobs", "20000", "--repeat", "1000"),
        ("logs", "describe", "sdsc-model", "--num-jobs", "3000000"),
        ("failures", "generate", "weibull", "--days", "1000000", "-o", "failures.csv"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_ctrl_c_is_one_word(arguments, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "faultsweep", *arguments],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests may run in the background
    )
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert said.splitlines()[-1] == "stopped"
    # Python ends by the signal itself if that came while a class was made from text; a shell tells 130, too
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in said
