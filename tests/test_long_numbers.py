"""Numbers of hundreds and thousands of digits, and tables within tables, in every text that a user gives: Python reads
the one as an infinite float or not at all, and gives up on the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from faultsweep.cluster.site import parse_memory
from faultsweep.cluster.site import read_site as read_settings
from faultsweep.cluster.times import parse_time
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.model.menus import read_menu
from faultsweep.simcore.sites import slurm
from faultsweep.simcore.sites.facts import read_facts
from faultsweep.simcore.sites.site import read_site
from faultsweep.simcore.workloads.accounting.anonymise import read_key
from faultsweep.simcore.workloads.accounting.files import read_records
from faultsweep.simcore.workloads.fitted import FORMAT, read_model
from faultsweep.simcore.workloads.swf import read_swf
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError

DUMPS = Path(__file__).parent / "simcore" / "workloads" / "dumps"
NUMBERS = ("9" * 25, "9" * 400, "9" * 5000, "0" * 5000 + "1", "-" + "9" * 5000, "9" * 400 + ".5", "1e400")

DISTRIBUTION = "{ order = 1, share = 0.5, means_s = [10.0, 30.0] }"

NAMES = {
    "a machine": (
        ("flat:128", "torus:4x4x8", "midplanes:80", "clusters:100+20@10.5"),
        parse_machine,
    ),
    "a time": (("30", "1:30", "1:30:00", "2-12", "2-12:30:15"), parse_time),
    "a size": (("2GB", "1.5 GiB"), parse_memory),
}
TEXTS = {
    "swf": ("; MaxNodes: 8\n; UnixStartTime: 0\n1 0 0 10 2 -1 -1 2 20 -1 1 3 4 5 1 1 -1 -1\n", "swf", read_swf),
    "swf as records": (
        "; MaxNodes: 8\n1 0 0 10 2 -1 -1 2 20 -1 1 3 4 5 1 1 -1 -1\n",
        "swf",
        lambda p: read_records([p]),
    ),
    "sacct": (
        "JobID|State|Submit|Start|End|Timelimit|AllocTRES|NodeList\n"
        "12_3|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:00:10|2026-03-01T10:01:10|1-02:00:00|cpu=8,mem=16G,node=2|n[1-2]\n",
        "psv",
        lambda p: read_records([p]),
    ),
    "pbs": ((DUMPS / "pbs.log").read_text(), "log", lambda p: read_records([p])),
    "cobalt": ((DUMPS / "cobalt.log").read_text(), "log", lambda p: read_records([p])),
    "failures": ("time_s,node,down_s\n1.5,2,30\n40,3,60\n", "csv", read_failures),
    "tickets": (
        "opened,closed,host\n2020-01-01 00:00:00,2020-01-01 01:00:00,n1\n2020-01-02 00:00:00,,n2\n",
        "csv",
        lambda p: read_failures(p, columns="time=opened,node=host,end=closed"),
    ),
    "menu": (
        'midplanes = 4\npartitions = [{name = "a", midplanes = "0-1, 3"}, {name = "b", midplanes = [2]}]\n',
        "toml",
        read_menu,
    ),
    "site": (
        'format = "faultsweep site, 1"\n'
        'nodes = [{name = "n", count = 2, cores = 8, memory_mb = 100, hosts = "n[1-2]"}]\n',
        "toml",
        lambda p: (parse_machine(str(p)), read_site(p)),
    ),
    "settings": ('nodes = "1-4"\ntime = "1:00:00"\nmemory_per_worker = "2GB"\nmax_jobs = 3\n', "toml", read_settings),
    "model": (
        f'format = "{FORMAT}"\nname = "m"\nheader = []\n'
        "nodes = 8\nprocs_per_node = 1\nlog_span_s = 100.5\nusers = [1, 2]\n"
        f"[[classes]]\nsizes = [1, 2]\njobs = [3, 4]\ngap = {DISTRIBUTION}\nrun = {DISTRIBUTION}\n",
        "toml",
        read_model,
    ),
    "facts": (
        "NodeName=n[1-4] CPUs=8 RealMemory=100\nPartitionName=p Nodes=n[1-4] MaxTime=1-00:00:00\n",
        "conf",
        lambda p: slurm.build(read_facts([p])),
    ),
    "key": ('{"shift_weeks": 3, "user": {"ann": 1}}', "json", read_key),
    "sweep": (
        '[fixed]\nlog = "sdsc-model"\nnum_jobs = 10\nmachine = "flat:128"\nmttr_h = 1.5\n[axes]\nseed = [1, 2]\n'
        "load_scale = { start = 1, stop = 1.5, num = 3 }\n",
        "toml",
        Sweep.from_toml,
    ),
}


def changed(text):
    for found in re.finditer(r"\d+(\.\d+)?", text):
        for number in NUMBERS:
            yield text[: found.start()] + number + text[found.end() :]


def refusal(read, given):
    """Return the sentence by which a text is refused; "" if it is taken."""
    try:
        read(given)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("what", NAMES)
def test_a_name_is_taken_or_refused_by_a_sentence(what):
    names, read = NAMES[what]
    for name in names:
        assert refusal(read, name) == ""
        for other in changed(name):
            assert len(refusal(read, other)) < 1000


@pytest.mark.parametrize("what", TEXTS)
def test_a_file_is_taken_or_refused_by_a_sentence(tmp_path, what):
    text, suffix, read = TEXTS[what]
    path = tmp_path / f"a.{suffix}"
    path.write_text(text)
    assert refusal(read, path) == ""
    for other in changed(text):
        path.write_text(other)
        assert len(refusal(read, path)) < 1000


DEEP = {
    "lists": "a = " + "[" * 20_000 + "]" * 20_000,
    "tables": "a = " + "{a = " * 20_000,
    "a key of many parts": ".".join("a" * 2000) + " = 1",
}


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize("what", ["menu", "site", "settings", "model", "sweep"])
def test_tables_within_tables_are_refused(tmp_path, what, deep):
    path = tmp_path / "a.toml"
    path.write_text(DEEP[deep])
    with pytest.raises(InputError, match="within each other"):
        TEXTS[what][2](path)


def test_lists_within_lists_of_a_key_are_refused(tmp_path):
    path = tmp_path / "key.json"
    path.write_text("[" * 100_000)
    with pytest.raises(InputError, match="cannot be read as a key"):
        read_key(path)


@pytest.mark.parametrize("what", ["menu", "site", "settings", "sweep"])
def test_the_mark_of_windows_editors_does_no_harm(tmp_path, what):
    text, suffix, read = TEXTS[what]
    path = tmp_path / f"a.{suffix}"
    path.write_text("\ufeff" + text)
    read(path)
