"""The readers of failure logs: small files by hand, round trips, damage of every kind, and the real logs."""

from __future__ import annotations

import gzip
import lzma
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.failure_logs import bluegene, lanl
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.failure_logs.plain import write_failures
from faultsweep.simcore.model.failure_trace import FailureTrace
from hypothesis import given, settings
from hypothesis import strategies as st

from faultsweep.errors import InputError

LANL_HEAD = (
    "System,machine type,nodes,procstot,procsinnode,nodenum,nodenumz,node install,node prod,node decom,fru type,mem,"
    "cputype,memtype,num intercon,purpose,Prob Started,Prob Fixed,Down Time,Facilities,Hardware,Human Error,Network,"
    "Undetermined,Software,Same Event"
)
FTA_HEAD = (
    "event_id component_id  node_id platform_id\tnode_name event_type event_start_time event_stop_time event_end_reason"
)


def lanl_line(system=20, node="3", started="1/2/2004 3:04", fixed="1/2/2004 4:04", down="60", nodes=8) -> str:
    machine = f"{system},cluster,{nodes},32,4,{node},{node},Jan-01,Feb-01,current,part,16,1,1,4,compute"
    return f"{machine},{started},{fixed},{down},,Disk,,,,,No"


BGL = """2005-07-01-01.55.06.500000 R11-M0-N1-C:J02-U01 RAS KERNEL FATAL the first line of a failure
2005-07-01-01.55.07.500000 R11-M0-N0 RAS KERNEL FATAL another of it
2005-07-01-02.00.07.500000 R11-M0-N0 RAS KERNEL FATAL exactly 300 s after the line before it
2005-07-01-02.05.07.500001 R11-M0-N0 RAS KERNEL FATAL just more than 300 s after it
2005-07-01-02.05.08.000000 R77-M1-L3-U18-A RAS LINKCARD FATAL
2005-07-01-02.05.08.000000 NULL NULL MONITOR FAILURE without a place
2005-07-01-02.05.09.000000 R00-M0-N0 RAS KERNEL INFO nothing
- 1120212309 2005.07.01 R02-M1-N0-C:J12-U11 2005-07-01-03.05.09.000000 R02-M1-N0-C:J12-U11 RAS KERNEL FATAL raw
"""

MIRA = """#count=3
event 1 00010001 101 FATAL Block MMCS 2013-05-01;10:00:00.250000 2013-05-01;10:00:01.000000 4 QIJ Q0H-I1-J05 0
\t0.5 2 00020001 102 FATAL Software_Error LINUX 2013-05-01;10:00:02.000000 2013-05-01;10:00:03.000000 2 QIJ Q0G-I4-J04 0
event 3 00030001 103 FATAL ELF_Image MC 2013-05-02;10:00:00.000000 2013-05-02;10:00:00.000000 1 NULL  0
event 4 00040001 104 FATAL BQC CTRLNET 2013-05-03;10:00:00.000000 2013-05-03;10:00:30.000000 9 RMNJ R1F-M1-N04-J17 512
"""

SAMPLES = {
    "csv": "# nodes: 4\ntime_s,node,down_s\n1,0,60\n2.5,3,0\n",
    "lanl": "\n".join([LANL_HEAD, lanl_line(), lanl_line(node="7")]) + "\n",
    "fta": FTA_HEAD + "\n 0\t0\t70\t3\t1.0\t\t0\t1000000\t \t1000600 1\n1 0 70 3 1.0 1 1000600 2000000 0\n",
    "bgl": BGL,
    "mira": MIRA,
}  # fmt: skip


def read_text(tmp_path: Path, text: str | bytes, **options):
    path = tmp_path / "failures.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_failures(path, **options)


def test_plain_csv(tmp_path):
    records = read_text(tmp_path, "# a comment\n\ntime_s,node,down_s\n5,2,60\n# another\n1.25,0,0\n5,1,7200.5\n")
    assert records.time_s.tolist() == [1.25, 5, 5]  # in order of time, ties as in the file
    assert records.node.tolist() == [0, 2, 1]
    assert records.down_s.tolist() == [0, 60, 7200.5]
    assert (records.num_nodes, records.kind, records.own) == (3, "csv", True)


