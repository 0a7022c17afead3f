"""What a store says about how it was made."""

from __future__ import annotations

import platform
import socket
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from faultsweep.cluster.batch_systems import own_job

PACKAGES = ("faultsweep", "numpy", "numba", "scipy", "dask", "distributed", "xarray", "zarr", "cloudpickle")


def describe_run() -> dict[str, Any]:
    """Return package versions, host, processor, user's batch job and time of this run."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "processor": platform.machine(),
        "batch_job": own_job(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
