"""Accounting dumps: every rule of every format on small texts, and what is written of them."""

from __future__ import annotations

import csv
import json
import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.accounting import cells, pbs, sacct, table
from faultsweep.simcore.workloads.accounting.anonymise import WEEK_S, anonymise, read_key, write_key
from faultsweep.simcore.workloads.accounting.files import read_jobs, read_records
from faultsweep.simcore.workloads.accounting.records import COLUMNS, TAKEN_AS_UTC, arrays_of, to_text, to_workload
from faultsweep.simcore.workloads.accounting.units import (
    GUESSED_HOUR,
    Zone,
    clock,
    count,
    expand_hosts,
    memory_mb,
    settle,
)
from faultsweep.simcore.workloads.accounting.write import write_records
from faultsweep.simcore.workloads.swf import read_swf

from benchmarks.accounting import write_dump
from faultsweep.errors import InputError

HEADER = "JobID|User|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|AllocTRES|ReqTRES|ReqMem|NodeList|"
HEADER += "Partition|JobName"
DAY = "2026-03-01T"
FUZZ = int(os.environ.get("FAULTSWEEP_FUZZ_DUMPS", "300"))


def row(job="1", state="COMPLETED", submit="10:00:00", start="10:00:10", end="10:01:10", **other):
    """A row of sacct on one day."""
    fields = {"JobID": job, "User": "ann", "State": state, "Submit": submit, "Eligible": submit, "Start": start}
    fields |= {"End": end, "ElapsedRaw": "60", "Timelimit": "01:00:00", "AllocTRES": "cpu=8,mem=16G,node=2"}
    fields |= {"ReqTRES": "cpu=8,mem=16G,node=2", "ReqMem": "16G", "NodeList": "n[1-2]", "Partition": "batch"}
    fields |= {"JobName": "x"} | other
    for name in ("Submit", "Eligible", "Start", "End"):
        if fields[name][:2].isdigit() and len(fields[name]) == 8:
            fields[name] = DAY + fields[name]
    return "|".join(fields[name] for name in HEADER.split("|"))


def dump(tmp_path, *rows, header=HEADER, name="dump.psv"):
    path = tmp_path / name
    path.write_bytes(("\n".join([header, *rows]) + "\n").encode())
    return path


def read(tmp_path, *rows, **options):
    return read_records([dump(tmp_path, *rows)], "sacct", **options)


def column(jobs, name):
    values = jobs.columns[name]
    return values.values() if hasattr(values, "codes") else values.tolist()


def test_a_plain_row_gives_all_columns(tmp_path):
    jobs = read(tmp_path, row())
    origin = 1772359200.0  # 2026-03-01T10:00:00Z
    assert column(jobs, "submit_s") == [origin]
    assert column(jobs, "start_s") == [origin + 10]
    assert column(jobs, "run_s") == [60]
    assert (column(jobs, "nodes"), column(jobs, "cores"), column(jobs, "memory_mb")) == ([2], [8], [16384])
    assert (column(jobs, "user"), column(jobs, "state"), column(jobs, "node_list")) == (
        ["ann"],
        ["completed"],
        ["n[1-2]"],
    )
    assert column(jobs, "requested_s") == [3600]
    assert jobs.nodes == 2
    assert "qos" not in jobs.columns  # a column that is not there is missing
    assert set(jobs.columns) <= set(COLUMNS)


def test_columns_may_stand_in_any_order_and_others_are_ignored(tmp_path):
    names = HEADER.split("|")
    fields = dict(zip(names, row().split("|"), strict=True)) | {"CPUTime": "00:01:00"}
    order = ["CPUTime", *reversed(names)]
    path = dump(tmp_path, "|".join(fields[name] for name in order), header="|".join(order))
    assert column(read_records([path]), "run_s") == column(read(tmp_path, row()), "run_s")


def test_jobs_may_be_known_by_their_raw_numbers_alone(tmp_path):
    """The tasks of an array have numbers of their own there; where both columns are there, the names are taken."""
    rows = [row("7", submit="09:00:00"), row("8"), row("8.batch")]
    jobs = read_records([dump(tmp_path, *rows, header=HEADER.replace("JobID", "JobIDRaw"))])
    assert column(jobs, "job") == ["7", "8"]
    assert jobs.report.guessed[sacct.RAW] == 2
    jobs = read_records([dump(tmp_path, "9|" + row("7_1"), header=f"JobIDRaw|{HEADER}")])
    assert column(jobs, "job") == ["7_1"]
    assert sacct.RAW not in jobs.report.guessed


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_a_dump_that_was_kept_as_csv_is_the_same_dump(tmp_path, quoting):
    """With line breaks and commas inside of fields, and the lines of the file in messages."""
    rows = [row("7", JobName='a, "b"\nc'), row("7.batch"), row("8_1", State="FAILED")]
    path = tmp_path / "dump.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([HEADER.split("|"), *(line.split("|") for line in rows)])
    jobs, same = read_records([path]), read(tmp_path, *(line.replace("\n", " ") for line in rows))
    assert (jobs.kind, jobs.report.rows, jobs.report.left_out) == ("sacct", 3, same.report.left_out)
    assert {name: column(jobs, name) for name in jobs.columns} == {name: column(same, name) for name in same.columns}
    path.write_text(path.read_text().replace("FAILED", "LOST"))
    with pytest.raises(InputError, match=r"dump\.csv:5: the column state is 'LOST'"):
        read_records([path])
    path.write_text(path.read_text() + '"x')
    with pytest.raises(InputError, match=r"dump\.csv: not a table in CSV \(line \d: "):
        read_records([path])


@pytest.mark.parametrize("lacking", ["JobID", "Submit", "Start", "End", "State"])
def test_a_necessary_column_that_lacks_is_said_with_the_command(tmp_path, lacking):
    header = "|".join(name for name in HEADER.split("|") if name != lacking)
    path = dump(tmp_path, header=header)
    sentence = (
        "not the output of sacct -P" if lacking == "JobID" else f"lacks the column {lacking.lower()} .*sacct -aDP"
    )
    with pytest.raises(InputError, match=sentence):
        read_records([path], "sacct")


def test_steps_are_no_jobs(tmp_path):
    jobs = read(
        tmp_path, row("7"), row("7.batch"), row("7.extern"), row("7.0"), row("7_1"), row("7_1.0"), row("8+0.batch")
    )
    assert column(jobs, "job") == ["7", "7_1"]
    assert jobs.report.left_out[sacct.STEPS] == 5