def test_lanl_columns_and_repairs(tmp_path):
    rows = [
        LANL_HEAD,
        lanl_line(node="5", started="1/2/2004 3:04", fixed="1/2/2004 4:04", down="60"),
        lanl_line(system=2, node="0"),
        lanl_line(node=""),
        lanl_line(node="0", started="4/4/2004 0:00", fixed="4/5/2004 0:00", down="1380"),  # daylight saving time began
        lanl_line(node="0", started="4/6/2004 0:00", fixed="4/6/2004 0:10", down=""),
        lanl_line(node="0", started="4/7/2004 0:10", fixed="4/7/2004 0:00", down=""),
    ]
    records = read_text(tmp_path, "\r\n".join(rows), system=20)
    assert records.node.tolist() == [5, 0, 0, 0]
    elapsed = datetime(2004, 4, 4) - datetime(2004, 1, 2, 3, 4)
    assert records.time_s[1] - records.time_s[0] == elapsed.total_seconds()
    assert records.down_s[:3].tolist() == [3600, 82800, 600]
    assert np.isnan(records.down_s[3])
    assert records.num_nodes == 8
    assert records.numbered
    assert records.counts == {"records": 5, lanl.NO_NODE: 1, lanl.DISAGREE: 1, lanl.MISSING: 1, lanl.UNKNOWN: 1}


def test_lanl_nodes_beyond_the_machine_are_numbered_anew(tmp_path):
    records = read_text(tmp_path, "\n".join([LANL_HEAD, lanl_line(node="500"), lanl_line(node="20")]))
    assert records.node.tolist() == [1, 0]
    assert (records.num_nodes, records.numbered) == (8, False)
    assert records.node_name[:2] == ("20", "500")


@pytest.mark.parametrize("system", [0, 7])
def test_lanl_system_must_be_chosen(tmp_path, system):
    with pytest.raises(InputError, match=r"failure_system, or --system .*\(valid: 2 \(1 records\), 20 \(1 records\)\)"):
        read_text(tmp_path, "\n".join([LANL_HEAD, lanl_line(), lanl_line(system=2)]), system=system)


def test_failure_trace_archive(tmp_path):
    records = read_text(tmp_path, SAMPLES["fta"])
    assert (records.time_s.tolist(), records.down_s.tolist()) == ([1000000], [600])
    assert (records.num_nodes, records.node_name, records.numbered) == (1, ("70",), False)
    with pytest.raises(InputError, match="no platform 4"):
        read_text(tmp_path, SAMPLES["fta"], system=4)


def test_blue_gene_filter_and_places(tmp_path):
    records = read_text(tmp_path, BGL)
    assert [records.node_name[node] for node in records.node] == ["R11-M0", "R11-M0", "R77-M1", "R02-M1"]
    assert np.diff(records.time_s).tolist() == pytest.approx([601.000001, 0.499999, 3601], abs=1e-5)
    assert np.isnan(records.down_s).all()
    assert records.counts["left out: no midplane"] == 1
    assert records.counts["left out: below fatal"] == 1
    assert records.counts["left out: part of a failure that is under way"] == 2
    assert len(read_text(tmp_path, BGL, filter_s=0)) == 6
    assert len(read_text(tmp_path, BGL, filter_s=1e9)) == 3


def test_midplanes_fill_the_torus_once():
    indices = [bluegene.midplane_index(r, c, m) for r in range(8) for c in range(8) for m in range(2)]
    assert sorted(indices) == list(range(128))
    assert bluegene.midplane_index(5, 6, 1) == (2 * 4 + 3) * 8 + 6


