"""How ``distributed`` is set up in every process of a cluster that is started here."""

from __future__ import annotations

from typing import Any

SHORT_LOGS: dict[str, Any] = {"distributed.admin.low-level-log-length": 16}
"""Of every connection, Dask keeps its last 1,000 messages, and what is to be run is in them: a gigabyte, measured."""
SETTINGS: dict[str, Any] = {
    **SHORT_LOGS,
    "distributed.scheduler.allowed-failures": 0,  # the runner decides what a lost worker means
    "distributed.comm.timeouts.connect": "60s",
    "distributed.scheduler.http.routes": [],  # the HTTP server starts anyway, without TLS: it answers nothing
    "distributed.worker.http.routes": [],
    # what looks at a worker every few milliseconds takes the GIL from the simulation: 8 % of 50 ms runs, measured
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    # a worker that takes no task until it has more memory waits for ever: what it keeps for its runs stays
    "distributed.worker.memory.pause": False,
    # Dask has workers give free memory back at once, and the next simulation gets it anew, page by page
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 26,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,
    "distributed.nanny.pre-spawn-environ.PYTHONHASHSEED": "6640",  # as Dask has it: one for all workers
    "distributed.worker.memory.target": False,  # results leave at once: none is kept on a disk
    "distributed.worker.memory.spill": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.tick.cycle": "5s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
}

LOOPBACK = "127.0.0.1:0"
"""Where the HTTP servers of schedulers and workers listen: they have no TLS."""
CREDENTIALS = "tls.json"
"""File of the TLS credentials beside a scheduler's file."""
SCHEDULER_VARIABLE = "FAULTSWEEP_SCHEDULER"
"""Environment variable that names the scheduler's file to the sweep of a batch job."""
DASHBOARD = "dashboard.txt"
"""File beside a scheduler's credentials that tells how its dashboard is reached."""
WORKERS = "workers.json"
"""File beside a scheduler's that tells how many workers a node gets, by its name."""
SCHEDULER = "scheduler.json"
"""File that tells where a scheduler is."""