def test_waiting_ranges_become_their_tasks(tmp_path):
    waiting = {"state": "PENDING", "start": "Unknown", "end": "Unknown", "NodeList": "None assigned", "AllocTRES": ""}
    jobs = read(tmp_path, row("9_[8-10,12%4]", **waiting), row("5_[0-6:3]", **waiting), row("6_[1,2,...]", **waiting))
    assert column(jobs, "job") == ["9_8", "9_9", "9_10", "9_12", "5_0", "5_3", "5_6", "6_1", "6_2"]
    assert column(jobs, "nodes") == [2] * 9
    assert "start_s" not in jobs.columns
    assert jobs.report.added == {"tasks of arrays that stand in one row": 6}
    # A list that is cut, times without a zone, and a limit of running tasks.
    assert sum(jobs.report.guessed.values()) == 1 + 9 + 1


def test_limits_of_arrays_are_counted(tmp_path):
    waiting = {"state": "PENDING", "start": "Unknown", "end": "Unknown"}
    lists = ("9_[8-10%4]", "5_[0-6:3%2]", "6_[1,2%4]", "7_[1-3]")
    jobs = read(tmp_path, *(row(name, **waiting) for name in lists))
    told = (
        "arrays with a limit of their own of running tasks (most often 4): taken as none; array_max_jobs sets one limit"
    )
    assert {reason: count for reason, count in jobs.report.guessed.items() if "arrays" in reason} == {
        f"{told} for all arrays": 3
    }
    limits = {"max": {"running": {"tasks": 2}}}
    tasks = [JSON_JOB | {"array": {"job_id": 4, "task_id": task, "limits": limits}} for task in (1, 2)]
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": tasks}))
    guessed = dict(read_records([tmp_path / "sacct.json"]).report.parts())["guessed"]
    assert guessed == {f"{told.replace('often 4', 'often 2')} for all arrays": 1}


def test_dependencies_that_are_taken_as_none_are_counted(tmp_path):
    """2 follows a job that comes later, 3 and 4 each other, 5 itself, 6 two that are not there; 8 follows all of 7."""
    follows = {"1": "", "2": "afterany:8", "3": "afterok:4", "4": "afterok:3", "5": "afterany:5"}
    follows |= {"6": "afterok:99:98", "7_1": "singleton", "7_2": "", "8": "afterok:7_*:1"}
    rows = [f"{row(name)}|{text}" for name, text in follows.items()]
    jobs = read_records([dump(tmp_path, *rows, header=f"{HEADER}|Dependency")], "sacct")
    counts = {reason.partition(":")[0]: count for reason, count in jobs.report.guessed.items()}
    assert counts["dependencies of jobs on themselves or on jobs submitted after them"] == 3
    assert counts["dependencies on jobs that are not in the dump"] == 2
    assert counts["dependencies of a kind that is not read, such as singleton"] == 1
    pairs = jobs.dependencies()
    names = column(jobs, "job")
    assert [(names[job], names[after]) for job, after in zip(pairs.job, pairs.after, strict=True)] == [
        ("4", "3"),
        ("8", "1"),
        ("8", "7_1"),
        ("8", "7_2"),
    ]


def test_dependencies_on_some_tasks_and_on_jobs_that_never_ran_are_counted(tmp_path):
    """2 and 3 follow 1, which was cancelled in the queue, as 3 was; 4 follows all of 10, of which one task ran."""
    gone = {"state": "CANCELLED", "start": "Unknown"}
    rows = [row("1", **gone) + "|", row("10_1") + "|", row("10_2", **gone) + "|", row("2") + "|afterok:1"]
    rows += [row("3", **gone) + "|afterok:1", row("4") + "|afterany:10_*", row("5") + "|afterok:10_[1-2]"]
    jobs = read_records([dump(tmp_path, *rows, header=f"{HEADER}|Dependency")], "sacct", timezone="UTC")
    assert +jobs.report.guessed == {
        "dependencies of a kind that is not read, such as singleton: taken as none": 1,
        "dependencies on jobs that were cancelled before they started: taken as none": 1,
    }


def test_cancelled_before_start_by_every_version(tmp_path):
    old = row("1", "CANCELLED by 501", start="10:05:00", end="10:05:00", NodeList="None assigned", ElapsedRaw="0")
    new = row("2", "CANCELLED", start="None", end="10:06:00", NodeList="None assigned", AllocTRES="", ElapsedRaw="0")
    jobs = read(tmp_path, old, new, row("3"))
    assert column(jobs, "state") == ["cancelled", "cancelled", "completed"]
    assert np.isnan(jobs.columns["start_s"]).tolist() == [True, True, False]
    assert (jobs.columns["cancel_s"] - jobs.columns["submit_s"])[:2].tolist() == [300, 360]
    workload = to_workload(jobs)
    assert workload.dropped == {"cancelled before it started": 2}
    assert workload.job_id.tolist() == [3]


def test_runs_of_a_requeued_job_are_chained(tmp_path):
    jobs = read(
        tmp_path,
        row("4", "NODE_FAIL", end="10:00:40", ElapsedRaw="30"),
        row("4", "PREEMPTED", submit="10:00:40", start="10:03:00", end="10:03:20", ElapsedRaw="20"),
        row("4", "COMPLETED", submit="10:03:20", start="10:06:00", end="10:07:00"),
    )
    assert len(jobs) == 1
    origin = 1772359200.0
    assert column(jobs, "submit_s") == [origin]  # SLURM sets it anew at each requeue
    assert column(jobs, "first_start_s") == [origin + 10]
    assert column(jobs, "start_s") == [origin + 360]
    assert (column(jobs, "run_s"), column(jobs, "lost_s"), column(jobs, "restarts")) == ([60], [50], [2])
    assert jobs.report.joined["runs of a job that was requeued"] == 2


def test_a_requeued_job_that_was_cancelled_in_the_queue_keeps_its_run(tmp_path):
    again = row("4", "CANCELLED by 1", submit="10:00:40", start="None", end="10:02:00", NodeList="None assigned")
    jobs = read(tmp_path, row("4", "NODE_FAIL", end="10:00:40", ElapsedRaw="30"), again)
    assert (column(jobs, "state"), column(jobs, "run_s")) == (["cancelled"], [30])


def test_dumps_that_overlap_count_a_job_once(tmp_path):
    first = dump(tmp_path, row("1", "RUNNING", end="Unknown"), name="first.psv")
    second = dump(tmp_path, row("1"), row("2", submit="10:00:05"), name="second.psv")
    jobs = read_records([first, second])
    assert (column(jobs, "job"), column(jobs, "state")) == (["1", "2"], ["completed", "completed"])