def test_mira(tmp_path):
    records = read_text(tmp_path, MIRA)
    assert records.node.tolist() == [(16 + 15) * 2 + 1]
    assert records.counts == {"events": 3, "left out: I/O racks": 1, "left out: no midplane": 1}


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize("compress", [lambda data: data, gzip.compress, lzma.compress])
def test_format_is_known_by_content(tmp_path, kind, compress):
    records = read_text(tmp_path, compress(SAMPLES[kind].encode()))
    plain = read_text(tmp_path, SAMPLES[kind])
    assert records.kind == kind
    assert np.array_equal(records.time_s, plain.time_s)
    assert records.content_hash == plain.content_hash


def test_content_hash_tells_choices_apart(tmp_path):
    one, other = read_text(tmp_path, BGL), read_text(tmp_path, BGL, filter_s=0)
    assert one.content_hash != other.content_hash


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"failures.txt: an empty failure log"),
        ("; SWF\n1 2 3\n", r"failures.txt:1: not a failure log of a known format \(known: time_s,node,down_s; "),
        ("time_s,node,down_s\n", r"has no failure that can be used"),
        ("time_s,node,down_s\n1,2\n", r":2: '1,2' has 2 fields, a failure has 3"),
        ("time_s,node,down_s\n1,2,60\n2,2,1e15\n", r"failures.txt:3: down_s is 1e15 \(valid: 0 to 4.39805e\+12"),
        ("time_s,node,down_s\n1,2,60\n2,2,-1e-9\n", r"failures.txt:3: down_s is -1e-9 \(valid: 0 or more"),
        ("time_s,node,down_s\n5e15,2,60\n", r"failures.txt:2: time_s is 5e15 \(valid: -4.39805e\+12 to"),
        ("time_s,node,down_s\n1,2,3\nx,2,3\n", r":3: time_s is 'x', not a number"),
        ("time_s,node,down_s\n1,1.5,3\n", r":2: node is 1.5 \(valid: whole numbers"),
        ("time_s,node,down_s\n1,-1,3\n", r":2: node is -1 \(valid: 0 or more\)"),
        ("time_s,node,down_s\n1,1,-3\n", r":2: down_s is -3 \(valid: 0 or more\)"),
        ("time_s,node,down_s\nnan,1,3\n", r":2: time_s is 'nan', not a number"),
        ("time_s,node,down_s\n1e300,1,3\n", r":2: time_s is too large"),
        ("# nodes: 4\ntime_s,node,down_s\n1,4,3\n", r":3: node is 4, but the file is of 4 nodes \(line 1\)"),
        ("# nodes: four\ntime_s,node,down_s\n1,1,3\n", r":1: nodes is 'four', not a number"),
        ("# nodes: 10000000\ntime_s,node,down_s\n1,1,3\n", r":1: nodes is 10000000 \(valid: whole numbers from 0"),
        (LANL_HEAD + "\n1,2\n", r":2: the line has 2 fields"),
        (LANL_HEAD + "\n1,2\r3,4\n", r":2: .* is not a line of a CSV file"),
        (LANL_HEAD + "\n" + lanl_line(started="2004-01-02"), r":2: '2004-01-02' is not a time \(valid: month/day"),
        (LANL_HEAD + "\n" + lanl_line(started="2/30/2004 1:00"), r":2: '2004-02-30T01:00' is not a time that exists"),
        (LANL_HEAD + "\n" + lanl_line(down="an hour"), r":2: Down Time is 'an hour', not a number"),
        (FTA_HEAD + "\n1 2 3\n", r":2: '1 2 3' has 3 fields, an event has 9"),
        (FTA_HEAD + "\n0 0 1 3 x 2 10 20 0\n", r":2: event_type is '2' \(valid: 0 for down, 1 for up\)"),
        (FTA_HEAD + "\n0 0 1 3 x 0 20 10 0\n", r":2: the event stops at 10, before it starts at 20"),
        (BGL + "nonsense\n", r":9: 'nonsense' is not a RAS line"),
        (BGL.replace("07-01-01", "13-01-01"), r":1: '2005-13-01T01:55:06.500000' is not a time that exists"),
        (MIRA + "event 1\n", r":6: 'event 1' is not an event"),
    ],
)
def test_bad_files(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_text(tmp_path, text)


@pytest.mark.parametrize(
    "data",
    [gzip.compress(BGL.encode())[:60], lzma.compress(BGL.encode())[:60], b"\x1f\x8bxx"],
    ids=["gzip", "xz", "no gzip"],  # names without the time that gzip writes: parallel runs need equal ones
)
def test_damaged_compression(tmp_path, data):
    with pytest.raises(InputError, match="damaged or cut short"):
        read_text(tmp_path, data)


def test_absent_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_failures(tmp_path / "no such file")


times = st.floats(-1e9, 1e12).map(lambda x: x + 0.0)


@given(
    st.lists(st.tuples(times, st.integers(0, 99), st.floats(0, 1e9).map(lambda x: x + 0.0)), min_size=1, max_size=30),
    st.sampled_from(["f.csv", "f.csv.gz", "f.csv.xz"]),
)
def test_round_trip(tmp_path_factory, rows, name):
    rows = sorted(rows, key=lambda row: row[0])
    trace = FailureTrace(*(np.array(column) for column in zip(*rows, strict=True)))
    path = tmp_path_factory.mktemp("round") / name
    write_failures(trace, path, num_nodes=100)
    back = read_failures(path)
    assert np.array_equal(back.time_s, trace.time_s)
    assert np.array_equal(back.node, trace.node)
    assert np.array_equal(back.down_s, trace.down_s)
    assert back.num_nodes == 100


@st.composite
def damaged(draw):
    """A sample file with a piece replaced by other bytes."""
    data = draw(st.sampled_from(sorted(SAMPLES.values()))).encode()
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 40)))
    piece = draw(
        st.one_of(
            st.binary(max_size=12), st.sampled_from([b"\n", b",", b" ", b"-1", b"1e400", b"\x0c", b'"', b"9" * 30])
        )
    )
    return draw(st.sampled_from([lambda x: x, gzip.compress]))(data[:start] + piece + data[end:])


