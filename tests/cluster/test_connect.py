"""Clusters that this project starts are closed to others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from textwrap import indent
from typing import Any

import dask
import distributed
import psutil
import pytest
from cryptography import x509
from dask.utils import parse_timedelta
from distributed.core import Status
from faultsweep.cluster import connect as connecting
from faultsweep.cluster.connect import connect, mend_workers
from faultsweep.cluster.credentials import read_credentials, temporary_security, write_credentials
from faultsweep.cluster.interrupts import handlers_stay
from tornado.httpclient import HTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from faultsweep.errors import InputError
from tests.cluster.strangers import assert_closed_to_strangers, join
from tests.sweeps.script import long_sweep


@pytest.fixture(scope="module")
def local():
    with connect("local", 1) as client:
        yield client


def test_local_cluster_speaks_tls_on_loopback_only(local):
    assert local.scheduler.address.startswith("tls://127.0.0.1:")
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    listening = [c.laddr.ip for p in processes for c in p.net_connections() if c.status == psutil.CONN_LISTEN]
    assert set(listening) <= {"127.0.0.1", "::1"}


def test_a_stranger_can_neither_connect_nor_work(local):
    assert_closed_to_strangers(local.scheduler.address)
    assert join(local.scheduler.address, local.security, 10.0) == 2, "one of the strangers had been let in"


def test_nothing_is_shown_over_http(local):
    def ports(dask_scheduler):
        return dask_scheduler.http_server.port

    port = local.run_on_scheduler(ports)
    for path in ("/status", "/info/main/workers.html", "/json/identity.json", "/metrics", "/"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5)
        assert caught.value.code == 404


def test_a_worker_keeps_its_memory_from_one_task_to_the_next(local):
    """What it gave back would come page by page: that was half of the time of a short simulation."""

    def pages(megabytes: int) -> int:
        import resource

        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        bytearray(megabytes << 20)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    later = [local.submit(pages, 16, pure=False).result() for _ in range(4)][1:]
    assert max(later) < 1000, "of 4,096 pages of 4 KiB"


def fetch(url: str, cookie: str = "") -> Any:
    """Return what a server answers, redirections and errors, too."""
    request = HTTPRequest(
        url, headers={"Cookie": cookie}, follow_redirects=False, request_timeout=20, connect_timeout=20
    )
    return HTTPClient().fetch(request, raise_error=False)


def test_idle_workers_rest(local):
    """What wakes them takes time from those that work: they report every few seconds, and keep nothing for a disk."""

    def pauses_ms(dask_worker):
        return {name: timer.callback_time for name, timer in dask_worker.periodic_callbacks.items()}

    for _ in range(100):
        [found] = local.run(pauses_ms).values()
        if found["heartbeat"] == 5000.0:
            break
        time.sleep(0.1)
    assert found["heartbeat"] == 5000.0
    assert "memory_monitor" not in found
    limit_ms = 1000 * parse_timedelta(dask.config.get("distributed.admin.tick.limit"))
    assert found["tick"] < limit_ms / 2, "else every tick is reported as late"
    assert distributed.scheduler.heartbeat_interval(1) == 0.5, "clusters of the user's are as they were"


def test_a_scheduler_here_wakes_seldom(local):
    timers = local.cluster.scheduler.periodic_callbacks
    assert min(timer.callback_time for timer in timers.values()) >= 1000.0


def test_the_dashboard_of_dask_opens_with_a_token_and_on_loopback():
    said: list[str] = []
    with connect("local", 1, dashboard=said.append) as client:
        text, tunnel = said[0].splitlines()
        link = text.removeprefix("Dask's dashboard: ")
        page, _, token = link.partition("?token=")
        port = int(page.split(":")[2].partition("/")[0])
        assert tunnel.startswith(f"  from another machine, first: ssh -N -L {port}:127.0.0.1:{port} ")
        listening = [c.laddr for c in psutil.Process().net_connections() if c.status == psutil.CONN_LISTEN]
        assert [place.ip for place in listening if place.port == port] == ["127.0.0.1"]

        pages = ("", "status", "json/identity.json", "info/main/workers.html", "statics/css/base.css", "sitemap.json")
        for path in pages:
            assert fetch(f"http://127.0.0.1:{port}/{path}").code == 403
            assert fetch(f"http://127.0.0.1:{port}/{path}?token={token[:-1]}").code == 403
        admitted = fetch(link)
        assert (admitted.code, admitted.headers["Location"]) == (302, "/status")
        cookie, *flags = admitted.headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=Lax"} <= set(flags)
        assert b"bokeh" in fetch(page, cookie).body.lower()
        assert client.scheduler.address.encode() in fetch(f"http://127.0.0.1:{port}/json/identity.json", cookie).body
        for headers in ({}, {"Cookie": cookie, "Origin": "http://evil.example"}):
            with pytest.raises(HTTPClientError, match="403"):
                asyncio.run(open_socket(port, headers))
        asyncio.run(open_socket(port, {"Cookie": cookie, "Origin": f"http://127.0.0.1:{port}"}))


async def open_socket(port: int, headers: dict[str, str]) -> None:
    """Open the connection that carries the data of the dashboard."""
    (await websocket_connect(HTTPRequest(f"ws://127.0.0.1:{port}/status/ws", headers=headers))).close()


def test_the_dashboard_of_a_cluster_that_runs_already_is_its_own(local, tmp_path):
    with pytest.raises(InputError, match="dask_dashboard: the cluster was not started here"):
        long_sweep().run(tmp_path / "s.zarr", cluster=local, dask_dashboard=True)
    assert not list(tmp_path.iterdir())


def test_workers_are_processes_with_one_thread(local):
    assert list(local.nthreads().values()) == [1]
    assert local.submit(os.getpid).result() != os.getpid()


def test_workers_that_a_cluster_has_dropped_come_back():
    """Dask drops a worker that takes longer than its patience to start again, and starts no other."""
    with connect("local", 1) as client:
        cluster = client.cluster
        name, nanny = next(iter(cluster.workers.items()))
        client.sync(nanny.close)
        cluster.workers.pop(name, None)
        gone, end = {}, time.monotonic() + 60
        while len(client.nthreads()) < 1 and time.monotonic() < end:
            gone = mend_workers(cluster, gone)
            time.sleep(0.5)
        assert client.submit(sum, (1, 2)).result(30) == 3


def test_ctrl_c_while_a_cluster_closes_waits_until_it_is_closed(monkeypatch):
    close = distributed.LocalCluster.close
    closed = []

    def interrupted(self, **options):
        os.kill(os.getpid(), signal.SIGINT)
        close(self, **options)
        closed.append(self.status)

    monkeypatch.setattr(distributed.LocalCluster, "close", interrupted)
    with pytest.raises(KeyboardInterrupt), connect("local", 1):
        pass
    assert closed == [Status.closed]


def test_ctrl_c_means_the_same_after_an_import_that_changes_it(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    with handlers_stay():
        signal.signal(signal.SIGINT, lambda *_: sys.exit())
    assert signal.getsignal(signal.SIGINT) is before
    program = """