def test_a_number_that_another_user_has_later_is_another_job(tmp_path):
    jobs = read(tmp_path, row("1"), row("1", submit="12:00:00", start="12:00:00", end="12:01:00", User="bob"))
    assert column(jobs, "user") == ["ann", "bob"]


def test_components_of_a_heterogeneous_job_are_one_job(tmp_path):
    jobs = read(tmp_path, row("5+0"), row("5+1", AllocTRES="cpu=4,mem=1G,node=1,gres/gpu=2", NodeList="g1"))
    assert len(jobs) == 1
    assert [column(jobs, name)[0] for name in ("nodes", "cores", "gpus", "memory_mb")] == [3, 12, 2, 17408]
    assert column(jobs, "node_list") == ["n[1-2],g1"]


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [("cpu=8,node=2,gres/gpu=4", 4), ("cpu=8,node=2,gres/gpu:a100=4", 4), ("cpu=1,gres/gpu=3,gres/gpu:v=3,node=1", 3)],
)
def test_gpus_are_counted_once(tmp_path, tres, gpus):
    assert column(read(tmp_path, row(AllocTRES=tres)), "gpus") == [gpus]


@pytest.mark.parametrize(("text", "mib"), [("4000Mc", 32000), ("64Gn", 131072), ("2000M", 2000), ("1T", 1048576)])
def test_memory_for_cores_nodes_and_jobs(tmp_path, text, mib):
    jobs = read(tmp_path, row(ReqMem=text, AllocTRES="cpu=8,node=2", ReqTRES=""))
    assert column(jobs, "memory_mb") == [mib]


def test_no_limit_and_the_limit_of_the_partition(tmp_path):
    jobs = read(tmp_path, row("1", Timelimit="UNLIMITED"), row("2", Timelimit="Partition_Limit"), row("3"))
    assert column(jobs, "requested_s") == [np.inf, 3600, 3600]
    assert jobs.report.guessed["time limit of the partition, taken as the largest requested in it"] == 1
    assert to_workload(jobs).requested_s.tolist() == [3600, 3600, 3600]


def test_line_breaks_and_separators_inside_fields(tmp_path):
    header = HEADER.replace("JobName", "SubmitLine") + "|Restarts"
    rows = [row("1") + "|0", row("2", JobName='bash -c "a | b\n   c | d\n"') + "|1", row("3") + "|0"]
    jobs = read_records([dump(tmp_path, *rows, header=header)])
    assert column(jobs, "job") == ["1", "2", "3"]
    assert column(jobs, "restarts") == [0, 1, 0]
    last = read(tmp_path, row("1", JobName="echo a\necho b"), row("2"))  # a break in the last field of a row
    assert column(last, "job") == ["1", "2"]


def test_summer_time_is_settled_by_the_run_time(tmp_path):
    """On 25 October 2026 in Berlin, 03:00 CEST is followed by 02:00 CET."""
    night = "2026-10-25T"
    times = {"Submit": night + "01:50:00", "Eligible": night + "01:50:00", "Start": night + "02:30:00"}
    jobs = read(
        tmp_path,
        row("1", **times, End=night + "02:40:00", ElapsedRaw="4200"),
        row("2", **times, End=night + "03:10:00", ElapsedRaw="2400"),
        row("3", **times, End=night + "02:40:00", ElapsedRaw="600"),
        timezone="Europe/Berlin",
    )
    start = 1792888200.0  # 00:30 UTC, the first 02:30
    assert column(jobs, "start_s") == [start, start + 3600, start]
    assert (jobs.columns["end_s"] - jobs.columns["start_s"]).tolist() == [4200, 2400, 600]
    assert jobs.report.guessed == {GUESSED_HOUR: 1}
    assert jobs.timezone == "Europe/Berlin"


@pytest.mark.parametrize("submit", ["2026-03-01T10:00:00+00:00", "1772359200"])
def test_a_zone_holds_for_times_without_one_only(tmp_path, submit):
    """Job 2 names no time without a zone."""
    waiting = {"State": "PENDING", "Eligible": "Unknown", "Start": "Unknown", "End": "Unknown"}
    rows = (
        row("1", Eligible="Unknown", Submit=submit, start="12:00:00", end="12:01:00"),
        row("2", Submit=submit, **waiting),
    )
    jobs = read(tmp_path, *rows, timezone="Europe/Berlin")
    assert column(jobs, "submit_s") == [1772359200.0, 1772359200.0]
    assert jobs.columns["start_s"][0] == 1772359200.0 + 3600
    assert read(tmp_path, *rows).report.guessed == {TAKEN_AS_UTC: 1}
    text = f"submit_s,start_s,end_s,nodes\n{submit},2026-03-01T12:00:00,2026-03-01T12:01:00,1\n"
    (tmp_path / "own.csv").write_text(text)
    table = read_records([tmp_path / "own.csv"], timezone="Europe/Berlin")
    assert (column(table, "submit_s"), column(table, "start_s")) == ([1772359200.0], [1772362800.0])


def test_winter_and_summer_differ_by_an_hour():
    zone = Zone("Europe/Berlin")
    noon = np.array([1768478400.0, 1784116800.0])  # 15 January and 15 July 2026, 12:00
    assert (noon - zone.early(noon)).tolist() == [3600, 7200]
    with pytest.raises(InputError, match="timezone: 'Mars/Olympus' is not a time zone"):
        Zone("Mars/Olympus")


def test_jobs_of_a_dump_keep_what_was_left_out_and_guessed(tmp_path):
    early = row("2", submit="10:00:30"), row("3", submit="10:00:30")
    jobs = to_workload(read(tmp_path, row("1"), *early, row("1.batch")))
    assert jobs.timezone == "UTC"
    assert jobs.notes == {
        "left_out": "left out when it was read: 1 x steps of jobs (.batch, .extern, .0); 2 x starts before it was "
        "submitted",
        "timezone": "the times of 1 job of the file name no zone, and are taken as UTC (timezone = Europe/Berlin, for "
        "example, reads them in that of the machine)",
    }
    berlin = to_workload(read(tmp_path, row("1"), *early, timezone="Europe/Berlin"))
    assert (berlin.timezone, list(berlin.notes)) == ("Europe/Berlin", ["left_out"])
    assert berlin.epoch_s == jobs.epoch_s - 3600