def test_a_quote_in_a_header_is_a_sentence(tmp_path):
    [sample] = [text for text in SAMPLES.values() if "Prob Started" in text]
    with pytest.raises(InputError, match=":1: the header has a quote that is not closed"):
        read_text(tmp_path, sample.replace("num intercon", '"num intercon', 1).encode())


@settings(max_examples=150)
@given(st.one_of(damaged(), st.binary(max_size=60)))
def test_only_input_errors(tmp_path_factory, data):
    try:
        records = read_text(tmp_path_factory.mktemp("fuzz"), data)
    except InputError:
        return
    assert np.isfinite(records.time_s).all()
    assert (np.diff(records.time_s) >= 0).all()
    assert ((records.node >= 0) & (records.node < records.num_nodes)).all()
    assert not (records.down_s < 0).any()
    assert len(records.node_name) == records.num_nodes


REAL = [
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 18, 3997, 1024),
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 19, 3284, 1024),
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 20, 2478, 512),
    ("lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz", 3, 299, 128),
    ("failure-trace-archive/lanl-event_trace.tab.xz", 0, 23451, 3577),
    ("bluegene-l/bgl-ras-fatal-2005.txt.xz", 0, 8850, 128),
    ("mira/mira-fatal-events-2013-2018.txt.xz", 0, 1029, 96),
]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "system", "failures", "nodes"), REAL)
def test_real_logs(shared, name, system, failures, nodes):
    records = read_failures(shared / "failure-logs" / name, system=system)
    assert (len(records), records.num_nodes) == (failures, nodes)
    assert (np.diff(records.time_s) >= 0).all()


@pytest.mark.shared
def test_real_lanl_file_is_accounted_for(shared):
    """All records, the blank nodes and the disagreeing down times of the file are found."""
    path = shared / "failure-logs" / REAL[0][0]
    with pytest.raises(InputError, match="126 x records; 126 x left out: no node"):
        read_failures(path, system=17)
    total, disagree = 126, 0
    for system in set(range(2, 25)) - {17}:
        records = read_failures(path, system=system)
        total += records.counts["records"]
        disagree += records.counts.get(lanl.DISAGREE, 0)
    assert (total, disagree) == (23739, 423)
