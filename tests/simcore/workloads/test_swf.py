"""Reader and writer of the Standard Workload Format: real logs, bad input, round trips, fuzzing."""

from __future__ import annotations

import gzip
import hashlib
import lzma
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads import swf
from faultsweep.simcore.workloads.summary import processors
from faultsweep.simcore.workloads.swf import read_swf, write_swf
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError

HEADER = "; MaxNodes: 4 (of two racks)\n; MaxProcs: 8\n"


def line(job=1, submit=0, run=10, procs=2, requested_procs=-1, requested=-1, status=1, user=7):
    return f"{job} {submit} -1 {run} {procs} -1 -1 {requested_procs} {requested} -1 {status} {user} -1 -1 -1 -1 -1 -1"


@pytest.fixture
def log(tmp_path):
    """Return a function that writes lines (or bytes) to a file and gives its path."""

    def write(*lines, name="log.swf"):
        path = tmp_path / name
        data = b"".join(part if isinstance(part, bytes) else part.encode() + b"\n" for part in lines)
        opener = {"gz": gzip.open, "xz": lzma.open}.get(name.rsplit(".", 1)[-1], open)
        with opener(path, "wb") as stream:
            stream.write(data)
        return path

    return write


def test_fields_become_arrays(log):
    path = log(
        HEADER.encode(),
        line(job=3, submit=5, requested=60),
        line(job=4, submit=9, run=2.5, procs=-1, requested_procs=3),
    )
    workload = read_swf(path)
    assert workload.job_id.tolist() == [3, 4]
    assert workload.submit_s.tolist() == [5, 9]
    assert workload.run_s.tolist() == [10, 2.5]
    assert workload.size.tolist() == [2, 3]
    assert workload.user.tolist() == [7, 7]
    np.testing.assert_array_equal(workload.requested_s, [60, np.nan])
    assert (workload.nodes, workload.procs_per_node, workload.origin_s) == (4, 2, 0.0)
    assert workload.name == "log"
    assert workload.header == tuple(HEADER.splitlines())
    assert workload.content_hash == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    dtypes = {
        name: getattr(workload, name).dtype for name in ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
    }
    assert dtypes == {n: np.int64 if n in ("job_id", "size", "user") else np.float64 for n in dtypes}


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz", "log.swf.xz"])
def test_compressed_logs_are_the_same_workload(log, name):
    workload = read_swf(log(HEADER.encode(), line(), name=name))
    assert (workload.name, len(workload)) == ("log", 1)
    assert workload.content_hash == "sha256:" + hashlib.sha256((HEADER + line() + "\n").encode()).hexdigest()


def test_jobs_that_cannot_be_simulated_are_counted_by_reason(log):
    path = log(
        line(1),
        line(2, run=-1),
        line(3, run=0),
        line(4, run=0, status=5),
        line(5, run=-1, procs=-1, status=5),
        line(6, procs=-1),
        line(7, procs=0, requested_procs=0),
        line(8, submit=-1),
        line(9, run=30, status=5),
        line(10, run=99, status=1),
        line(10, run=60, status=2),
        line(10, run=39, status=3),
        line(11, status=3),
    )
    workload = read_swf(path)
    assert workload.job_id.tolist() == [1, 9, 10, 11]  # 11 has no line of its own besides the piece
    assert workload.dropped == {
        "part of a job that has its own line": 2,
        "cancelled before it started": 2,
        "run time missing": 1,
        "run time of 0 s": 1,
        "size missing": 2,
        "submit time missing": 1,
    }


def test_unsorted_submits_are_sorted_stably(log):
    workload = read_swf(log(line(1, submit=5), line(2, submit=3), line(3, submit=5), line(4, submit=3)))
    assert workload.job_id.tolist() == [2, 4, 1, 3]
    assert workload.submit_s.tolist() == [3, 3, 5, 5]


