"""Dask clients: a cluster of local processes, or one that runs already.

A Dask scheduler executes whatever anyone who reaches its port sends it, on the loopback of a shared machine too. So a
cluster started here talks TLS with credentials that only its own processes have, and shows no dashboard.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
from faultsweep.cluster.credentials import read_credentials, temporary_security
from faultsweep.cluster.forking import begin
from faultsweep.cluster.guard import check_script
from faultsweep.cluster.interrupts import interrupts_wait
from faultsweep.cluster.settings import CREDENTIALS, LOOPBACK, SCHEDULER_VARIABLE, SETTINGS, SHORT_LOGS

from faultsweep.arguments import NUMBER, PATH, WHOLE, shown, takes
from faultsweep.errors import InputError, UnreachableError
from faultsweep.garbage import uncollected

START_S = 120.0
"""Time in which a worker process has to start."""
_FAREWELL_S = 5.0
"""Time in which a client must have left a scheduler that runs already."""
# Dask closes a worker that is away 15 s after a death, even one that has come back, and died again, since then.
_PATIENCE = {"distributed.deploy.lost-worker-timeout": "1 day"}
_REPLACE_AFTER_S = 5.0  # a process that dies is gone for a moment before its nanny starts the next


@takes(workers=WHOLE, credentials=PATH, timeout_s=NUMBER, folder=PATH)
@contextmanager
def connect(
    cluster: Any = None,
    workers: int | None = None,
    credentials: Path | None = None,
    timeout_s: float = 30.0,
    folder: Path | None = None,
    dashboard: Callable[[str], None] | None = None,
) -> Iterator[Any]:
    """Yield a ``distributed.Client``, and close what was started here.

    Parameters
    ----------
    cluster : "local", "slurm" (workers are jobs, set up by the site's file), the address of a scheduler, the path of a
        scheduler file, or a Client, which stays open. None is the cluster of the batch job that this process was
        submitted with, or else "local".
    workers : processes of a local cluster; one per processor if not given.
    credentials : file written by ``write_credentials`` for a cluster that uses TLS.
    timeout_s : how long to wait for a scheduler that is already running.
    folder : with "slurm", where worker jobs find credentials and keep their logs; all nodes must see it.
    dashboard : asks for Dask's own dashboard, and is told how to reach it; only for a cluster that is started here.

    Raises
    ------
    UnreachableError
        The scheduler cannot be reached.
    InputError
        ``cluster`` is none of these; or a script starts workers outside of ``if __name__ == "__main__":``.
    """
    with uncollected():
        import distributed

    cluster = choose(cluster)
    if isinstance(cluster, distributed.Client):
        yield cluster
    elif cluster == "local":
        with _quiet(), _local(workers, dashboard) as client:
            yield client
    elif cluster == "slurm":
        from faultsweep.cluster.elastic import worker_jobs
        from faultsweep.cluster.site import read_site

        site, place = _with_workers(read_site(), workers), folder or Path.cwd()
        with _quiet(), worker_jobs(site, place, dashboard) as client:
            yield client
    elif isinstance(cluster, str | Path):
        with _quiet(), _running(str(cluster), credentials, timeout_s) as client:
            yield client
    else:
        with dask.config.set(SHORT_LOGS), distributed.Client(cluster) as client:
            yield client


def _with_workers(site: Any, workers: int | None) -> Any:
    return site if workers is None else site.model_copy(update={"max_jobs": workers})


def choose(cluster: Any) -> Any:
    """Return ``cluster``, or if it is None that of the batch job that this process was submitted with, or "local".

    Raises
    ------
    InputError
        It is nothing that ``connect`` takes.
    """
    if cluster is None:
        return os.environ.get(SCHEDULER_VARIABLE) or "local"
    if isinstance(cluster, str | Path) or hasattr(cluster, "scheduler_address") or hasattr(cluster, "scheduler_info"):
        return cluster
    raise InputError(f"cluster: expected local, slurm, an address, a scheduler file or a Client, got {shown(cluster)}")


@contextmanager
def _local(workers: int | None, dashboard: Callable[[str], None] | None) -> Iterator[Any]:
    import distributed
    from distributed import system
    from faultsweep.cluster.steady import let_rest, use_monotonic_clock

    check_script()
    use_monotonic_clock()
    number = workers or os.cpu_count() or 1
    # a lost process closes its connection; a clock that jumps is no loss
    method = begin()
    settings = {**SETTINGS, **method, "distributed.scheduler.worker-ttl": None}
    kind = distributed.LocalCluster
    if dashboard is not None:
        from faultsweep.cluster.dashboard import DASHBOARD_SETTINGS, ShownCluster

        settings, kind = settings | DASHBOARD_SETTINGS, ShownCluster
    cluster: Any = None
    client: Any = None
    try:
        with dask.config.set(settings), interrupts_wait() as has_come:
            cluster = kind(
                n_workers=0,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                protocol="tls://",
                security=temporary_security(),
                dashboard_address=LOOPBACK,
                scheduler_kwargs={"dashboard": False},
                scheduler_sync_interval="1m",
                worker_dashboard_address=None,
                preload="faultsweep.cluster.steady",
                silence_logs=logging.CRITICAL,
                config=settings,  # of processes that are started later, too
                env=dict(os.environ),
                memory_limit=system.MEMORY_LIMIT // number,
            )
            # what a worker serves by HTTP, which is nothing, goes to this machine alone
            cluster.new_spec["options"]["dashboard_address"] = LOOPBACK
            cluster.loop.add_callback(let_rest, cluster.scheduler)
            cluster.scale(number)
            _wait_for_processes(cluster, number, has_come)
        if dashboard is not None:
            dashboard(cluster.scheduler.how_to_reach())
        client = distributed.Client(cluster, set_as_default=False)
        with dask.config.set({**_PATIENCE, **method}):
            yield client
    except BaseException:
        _kill_processes(cluster)  # who stops at once does not wait for what they are running
        raise
    finally:
        with interrupts_wait():  # a cluster that was interrupted while it closes keeps the process waiting at its end
            for started, patience_s in ((client, 5), (cluster, 10)):
                # A process that is still starting cannot be told to end, in time or at all; it ends with this one.
                # If an interrupt has ended the loop, sync() of distributed has no result to return.
                with contextlib.suppress(OSError, UnboundLocalError):
                    if started is not None:
                        started.close(timeout=patience_s)


def _wait_for_processes(cluster: Any, number: int, has_come: Callable[[], bool]) -> None:
    """Wait until the workers are there, or until an interrupt ``has_come``; one that dies while it starts is started
    again."""
    gone: dict[Any, float] = {}
    end = look = time.monotonic() + START_S
    pause_s = 0.02
    while len(cluster.scheduler.workers) < number and time.monotonic() < end:
        if has_come():
            return
        time.sleep(pause_s)
        pause_s = min(1.1 * pause_s, 0.2)
        if time.monotonic() > look - START_S + 1:
            look = time.monotonic() + START_S
            gone = mend_workers(cluster, gone)
    if not cluster.scheduler.workers:
        raise InputError(f"no worker process has started within {START_S:g} s; is there too little memory?")


def _kill_processes(cluster: Any) -> None:
    """Kill the worker processes of a local cluster: a thread that is in compiled code ends no other way."""
    for nanny in list(cluster.workers.values()) if cluster is not None and is_local(cluster) else ():
        nanny.auto_restart = False
        if nanny.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(nanny.pid, signal.SIGKILL)


def is_local(cluster: Any) -> bool:
    """Tell whether a client's cluster wants workers that are processes of this machine, started by this process."""
    from distributed import LocalCluster, Nanny

    return isinstance(cluster, LocalCluster) and {spec["cls"] for spec in cluster.worker_spec.values()} == {Nanny}


def mend_workers(cluster: Any, gone: Mapping[Any, float]) -> dict[Any, float]:
    """Replace the worker processes of a local cluster that are gone for good; to be called every second or so.

    A nanny starts a process that dies again, but not its first one if that dies before the nanny has heard of it (the
    scheduler sends a new worker what killed the last one, at once): then it closes. And the cluster drops a worker that
    takes long to come back. Returns since when, on the monotonic clock, which workers have had no process; to be
    given as ``gone`` next time.
    """
    from distributed.core import Status

    if not is_local(cluster) or cluster.status != Status.running:
        return {}
    here, now = dict(cluster.workers), time.monotonic()
    # one that is being started again has no process for a moment, and may have been dead when this looked last
    living = (Status.starting, Status.running)
    dead = [name for name, nanny in here.items() if nanny.process is None or nanny.process.status not in living]
    since = {name: gone.get(name, now) for name in dead}
    lasting = [n for n in dead if here[n].status == Status.closed or now - since[n] >= _REPLACE_AFTER_S]
    for name in lasting:
        cluster.workers.pop(name, None)
        cluster.loop.add_callback(here[name].close, reason="its process is gone")
        del since[name]
    if lasting or len(here) < len(cluster.worker_spec):
        cluster.scale(len(cluster.worker_spec))
    return since


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the pages that ``distributed`` logs about lost processes, and let it keep few of its messages.

    The sweep says in a sentence what they mean.
    """
    import distributed  # its loggers have levels of their own, so each of them must be silenced

    names = (distributed.__name__, "tornado", "asyncio")
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.split(".")[0] in names]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set(SHORT_LOGS):
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


@contextmanager
def _running(address: str, credentials: Path | None, timeout_s: float) -> Iterator[Any]:
    import distributed

    security = read_credentials(credentials) if credentials else None
    target: dict[str, Any] = {"address": address}
    if "://" not in address and not _is_host_port(address):
        file = Path(address)
        if not file.is_file():
            raise InputError(
                f"cluster: {address!r} is neither local, an address (tls://HOST:PORT) nor a scheduler file"
            )
        target = {"scheduler_file": str(file)}
        beside = file.with_name(CREDENTIALS)
        if security is None and beside.is_file():
            security = read_credentials(beside)
    reason = ""
    try:
        client = distributed.Client(**target, security=security, timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError, TimeoutError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
    if reason:
        # a client that failed closes itself when it is collected; if that happens while another one is made or closed,
        # this thread waits for a lock that it has itself (2026.8); here nothing is locked
        gc.collect()
        raise UnreachableError(f"cluster: cannot reach the scheduler at {address} ({reason})")
    try:
        yield client
    finally:
        with contextlib.suppress(OSError):  # a scheduler that is gone, or hangs, answers no farewell
            client.close(timeout=_FAREWELL_S)
        client.status = "closed"  # or it is closed again when it is collected, for a minute, and fails with a traceback


def _is_host_port(address: str) -> bool:
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdigit()
