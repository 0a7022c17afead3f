"""A real SLURM of two virtual nodes, shared by the tests of one process."""

from __future__ import annotations

import os

import pytest

from tests.cluster.virtual_slurm import VirtualSlurm, missing
from tests.conftest import ROOT, require


@pytest.fixture(scope="session")
def slurm_daemons():
    if missing():
        require("slurm", f"SLURM cannot be started here: no {', '.join(missing())} (slurm-wlm and munge install them)")
    with VirtualSlurm() as slurm:
        yield slurm


@pytest.fixture
def slurm(slurm_daemons, monkeypatch, tmp_path):
    """The SLURM, with nothing in its queue, and this process logged in to it, in a folder of its own."""
    for name, value in slurm_daemons.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAULTSWEEP_SITE", str(tmp_path / "cluster.toml"))
    (tmp_path / "cluster.toml").write_text('interface = "lo"\nnodes = 1\nworkers_per_node = 1\nmax_jobs = 2\n')
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)])))
    monkeypatch.chdir(tmp_path)
    yield slurm_daemons
    slurm_daemons.clear()