@pytest.mark.parametrize(
    ("header", "machine"),
    [
        ("; MaxNodes: 128", (128, 1)),
        ("; MaxProcs: 64", (64, 1)),
        ("; maxnodes : 10, some down\n; MaxProcs:40 in all", (10, 4)),
        ("; MaxNodes: 5\n; MaxProcs: 11", (5, 3)),
        ("; MaxNodes: 208, all\n; MaxProcs: 1,664 in all", (208, 8)),
        ("; MaxProcs: 1,024,000", (1_024_000, 1)),
        ("; MaxNodes: 184\n; MaxProcs: 1 664", (184, 10)),
        ("; MaxProcs: 1\u2009664 (8 a node)", (1664, 1)),
        ("; MaxProcs: 1\u202f024\u202f000 processors", (1_024_000, 1)),
        ("; MaxProcs: 1'664", (1664, 1)),
        ("; MaxProcs: 1664.0", (1664, 1)),
        ("; MaxProcs: 128nodes", (128, 1)),
        ("; MaxProcs: 64-way", (64, 1)),
        ("; MaxNodes: unknown", (0, 1)),
        ("; MaxNodes: -1", (0, 1)),
        ("; Note: MaxNodes: 7", (0, 1)),
        ("; MaxNodes: 0\n; MaxProcs: 0", (0, 1)),
    ],
)
def test_machine_of_the_header(log, header, machine):
    workload = read_swf(log(header, line()))
    assert (workload.nodes, workload.procs_per_node) == machine


@pytest.mark.parametrize(
    "number",
    ["1 664 MB", "1 66", "1 6644", "1024 512", "1,66", "1,664,5", "1.5", "1.664", "1_664", "1e3", "2k", "32x2"],
)
def test_a_number_of_the_header_that_may_be_another_is_refused(log, number):
    """Never as 1: the machine, and with it every size in nodes, would be another."""
    path = log("; MaxNodes: 184", f"; MaxProcs: {number}", line())
    with pytest.raises(InputError, match=rf"{path.name}: header '; MaxProcs: {number}': the number is ambiguous"):
        read_swf(path)


def test_comments_blank_lines_and_line_ends(log):
    body = b"\xef\xbb\xbf; caf\xe9\r\n\r\n" + line(1).encode() + b"\r\n  ; between\n\t" + line(2).encode()
    workload = read_swf(log(body))
    assert workload.job_id.tolist() == [1, 2]
    assert workload.header == ("; café", "  ; between")


def test_lines_may_end_as_on_old_macintoshes(log):
    path = log("; MaxNodes: 4", line(1), "", line(2))
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    assert read_swf(path).job_id.tolist() == [1, 2]
    assert read_swf(path).nodes == 4
    path.write_bytes(path.read_bytes().replace(b"\r2 ", b"\r2.5 "))
    with pytest.raises(InputError, match=r"log\.swf:4: field 1, the job number, is 2.5"):
        read_swf(path)


def test_the_load_is_of_the_processors_that_the_header_states(log):
    workload = read_swf(log("; MaxNodes: 4\n; MaxProcs: 10", line(1), line(2, submit=7)))
    assert (workload.nodes, workload.procs_per_node, processors(workload)) == (4, 3, 10)
    assert processors(replace(workload, nodes=40)) == 120  # on another machine


BAD_LINES = [
    ("abc", "field 1 is 'abc'"),
    (line(run="x12"), "field 4 is 'x12'"),
    (line(run="nan"), "field 4 is 'nan'"),
    (line(run="inf"), "field 4 is 'inf'"),
    (line(run="0x1F"), "field 4 is '0x1F'"),
    (line(run="1_0"), "field 4 is '1_0'"),
    (line(run="1-2"), "field 4 is '1-2'"),
    (line(run="1e400"), r"field 4, the run time, is inf \(valid: 2\^53 at most\)"),
    (line(run=2**54), r"field 4, the run time, is 18014398509481984 \(valid: 2\^53 at most\)"),
    (line(run=-2), r"field 4, the run time, is -2 \(valid: 0 or more, or -1 for unknown\)"),
    (line(run=-0.5), "field 4, the run time, is -0.5"),
    (line(submit=-7), "field 2, the submit time, is -7"),
    (line(procs=-3), r"field 5, the number of processors, is -3 \(valid: 1 or more"),
    (line(requested_procs=-3), "field 8, the number of processors requested, is -3"),
    (line(procs=1.5), r"field 5, the number of processors, is 1.5 \(valid: a whole number\)"),
    (line(job=1.5), "field 1, the job number, is 1.5"),
    (line() + " 5", "19 fields"),
    ("1 2 3", "3 fields"),
    (line()[:-3] + " -", "field 18 is '-'"),
    (line().replace(" ", ",", 1), "field 1 is"),
    (line().replace(" ", "\xa0", 1), "field 1 is"),
    ("\x00\x01\x02" * 40, "field 1 is"),
    (line(1, run=5), r"job 1 is on line 3 already \(valid: a number of its own for each job\)"),
]


