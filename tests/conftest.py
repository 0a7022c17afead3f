"""Shared fixtures, and the way to the package under test."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

# How long an example takes says nothing where the first one compiles.
settings.register_profile("faultsweep", deadline=None)
settings.load_profile("faultsweep")

ROOT = Path(__file__).resolve().parent.parent

# The folder faultsweep/ of the source tree holds only a part of the package, so the root must not come before the place
# where the package is installed; after it, it makes ``tests`` importable.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT] + [str(ROOT)]


def shared_data() -> Path | None:
    """The directory of real job and failure logs, or None where it is absent."""
    data = Path(os.environ.get("FAULTSWEEP_SHARED", ROOT.parent / "shared" / "data"))
    return data if data.is_dir() else None


def require(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where FAULTSWEEP_REQUIRE (names separated by commas) says ``what`` must be there."""
    if what in os.environ.get("FAULTSWEEP_REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"required by FAULTSWEEP_REQUIRE: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of real job and failure logs; a test that needs it is skipped without it."""
    data = shared_data()
    if data is None:
        require("shared", "the real logs of ../shared/data are absent (FAULTSWEEP_SHARED names another place)")
    return data


@pytest.fixture(scope="session")
def job_logs(shared: Path) -> Path:
    """The directory of real job logs."""
    return shared / "job-logs"
