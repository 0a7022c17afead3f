"""Failure logs that are tables, with columns that a mapping names."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError
from tests.strategies import examples

TICKETS = """# exported
host;opened;closed;minutes;severity
n2;2026-01-03 10:00:00;2026-01-03 12:00:00;120;down
n10;2026-01-05T11:00:00+01:00;;;down
n1;2026-02-01 00:00:00;2026-02-01 00:10:00;10;
;2026-02-01 00:00:00;;;down
n2;;;;"two
lines"
"""
MAPPING = "time=opened,node=host,down=minutes:min,event=severity"


@pytest.fixture
def tickets(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text(TICKETS)
    return path


def test_columns_of_tickets_are_named(tickets):
    records = read_failures(tickets, columns=MAPPING)
    assert records.node_name == ("n1", "n2", "n10"), "in the order of their numbers; n1 has no failure"
    assert records.node.tolist() == [1, 2]
    assert (records.time_s - 1767434400.0).tolist() == [0.0, 2 * 86400.0]  # 2026-01-03 10:00 UTC
    assert records.down_s[0] == 7200.0
    assert np.isnan(records.down_s[1])
    assert records.counts == {"rows": 5, "left out: no node": 1, "left out: no event": 1, "left out: no time": 1}
    assert not records.own
    ended = read_failures(tickets, columns="time=opened,node=host,end=closed,event=severity,nodes=64")
    assert ended.down_s[0] == 7200.0
    assert ended.num_nodes == 64
    assert ended.content_hash != records.content_hash, "another meaning is another log"


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("time=opened", "failure_columns: node is missing"),
        ("time=opened,node=host,time=closed", "time is given twice"),
        ("time=opened,node=", "node is given no column"),
        ("when=opened,node=host", "unknown column 'when'"),
        ("tickets", "unknown mapping 'tickets'.*titan-gpu"),
        ("time=opened,node=machine", "unknown column 'machine'"),
        ("time=opened,node=host,end=closed,down=minutes", "down and end are both given"),
        ("time=opened,node=host,nodes=0", r"nodes = 0 \(valid: 1 to"),
        ("time=opened,node=host,nodes=2", r"the table has 3 nodes \(failure_columns: nodes = 2\)"),
        ("time=severity,node=host", r"tickets.csv:3: severity is 'down': "),
        ("time=closed,node=host,end=opened", r"tickets.csv:3: the failure ends at '2026-01-03 10:00:00', before it"),
        ("time=opened,node=host,down=severity", r"tickets.csv:3: severity is 'down': not a number"),
    ],
)
def test_a_mapping_that_does_not_fit_is_one_sentence(tickets, columns, told):
    with pytest.raises(InputError, match=told):
        read_failures(tickets, columns=columns)


@pytest.mark.parametrize("text", ["a,b\n1\n", "\n", "", 'a,b\n"1,2\n', "a,b\n"])
def test_what_is_no_table_is_one_sentence(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"t\.csv"):
        read_failures(path, columns="time=a,node=b")


def test_a_table_without_named_columns_is_refused_with_the_way_to_name_them(tickets):
    with pytest.raises(InputError, match="failure_columns, or --columns, names the columns of another table"):
        simulate(load_workload("nasa-model", num_jobs=20), machine="flat:128", failures=str(tickets))


def test_tickets_are_brought_to_a_machine_like_every_log(tickets):
    run = simulate(
        load_workload("nasa-model", num_jobs=50), machine="flat:128", failures=str(tickets), failure_columns=MAPPING
    )
    assert run.status == "done"
    assert run.metrics["failures_seen"] > 0


def test_the_gpus_of_titan_are_recognised(tmp_path):
    path = tmp_path / "gc_full.csv"
    path.write_text(
        "SN,location,insert,remove,duration,out,event\n"
        "0320117100060,c11-2c1s4n1,2017-04-09 21:36:19,2019-08-01 20:07:33,72916274,FALSE,\n"
        "0320117100219,c3-2c1s3n0,2018-03-27 13:36:01,2018-05-12 22:41:16,4007115,FALSE,DBE\n"
        "0320117100266,c3-2c1s3n1,,2018-05-12 22:41:17,,TRUE,OTB\n"
    )
    records = read_failures(path)
    assert records.kind == "table"
    assert records.num_nodes == 3
    assert np.diff(records.time_s).tolist() == [1.0]
    assert [records.node_name[node] for node in records.node] == ["c3-2c1s3n0", "c3-2c1s3n1"]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=6).map(str.strip)
ROWS = st.lists(st.tuples(st.integers(0, 2**31), NAMES.filter(bool), st.integers(0, 10**6)), min_size=1, max_size=20)


@given(ROWS, st.sampled_from(",;\t|"))
@examples(100)
def test_a_table_that_is_written_is_read(tmp_path_factory, rows, separator):
    """Names with separators, quotes and digits of any script; nodes whose name says nothing are left out."""
    out = io.StringIO()
    written = csv.writer(out, delimiter=separator)
    written.writerow(("t", "n", "d"))
    written.writerows(rows)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    path.write_text(out.getvalue(), "utf-8")
    named = [row for row in rows if row[1] not in ("Unknown", "None", "N/A", "NaT", "nan", "NULL", "null", "-")]
    if not named:
        return
    records = read_failures(path, columns="time=t,node=n,down=d:ms")
    found = zip(records.time_s, (records.node_name[node] for node in records.node), records.down_s, strict=True)
    wanted = [(float(time), name, down * 1e-3) for time, name, down in named]
    assert sorted(found) == sorted(wanted)
