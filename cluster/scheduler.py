"""The scheduler process of a batch job: ``python -m faultsweep.cluster.scheduler FOLDER``.

It makes the run's TLS credentials, writes them and its address into FOLDER, and serves until it is told to end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import dask
import distributed
from faultsweep.cluster.credentials import write_credentials
from faultsweep.cluster.dashboard import DASHBOARD_SETTINGS, ShownScheduler, write_how_to_reach
from faultsweep.cluster.processes import say
from faultsweep.cluster.settings import CREDENTIALS, LOOPBACK, SCHEDULER, SETTINGS
from faultsweep.cluster.steady import use_monotonic_clock


async def until_signalled(served: Coroutine[Any, Any, None]) -> None:
    """Run ``served`` until it ends, or SIGTERM or SIGINT ends it."""
    task = asyncio.ensure_future(served)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


async def serve(folder: Path, interface: str | None, dashboard: bool) -> None:
    """Be the scheduler."""
    security = write_credentials(folder / CREDENTIALS)
    options: dict[str, Any] = {"protocol": "tls://", "port": 0, "dashboard": False, "dashboard_address": LOOPBACK}
    kind = distributed.Scheduler
    if dashboard:
        kind = ShownScheduler
    async with kind(security=security, interface=interface, **options) as scheduler:
        if dashboard:
            write_how_to_reach(scheduler, folder)
        draft = folder / f"{SCHEDULER}.partial"
        draft.write_text(json.dumps({"address": scheduler.address}))
        os.replace(draft, folder / SCHEDULER)
        say(f"scheduler at {scheduler.address}")
        await scheduler.finished()


def main() -> None:
    """Read the arguments and serve."""
    parser = argparse.ArgumentParser(description="Dask scheduler of a batch job")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interface")
    parser.add_argument("--dashboard", action="store_true", help="Dask's own, on the loopback, with a token")
    use_monotonic_clock()
    arguments = parser.parse_args()
    settings = SETTINGS
    # distributed names an address at which nothing is shown
    logging.getLogger("distributed.scheduler").addFilter(lambda record: "dashboard at" not in record.getMessage())
    if arguments.dashboard:
        settings = SETTINGS | DASHBOARD_SETTINGS
    with dask.config.set(settings):
        try:
            asyncio.run(until_signalled(serve(arguments.folder, arguments.interface, arguments.dashboard)))
        except (OSError, ValueError) as error:  # no such interface, say
            sys.exit(f"the scheduler cannot start ({error})")


if __name__ == "__main__":
    main()