import contextlib, pathlib, signal
from faultsweep.cluster.elastic import worker_jobs
from faultsweep.cluster.site import Site
with contextlib.suppress(Exception), worker_jobs(Site(), pathlib.Path("jobs")):
    pass
import sys
print("dask_jobqueue" in sys.modules, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env={**os.environ, "PATH": ""}
    )
    assert done.stdout == "True True\n"


def test_a_script_that_starts_workers_without_a_guard_gets_one_sentence_at_once(tmp_path):
    begin = "from faultsweep.cluster.connect import connect\n"
    start = 'with connect("local", 1) as client:\n    print(client.submit(abs, -1).result())\n'
    script, ended = tmp_path / "script.py", []
    for program in (f"{begin}\n{start}", f'{begin}if __name__ == "__main__":\n{indent(start, "    ")}'):
        script.write_text(program)
        command = [sys.executable, script]
        ended.append(subprocess.run(command, capture_output=True, text=True, timeout=100, check=False))
    plain, guarded = ended
    problem = f'{script}, line 3: put this under `if __name__ == "__main__":`, because the worker processes'
    assert problem in plain.stderr.splitlines()[-1]
    assert (plain.returncode, guarded.returncode, guarded.stdout, guarded.stderr) == (1, 0, "1\n", "")


