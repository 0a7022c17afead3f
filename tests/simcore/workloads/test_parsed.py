"""Large logs are kept as they were parsed: equal to what the log says, or parsed again."""

from __future__ import annotations

import gzip
import os
import pickle

import numpy as np
import pytest
from faultsweep.simcore.workloads import parsed, swf
from faultsweep.simcore.workloads.swf import read_swf

from faultsweep.compression import read_content
from faultsweep.errors import InputError

LINES = [f"{job} {3 * job} -1 {10 + job % 7} {1 + job % 5} -1 -1 -1 {job % 3} -1 1 7" for job in range(1, 2000)]
TEXT = "; MaxNodes: 64\n; Note: a é\n" + "\n".join(f"{line} -1 -1 -1 -1 -1 -1" for line in LINES) + "\n"


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log that counts as large, a cache of its own, and a count of how often it was parsed."""
    monkeypatch.setenv("FAULTSWEEP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(parsed, "LEAST_BYTES", 100)
    monkeypatch.setattr(swf, "_parse", lambda log, data: (calls.append(log.path), real(log, data))[1])
    path = tmp_path / "big.swf.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


real, calls = swf._parse, []


def same(one, other):
    for name in (*parsed._ARRAYS, "nodes", "procs_per_node", "header", "dropped", "content_hash"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "requested_s"), name
        assert type(getattr(one, name)) is type(getattr(other, name))


def parses(path):
    """Return the log, and whether it was parsed."""
    calls.clear()
    workload = read_swf(path)
    return workload, bool(calls)


def test_a_log_is_parsed_once(log):
    first, was_parsed = parses(log)
    assert was_parsed
    other = log.with_name("other.swf.gz")
    other.write_bytes(log.read_bytes())
    for path in (log, other):
        again, was_parsed = parses(path)
        assert not was_parsed
        same(first, again)
        assert again.name == path.name.removesuffix(".swf.gz")
    log.write_bytes(gzip.compress(TEXT.replace("1 3 -1 11", "1 3 -1 99").encode()))
    changed, was_parsed = parses(log)
    assert was_parsed
    assert changed.run_s[0] == 99


def test_what_is_kept_is_this_users_and_holds_no_code(log):
    parses(log)
    [file] = parsed.folder().iterdir()
    assert parsed.folder().stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    with np.load(file, allow_pickle=False) as arrays:
        assert set(arrays) == {"about", *parsed._ARRAYS}
    parsed.folder().chmod(0o777)
    assert parses(log)[1], "a folder that others can write was believed"
    parsed.folder().chmod(0o700)
    file.chmod(0o666)
    assert parses(log)[1], "a file that others can write was believed"


def test_a_damaged_file_is_not_read(log):
    first, _ = parses(log)
    [file] = parsed.folder().iterdir()
    content = file.read_bytes()
    for place in range(0, len(content), len(content) // 40):
        damaged = bytearray(content)
        damaged[place] ^= 16
        file.write_bytes(damaged)
        same(first, parses(log)[0])
        file.write_bytes(content)
    for damaged in (b"", content[:-100], pickle.dumps({"a": 1}), b"PK\x03\x04"):
        file.write_bytes(damaged)
        file.chmod(0o600)
        workload, was_parsed = parses(log)
        assert was_parsed
        same(first, workload)
    assert not parses(log)[1], "it was not kept again"


def test_mistakes_are_told_every_time(log):
    log.write_bytes(gzip.compress((TEXT + "x y\n").encode()))
    for _ in range(2):
        with pytest.raises(InputError, match=r"big\.swf\.gz:2002"):
            read_swf(log)
    assert read_swf(log, on_error="skip").dropped["malformed line"] == 1
    assert not parsed.folder().exists()


def test_a_cache_that_cannot_be_written_does_not_matter(log, tmp_path):
    (tmp_path / "cache").write_text("a file")
    assert len(parses(log)[0]) == len(LINES)


def test_only_some_logs_are_kept(log, monkeypatch):
    monkeypatch.setattr(parsed, "_MOST_FILES", 2)
    for number in range(4):
        log.write_bytes(gzip.compress(f"; {number}\n{TEXT}".encode()))
        parses(log)
        os.utime(max(parsed.folder().iterdir(), key=lambda file: file.stat().st_mtime_ns), (number, number))
    assert len(list(parsed.folder().iterdir())) == 2


def test_the_beginning_of_a_compressed_log_is_read_alone(log):
    text = TEXT.encode() * 8
    log.write_bytes(gzip.compress(text))
    for enough in (1, 1 << 16, len(text) - 1):
        assert enough <= len(read_content(log, enough=enough)) <= enough + (1 << 16)
    assert read_content(log, enough=len(text) + 1) == read_content(log) == text
