"""Workers as jobs of their own: dask-jobqueue's classes, one worker per job, each replaced when it is lost.

``adapt`` with equal bounds replaces jobs that registered and were lost (``scale`` does not). A watchdog looks at
the queue for jobs that ended before they registered, which dask-jobqueue reports as running for ever, as it does with
those that could not be submitted; it has them replaced at growing intervals, and when nothing but jobs that end early
comes, it stops the sweep and says why.
"""

from __future__ import annotations

import _thread
import contextlib
import hashlib
import logging
import math
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import dask
import distributed
from faultsweep.cluster.batch_systems import default_system, find
from faultsweep.cluster.batch_systems.common import BatchSystemError, NoAnswerError
from faultsweep.cluster.credentials import temporary_security
from faultsweep.cluster.dashboard import DASHBOARD_SETTINGS, ShownScheduler, write_how_to_reach
from faultsweep.cluster.interrupts import handlers_stay
from faultsweep.cluster.settings import LOOPBACK, SETTINGS
from faultsweep.cluster.site import Site, parse_memory
from faultsweep.cluster.steady import use_monotonic_clock
from faultsweep.cluster.times import parse_time

from faultsweep.errors import InputError
from faultsweep.extras import require

EARLY_DEATHS = 5
"""So many jobs in a row that ended before they registered stop the sweep."""
_LOOK_S = 3.0
_SUBMIT_AGAIN_S = 30.0
_FORGET_S = 20.0
"""A job that squeue does not list yet may have been submitted just now."""


def worker_job_name(folder: Path) -> str:
    """Return the name of all worker jobs of the run that keeps its files in ``folder``."""
    return f"faultsweep-worker-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:10]}"


def cancel_workers(folder: Path, system: ModuleType) -> None:
    """Cancel the worker jobs of a run, those that wait in the queue as well."""
    system.cancel_named(worker_job_name(folder))


