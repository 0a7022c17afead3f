"""Stores of the simulator with invented results: what is simulated does not matter here, only what is the same."""

from __future__ import annotations

import json

import numpy as np
from faultsweep.sweeps.grid import sources
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.spec import read_spec
from faultsweep.sweeps.store.statuses import COPY, DONE
from faultsweep.sweeps.store.store import create, run_folder


def simulator_store(path, growth_limit, wait):
    """A complete store over ``growth_limit`` on a flat machine, where it does nothing."""
    raw = {
        "name": "s",
        "fixed": {"log": "nasa-model", "num_jobs": 5, "machine": "flat:128"},
        "axes": {"growth_limit": growth_limit},
        "metrics": ["mean_wait_s"],
    }
    spec = read_spec(raw, SimulatorTarget())
    prepared = prepare(spec, path)
    run_folder(path).mkdir()
    store = create(path, prepared.grid, prepared.outputs, {**attributes(spec, prepared), "provenance": json.dumps([])})
    size = prepared.grid.size
    leader = sources(prepared.grid.keys(), np.zeros(size, bool), np.arange(size))
    store.arrays["mean_wait_s"][...] = np.full(prepared.grid.shape, wait)
    store.arrays["status"][...] = np.where(leader == np.arange(size), DONE, COPY).reshape(prepared.grid.shape)
    return path
