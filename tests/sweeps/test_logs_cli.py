"""``faultsweep logs list | describe | fetch``."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from itertools import pairwise

import pytest
from faultsweep.analysis.pictures.logs import _load, _times, draw
from faultsweep.simcore.workloads.swf import read_swf
from faultsweep.sweeps import logs
from matplotlib.figure import Figure
from typer.testing import CliRunner

from faultsweep.cli.logs import app
from faultsweep.errors import InputError

LOG = """\
; Computer: a machine of the test
; Acknowledge: A. Tester
;   and her colleagues
; Note: nothing
; StartTime: Fri Apr 24 18:00:00 PDT 1998
; MaxNodes: 4
; MaxProcs: 8
1 0 -1 3600 8 -1 -1 8 7200 -1 1 1 -1 -1 -1 -1 -1 -1
2 1800 -1 60 1 -1 -1 1 -1 -1 1 1 -1 -1 -1 -1 -1 -1
3 3600 -1 -1 1 -1 -1 1 -1 -1 5 1 -1 -1 -1 -1 -1 -1
4 7200 -1 120 3 -1 -1 3 60 -1 1 1 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv(logs.LOGS_VARIABLE, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "small.swf"
    path.write_text(LOG)
    return path


def output(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if code == 0 and result.exception:
        raise result.exception
    assert result.exit_code == code
    return result.output


def test_list_names_logs_models_and_places(log, tmp_path):
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(gzip.compress(LOG.encode()))
    text = output("list", "--logs", tmp_path)
    for name in (*logs.NAMED_LOGS, *logs.MODELS):
        assert name in text
    kth = next(line for line in text.splitlines() if "kth-sp2" in line)
    assert kth.rstrip().endswith(str(tmp_path))


def test_describe_prints_what_the_log_holds(log):
    text = output("describe", log)
    for part in (
        "4 in the log, 3 valid (not: 1 cancelled before it started)",
        "4 nodes of 2 processors",
        "mean 4.00, standard deviation 2.94, largest 8",
        f"{(8 * 3600 + 60 + 360) / (8 * 7200):.3f}",
        "66.7 % of jobs",
        "overrun by 50.0 % of jobs",
        "Acknowledge: A. Tester",
        "and her colleagues",
        "sha256:",
    ):
        assert part in text
    assert "Note" not in text


def test_describe_as_json(log):
    found = json.loads(output("describe", log, "--json"))
    assert (found["jobs_in_log"], found["valid_jobs"], found["nodes"], found["procs_per_node"]) == (4, 3, 4, 2)
    assert (found["size"]["mean"], found["size"]["largest"], found["requested_s"]["n"]) == (4, 8, 2)
    assert sum(row["work_frac"] for row in found["sizes"]) == pytest.approx(1)
    assert any("A. Tester" in line for line in found["acknowledgement"])


def test_describe_a_span_and_a_model(log):
    assert "2.0 min" in output("describe", log, "--offset", 1)
    text = output("describe", "nasa-model", "--num-jobs", 300, "--offset", 10, "--seed", 4)
    assert "300" in text
    assert "Bill Nitzberg" in text


def test_describe_reads_times_in_a_zone(tmp_path):
    dump = tmp_path / "d.psv"
    row = "{0}|COMPLETED|2026-01-01T00:{0}:00|2026-01-01T00:{0}:00|2026-01-01T01:00:00|1\n"
    dump.write_text("JobID|State|Submit|Start|End|AllocNodes\n" + "".join(row.format(job) for job in (10, 11, 12)))
    assert "the times of 3 jobs of the file name no zone" in output("describe", dump, "--num-jobs", 2)
    assert "zone" not in output("describe", dump, "--timezone", "Europe/Berlin")


def test_describe_can_skip_malformed_lines(log):
    log.write_text(LOG + "not a job\n")
    with pytest.raises(InputError, match=r"small\.swf:12: "):
        output("describe", log)
    assert "1 malformed line" in output("describe", log, "--skip-malformed")


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_picture(log, tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    assert str(path) in output("describe", log, "--picture", path)
    assert path.stat().st_size > 10_000


def job_log(path, run_s, gap_s=1):
    """Write a log of jobs with these run times, and return it as read."""
    rows = [f"{i + 1} {i * gap_s} -1 {run} 1{' -1' * 5} 1{' -1' * 7}" for i, run in enumerate(run_s)]
    path.write_text("; MaxNodes: 4\n" + "\n".join(rows))
    return read_swf(path)


@pytest.mark.parametrize(
    ("gap_s", "span", "axis_label", "bars"),
    [
        (10, "6.3 min", "min since the first submission", 6),
        (0, "0.0 s", "s since the first submission", 1),
        (3600, "38.0 h", "h since the first submission", 38),
        (86400, "38.0 days", "days since the first submission", 38),
        (2**47, "61,898,432,378.5 days", "days since the first submission", 1001),
    ],
)
def test_spans_are_told_and_drawn_in_their_unit(log, gap_s, span, axis_label, bars):
    workload = job_log(log, [60] * 39, gap_s)
    assert re.search(rf"^span +{re.escape(span)}$", output("describe", log), re.MULTILINE)
    axis = Figure().subplots()
    _load(workload, axis)
    assert axis.get_xlabel() == axis_label
    assert abs(len(axis.patches[0].get_data().values) - bars) <= 1


@pytest.mark.parametrize("run_s", [[1, 2**53 // 2], [1e-300, 1], [1, 36_000]])
def test_ticks_of_times_do_not_cover_each_other(log, run_s):
    axis = Figure(figsize=(5.5, 3.7)).subplots()
    _times(job_log(log, run_s), axis)
    axis.figure.canvas.draw()
    low, high = axis.get_xlim()
    boxes = [
        label.get_window_extent()
        for place, label in zip(axis.get_xticks(), axis.get_xticklabels(), strict=True)
        if low <= place <= high and label.get_text()
    ]
    assert len(boxes) >= 2
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


@pytest.mark.parametrize("jobs", [1, 2], ids=["one job", "two jobs, no machine"])
def test_logs_with_little_in_them(log, tmp_path, jobs):
    """No span, no machine, no requested time: nothing to divide by."""
    lines = LOG.splitlines()
    log.write_text("\n".join((lines[5:7] if jobs == 1 else []) + lines[8 : 8 + jobs]))
    draw(read_swf(log), tmp_path / "log.png")
    assert "offered load" not in output("describe", log).replace("cancelled", "")


def test_pictures_that_cannot_be_written_are_named(log, tmp_path):
    with pytest.raises(InputError, match=r"written as \.png, \.pdf, \.svg"):
        draw(read_swf(log), tmp_path / "log.doc")
    with pytest.raises(InputError, match="cannot be written"):
        draw(read_swf(log), tmp_path / "absent" / "log.png")


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path):
    for name, words in (("log.jpeg", r"written as \.png, \.pdf, \.svg"), ("absent/log.png", "does not exist")):
        with pytest.raises(InputError, match=words):
            output("describe", tmp_path / "nosuch.swf", "--picture", tmp_path / name)


def test_fetch_names_the_file_and_whom_to_thank(log, tmp_path):
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(gzip.compress(LOG.encode()))
    text = output("fetch", "kth", "--logs", tmp_path)
    assert "KTH-SP2-1996-2.1-cln.swf.gz  sha256:" in text
    assert "Lars Malinowsky" in text
    with pytest.raises(InputError, match="unknown log 'lublin'"):
        output("fetch", "lublin")


def test_help_imports_nothing_heavy(tmp_path):
    code = (
        "import sys; from faultsweep.cli.logs import app\n"
        "print(sorted({'numpy', 'matplotlib', 'scipy', 'pooch', 'requests'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_fit_writes_a_model_that_can_be_used_and_shows_how_well_it_fits(log, tmp_path):
    model = tmp_path / "m.toml"
    text = output("fit", log, "-o", model, "--nodes", 8)
    assert "Kolmogorov" in text
    assert str(model) in text
    found = json.loads(output("fit", log, "-o", model, "--nodes", 8, "--json"))
    assert {row["what"] for row in found["fit"]} == {"gap", "run"}
    assert all(0 <= row["distance"] <= 1 for row in found["fit"])
    workload = logs.load_workload(model, num_jobs=50)
    assert workload.nodes == 8
    assert set(workload.size.tolist()) <= {2, 4, 8}
    assert "A. Tester" in output("describe", model, "--num-jobs", 50)
    assert "does not exist" in str(CliRunner().invoke(app, ["fit", str(log), "-o", str(tmp_path / "a/b")]).exception)