@pytest.mark.parametrize(("bad", "problem"), BAD_LINES)
def test_malformed_line_is_an_error_with_file_and_line_or_skipped_and_counted(log, bad, problem):
    path = log(HEADER.encode(), line(1), bad, line(2))
    with pytest.raises(InputError, match=problem) as error:
        read_swf(path)
    assert str(error.value).startswith(f"{path}:4: ")
    assert "\n" not in str(error.value)
    workload = read_swf(path, on_error="skip")
    assert workload.job_id.tolist() == [1, 2]
    assert workload.dropped == {"malformed line": 1}


@pytest.mark.parametrize("name", ["log.swf.gz", "log.swf.xz"])
def test_truncated_compressed_log(log, name):
    path = log(*(line(i, submit=i, run=7 * i % 1009 + 1) for i in range(20_000)), name=name)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 3 // 4])
    with pytest.raises(InputError, match=r"damaged or cut short") as error:
        read_swf(path)
    named = int(str(error.value).removeprefix(f"{path}:").partition(":")[0])
    workload = read_swf(path, on_error="skip")
    assert 10_000 < len(workload) < 20_000
    assert workload.job_id.tolist() == list(range(len(workload)))
    assert named == len(workload) + 1  # the next line is there in part, or not at all
    assert workload.dropped["damaged file"] == 1


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (b"", "log.swf", "no line of a job"),
        (b"", "log.swf.gz", "no line of a job"),
        (b"; only a header\n", "log.swf", "no line of a job"),
        (b"\n \n", "log.swf", "no line of a job"),
        (b"plain text", "log.swf.gz", ":1: field 1 is 'plain'"),
        (b"\x01\x00\xff junk", "log.swf.gz", ":1: the file is neither gz data nor text$"),
        (b"\x01\x00\xff junk", "log.swf", ":1: the file is not text$"),
        (line().encode("utf-16"), "log.swf", ":1: the file is text in UTF-16; save it as UTF-8$"),
        (b"\xff" * 30, "log.swf", r":1: field 1 is '(\\xff){20}\.\.\.', not a number"),
        (b"\x1f\x8b", "log.swf.gz", "damaged"),
        (b"\xfd7zXZ\x00junk", "log.swf.xz", "damaged"),
        ((line(run=0) + "\n").encode(), "log.swf", "no job that can be simulated .1 x run time of 0 s"),
    ],
)
def test_files_without_jobs(tmp_path, content, name, problem):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_swf(path)


