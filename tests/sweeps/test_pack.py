"""Packed stores: what is in them, that they open anywhere, and that none of a stranger's does harm."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import random
import shutil
import stat
import sys
import threading
import zipfile
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch
from urllib.parse import parse_qs, urlparse

import fsspec
import pytest
import xarray as xr
from faultsweep.sweeps.check import print_check
from faultsweep.sweeps.logs import acknowledgements
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.status import find_store
from faultsweep.sweeps.store import pack as pack_module
from faultsweep.sweeps.store.lock import Lock
from faultsweep.sweeps.store.merge import merge
from faultsweep.sweeps.store.pack import check_archive, file_sha256, pack, unpack
from faultsweep.sweeps.store.replay import open_run
from faultsweep.sweeps.store.store import commit, run_folder
from faultsweep.sweeps.sweep import Sweep

from faultsweep.cli import main
from faultsweep.errors import InputError
from tests.sweeps import functions


@pytest.fixture(scope="module")
def store(tmp_path_factory, client):
    path = tmp_path_factory.mktemp("pack") / "s.zarr"
    Sweep(
        name="s",
        title="Sums",
        axes={"a": [1, 2, 3], "mode": ["x", "long"]},
        function=functions.add,
        outputs=["sum", "product"],
    ).run(path, cluster=client, progress=False)
    return path


@pytest.fixture(scope="module")
def archive(store):
    pack(store, store.parent / "s.zarr.zip", licence="CC-BY-4.0")
    return store.parent / "s.zarr.zip"


def test_a_packed_store_says_what_it_is_and_holds_the_same_results(store, archive, tmp_path):
    with zipfile.ZipFile(archive) as opened:
        readme = opened.read("README.txt").decode()
        sums = dict(reversed(line.split("  ")) for line in opened.read("SHA256SUMS").decode().splitlines())
        names = set(opened.namelist())
        assert set(sums) == names - {"SHA256SUMS"}
        assert all(hashlib.sha256(opened.read(name)).hexdigest() == digest for name, digest in sums.items())
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in opened.infolist())
    assert "Licence: CC-BY-4.0" in readme
    assert "To cite: Sums (" in readme
    alone = xr.open_zarr(f"zip::file://{archive}", chunks=None).load()
    assert alone.attrs["licence"] == "CC-BY-4.0"
    assert alone.attrs["citation"].startswith("Sums (2")
    assert "folders" not in alone.attrs["provenance"]
    original = xr.open_zarr(store, chunks=None).load()
    xr.testing.assert_equal(alone, original)
    found = unpack(archive, tmp_path / "u.zarr", sha256=file_sha256(archive))
    assert (found.licence, found.checked, found.path) == ("CC-BY-4.0", True, tmp_path / "u.zarr")
    assert open_results(tmp_path / "u.zarr").load().equals(open_results(store).load())
    assert not (tmp_path / "u.zarr" / "README.txt").exists()


def test_packing_again_gives_the_same_bytes_and_keeps_what_was_said(archive, tmp_path):
    unpack(archive, tmp_path / "u.zarr")
    pack(tmp_path / "u.zarr", tmp_path / "s.zarr.zip")
    assert (tmp_path / "s.zarr.zip").read_bytes() == archive.read_bytes()


def test_an_unpacked_store_grows(archive, tmp_path, client):
    unpack(archive, tmp_path / "u.zarr")
    settings = {"name": "s", "function": functions.add, "outputs": ["sum", "product"]}
    data = Sweep(axes={"a": [1, 2, 3, 4], "mode": ["x", "long"]}, **settings).run(
        tmp_path / "u.zarr", cluster=client, progress=False
    )
    assert data["sum"].notnull().all()
    assert data.attrs["licence"] == "CC-BY-4.0"


def test_a_store_that_is_being_written_is_not_packed(store, tmp_path):
    copy = shutil.copytree(store, tmp_path / "s.zarr")
    run_folder(copy).mkdir()
    with Lock(run_folder(copy) / "lock"), pytest.raises(InputError, match="is writing it"):
        pack(copy, tmp_path / "s.zarr.zip")
    assert not list(tmp_path.glob("*.zip*"))


def test_results_that_only_a_journal_has_are_not_left_out(store, tmp_path):
    copy = shutil.copytree(store, tmp_path / "s.zarr")
    (run_folder(copy) / "journals").mkdir(parents=True)
    (run_folder(copy) / "journals" / "abc-1.journal").write_bytes(b"")
    commit(copy, {"open_runs": json.dumps([open_run("abc", run_folder(copy))])})
    for action in (lambda: pack(copy, tmp_path / "s.zarr.zip"), lambda: merge([store, copy], tmp_path / "m.zarr")):
        with pytest.raises(InputError, match="what it finished is not in the store; run it again first"):
            action()
    (run_folder(copy) / "journals" / "abc-1.journal").unlink()
    pack(copy, tmp_path / "s.zarr.zip")
    with zipfile.ZipFile(tmp_path / "s.zarr.zip") as opened:
        assert str(tmp_path) not in opened.read("zarr.json").decode()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("s.zarr", "ends with .zip"), ("none/s.zip", "does not exist"), ("here.zip", "exists already")],
)
def test_where_an_archive_cannot_be_made_is_one_sentence(store, tmp_path, name, sentence):
    (tmp_path / "here.zip").write_text("mine")
    with pytest.raises(InputError, match=sentence):
        pack(store, tmp_path / name)
    assert (tmp_path / "here.zip").read_text() == "mine"


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.external_attr = mode << 16
    return made


def evil(archive: Path, path: Path, how: str) -> None:
    """Make an archive as a stranger might."""
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in source.namelist():
            content = source.read(name)
            if how == "damaged" and name.endswith("c/0/0/0"):
                content = content[:-1] + bytes([content[-1] ^ 1])
            if how == "incomplete" and name == "status/c/0/0/0":
                continue
            if how == "code" and name in ("zarr.json", "sum/zarr.json"):
                content = content.replace(b'"zstd"', b'"numcodecs.pickle"')
            if how == "two truths" and name == "sum/zarr.json":
                content = content.replace(b'"zstd"', b'"numcodecs.pickle"')
            if how == "written elsewhere" and name == "zarr.json":
                node = json.loads(content)
                members = node["consolidated_metadata"]["metadata"]
                members["../../outside"] = members["sum"]
                content = json.dumps(node).encode()
            if how == "endless coordinate" and name == "zarr.json":
                node = json.loads(content)
                node["consolidated_metadata"]["metadata"]["a"]["shape"] = [1_000_000_000]
                content = json.dumps(node).encode()
            if how == "hidden code" and name == "zarr.json":
                node = json.loads(content)
                node["consolidated_metadata"]["metadata"]["sum"] = {"zarr_format": 2, "shape": [1]}
                content = json.dumps(node).encode()
            if how == "absurd" and name == "zarr.json":
                node = json.loads(content)
                node["consolidated_metadata"]["metadata"]["sum"]["shape"][0] = 900_000_000_000
                content = json.dumps(node).encode()
            if name == "SHA256SUMS" and how not in ("damaged", "incomplete"):
                continue
            out.writestr(name, content)
        extra = {
            "parent": entry("../outside"),
            "deep parent": entry("x/../../outside"),
            "absolute": entry("/tmp/outside"),  # noqa: S108 - never written
            "backslash": entry("..\\outside"),
            "link": entry("link", stat.S_IFLNK | 0o777),
            "device": entry("pipe", stat.S_IFIFO | 0o644),
            "newline": entry("a\nb"),
            "twice": entry("ZARR.json"),
        }.get(how)
        if extra is not None:
            out.writestr(extra, "/etc/passwd")
        if how == "bomb":
            out.writestr("bomb", b"\0" * 120_000_000)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("parent", "would be written outside the store"),
        ("deep parent", "would be written outside the store"),
        ("absolute", "would be written outside the store"),
        ("backslash", "has a name that no file of a store has"),
        ("newline", "has a name that no file of a store has"),
        ("link", "is a link or a device"),
        ("device", "is a link or a device"),
        ("twice", "stands in it twice"),
        ("bomb", r"would unpack to 120 MB, more than 100 times as much"),
        ("damaged", "files do not match SHA256SUMS"),
        ("incomplete", "1 files do not match SHA256SUMS, such as 'status/c/0/0/0'"),
        ("code", "is coded by 'numcodecs.pickle'"),
        ("hidden code", "'sum' is not of Zarr 3"),
        ("absurd", "'sum' has the shape"),
        ("two truths", "sum/zarr.json does not match zarr.json"),
        ("written elsewhere", "'../../outside' is no name of a part of a store"),
        ("endless coordinate", "'a' has 1,000,000,000 values along a, the grid 3"),
    ],
)
def test_a_strangers_archive_does_no_harm(archive, tmp_path, how, sentence):
    folder = tmp_path / "in"
    folder.mkdir()
    evil(archive, tmp_path / "evil.zip", how)
    with pytest.raises(InputError, match=sentence) as caught:
        unpack(tmp_path / "evil.zip", folder / "u.zarr")
    assert "\n" not in str(caught.value)
    assert list(folder.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.zip", "in"]


def test_an_archive_that_lies_about_sizes_is_refused(archive, tmp_path):
    """Entries that overlap, or that are longer than the directory says, end in a sentence and leave nothing."""
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as opened:
        first, second = opened.infolist()[:2]
    central = content.index(b"PK\x01\x02")
    at = content.index(b"PK\x01\x02", central + 4)  # the second entry's header begins where the first one's does
    content[at + 42 : at + 46] = first.header_offset.to_bytes(4, "little")
    (tmp_path / "evil.zip").write_bytes(content)
    with pytest.raises(InputError, match="a damaged archive"):
        unpack(tmp_path / "evil.zip", tmp_path / "u.zarr")
    assert second.filename != first.filename
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evil.zip"]


@pytest.mark.parametrize("part", ["anywhere", "directory"])
def test_flipped_bits_of_an_archive_are_never_read_as_other_results(archive, store, tmp_path, capfd, part):
    """The directory at its end says where files begin; the names before the files are written twice."""
    content = archive.read_bytes()
    draw, codes = random.Random(part), set()
    for _ in range(25):
        damaged = bytearray(content)
        for _ in range(3):
            damaged[draw.randrange(content.index(b"PK\1\2") if part == "directory" else 0, len(content))] ^= 1
        (tmp_path / "t.zarr.zip").write_bytes(damaged)
        words = ["faultsweep", "compare", str(tmp_path / "t.zarr.zip"), str(store)]
        with pytest.raises(SystemExit) as ended, patch.object(sys, "argv", words):
            main()
        codes.add(ended.value.code)
        assert "Traceback" not in capfd.readouterr().err
    assert codes == {0, 2}


def test_a_full_disk_is_told_before(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(pack_module.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 10))
    with pytest.raises(InputError, match=r"has 10 .* left; nothing was written"):
        unpack(archive, tmp_path / "u.zarr")


def test_another_archive_than_the_published_one_is_refused(archive, tmp_path):
    with pytest.raises(InputError, match="not the expected archive"):
        unpack(archive, tmp_path / "u.zarr", sha256="0" * 64)
    (tmp_path / "text.zip").write_text("hello")
    for path, sentence in ((tmp_path / "text.zip", "not a zip archive"), (tmp_path / "no.zip", "no such file")):
        with pytest.raises(InputError, match=sentence):
            unpack(path, tmp_path / "u.zarr")
    with pytest.raises(InputError, match="a URL; download the file first"):
        unpack("https://example.org/s.zarr.zip", tmp_path / "u.zarr")


def test_check_names_what_is_damaged_in_an_archive(archive, tmp_path, capsys):
    """A bit of any of its files; what is damaged is named, and status says what an archive is."""
    look = functools.partial(print_check, mend=False, seal=False, logs=None, workers=None)
    assert look(archive) == 0
    bad = tmp_path / "bad.zarr.zip"
    content = archive.read_bytes()
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        starts = {e.filename: e.header_offset + 30 + len(e.filename.encode()) for e in entries if e.file_size}
    for name, start in starts.items():
        damaged = bytearray(content)
        damaged[start] ^= 4
        bad.write_bytes(damaged)
        assert [(one.name, one.what) for one in check_archive(bad).damage] == [(name, "damaged")]
    capsys.readouterr()
    assert look(bad) == 7
    assert f"{name}: damaged\nget the archive again" in capsys.readouterr().out
    with pytest.raises(InputError, match="an archive, which is never changed"):
        print_check(bad, mend=True, seal=False, logs=None, workers=None)
    with pytest.raises(InputError, match="an archive: faultsweep check compares it"):
        find_store(str(bad))
    for place in range(len(content) - 200, len(content), 7):  # the list of its files
        damaged = bytearray(content)
        damaged[place] ^= 1
        bad.write_bytes(damaged)
        with contextlib.suppress(InputError):
            check_archive(bad)


def test_check_names_what_an_archive_lacks(archive, tmp_path):
    lacks = tmp_path / "lacks.zarr.zip"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(lacks, "w") as new:
        last = [name for name in old.namelist() if name.startswith("sum/c/")][-1]
        for name in old.namelist():
            if name != last:
                new.writestr(name, old.read(name))
    assert [(one.name, one.what) for one in check_archive(lacks).damage] == [(last, "absent")]


def test_a_zip_without_checksums_says_so(store, tmp_path):
    shutil.make_archive(str(tmp_path / "s.zarr"), "zip", store)
    found = unpack(tmp_path / "s.zarr.zip", tmp_path / "u.zarr")
    assert not found.checked
    assert open_results(tmp_path / "u.zarr").load().equals(open_results(store).load())


def test_logs_are_acknowledged(tmp_path):
    (tmp_path / "mine.swf").write_text("; Version: 2.2\n; Acknowledge: Ada Lovelace\n; MaxNodes: 4\n")
    text = " ".join(acknowledgements(["sdsc-model", "NASA", "mine.swf"], ["mtbf", "lanl.csv"], [tmp_path]))
    assert "Victor Hazlewood" in text
    assert "Bill Nitzberg" in text
    assert "Jobs of mine.swf: Ada Lovelace." in text
    assert "Failures of lanl.csv" in text
    assert "mtbf" not in text


class _Bucket(SimpleHTTPRequestHandler):
    """As much of S3 as reading takes: HEAD, GET with ranges, and the listing of one key."""

    def log_message(self, *args):
        """Keep the tests' output clean."""

    def do_HEAD(self):
        self._answer(body=False)

    def do_GET(self):
        self._answer(body=True)

    def _answer(self, body):
        query = parse_qs(urlparse(self.path).query)
        if "list-type" in query:
            text = b'<?xml version="1.0"?><ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>'
            self._send(200, text, {}, body)
            return
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", {}, body)
            return
        content = path.read_bytes()
        headers = {"ETag": '"1"', "Last-Modified": "Sat, 01 Jan 2000 00:00:00 GMT", "Accept-Ranges": "bytes"}
        wanted = self.headers.get("Range")
        if wanted is None:
            self._send(200, content, headers, body)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last or len(content) - 1) + 1]
        headers["Content-Range"] = f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}"
        self._send(206, part, headers, body)

    def _send(self, code, content, headers, body):
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


