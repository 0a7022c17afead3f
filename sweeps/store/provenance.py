"""What a store says about how it was made."""

from __future__ import annotations

import platform
import socket
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from faultsweep.cluster.batch_systems import own_job

PACKAGES = ("faultsweep", "numpy", "numba", "scipy", "dask", "distributed", "xarray", "zarr", "cloudpickle")


@cache
def _version(name: str) -> str | None:
    """Return the version of an installed package, which takes some milliseconds."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def describe_run() -> dict[str, Any]:
    """Return package versions, host, processor, user's batch job and time of this run."""
    versions = {name: found for name in PACKAGES if (found := _version(name)) is not None}
    return {
        "versions": {"python": platform.python_version(), **versions},
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "batch_job": own_job(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
