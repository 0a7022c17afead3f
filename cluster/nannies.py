"""The workers of one node: ``python -m faultsweep.cluster.nannies FOLDER WORKERS``.

One process holds a nanny per worker, which starts the worker's process again when it dies. FOLDER is the scheduler's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import socket
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import dask
import distributed
from faultsweep.cluster.credentials import read_credentials
from faultsweep.cluster.forking import begin
from faultsweep.cluster.scheduler import until_signalled
from faultsweep.cluster.settings import CREDENTIALS, LOOPBACK, SCHEDULER, SETTINGS, WORKERS
from faultsweep.cluster.steady import use_monotonic_clock

_DEATH_TIMEOUT_S = 60.0


def workers_of_node(folder: Path, workers: int) -> int:
    """Return how many workers this node gets: what the job has written down for it, or ``workers``."""
    try:
        known: dict[str, int] = json.loads((folder / WORKERS).read_text())
    except (OSError, ValueError):
        return workers
    host = socket.gethostname()
    names = (os.environ.get("SLURMD_NODENAME", ""), host, host.partition(".")[0])
    return next((known[name] for name in names if name in known), workers)


def find_scheduler(folder: Path, wait_s: float = 60.0) -> tuple[str, Any]:
    """Return address and credentials of the scheduler, when its file is there (a file system may show it late)."""
    end = time.monotonic() + wait_s
    while not (folder / SCHEDULER).exists():
        if time.monotonic() > end:
            raise TimeoutError(f"{folder / SCHEDULER} is not there")
        time.sleep(0.2)
    return json.loads((folder / SCHEDULER).read_text())["address"], read_credentials(folder / CREDENTIALS)


async def serve(arguments: argparse.Namespace, scratch: str) -> None:
    """Be the nannies of so many workers."""
    address, security = find_scheduler(arguments.folder)
    number = workers_of_node(arguments.folder, arguments.workers)
    options: dict[str, Any] = {
        "nthreads": 1,
        "security": security,
        "protocol": "tls://",
        "interface": arguments.interface,
        "memory_limit": arguments.memory_bytes,
        "death_timeout": _DEATH_TIMEOUT_S,
        "local_directory": scratch,
        "dashboard": False,
        "dashboard_address": LOOPBACK,
        "preload": ["faultsweep.cluster.steady"],
        "silence_logs": logging.CRITICAL,
    }
    async with AsyncExitStack() as stack:
        made = [distributed.Nanny(address, **options) for _ in range(number)]
        nannies = await asyncio.gather(*(stack.enter_async_context(nanny) for nanny in made))
        await asyncio.gather(*(nanny.finished() for nanny in nannies))


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="Dask workers of one node of a batch job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("workers", type=int)
    parser.add_argument("--interface")
    parser.add_argument("--memory-bytes", type=int, default=0, help="of one worker; 0: no limit")
    parser.add_argument("--scratch", help="folder of the node for temporary files")
    arguments = parser.parse_args()
    use_monotonic_clock()
    settings = {**SETTINGS, **begin()}
    with tempfile.TemporaryDirectory(prefix="faultsweep-", dir=arguments.scratch) as scratch, dask.config.set(settings):
        try:
            asyncio.run(until_signalled(serve(arguments, scratch)))
        except TimeoutError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