def test_what_was_imported_keeps_what_was_said_of_its_dump(tmp_path):
    pytest.importorskip("pyarrow")
    write_records(read(tmp_path, row("1"), row("2", submit="10:00:30")), tmp_path / "mine.parquet")
    notes = read_jobs(tmp_path / "mine.parquet").notes
    assert notes["left_out"] == "left out when it was read: 1 x starts before it was submitted"
    assert "(logs import --timezone reads them" in notes["timezone"]
    imported = read_jobs(tmp_path / "mine.parquet")
    told = simulate(imported, machine="flat:4", timezone="Europe/Berlin").doubts
    [zone] = [sentence for sentence in told if "zone" in sentence]
    assert "changes nothing in the times of this log: they were read in UTC when it was imported" in zone
    assert len(simulate(imported, machine="flat:4", timezone="UTC").doubts) == len(told)
    with pytest.raises(InputError, match="timezone: 'Mars/X' is not a time zone"):
        simulate(imported, machine="flat:4", timezone="Mars/X")


def test_times_as_seconds_or_with_their_zone_need_no_guess(tmp_path):
    seconds = {name: str(1772359200 + k) for k, name in enumerate(("Submit", "Eligible", "Start", "End"))}
    zoned = {name: f"2026-03-01T11:00:0{k}+0100" for k, name in enumerate(("Submit", "Eligible", "Start", "End"))}
    for fields in (seconds, zoned):
        jobs = read(tmp_path, row(**fields, ElapsedRaw="1"), timezone="America/New_York")
        assert column(jobs, "submit_s") == [1772359200.0]
        assert not jobs.report.guessed
        assert jobs.timezone == ""


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (row(state="SLEEPING"), "the column state is 'SLEEPING', not a state of a job"),
        (row(AllocTRES="cpu=x"), "the column alloctres is 'cpu=x', not a list of resources"),
        (row(start="25:99:00"), "the column start is"),
        (row(Timelimit="soon"), "the column timelimit is 'soon', not a duration"),
        (row(Start="2026-03-01T10:+0:08"), "the column start is"),
        (row("abc"), "the column jobid is 'abc', not the number of a job"),
        ("a|b", "the row has 2 fields, the header names 15"),
        (row("1_[5-1]"), "not a list of tasks"),
        (row("1_[0-999999999]"), "not a list of tasks"),
    ],
)
def test_a_malformed_row_is_a_sentence_or_is_counted(tmp_path, bad, sentence):
    path = dump(tmp_path, row("10"), bad, row("11"))
    with pytest.raises(InputError, match=r"dump\.psv:3: ") as error:
        read_records([path])
    assert sentence in str(error.value)
    assert "logs import --skip-malformed" in str(error.value)
    jobs = read_records([path], on_error="skip")
    assert column(jobs, "job") == ["10", "11"]
    assert jobs.report.left_out["malformed rows"] == 1


def test_a_dump_takes_the_place_of_a_log(tmp_path):
    path = dump(tmp_path, row("1"), row("2", submit="10:00:02"))
    workload = read_jobs(path)
    assert workload.submit_s.tolist() == [0, 2]
    assert workload.size.tolist() == [2, 2]


def test_swf_and_parquet_give_the_same_jobs_and_the_same_bytes(tmp_path):
    rows = [
        row("1"),
        row("2", "CANCELLED", start="None", NodeList="", AllocTRES=""),
        row("3", "PENDING", start="Unknown", end="Unknown"),
    ]
    path = dump(tmp_path, *rows)
    for name in ("one.swf.gz", "one.swf.xz", "one.parquet"):
        outputs = []
        for turn in ("a", "b"):
            (tmp_path / turn).mkdir(exist_ok=True)
            write_records(read_records([path]), tmp_path / turn / name)
            outputs.append((tmp_path / turn / name).read_bytes())
        assert outputs[0] == outputs[1]
    jobs, again = read_records([path]), read_records([tmp_path / "a" / "one.parquet"])
    assert list(jobs.columns) == list(again.columns)
    for name in jobs.columns:
        assert column(jobs, name) == pytest.approx(column(again, name), nan_ok=True) if name.endswith("_s") else True
    assert again.report == jobs.report
    log, direct = read_swf(tmp_path / "a" / "one.swf.gz"), to_workload(jobs)
    for name in ("submit_s", "run_s", "requested_s", "size"):
        assert getattr(log, name).tolist() == getattr(direct, name).tolist()
    assert log.nodes == direct.nodes == 2


DUMPS = Path(__file__).with_name("dumps")
PBS = (DUMPS / "pbs.log").read_text()


def test_pbs_records(tmp_path):
    path = tmp_path / "20260301"
    path.write_text(PBS)
    jobs = read_records([path])
    assert jobs.kind == "pbs"
    assert column(jobs, "job") == ["12", "13", "14[3]"]
    assert column(jobs, "state") == ["completed", "cancelled", "failed"]
    assert [column(jobs, name)[0] for name in ("nodes", "cores", "gpus", "memory_mb", "run_s")] == [
        2,
        16,
        1,
        16384,
        600,
    ]
    assert [column(jobs, name)[2] for name in ("nodes", "cores", "run_s")] == [2, 8, 10]
    assert column(jobs, "node_list")[0] == "n1,n2"
    assert (jobs.columns["cancel_s"] - jobs.columns["submit_s"])[1] == 60
    assert jobs.report.left_out[pbs.ARRAYS] == 1
    assert jobs.report.rows == len(jobs) + sum(jobs.report.left_out.values())


def test_a_rerun_of_pbs_is_chained(tmp_path):
    start = "03/01/2026 10:00:05;S;1.h;user=a queue=q ctime=1772359200 start=1772359205 Resource_List.nodect=1"
    end = start.replace(";S;", ";E;").replace("start=1772359205", "start=1772359405 end=1772359505") + " Exit_status=0"
    path = tmp_path / "log"
    path.write_text(f"{start}\n03/01/2026 10:01:45;R;1.h;user=a\n{start.replace('1772359205', '1772359405')}\n{end}\n")
    jobs = read_records([path])
    assert [column(jobs, name)[0] for name in ("run_s", "lost_s", "restarts", "state")] == [100, 100, 1, "completed"]