def test_paths_that_cannot_be_read_or_written(tmp_path, log):
    with pytest.raises(InputError, match="is a device, not a file"):
        read_swf("/dev/urandom")
    with pytest.raises(InputError, match="cannot be read"):
        read_swf(tmp_path / "absent.swf")
    with pytest.raises(InputError, match="cannot be read"):
        read_swf(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(read_swf(log(line())), tmp_path / "absent" / "x.swf")
    with pytest.raises(InputError, match="valid: raise, skip"):
        read_swf(tmp_path, on_error="ignore")


seconds = st.one_of(st.integers(0, 2**40).map(float), st.floats(0, 1e9))
jobs = st.tuples(
    st.integers(0, 2**40), seconds, seconds.filter(lambda run: run > 0), st.integers(1, 2**20), st.integers(-1, 9999)
)


@st.composite
def workloads(draw):
    drawn = draw(st.lists(jobs, min_size=1, max_size=20, unique_by=lambda row: row[0]))
    rows = sorted(drawn, key=lambda row: row[1])
    requested = [draw(st.one_of(st.just(np.nan), seconds.filter(lambda s: s > 0))) for _ in rows]
    comment = st.text(st.characters(codec="utf-8", exclude_characters="\n\r", exclude_categories=["Cc", "Z"]))
    return Workload(
        job_id=np.array([r[0] for r in rows]),
        submit_s=np.array([r[1] for r in rows]),
        run_s=np.array([r[2] for r in rows]),
        requested_s=np.array(requested),
        size=np.array([r[3] for r in rows]),
        user=np.array([r[4] for r in rows]),
        nodes=draw(st.sampled_from((0, 4, 128))),
        header=tuple(f"; {text}" if text else ";" for text in draw(st.lists(comment, max_size=3))),
    )


@given(workloads(), st.sampled_from((".swf", ".swf.gz", ".swf.xz")))
def test_round_trip(tmp_path_factory, workload, suffix):
    path = tmp_path_factory.getbasetemp() / f"trip{suffix}"
    write_swf(workload, path)
    again = read_swf(path)
    for name in ("job_id", "submit_s", "run_s", "requested_s", "size", "user"):
        np.testing.assert_array_equal(getattr(again, name), getattr(workload, name), err_msg=name)
    assert again.nodes == workload.nodes
    assert again.header[-len(workload.header) :] == workload.header or not workload.header


def reads_or_refuses(path):
    for on_error in ("raise", "skip"):
        try:
            workload = read_swf(path, on_error=on_error)
        except InputError:
            continue
        assert len(workload) > 0
        assert (np.diff(workload.submit_s) >= 0).all()
        assert (workload.run_s > 0).all()
        assert (workload.size >= 1).all()


@given(st.binary(max_size=400), st.sampled_from(("junk.swf", "junk.swf.gz", "junk.swf.xz")))
def test_random_bytes_are_refused_or_read(tmp_path_factory, data, name):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(data)
    reads_or_refuses(path)


@given(st.data())
def test_mutated_logs_are_refused_or_read(tmp_path_factory, data):
    content = bytearray((HEADER + "".join(line(i, submit=10 * i) + "\n" for i in range(4))).encode())
    suffix, pack = data.draw(st.sampled_from(((".swf", bytes), (".swf.gz", gzip.compress), (".swf.xz", lzma.compress))))
    before = data.draw(st.booleans())
    content = content if before else bytearray(pack(bytes(content)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(
            st.one_of(st.binary(max_size=3), st.sampled_from((b"-", b"e9", b".", b"nan", b"\n", b"\r", b";", b"\x0b")))
        )
    path = tmp_path_factory.getbasetemp() / f"mutated{suffix}"
    path.write_bytes(pack(bytes(content)) if before else bytes(content))
    reads_or_refuses(path)


ODD = """
- --1 -0 -0.5 -1.5 -12 +5 5-3 5-1 -1-1 - 1 1.5 1. 0. . .. .5 -.5 1..2 1.2.3 1.2. 2.-1 1e5 1E-3 1e e5 nan inf 0x10 1_0
0.1 0.30000000000000004 123456.7890123456789 0.12345678901234567 0.1234567890123456789 007 007.50 00.5 -1. -3.25
900719925474099.3 9007199254740991 9007199254740993 99999999999999999.9 999999999999999999 999999999999999999.9
1000000000000000000 -1000000000000000000 1000000000000000001 9223372036854775807 -99999999999999999999 ; abc
"""
"""Fields that a parser may take for what they are not; some are what the bulk parser replaces others by."""


def outcome(path):
    """Return all that comes of reading a log: bytes of its arrays, and what else it holds; or the error."""
    try:
        workload = read_swf(path)
    except InputError as error:
        return str(error)
    parts = vars(workload) | {name: label.codes for name, label in workload.labels.items()}
    parts |= workload.dependencies.arrays() if workload.dependencies is not None else {}
    names = {name: label.names for name, label in workload.labels.items()}
    return names, {
        name: (part.dtype.name, part.tobytes()) if isinstance(part, np.ndarray) else part
        for name, part in parts.items()
        if name not in ("labels", "dependencies")
    }


def agree(path, text):
    """Assert that parsing in bulk, each line in bulk, and all line by line have one outcome."""
    path.write_bytes(text.encode())
    found = outcome(path)
    with mock.patch.object(swf, "_BLOCK_BYTES", 1):
        assert outcome(path) == found
    with mock.patch.object(swf, "_parse_bulk", return_value=None):
        assert outcome(path) == found


@pytest.mark.parametrize("field", ODD.split())
def test_parsing_in_bulk_tells_odd_fields(tmp_path, field):
    fields = line(2).split()
    for place in (0, 3, 17, 18):
        for kept in (0, 1, 2):  # the field is added, or stands for one or two others
            odd = " ".join([*fields[:place], field, *fields[place + kept :]])
            agree(tmp_path / "odd.swf", "\n".join((line(1), odd, line(3, run=2.5), "")))


@pytest.mark.parametrize(
    "lines",
    [
        (f"{line(2)} 1000000000000000000 {line(3)}", line(4)),
        (f"{line(2)} 1000000000000000000 {line(3)}", "", line(4).removesuffix(" -1")),
        (f"{line(2)} -1", line(3).removesuffix(" -1")),
        (line(2, run="1\r2"),),
        (line(2, run="1\0"),),
        (f"-{line(1)}",),
    ],
)
def test_parsing_in_bulk_tells_odd_lines(tmp_path, lines):
    agree(tmp_path / "odd.swf", "\n".join((line(1), *lines)))
    agree(tmp_path / "odd.swf", "\n".join(lines))


@given(st.data())
def test_parsing_in_bulk_and_line_by_line_agree(tmp_path_factory, data):
    lines = [line(number, submit=number).split() for number in range(1, 5)]
    words = st.one_of(st.sampled_from(ODD.split()), st.text("0123456789.-+e", max_size=20))
    for _ in range(data.draw(st.integers(1, 4))):
        fields = data.draw(st.sampled_from(lines))
        place = data.draw(st.integers(0, len(fields)))
        fields[place : place + data.draw(st.integers(0, 2))] = [data.draw(words)]
    blanks = st.sampled_from((" ", " ", "  ", "\t", "\r", "\x0b"))
    ends = st.sampled_from(("\n", "\n", "\r\n", " \n", "\n\n", "\n; a comment\n", "\n \n"))
    text = "".join(data.draw(blanks).join(fields) + data.draw(ends) for fields in lines)
    agree(tmp_path_factory.getbasetemp() / "agree.swf", text)


@pytest.mark.parametrize("groups", [("0", "-0"), ("-0", "0")])
def test_groups_0_and_minus_0_are_one(log, groups):
    lines = [line(number).split() for number in (1, 2)]
    for fields, group in zip(lines, groups, strict=True):
        fields[swf.GROUP] = group
    assert read_swf(log(*map(" ".join, lines))).labels["account"].names == ("0",)


def test_ordinary_lines_are_parsed_in_bulk():
    lines = [line(1), line(2, run=2.05).replace(" ", "\t"), line(3, user=-2) + "\r", line(4, run=0.1)]
    table = swf._parse_bulk("\n".join(lines).encode())
    np.testing.assert_array_equal(table[:, swf.RUN], [10, 2.05, 10, 0.1])
    np.testing.assert_array_equal(table[:, swf.USER], [7, 7, -2, 7])


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "lines", "valid", "nodes", "procs_per_node"),
    [
        ("NASA-iPSC-1993-3.1-cln.swf.gz", 18_239, 18_066, 128, 1),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", 59_715, 54_034, 128, 1),
        ("LLNL-Atlas-2006-2.1-cln.swf.gz", 43_778, 36_600, 1152, 8),
        ("LLNL-Thunder-2007-1.1-cln.swf.gz", 121_039, 113_613, 1002, 4),
        ("SDSC-BLUE-2000-4.2-cln.swf.gz", 243_306, 232_536, 144, 8),
        ("CEA-Curie-2011-2.1-cln.swf.gz", 312_826, 295_540, 5544, 17),
        ("ANL-Intrepid-2009-first1200.ppt-sched.swf", 1_200, 1_200, 40_960, 4),
        ("lublin_256.swf", 10_000, 10_000, 256, 1),
    ],
)
def test_real_logs(job_logs, name, lines, valid, nodes, procs_per_node):
    workload = read_swf(job_logs / name)
    assert len(workload) == valid
    assert len(workload) + sum(workload.dropped.values()) == lines
    assert (workload.nodes, workload.procs_per_node) == (nodes, procs_per_node)
    assert (np.diff(workload.submit_s) >= 0).all()
    assert "malformed line" not in workload.dropped


@pytest.mark.shared
@pytest.mark.parametrize("suffix", [".swf", ".swf.gz", ".swf.xz"])
def test_real_log_round_trip(job_logs, tmp_path, suffix):
    workload = read_swf(job_logs / "NASA-iPSC-1993-3.1-cln.swf.gz")
    write_swf(workload, tmp_path / f"nasa{suffix}")
    again = read_swf(tmp_path / f"nasa{suffix}")
    assert again.header == workload.header
    np.testing.assert_array_equal(again.submit_s, workload.submit_s)
    np.testing.assert_array_equal(again.size, workload.size)