def test_credentials_are_for_their_owner_alone(tmp_path):
    path = tmp_path / "tls.json"
    path.write_text("old")
    path.chmod(0o644)
    security = write_credentials(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_credentials(path).tls_client_key == security.tls_client_key
    path.chmod(0o640)
    with pytest.raises(InputError, match="others can read these credentials"):
        read_credentials(path)


def test_nodes_whose_clocks_are_behind_take_the_certificate():
    pem = temporary_security().tls_ca_file.encode()
    certificate = x509.load_pem_x509_certificate(pem)
    now = datetime.now(UTC)
    assert certificate.not_valid_before_utc < now - timedelta(hours=23)
    assert certificate.not_valid_after_utc > now + timedelta(days=364)


def _beside_a_scheduler(folder, use):
    """Return what a function of its address gives while a scheduler runs, which a file of the folder names."""
    security = write_credentials(folder / "tls.json")

    async def serve():
        async with distributed.Scheduler(
            host="127.0.0.1", protocol="tls://", security=security, dashboard=False, port=0, dashboard_address=":0"
        ) as scheduler:
            (folder / "scheduler.json").write_text(json.dumps({"address": scheduler.address}))
            return await asyncio.to_thread(use, scheduler.address)

    return asyncio.run(serve())


def test_a_running_cluster_is_reached_by_address_and_by_file(tmp_path):
    def use(address):
        with connect(address, credentials=tmp_path / "tls.json") as client:
            first = client.scheduler_info()["address"]
        with connect(str(tmp_path / "scheduler.json")) as client:
            return first, client.scheduler_info()["address"], address

    assert len(set(_beside_a_scheduler(tmp_path, use))) == 1


def test_a_client_that_cannot_be_closed_is_waited_for_once(tmp_path, monkeypatch):
    """Dask would close it again when it is collected, wait for a minute and print a traceback."""
    close, ends = distributed.Client._close, threading.Event()

    async def hang(self, fast=False):
        while not ends.is_set():
            await asyncio.sleep(0.01)
        await close(self, fast)

    def use(address):
        monkeypatch.setattr(distributed.Client, "_close", hang)
        with connect(address, credentials=tmp_path / "tls.json") as client:
            assert client.nthreads() == {}
        began = time.monotonic()
        client.__del__()
        ends.set()
        return time.monotonic() - began

    monkeypatch.setattr(connecting, "_FAREWELL_S", 0.2)
    assert _beside_a_scheduler(tmp_path, use) < 10


@pytest.mark.parametrize("cluster", ["nowhere", "tls://127.0.0.1:1", "missing/scheduler.json", 7, b"local"])
def test_a_cluster_that_is_not_there_is_one_sentence(cluster):
    with pytest.raises(InputError, match="cluster: "), connect(cluster, timeout_s=1):
        pass


def test_every_process_listens_on_the_loopback_alone():
    with connect("local", workers=1) as client:
        workers = client.run(os.getpid).values()
        processes = {os.getpid(), *workers, *(psutil.Process(pid).ppid() for pid in workers)}
        found = [(pid, one) for pid in processes for one in psutil.Process(pid).net_connections("tcp")]
        listening = [(pid, one.laddr.ip) for pid, one in found if one.status == psutil.CONN_LISTEN]
        assert {pid for pid, _ in listening} >= set(workers)
        assert {ip for _, ip in listening} == {"127.0.0.1"}
