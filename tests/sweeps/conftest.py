"""One cluster of two workers for the tests that do not need their own."""

from __future__ import annotations

import pytest
from faultsweep.cluster.connect import connect


@pytest.fixture(scope="session")
def client():
    with connect("local", 2) as client:
        yield client