def test_per_job_results_are_there_wherever_the_store_is(tmp_path, client):
    """A folder can be listed, an archive and a web server cannot."""
    path = tmp_path / "bucket" / "j.zarr"
    path.parent.mkdir()
    sweep = Sweep(axes={"a": [1, 2, 3]}, function=functions.with_jobs, outputs=["y"], keep_jobs=True)
    expected = open_jobs(sweep.run(path, cluster=client, progress=False), a=2)
    pack(path, path.with_suffix(".zarr.zip"))
    assert expected.sizes["job"] > 0
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Bucket, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/bucket/j.zarr"
        for place in (f"{path}.zip", url, f"{url}.zip"):
            assert open_jobs(open_results(place), a=2).equals(expected), place
        server.shutdown()


def test_a_packed_store_opens_from_s3_and_http(archive, store, tmp_path, monkeypatch):
    pytest.importorskip("s3fs")
    (tmp_path / "bucket").mkdir()
    shutil.copy(archive, tmp_path / "bucket")
    handler = functools.partial(_Bucket, directory=str(tmp_path))
    local = open_results(store).load()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setitem(fsspec.config.conf, "s3", {"anon": True, "endpoint_url": place})
        assert open_results("s3://bucket/s.zarr.zip").load().equals(local)
        assert (
            xr.open_zarr(f"zip::{place}/bucket/s.zarr.zip", chunks=None)
            .load()["sum"]
            .equals(xr.open_zarr(store, chunks=None).load()["sum"])
        )
        server.shutdown()