@contextmanager
def worker_jobs(site: Site, folder: Path, dashboard: Callable[[str], None] | None = None) -> Iterator[Any]:
    """Yield a client of a scheduler in this process whose workers are jobs; ``folder`` keeps their logs.

    ``dashboard`` asks for Dask's own dashboard, as the site's settings may do, and is told how to reach it.

    Raises
    ------
    InputError
        dask-jobqueue is not installed, or the batch system would not take the jobs.
    """
    require("a cluster of worker jobs", "dask_jobqueue")
    with handlers_stay():
        import dask_jobqueue
    system = find(site.system or default_system())
    use_monotonic_clock()
    cancel_workers(folder, system)  # of a run that was killed
    for left in folder.glob("tls-*"):  # its credentials
        shutil.rmtree(left, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    secrets = folder / f"tls-{os.getpid()}"
    secrets.mkdir(mode=0o700, exist_ok=True)
    settings = {**SETTINGS, "distributed.deploy.lost-worker-timeout": "2s"}
    kind, options = _options(site, folder)
    if dashboard is None and site.dask_dashboard:
        dashboard = _tell
    if dashboard is not None:
        settings |= DASHBOARD_SETTINGS
        options["scheduler_cls"] = ShownScheduler
    try:
        with dask.config.set(settings):
            try:
                cluster = getattr(dask_jobqueue, kind)(security=_write_files(secrets), **options)
            except OSError as error:
                raise InputError(f"cluster: the scheduler cannot start ({error})") from None
            try:
                _test(cluster.job_script(), site, system)
                if dashboard is not None:
                    dashboard(write_how_to_reach(cluster.scheduler, secrets))
                watchdog = _Watchdog(cluster, folder, system)
                # every job is submitted by dask-jobqueue
                overrides = getattr(system, "without_overrides", contextlib.nullcontext)(cluster.job_script())
                with overrides, distributed.Client(cluster, set_as_default=False) as client, watchdog:
                    cluster.adapt(minimum_jobs=site.max_jobs, maximum_jobs=site.max_jobs, interval="1s")
                    try:
                        yield client
                    except BaseException as error:
                        watchdog.explain(error)
                        raise
            finally:
                with contextlib.suppress(Exception):  # a job that is gone already makes close() raise
                    cluster.close(timeout=10)
    finally:
        cancel_workers(folder, system)
        shutil.rmtree(secrets, ignore_errors=True)


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _test(script: str, site: Site, system: ModuleType) -> None:
    system.check_options(site)
    try:
        system.test(script, [])
    except NoAnswerError:
        return  # the jobs are submitted when it answers
    except BatchSystemError as error:
        raise InputError(system.describe_refusal(str(error), site)) from None


def _options(site: Site, folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the class of dask-jobqueue, and its arguments."""
    name = worker_job_name(folder)
    kind, own = find(site.system or default_system()).worker_cluster(site, name)
    memory = parse_memory(site.memory_per_worker or "1GB")
    extra = ["--no-dashboard", "--dashboard-address", LOOPBACK, "--preload", "faultsweep.cluster.steady"]
    if site.memory_per_worker is None:
        extra += ["--memory-limit", "0"]  # no limit but the batch system's own
    if site.time is not None and math.isfinite(seconds := parse_time(site.time)):
        life = max(seconds - site.grace_s, seconds / 2)
        extra += ["--lifetime", f"{life:.0f}s", "--lifetime-stagger", f"{min(60.0, life / 10):.0f}s"]
    options = {
        "queue": site.partition,
        "account": site.account,
        "cores": 1,
        "processes": 1,
        "memory": f"{memory}B",
        "job_script_prologue": [*site.setup, *_environment()],
        "python": shlex.quote(site.python or sys.executable) + ("" if _finds_modules_here() else " -P"),
        "interface": site.interface,
        "protocol": "tls://",
        "death_timeout": 60,
        "local_directory": site.scratch or "/tmp",  # noqa: S108 - of the node; distributed makes its own folder in it
        "log_directory": str(folder / "workers"),
        "job_name": name,
        "worker_extra_args": extra,
        "scheduler_options": {"dashboard": False, "dashboard_address": LOOPBACK},
        "silence_logs": logging.CRITICAL,
    }
    return kind, options | own


def _finds_modules_here() -> bool:
    """Tell whether this process imports modules of the working directory; its workers, who start there, do so, too."""
    return str(Path.cwd()) in {str(Path(place).resolve()) for place in sys.path}


def _environment() -> list[str]:
    """Return the settings of ``distributed`` as shell lines, for processes that this one does not start itself."""
    names = {f"DASK_{key.replace('.', '__').replace('-', '_').upper()}": value for key, value in SETTINGS.items()}
    return [f"export {name}={shlex.quote(str(value))}" for name, value in names.items()]


def _write_files(folder: Path) -> Any:
    """Make TLS credentials as files that only the user can read: the command line of a worker names them."""
    made = temporary_security()
    fields = {}
    for name in ("tls_ca_file", "tls_scheduler_key", "tls_scheduler_cert", "tls_worker_key", "tls_worker_cert"):
        path = folder / f"{name}.pem"
        with os.fdopen(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(getattr(made, name))
        fields[name] = str(path)
    fields |= {"tls_client_key": fields["tls_worker_key"], "tls_client_cert": fields["tls_worker_cert"]}
    return distributed.Security(require_encryption=True, **fields)


class _Watchdog:
    """Looks at the queue for worker jobs that ended before they registered, and has them replaced."""

    def __init__(self, cluster: Any, folder: Path, system: ModuleType) -> None:
        self.cluster = cluster
        self.system = system
        self.folder = folder
        self.early = 0
        self._reason = ""
        self._first_seen: dict[str, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog of worker jobs", daemon=True)

    def __enter__(self) -> _Watchdog:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(min(_LOOK_S * (1 + self.early), 30)):
            try:
                self._look()
            except BatchSystemError:
                continue  # the controller does not answer; it will
            if self.early >= EARLY_DEATHS:
                self._reason = self._find_reason()
                _thread.interrupt_main()
                return

    def _look(self) -> None:
        name = worker_job_name(self.folder)
        queued = self.system.jobs_named(name)
        registered = {worker.get("id") for worker in self.cluster.scheduler_info["workers"].values()}
        if registered:
            self.early = 0
        now = time.monotonic()
        for number, job in list(self.cluster.workers.items()):
            job_id = getattr(job, "job_id", None)
            if job_id is None:  # sbatch has failed
                if now - self._first_seen.setdefault(f"worker {number}", now) > _SUBMIT_AGAIN_S:
                    del self._first_seen[f"worker {number}"]
                    self.cluster.loop.add_callback(self._forget, number)
                continue
            first = self._first_seen.setdefault(str(job_id), now)
            wanted = str(number) in {str(one) for one in registered}
            if str(job_id) not in queued and not wanted and now - first > min(_FORGET_S, 2 * _LOOK_S):
                self.early += 0 if registered else 1
                self.cluster.loop.add_callback(self._forget, number)

    def _forget(self, number: Any) -> None:
        """Let the cluster know that a job is gone; ``adapt`` asks for another one."""
        self.cluster.workers.pop(number, None)
        self.cluster.worker_spec.pop(number, None)

    def explain(self, error: BaseException) -> None:
        """Put the reason before the text of what ended the sweep, if this did."""
        if self._reason and error.args:
            error.args = (f"{self._reason}; {error.args[0]}", *error.args[1:])
        elif self._reason:
            sys.stderr.write(f"{self._reason}\n")

    def _find_reason(self) -> str:
        logs = sorted((self.folder / "workers").glob("*.err"), key=lambda path: path.stat().st_mtime)
        lines = logs[-1].read_text(errors="replace").split("\n") if logs else []
        last = next((line.strip() for line in reversed(lines) if line.strip()), "they wrote nothing")
        return f"worker jobs end before they register ({self.folder / 'workers'}): {last}"
