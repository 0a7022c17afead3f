"""Clients and workers without the credentials of a cluster."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import distributed
import pytest
from faultsweep.cluster.connect import connect
from faultsweep.cluster.credentials import write_credentials

from faultsweep.errors import InputError


def join(address: str, security: Any, patience_s: float = 1.0) -> int:
    """Be a worker of a scheduler for a moment; returns how many it has then, this one included."""

    async def work() -> int:
        options: dict[str, Any] = {"death_timeout": patience_s, "nthreads": 1, "dashboard": False}
        async with distributed.Worker(address, security=security, **options) as worker:
            return len((await worker.scheduler.identity())["workers"])

    return asyncio.run(work())


def assert_closed_to_strangers(address: str) -> None:
    """Clients and workers without credentials, or with other ones, are refused."""
    bare = address.replace("tls://", "tcp://")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "other.json"
        other = write_credentials(file)
        for place, credentials in ((address, file), (address, None), (bare, None)):
            with (
                pytest.raises(InputError, match="cannot reach the scheduler"),
                connect(place, credentials=credentials, timeout_s=1),
            ):
                pass
    for place, security in ((address, other), (address, None), (bare, None)):
        with pytest.raises((OSError, RuntimeError, asyncio.TimeoutError)):
            join(place, security)