def test_times_of_pbs_records_count_where_they_are_taken(tmp_path):
    """1 is deleted while it waits, 2 while it runs; 3 has a submission in a later record."""
    begun = "ctime=1772359200 start=1772359205 Resource_List.nodect=1"
    ended = f"{begun} end=1772359305 Exit_status=0"
    lines = ["1.h;Q;queue=q ctime=1772359200", "1.h;D;requestor=a", f"2.h;S;{begun}", "2.h;D;requestor=a"]
    lines += [f"2.h;E;{ended}", "3.h;Q;queue=q", f"3.h;S;{begun}", f"3.h;E;{ended}"]
    records = [line.split(";") for line in lines]
    path = tmp_path / "log"
    path.write_text("".join(f"03/01/2026 10:00:05;{kind};{job};{rest}\n" for job, kind, rest in records))
    assert read_records([path], "pbs").report.guessed[TAKEN_AS_UTC] == 1


def test_cobalt_records():
    path = DUMPS / "cobalt.log"
    jobs = read_records([path])
    assert jobs.kind == "cobalt"
    assert [column(jobs, name)[0] for name in ("nodes", "cores", "run_s", "requested_s")] == [8, 512, 1200, 3600]
    assert [column(jobs, name)[0] for name in ("user", "account", "partition")] == ["bob", "proj", "default"]
    assert jobs.nodes == 8


def lsf_record(job=101, start=1700000100, hosts=("4*h1", "h2"), status=64, reason=0, index=0, limit=3600):
    """A record with the fields of the LSF reference, in their order."""
    quote = [f'"{host}"' for host in hosts]
    fields = [
        '"JOB_FINISH"',
        '"10.1"',
        1700000700,
        job,
        5001,
        33554434,
        5,
        1700000000,
        0,
        0,
        start,
        '"ann"',
        '"normal"',
    ]
    fields += [
        '"rusage[mem=4000]"',
        '""',
        '""',
        '"login"',
        '"cwd"',
        '""',
        '"out"',
        '""',
        '"job"',
        0,
        len(quote),
        *quote,
    ]
    fields += [status, "60.0", '"na""me"', '"sleep 600"', *["-1"] * 19, '""', '"default"', 0, 5, '""', '""', index]
    fields += [2048, 4096, '""', '""', '"user#0"', '""', 0, '""', reason, '""', 0, '""', '""', '""', '""', 0, '"/g"']
    fields += ['""', 0, '""', 0, '""', 1, '"key"', '"value"', 1, '"h1"', 1, 2, 3, 4, 0, limit, 0, '"select"']
    return " ".join(map(str, fields))


def test_lsf_records(tmp_path):
    path = tmp_path / "lsb.acct"
    records = [lsf_record(), lsf_record(102, start=0, hosts=()), lsf_record(103, status=32, reason=5, index=7)]
    path.write_text("\n".join([*records, '"EVENT_ADRSV_FINISH" "10.1" 1700000000 1']) + "\n")
    jobs = read_records([path])
    assert jobs.kind == "lsf"
    assert column(jobs, "job") == ["101", "102", "103_7"]
    assert column(jobs, "state") == ["completed", "cancelled", "timeout"]
    assert [column(jobs, name)[0] for name in ("nodes", "cores", "run_s", "requested_s")] == [2, 5, 600, 3600]
    assert column(jobs, "reservation")[0] == "user#0"
    path.write_text(" ".join(lsf_record().split(" ")[:35]) + "\n")
    with pytest.raises(InputError, match=r":1: the record is cut short"):
        read_records([path])


def test_swf_of_18_and_of_21_fields(tmp_path):
    plain = "{} 10 {} 100 512 -1 -1 512 200 -1 {} 3 4 -1 1 2 -1 -1"
    path = tmp_path / "log.swf"
    lines = [plain.format(1, 5, 1), plain.format(2, 7, 5).replace(" 100 ", " -1 ", 1), plain.format(3, 0, 0)]
    path.write_text("; MaxNodes: 16\n; MaxProcs: 1024\n; UnixStartTime: 1000\n" + "\n".join(lines) + "\n")
    jobs = read_records([path])
    assert column(jobs, "nodes") == [8, 8, 8]
    assert column(jobs, "state") == ["completed", "cancelled", "failed"]
    assert column(jobs, "start_s")[0] == 1015
    assert column(jobs, "cancel_s")[1] == 1017
    wide = f"{plain.format(1, 5, 1)} 64 150 frontier:excl:2500x112"
    path.write_text(wide + "\n")
    assert column(read_records([path], nodes_rule="descriptor"), "nodes") == [2500]
    assert column(read_records([path], nodes_rule="64"), "nodes") == [8]
    assert column(read_records([path]), "gpus") == [64]
    assert read_jobs(path).size.tolist() == [512]
    with pytest.raises(InputError, match="unknown rule for nodes 'most'"):
        read_records([path], nodes_rule="most")


def write_table(path, name):
    """A table with the columns of a shipped mapping, one job in each row, as CSV or Parquet."""
    times = {"submit_s": 1000.0, "eligible_s": 1005.0, "start_s": 1010.0, "end_s": 1070.0}
    values = {
        "job": "7",
        "nodes": "2",
        "cores": "64",
        "gpus": "8",
        "memory_mb": "3",
        "requested_s": "30",
        "run_s": "60",
    }
    values |= {"user": "ann", "state": "COMPLETED", "priority": "5", "exit_code": "0"}
    mapping = table.mappings()[name]["columns"]
    row = {}
    for ours, theirs in mapping.items():
        moment = (
            f"1970-01-01 00:{int(times[ours]) // 60:02d}:{int(times[ours]) % 60:02d}+00:00" if ours in times else ""
        )
        row[cells.split_unit(theirs, [])[0]] = moment or values.get(ours, "x")
    if path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(
            arrow.table({name: [value] for name, value in row.items()}), path
        )
    else:
        path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", ["pm100", "f-data", "eagle", "alcf"])
def test_shipped_mappings(tmp_path, name, suffix):
    path = tmp_path / f"jobs{suffix}"
    write_table(path, name)
    jobs = read_records([path])
    assert (jobs.kind, len(jobs)) == ("table", 1)
    assert (column(jobs, "submit_s"), column(jobs, "run_s"), column(jobs, "nodes")) == ([1000], [60], [2])
    assert column(jobs, "requested_s") == [1800 if name == "pm100" else 30]
    if name == "pm100":
        assert column(jobs, "memory_mb") == [3072]


@pytest.mark.parametrize(("part", "name"), [("time", "elapsed"), ("time", "limit"), ("", "restart_cnt")])
def test_amounts_of_json_are_not_below_0(tmp_path, part, name):
    job = json.loads(json.dumps(JSON_JOB))
    (job[part] if part else job)[name] = -60
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": [job]}))
    with pytest.raises(InputError, match=f"job 1 of the dump is malformed: {name} is -60, below 0"):
        read_records([tmp_path / "sacct.json"])


