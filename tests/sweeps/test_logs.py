"""Named logs: found, fetched once, checked by content; a local HTTP server stands for the archive."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.workloads.swf import write_swf
from faultsweep.sweeps import logs, simulator
from faultsweep.sweeps.logs import NAMED_LOGS, find, load_configured, load_workload

from faultsweep.errors import InputError

JOBS = "".join(f"{i} {60 * i} -1 30 2 -1 -1 2 60 -1 1 1 -1 -1 -1 -1 -1 -1\n" for i in range(1, 51))
CONTENT = gzip.compress(f"; MaxNodes: 100\n; Acknowledge: nobody\n{JOBS}".encode(), mtime=0)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache of the user; nothing else is looked into."""
    folder = tmp_path / "cache" / "logs"
    monkeypatch.setattr(logs, "cache_folder", lambda: folder)
    monkeypatch.delenv(logs.LOGS_VARIABLE, raising=False)
    return folder


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Serve a folder as the archive on this machine; ``archive.requests`` are the paths asked for."""
    root = tmp_path / "archive"
    root.mkdir()
    requests = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            requests.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(root)))
    server.root, server.requests = root, requests
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(logs, "ARCHIVE_URL", f"http://127.0.0.1:{server.server_address[1]}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def publish(archive, name, content=CONTENT):
    log = NAMED_LOGS[name]
    (archive.root / log.folder).mkdir(exist_ok=True)
    (archive.root / log.folder / f"{log.file}.swf.gz").write_bytes(content)


def test_a_log_is_fetched_once_and_pinned_at_first_use(cache, archive, caplog):
    publish(archive, "kth-sp2")
    workload = load_workload("KTH")
    assert len(workload) == 50
    assert workload.content_hash[7:] in caplog.text
    assert archive.requests == ["/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"]
    assert json.loads((cache / "pins.json").read_text()) == {"KTH-SP2-1996-2.1-cln": workload.content_hash[7:]}
    caplog.clear()
    assert load_workload("kth-sp2-1996-2.1-cln").content_hash == workload.content_hash
    assert len(archive.requests) == 1
    assert not caplog.text


def test_a_changed_log_is_refused_and_leaves_no_file_behind(cache, archive):
    publish(archive, "ctc-sp2")
    first = load_workload("ctc-sp2")
    next(cache.glob("CTC*")).unlink()
    publish(archive, "ctc-sp2", gzip.compress(b";\n" + gzip.decompress(CONTENT)))
    with pytest.raises(InputError, match=rf"not that of CTC-SP2-1996-3.1-cln .*expected {first.content_hash[7:]}"):
        load_workload("ctc-sp2")
    assert not list(cache.glob("CTC*"))
    publish(archive, "nasa")
    with pytest.raises(InputError, match=r"not that of NASA-iPSC-1993-3.1-cln .*expected 9d997a2c"):
        load_workload("nasa")


def test_a_damaged_download_is_refused_and_fetched_again(cache, archive):
    publish(archive, "kth-sp2", CONTENT[:-20])
    with pytest.raises(InputError, match="damaged or cut short"):
        load_workload("kth-sp2")
    publish(archive, "kth-sp2")
    assert len(load_workload("kth-sp2")) == 50


def test_malformed_lines_of_a_named_log_can_be_skipped(cache, archive):
    publish(archive, "kth-sp2", gzip.compress(gzip.decompress(CONTENT) + b"51 letters\n"))
    with pytest.raises(InputError, match=r":53: field 2 is 'letters'"):
        load_workload("kth-sp2")
    publish(archive, "kth-sp2", gzip.compress(gzip.decompress(CONTENT) + b"51 letters\n"))
    assert load_workload("kth-sp2", on_error="skip").dropped == {"malformed line": 1}


def test_a_model_makes_no_more_jobs_than_memory_holds():
    with pytest.raises(InputError, match=r"sdsc-model: cannot make 99,999,999,100 jobs .valid: .* 10,000,000 at most"):
        load_configured(resolve({"log": "sdsc-model", "offset": 99_999_999_000, "num_jobs": 100}))


def test_a_server_that_unpacks_is_understood(cache, archive):
    publish(archive, "kth-sp2", gzip.decompress(CONTENT))
    assert len(load_workload("kth-sp2")) == 50


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9"])
def test_without_the_log_or_a_network_the_error_says_what_to_do(cache, archive, monkeypatch, url):
    if url:
        monkeypatch.setattr(logs, "ARCHIVE_URL", url)
    with pytest.raises(InputError) as error:
        load_workload("sdsc")
    text = str(error.value)
    for part in (
        "SDSC-SP2-1998-4.2-cln.swf.gz",
        "--logs DIR",
        "FAULTSWEEP_LOGS",
        "lublin, nasa-model, sdsc-model, atlas-model",
        "127.0.0.1",
    ):
        assert part in text
    assert "\n" not in text
    assert ("no connection" if url else "the server says 404 File not found") in text


def test_a_silent_server_is_one_clear_sentence(cache, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(logs, "ARCHIVE_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(logs, "DOWNLOAD_TIMEOUT_S", 0.1)
        with pytest.raises(InputError, match=r"cannot be fetched from http://.* .no answer in 0.1 s.; put "):
            load_workload("sdsc")


def test_logs_are_found_in_folders_before_the_network_is_asked(cache, tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "ARCHIVE_URL", "http://127.0.0.1:9")
    deep = tmp_path / "here" / "deep"
    deep.mkdir(parents=True)
    log = NAMED_LOGS["kth-sp2"]
    (deep / f"{log.file}.swf").write_bytes(gzip.decompress(CONTENT))
    assert find(log, tmp_path / "here") == deep / f"{log.file}.swf"
    assert len(load_workload("kth", tmp_path / "here")) == 50
    assert find(log) is None
    monkeypatch.setenv(logs.LOGS_VARIABLE, str(tmp_path / "here"))
    assert len(load_workload("kth")) == 50
    monkeypatch.setenv(logs.LOGS_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"FAULTSWEEP_LOGS: .* is not a folder"):
        load_workload("kth")
    for name in ("kth", "sdsc-model"):
        with pytest.raises(InputError, match=r"--logs: .* is not a folder"):
            load_workload(name, tmp_path / "absent")


def test_a_bad_file_of_the_user_is_left_alone(cache, tmp_path):
    (tmp_path / "NASA-iPSC-1993-3.1-cln.swf.gz").write_bytes(CONTENT)
    with pytest.raises(InputError, match="give the path instead"):
        load_workload("nasa", tmp_path)
    assert len(load_workload(tmp_path / "NASA-iPSC-1993-3.1-cln.swf.gz")) == 50


def test_a_cache_that_cannot_be_written_does_not_stop_a_run(cache, tmp_path, caplog):
    cache.parent.mkdir(parents=True)
    cache.write_text("a file where the folder should be")
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(CONTENT)
    assert len(load_workload("kth", tmp_path)) == 50
    assert "cannot be written" in caplog.text
    with pytest.raises(InputError, match="cannot be fetched"):
        load_workload("ctc")


def test_damaged_pins_are_named(cache, tmp_path):
    cache.mkdir(parents=True)
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(CONTENT)
    for text in ("{", "[]"):
        (cache / "pins.json").write_text(text)
        with pytest.raises(InputError, match=r"pins\.json: is damaged; remove it"):
            load_workload("kth", tmp_path)


def test_unknown_names_list_what_is_valid(cache):
    with pytest.raises(InputError, match=r"unknown log 'nassa'; did you mean 'nasa'\? \(valid: anl-intrepid, .*lublin"):
        load_workload("nassa")
    with pytest.raises(InputError, match="cannot be read"):
        load_workload("absent.swf")
    with pytest.raises(InputError, match="no job log is given"):
        load_workload("")


def test_models_take_number_seed_and_replicate(cache):
    config = resolve({"log": "Lublin", "offset": 30, "num_jobs": 20, "seed": 3, "replicate": 1})
    workload = load_configured(config)
    assert len(workload) == 50
    assert workload.run_s.tolist() == load_workload("lublin", num_jobs=50, seed=3, replicate=1).run_s.tolist()
    assert len(load_workload("sdsc-model")) == 10_000


def test_the_first_jobs_of_a_file(tmp_path):
    path = tmp_path / "a.swf"
    write_swf(load_workload("sdsc-model", num_jobs=40), path)
    assert load_workload(path, num_jobs=5).job_id.tolist() == load_workload(path).job_id.tolist()[:5]
    with pytest.raises(InputError, match="only 40 valid jobs"):
        load_workload(path, num_jobs=41)
    assert len(load_configured(resolve({"log": str(path), "num_jobs": 5}))) == 40  # a run takes its span itself


@pytest.mark.parametrize("number", [-1, 2.5, "5", None, True])
def test_what_is_no_number_of_jobs_is_refused(number, tmp_path):
    path = tmp_path / "a.swf"
    write_swf(load_workload("sdsc-model", num_jobs=40), path)
    for log in (path, "sdsc-model"):
        with pytest.raises(InputError, match=r"^num_jobs: "):
            load_workload(log, num_jobs=number)


def test_names_files_and_aliases_are_distinct():
    names = [alias for name, log in NAMED_LOGS.items() for alias in (name, log.file, *log.aliases)]
    assert len({name.lower() for name in names}) == len(names)
    assert all(log.thanks and log.machine for log in NAMED_LOGS.values())


@pytest.mark.shared
def test_pinned_hashes_are_those_of_the_real_logs(cache, job_logs):
    for name, log in NAMED_LOGS.items():
        if log.sha256:
            assert load_workload(name, job_logs.parent).content_hash == f"sha256:{log.sha256}"
    assert not cache.exists()


def test_jobs_of_models_are_kept_while_they_are_few(monkeypatch):
    """Cells take turns with the replicates, and drawing the jobs of a model takes longer than many a run."""
    drawn = []

    def load_and_note(config, folder):
        drawn.append(config["replicate"])
        return load_configured(config, folder)

    monkeypatch.setattr(logs, "load_configured", load_and_note)
    monkeypatch.setattr(simulator, "_KEPT_JOBS", 25)
    target = simulator.SimulatorTarget()
    for replicate in (0, 1, 2, 0, 1, 2, 3, 3, 2, 0):
        jobs = target._workload(resolve({"log": "nasa-model", "num_jobs": 10, "replicate": replicate}))
        assert len(jobs) == 10
    assert drawn == [0, 1, 2, 3, 0]
