"""What every command has in common: help that fits the width, tables for people and for pipes."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from faultsweep.simcore.engine.metrics import METRICS

from faultsweep.cli import app
from faultsweep.cli.app import HelpCommand, HelpGroup
from faultsweep.cli.output import print_table
from tests.cluster.sweeping import command

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = [
    ["--help"],
    ["simulate", "--help"],
    ["run", "--help"],
    ["submit", "--help"],
    ["logs", "--help"],
    ["failures", "generate", "--help"],
]


def call(*arguments, columns=80):
    environment = {**os.environ, "COLUMNS": str(columns)}
    line = [sys.executable, "-P", "-m", "faultsweep", *arguments]
    return subprocess.run(line, capture_output=True, text=True, env=environment, check=True).stdout


THREADS = """
import os, sys
from faultsweep.__main__ import main

sys.argv[0] = "faultsweep"
try:
    main()
finally:
    print("threads:", len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a shell of POSIX does")
@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_streams_are_closed_does_its_work(tmp_path, closed):
    """Nothing of what it prints gets into the file that it writes."""
    line = f'"{sys.executable}" -P -m faultsweep simulate --log sdsc-model --num-jobs 20 --jobs-out jobs.csv {closed}'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows = (tmp_path / "jobs.csv").read_text().splitlines()
    assert len(rows) == 21
    assert {row.count(",") for row in rows} == {rows[0].count(",")}


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")
@pytest.mark.parametrize("name", ["a.swf", "a.toml"])
def test_a_file_that_does_not_fit_into_memory_is_refused(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(1 << 36)
    named = ["--log", name] if name == "a.swf" else ["--log", "sdsc-model", "--machine", name]
    line = f'ulimit -v 4000000; exec "{sys.executable}" -P -m faultsweep simulate {shlex.join(named)}'
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "there is not enough memory for this: name a smaller file, or ask for less\n"


SPEC = """[fixed]
log = "sdsc-model"
num_jobs = 20
[axes]
scheduler = ["fcfs"]
"""


@pytest.mark.parametrize(
    ("file", "variables", "said"),
    [
        ("a: [1", {}, "malformed, original error message: while parsing a flow sequence"),
        ("- 1", {}, "must have a dict as the top level object, got a list instead"),
        ("distributed: {comm: {timeouts: {tcp: never}}}", {}, "Invalid time unit: never."),
        ("distributed: {scheduler: {idle-timeout: x}}", {}, "Invalid time unit: x."),
        ("", {"DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "soon"}, "Invalid time unit: soon."),
    ],
)
def test_settings_of_dask_that_cannot_be_used(file, variables, said, tmp_path):
    settings, spec = tmp_path / "settings", tmp_path / "x.toml"
    settings.mkdir()
    (settings / "x.yaml").write_text(file)
    spec.write_text(SPEC)
    environment = {**os.environ, "DASK_CONFIG": str(settings), **variables}
    line = [sys.executable, "-P", "-m", "faultsweep", "run", str(spec)]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    sentence = done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert sentence.startswith("a setting of Dask cannot be used: ")
    assert said in sentence
    assert sentence.endswith(f"(it is from a file in {settings}, or a variable DASK_...)")


def test_a_store_is_refused_where_python_leaves_out_assertions(tmp_path):
    (tmp_path / "a.toml").write_text('[fixed]\nlog = "sdsc-model"\nnum_jobs = 20\n[axes]\nseed = [1]\n')
    line = [sys.executable, "-P", "-O", "-m", "faultsweep", "run", "a.toml", "--workers", "1"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith(
        "a.zarr: Zarr cannot make a store without assertions; run without -O and PYTHONOPTIMIZE"
    )


@pytest.mark.skipif(sys.platform != "linux" or os.cpu_count() == 1, reason="where threads are listed, and are several")
def test_a_command_starts_no_threads_for_linear_algebra():
    """Unless the user says how many: each would be busy at first, and has nothing to do."""
    threads = []
    for given in ({}, {"OPENBLAS_NUM_THREADS": "2"}):
        environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"} | given
        line = [sys.executable, "-P", "-c", THREADS, "simulate", "--log", "sdsc-model", "--num-jobs", "20"]
        said = subprocess.run(line, capture_output=True, text=True, env=environment, check=True).stdout
        threads.append(int(said.rpartition("threads:")[2]))
    assert threads[1] == threads[0] + 1


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_help_fits_any_width(arguments, monkeypatch):
    letters = []
    for columns in (40, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        text = command(*arguments).stdout
        long = [line for line in text.splitlines() if len(line) > columns and " " in line.strip()]
        assert not long
        assert columns < 80 or max(map(len, text.splitlines())) > 70, "all the width is used"
        assert "…" not in text
        for kind in ("<bool>", "<str>", "<path>", "range>", "list["):
            assert kind not in text
        letters.append(sorted(text.replace(" ", "").replace("\n", "")))
    assert letters[0] == letters[2], "what a narrow terminal shows is what a wide one shows"


def leaves(group):
    """All commands of a group, of the groups in it, too."""
    assert isinstance(group, HelpGroup)
    for inner in group.commands.values():
        if hasattr(inner, "commands"):
            yield from leaves(inner)
        else:
            yield inner


def test_every_command_shows_its_help_alike():
    found = list(leaves(typer.main.get_command(app)))
    assert len(found) > 20
    assert all(isinstance(one, HelpCommand) for one in found)


def test_no_help_shows_a_type_of_the_program():
    for one in leaves(typer.main.get_command(app)):
        text = one.get_help(typer.Context(one, info_name=one.name))
        assert not re.search(r"<[a-z]+[^x=]*>", text), one.name
        assert "\\[" not in text, one.name
        assert not set(text.partition("\n\n")[0]) & set("{}"), one.name
        assert not re.search(r"^  [a-z]", text.partition("Arguments:")[2].partition("Options:")[0], re.M), one.name


def test_the_notice_of_compiling_comes_only_before_compiling():
    line = [sys.executable, "-P", "-m", "faultsweep", "simulate", "--log", "nasa-model", "--num-jobs", "5"]
    subprocess.run(line, capture_output=True, check=True)  # what compiles, if nothing has
    again = subprocess.run(line, capture_output=True, text=True, check=True)
    assert again.stderr == ""


@pytest.mark.parametrize("kind", ["parameters", "metrics", "experiments", "schedulers", "machines"])
def test_a_list_in_a_pipe_has_one_row_a_line(kind):
    rows = json.loads(command("list", kind, "--json").stdout)
    lines = command("list", kind).stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(rows)
    for line, text in zip(lines, rows.values(), strict=True):
        assert line.endswith(text)


ANSWER_WITH_FILES = {
    *("run", "cluster init", "figure", "view", "notebook", "dashboard", "report", "logs anonymise"),  # their names
    "logs show",  # the log of a run as it is
}


def named_leaves(group, before=()):
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from named_leaves(one, (*before, name))
        else:
            yield " ".join((*before, name)), one


def test_every_command_that_answers_with_facts_offers_json():
    without = {
        name
        for name, one in named_leaves(typer.main.get_command(app))
        if not any("--json" in param.opts for param in one.params)
    }
    assert without == ANSWER_WITH_FILES


def names_used(function, known):
    """All names that a function uses, and that the functions which it calls use."""
    for name in function.__code__.co_names:
        if name not in known:
            known.add(name)
            called = inspect.unwrap(function.__globals__.get(name, name))
            if inspect.isfunction(called) and called.__module__.startswith("faultsweep.cli"):
                names_used(called, known)
    return known


def test_every_command_that_prints_a_table_offers_json():
    tables = [
        (name, any("--json" in param.opts for param in one.params))
        for name, one in named_leaves(typer.main.get_command(app))
        if "print_table" in names_used(inspect.unwrap(one.callback), set())
    ]
    assert len(tables) > 10
    assert all(offered for _, offered in tables), tables


def test_tables_are_printed_in_one_place():
    """Which gives each row a line of its own in a pipe."""
    for path in ROOT.glob("faultsweep/cli/*.py"):
        text = path.read_text("utf-8")
        assert "Console(" not in text, f"{path.name}: use make_console"
        assert path.name == "output.py" or "rich.table" not in text, f"{path.name}: use print_table"


def test_a_table_in_a_pipe_has_a_line_for_each_row(capsys):
    print_table(("name", "value"), [("a\nb", 1), ("a long name " * 20, "x\x1b[31m")], right=(1,))
    first, *rows = capsys.readouterr().out.splitlines()
    assert first.split() == ["name", "value"]
    assert len(rows) == 2
    assert rows[0].startswith("a b ")
    assert rows[1].endswith("\\x1b[31m")
    print_table((), [])
    assert not capsys.readouterr().out.strip()


def test_simulate_in_a_pipe_has_one_row_a_line():
    line = ["simulate", "--log", "sdsc-model", "--num-jobs", "20", "--num-users", "3"]
    said = command(*line, "--all", "--by", "user").stdout
    names = [row.split()[0] for row in said.splitlines()]
    metrics = [name for name in json.loads(command(*line, "--json").stdout) if name in METRICS and name in names]
    assert len(metrics) > 20
    first = names.index("metric") + 1
    assert names[first : first + len(metrics)] == metrics, "no line but those of metrics in their table"
    assert names[-4:-3] == ["user"], "and three users"
    assert not set(said) & set("┃│━─┏┗├")


def test_checks_and_merges_answer_in_json(tmp_path):
    found = json.loads(command("check-policy", "queue_order", "sjf", "--draws", "1", "--json").stdout)
    assert found["problems"] == []
    assert found["ran"] > 0
    out = tmp_path / "f.csv"
    line = ["failures", "generate", "weibull", "--machine", "flat:8", "--days", "30"]
    made = json.loads(command(*line, "-o", out, "--json").stdout)
    assert made["nodes"] == 8
    assert made["failures"] == len(out.read_text().splitlines()) - 2, "after the number of nodes and the header"


def test_logs_as_json():
    found = json.loads(command("logs", "list", "--json").stdout)
    assert "sdsc-sp2" in found["logs"]
    assert "sdsc-model" in found["models"]


def test_the_version_names_model_and_format():
    from faultsweep.simcore.simulate import MODEL_VERSION
    from faultsweep.sweeps.store.store import FORMAT

    assert command("--version").stdout.endswith(f"(model {MODEL_VERSION}, store format {FORMAT})\n")


def test_other_names_of_a_policy_are_listed():
    lines = {line.split()[0]: line for line in command("list", "schedulers").stdout.splitlines()}
    assert lines["backfill"].endswith("Also: easy, easy-backfill, easy-backfilling.")
    assert "Also" not in lines["migration"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_can_be_shown():
    """It is that of the shell in which the command is called."""
    line = f"{shlex.quote(sys.executable)} -P -m faultsweep --show-completion; true"  # bash stays its parent
    said = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert "complete -o default -F _faultsweep_completion faultsweep" in said.stdout


def test_the_failure_logs_of_a_folder_are_listed(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "mine.csv").write_text("time_s,node,down_s\n1,0,60\n")
    (tmp_path / "README.md").write_text("nothing")
    said = command("failures", "describe", tmp_path).stdout.splitlines()
    assert said == [f"{tmp_path}/deep/mine.csv  time_s,node,down_s"]
    assert json.loads(command("failures", "describe", tmp_path, "--json").stdout) == {
        f"{tmp_path}/deep/mine.csv": "csv"
    }
    (tmp_path / "deep" / "mine.csv").unlink()
    assert "has no failure log among its 1 files" in command("failures", "describe", tmp_path, code=2).stderr


@pytest.mark.parametrize(
    "arguments", ["run demo --store s3://bucket/x.zarr", "figure demo --output s3://bucket/figures"]
)
def test_an_address_is_no_place_for_results(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = command(*arguments.split(), code=2).stderr
    assert "results are written to this machine; name a folder or a file here" in told
    assert not list(tmp_path.iterdir())


def test_csv_is_not_written_under_the_name_of_another_format(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = command("simulate", "--log", "nasa-model", "--num-jobs", "5", "--jobs-out", "jobs.parquet", code=2).stderr
    assert "jobs.parquet: is written as CSV; name it jobs.csv" in told
    assert not list(tmp_path.iterdir())