def test_names_of_columns_are_on_one_line(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(
        pyarrow.table({"sub\nmit\x1b[2J": [1]}), tmp_path / "odd.parquet"
    )
    with pytest.raises(InputError, match=r"the table has sub\?mit\?\[2J\)"):
        read_records([tmp_path / "odd.parquet"], "table")


def test_text_that_parquet_keeps_as_bytes(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "plain.parquet", "pm100")
    found = pyarrow.read_table(tmp_path / "plain.parquet")
    for place, name in enumerate(found.column_names):
        if found.column(place).type == "string":
            found = found.set_column(place, name, found.column(place).cast("binary"))
    pyarrow.write_table(found, tmp_path / "bytes.parquet")
    plain, again = (read_records([tmp_path / name]) for name in ("plain.parquet", "bytes.parquet"))
    for name in ("user", "state", "job", "partition"):
        assert again.text(name).values() == plain.text(name).values()
    assert again.text("user").values() == ["ann"]


def test_names_of_columns_in_parquet_that_are_no_text_are_one_sentence(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "damaged.parquet"
    write_table(path, "pm100")
    path.write_bytes(path.read_bytes().replace(b"partition", b"\xffartition"))
    with pytest.raises(InputError, match=r"damaged\.parquet: not a Parquet file that can be read \("):
        read_records([path], "table")


def test_a_mapping_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("when,from,to,n,limit\n5,10,20,3,2\n6,15,,4,1\n")
    columns = table.parse_mapping("submit=when,start=from,end=to,nodes=n,requested=limit:min")
    jobs = read_records([path], "table", columns=columns)
    assert (column(jobs, "nodes"), column(jobs, "requested_s")) == ([3, 4], [120, 60])
    assert to_workload(jobs).dropped == {"run time missing": 1}
    with pytest.raises(InputError, match=r"unknown column 'whenn'.*did you mean 'when'"):
        read_records([path], "table", columns={"submit_s": "whenn", "nodes": "n", "run_s": "limit"})
    with pytest.raises(InputError, match="no column is known for submit"):
        read_records([path], "table")


@pytest.mark.parametrize(("column", "numbers"), [("nice", ("200", "-50")), ("site_factor", ("-200", "50"))])
def test_numbers_of_a_table_change_priorities(tmp_path, column, numbers):
    """Jobs 2 and 3 wait for job 1; job 3 is not nice, or its site raises its priority."""
    path = tmp_path / "own.csv"
    path.write_text("when,from,to,n,more\n0,0,100,4,\n10,100,150,4,{}\n20,150,200,4,{}\n".format(*numbers))
    columns = table.parse_mapping(f"submit=when,start=from,end=to,nodes=n,{column}=more")
    workload = to_workload(read_records([path], "table", columns=columns))
    assert workload.labels[column].names == numbers
    assert workload.labels[column].codes.tolist() == [-1, 0, 1]
    options = {"machine": "flat:4", "queue_order": "multifactor", "priority_share_weight": 0.0, "estimates": "actual"}
    for heeds, starts in ((True, [0, 150, 100]), (False, [0, 100, 150])):
        run = simulate(workload, **options, **{f"priority_{column}": heeds})
        assert (run.jobs["start_s"] - run.jobs["start_s"][0]).tolist() == starts


def test_rows_of_a_table_with_too_few_fields_are_named_by_their_line_or_counted(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text('submit_s,run_s,nodes,user\n\n0,10,1,"a\nb"\n5,10\n6,10,1,c\n')
    with pytest.raises(InputError, match=r"jobs\.csv:5: the row has 2 fields, the header names 4 \(.*--skip-malformed"):
        read_records([path], "table")
    jobs = read_records([path], "table", on_error="skip")
    assert column(jobs, "submit_s") == [0.0, 6.0]
    assert (jobs.report.rows, jobs.report.left_out["malformed rows"]) == (3, 1)


def test_text_of_16_bits_is_one_sentence(tmp_path):
    path = tmp_path / "dump.psv"
    path.write_text("JobID|Submit\n", encoding="utf-16")
    with pytest.raises(InputError, match=r"dump\.psv: text in UTF-16 \(valid: UTF-8"):
        read_records([path])


def test_hosts_durations_counts():
    assert expand_hosts("r[0-1]n[08-10],x,y[1,3]z") == [
        *(f"r{r}n{n}" for r in (0, 1) for n in ("08", "09", "10")),
        "x",
        "y1z",
        "y3z",
    ]
    assert [clock(text) for text in ("1-02:03:04", "26:03:04", "03:04", "40", "2-06", "2-06:30", "")][:6] == [
        93784,
        93784,
        184,
        40,
        194400,
        196200,
    ]
    assert (count("1.50K"), memory_mb("64Gn"), memory_mb("400mb")) == (1500, (65536, "n"), (400, ""))
    for text in ("n[1-", "n[5-1]", "n[a]", "n]1["):
        with pytest.raises(ValueError, match=r".+"):
            expand_hosts(text)


def test_times_that_cannot_be_told_apart_keep_their_order():
    zone = Zone("Europe/Berlin")
    local = {"submit_s": np.array([1792895400.0 + 600]), "start_s": np.array([1792895400.0])}  # 02:40, then 02:30
    times, guesses = settle(zone, local, ("submit_s", "start_s"), None)
    assert (times["start_s"] - times["submit_s"]).tolist() == [3000]
    assert guesses == 1
    skipped = {"start_s": np.array([1774751400.0]), "end_s": np.array([1774758600.0])}  # 29 March, 02:30 to 04:30
    times, guesses = settle(zone, skipped, ("start_s", "end_s"), np.array([3600.0]))
    assert (times["end_s"] - times["start_s"]).tolist() == [3600]
    assert guesses == 1


def samples(tmp_path) -> list[Path]:
    paths = [
        dump(tmp_path, row("1"), row("2_[3-5]", "PENDING", start="Unknown"), row("3+0"), row("3+1"), row("1.batch"))
    ]
    for name, text in (("pbs", PBS), ("lsf", lsf_record() + "\n" + lsf_record(102, start=0))):
        paths.append(tmp_path / name)
        paths[-1].write_text(text)
    paths.append(tmp_path / "log.swf")
    paths[-1].write_text("; MaxNodes: 4\n1 0 5 10 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1 3 4 a:b:2x4\n")
    for name in ("eagle.csv", "pm100.parquet"):
        paths.append(tmp_path / name)
        write_table(paths[-1], Path(name).stem)
    paths.append(tmp_path / "sacct.csv")
    with open(paths[-1], "w", newline="") as file:
        csv.writer(file).writerows(line.split("|") for line in (HEADER, row("6", JobName="a,\nb"), row("7_[1-2]")))
    paths.append(tmp_path / "sacct.json")
    paths[-1].write_text(json.dumps({"jobs": [JSON_JOB]}))
    return paths


JSON_JOB = {
    "job_id": 5,
    "array": {"job_id": 4, "task_id": {"set": True, "infinite": False, "number": 2}},
    "state": {"current": ["COMPLETED"]},
    "time": {
        "submission": 1000,
        "eligible": 1000,
        "start": 1010,
        "end": 1070,
        "elapsed": 60,
        "limit": {"set": True, "infinite": False, "number": 2},
    },
    "tres": {
        "allocated": [
            {"type": "cpu", "count": 4},
            {"type": "node", "count": 1},
            {"type": "gres", "name": "gpu", "count": 2},
        ]
    },
    "user": "ann",
    "nodes": "n1",
    "exit_code": {"return_code": {"set": True, "infinite": False, "number": 0}},
}


def test_json_of_newer_versions(tmp_path):
    path = tmp_path / "sacct.json"
    path.write_text(json.dumps({"jobs": [JSON_JOB]}))
    jobs = read_records([path], "sacct")
    assert (jobs.kind, column(jobs, "job")) == ("sacct-json", ["4_2"])
    assert [column(jobs, name)[0] for name in ("run_s", "requested_s", "cores", "gpus")] == [60, 120, 4, 2]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Damage a file: bytes changed, pieces cut out, doubled, swapped, or the end cut off."""
    data = bytearray(data)
    for _ in range(draw.randint(1, 4)):
        at, length = draw.randrange(len(data) + 1), draw.randrange(1, 12)
        kind = draw.randrange(5)
        if kind == 0:
            data[at : at + 1] = bytes([draw.choice(b"|,;:-_+[]{}%\"'\n 0919aNU\xff\x00")])
        elif kind == 1:
            del data[at : at + length]
        elif kind == 2:
            data[at:at] = data[at : at + length]
        elif kind == 3:
            other = draw.randrange(len(data) + 1)
            data[at : at + length], data[other : other + length] = data[other : other + length], data[at : at + length]
        else:
            del data[at if draw.random() < 0.2 else len(data) :]
        if not data:
            return b""
    return bytes(data)


def test_damaged_dumps_are_a_sentence_or_a_right_result(tmp_path):
    """A result is right if times are in order, counts are counts, and every row is a job or counted."""
    contents = [(path.name, path.read_bytes()) for path in samples(tmp_path)]
    kinds = {
        "dump.psv": "sacct",
        "eagle.csv": "table",
        "pm100.parquet": "table",
        "log.swf": "swf",
        "sacct.json": "sacct",
        "sacct.csv": "sacct",
    }
    read_well, sentences = 0, []
    for seed in range(FUZZ):
        draw = random.Random(seed)
        name, data = draw.choice(contents)
        path = tmp_path / f"damaged{Path(name).suffix}"
        path.write_bytes(mutate(data, draw))
        try:
            jobs = read_records([path], kinds.get(name, name), on_error=draw.choice(("raise", "skip")))
            check(jobs)
            workload = to_workload(jobs)
            assert (workload.run_s > 0).all()
            assert (workload.size >= 1).all()
            read_well += 1
        except InputError as error:
            sentences.append(str(error))
    assert read_well > FUZZ / 10
    assert not [sentence for sentence in sentences if "\n" in sentence or not sentence]


def check(jobs):
    submit, start, end = (jobs.numbers(name) for name in ("submit_s", "start_s", "end_s"))
    assert (np.diff(submit) >= 0).all()
    assert not (start < submit).any()
    assert not (end < start).any()
    for name in ("nodes", "cores", "gpus", "restarts", "run_s", "requested_s", "memory_mb"):
        assert not (jobs.numbers(name) < 0).any()
    report = jobs.report
    assert all(value >= 0 for _, counts in report.parts() for value in counts.values())
    for name in ("user", "state", "job"):
        text = jobs.text(name)
        assert ((text.codes >= -1) & (text.codes < len(text.names))).all()


def test_the_documents_list_every_column():
    page = (Path(__file__).resolve().parents[3] / "docs" / "workloads.md").read_text(encoding="utf-8")
    for name, of_column in COLUMNS.items():
        assert f"| `{name}` | {of_column.doc} |" in page


def test_arrays_are_known_by_the_names_of_their_tasks_and_stay_in_a_public_copy(tmp_path):
    names = ["12_1", "13", "12_7", "14[3].server_1", "14[4].server_1", "15.server_2", "16+0"]
    jobs = read(tmp_path, *(row(str(number)) for number in range(1, len(names) + 1)))
    jobs = replace(jobs, columns={**jobs.columns, "job": to_text(names)})
    assert arrays_of(jobs).values() == ["12", None, "12", "14", "14", None, None]
    label = to_workload(jobs).labels["array"]
    assert (label.codes.tolist(), label.names) == ([0, -1, 0, 1, 1, -1, -1], ("12", "14"))
    public = anonymise(jobs, {})
    assert public.text("job").values() == ["1_1", "2", "1_2", "4_1", "4_2", "6", "7"]
    tasks = simulate(to_workload(jobs), machine="flat:64", array_max_jobs=1).jobs["start_s"]
    assert tasks[2] >= tasks[0] + to_workload(jobs).run_s[0]
    assert tasks[[0, 1, 3, 5, 6]].tolist() == [0.0] * 5


def test_names_become_numbers_that_a_key_keeps(tmp_path):
    jobs = read(tmp_path, row("1", NodeList="secret[1-2]"), row("2", User="bob", Partition="nuclear"))
    key: dict = {}
    public = anonymise(jobs, key, shift=True)
    write_records(public, tmp_path / "public.parquet")
    write_records(public, tmp_path / "public.swf")
    for name in ("public.parquet", "public.swf"):
        data = (tmp_path / name).read_bytes()
        assert not [word for word in (b"ann", b"bob", b"nuclear", b"secret", b"dump") if word in data]
    assert column(public, "user") == ["user1", "user2"]
    moved = jobs.columns["submit_s"] - public.columns["submit_s"]
    assert set(moved.tolist()) == {key["shift_weeks"] * WEEK_S}
    later = anonymise(read(tmp_path, row("9", User="bob")), key, keep=("partition",), shift=True)
    assert (column(later, "user"), column(later, "partition")) == (["user2"], ["batch"])
    write_key(key, tmp_path / "key.json")
    assert (tmp_path / "key.json").stat().st_mode & 0o777 == 0o600
    assert read_key(tmp_path / "key.json") == key
    (tmp_path / "key.json").write_text("[]")
    with pytest.raises(InputError, match="not a key of logs anonymise"):
        read_key(tmp_path / "key.json")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "rows", "jobs", "states"),
    [
        ("sacct_dump2101.log", 15, 12, {"cancelled": 6, "completed": 1, "timeout": 5}),
        ("sacct_dump2110.log", 7, 1, {"cancelled": 1}),
        ("sacct_submitline_multiline.log", 13, 2, {"cancelled": 1, "completed": 1}),
    ],
)
def test_real_rows_of_two_versions(accounting, name, rows, jobs, states):
    """One row of the first is cut short; the others have separators and line breaks in their fields."""
    found = read_records([accounting / name], on_error="skip")
    assert (found.report.rows, len(found)) == (rows, jobs)
    values = column(found, "state")
    assert {state: values.count(state) for state in set(values)} == states
    assert found.report.left_out["malformed rows"] == (1 if name == "sacct_dump2101.log" else 0)


@pytest.mark.shared
@pytest.mark.parametrize("run", ["runA", "sharpA", "sharpB"])
def test_text_and_json_of_a_real_slurm_agree(accounting, run):
    folder = accounting / "recorded-slurm" / run
    text, parsed = (by_name(read_records([folder / name])) for name in ("sacct.psv", "sacct.json"))
    for name in set(text.columns) & set(parsed.columns):
        theirs = column(parsed, name)
        if isinstance(theirs[0], float):
            assert np.array_equal(column(text, name), theirs, equal_nan=True), name
        else:
            assert column(text, name) == theirs, name
    submitted = [json.loads(line) for line in (folder / "play.jsonl").read_text().splitlines()]
    assert len([event for event in submitted if event.get("op") == "submit"]) <= len(text)


def by_name(jobs):
    """Jobs in order of their names: those of one second stand as the dump has them."""
    return jobs.take(np.argsort(np.array(column(jobs, "job"))))


@pytest.fixture
def accounting():
    folder = Path(__file__).resolve().parents[4] / "shared" / "data" / "accounting"
    if not folder.is_dir():
        pytest.skip("the recorded dumps of ../shared/data are not here")
    return folder


def test_a_recorded_slurm_with_every_kind_of_row():
    """``python -m tests.cluster.accounting_slurm`` has recorded it on a real SLURM 22.05 with slurmdbd."""
    text, parsed = (by_name(read_records([DUMPS / "slurm" / name])) for name in ("sacct.psv.gz", "sacct.json.gz"))
    jobs = dict(zip(column(text, "job"), range(len(text)), strict=True))
    state = dict(zip(jobs, column(text, "state"), strict=True))
    restarts = dict(zip(jobs, column(text, "restarts"), strict=True))
    assert (state["1"], restarts["1"]) == ("cancelled", 1)  # preempted, and cancelled in its second run
    assert (state["5+0"], restarts["5+0"]) == ("completed", 1)  # both components ran again after a node failed
    assert (state["3_2"], restarts["3_2"]) == ("completed", 1)  # a task of an array
    assert (state["11"], state["13"], state["25"], state["26"]) == ("timeout", "failed", "requeued", "running")
    assert [name for name in jobs if state[name] == "pending"] == sorted(f"27_{task}" for task in range(8, 21))
    assert text.columns["requested_s"][jobs["9"]] == np.inf
    assert column(text, "gpus")[jobs["4"]] == 2
    assert column(text, "exit_code")[jobs["13"]] == 3
    first = text.take(jobs["1"])
    assert 100 < first.columns["start_s"] - first.columns["first_start_s"] < 150  # held for two minutes after a requeue
    assert text.report.joined["components of heterogeneous jobs"] == 2
    assert text.nodes == 6
    left_out = to_workload(text).dropped
    assert left_out == {"pending: not started yet": 13, "running: not ended yet": 2, "run time of 0 s": 1}
    assert sum(left_out.values()) + len(to_workload(text)) == len(text)
    assert column(parsed, "job") == [job for job in jobs if job in column(parsed, "job")]
    both = text.take([jobs[job] for job in column(parsed, "job")])
    for name in set(text.columns) & set(parsed.columns) - {"exit_code"}:  # 22.05 prints 0 for all exit codes in JSON
        ours, theirs = np.array(column(both, name)), np.array(column(parsed, name))
        # sacct --json has the last run of a job only
        differ = ~((ours == theirs) | (is_missing(ours) & is_missing(theirs)))
        if ours.dtype.kind == "f":
            differ &= ~np.isinf(ours)  # no time limit, which this version prints as null
        assert not differ[np.isnan(both.numbers("restarts"))].any(), name


def test_the_dump_of_the_benchmark_is_read_in_pieces(tmp_path, monkeypatch):
    write_dump(tmp_path / "dump.psv", 4000)
    whole = read_records([tmp_path / "dump.psv"])
    monkeypatch.setattr(sacct, "_CHUNK", 10_000)
    pieces = read_records([tmp_path / "dump.psv"])
    assert (len(whole), whole.report.rows, whole.report.left_out[sacct.STEPS]) == (2000, 4000, 2000)
    assert whole.report == pieces.report
    for name in whole.columns:
        assert np.array_equal(np.array(column(whole, name), object), np.array(column(pieces, name), object)) or (
            np.array_equal(whole.columns[name], pieces.columns[name], equal_nan=True)
        )


def is_missing(values):
    return np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values], bool)


@pytest.mark.parametrize("chunk", [1, 60, 200, 1000])
def test_rows_with_line_breaks_may_reach_over_the_pieces_of_a_file(tmp_path, monkeypatch, chunk):
    header = HEADER.replace("JobName", "SubmitLine") + "|Restarts"
    rows = [row(str(k), JobName="a | b\n c\n" * (k % 3)) + "|0" for k in range(20)]
    monkeypatch.setattr(sacct, "_CHUNK", chunk)
    jobs = read_records([dump(tmp_path, *rows, header=header)])
    assert column(jobs, "job") == [str(k) for k in range(20)]
    bad = dump(tmp_path, *rows[:7], "x|y", *rows[7:], header=header)
    with pytest.raises(InputError, match="the row has 2 fields"):
        read_records([bad])
    assert len(read_records([bad], on_error="skip")) == 20
