"""Hypothesis strategies for small runs that are hard on a scheduler: ties in time, odd machines, overruns, bursts.

All times are multiples of 1/4, so floating-point numbers and fractions agree to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from faultsweep.simcore.contract import TORUS
from faultsweep.simcore.policies.catalogue import ROLES
from hypothesis import Phase, seed, settings
from hypothesis import strategies as st

from tests.reference.machines import machine as machine_of

SCHEDULERS = tuple(
    name for name, policy in ROLES["scheduling"].policies.items() if TORUS in policy.machines and policy.doc
)
QUEUE_ORDERS = tuple(name for name, policy in ROLES["queue_order"].policies.items() if policy.doc)

TORI = ("torus:1x1x8", "torus:2x2x4", "torus:3x2x3", "torus:1x5x2", "torus:4x1x3", "torus:2x3x4", "torus:4x4x2")
FLATS = ("flat:1", "flat:2", "flat:4", "flat:7", "flat:16")

GAPS = (0, 0, 0, 0, 1, 1, 2, 5, 10, 30, 0.25)
RUNS = (1, 2, 5, 5, 10, 10, 20, 20, 50, 100, 0.5)
DOWN_TIMES = (0, 0, 0, 1, 5, 10, 40)

MENU_MACHINES = ("midplanes:5", "midplanes:8", "menu:rows", "menu:overlap")

menus = st.sampled_from(MENU_MACHINES)
tori = st.sampled_from(TORI)
flats = st.sampled_from(FLATS)
machines = st.one_of(tori, flats)


def examples(count: int) -> Callable[[Any], Any]:
    """``count`` examples (or FAULTSWEEP_EXAMPLES of them), the same every time; or FAULTSWEEP_FUZZ others every time.

    Half of them are run where kernels run as they do for users. With bounds checks and without the compiler it is the
    other half, another one of each test. With FAULTSWEEP_EXAMPLES a failure is told as it was found, without the search
    for a smaller one, which takes long.
    """
    fuzz, few = os.environ.get("FAULTSWEEP_FUZZ"), os.environ.get("FAULTSWEEP_EXAMPLES")
    chosen = settings(
        max_examples=int(fuzz or few or -(-count // 2)),
        phases=(Phase.explicit, Phase.generate) if few else tuple(Phase),
        derandomize=fuzz is None,
        print_blob=False,
    )
    other_half = {"NUMBA_BOUNDSCHECK", "NUMBA_DISABLE_JIT"} & os.environ.keys() and not (fuzz or few)
    return (lambda test: chosen(seed(crc32(test.__qualname__.encode()))(test))) if other_half else chosen


@st.composite
def workloads(draw, machine: str, max_jobs: int = 24, overruns: bool = True):
    """Rows (id, submit, run, estimate or None, size) for a machine."""
    nodes = machine_of(machine).nodes
    sizes = st.one_of(st.integers(1, nodes), st.integers(1, max(1, nodes // 3)))
    factors = (None, 1, 1, 2, 5, 0.5) if overruns else (None, 1, 1, 2, 5)
    rows, time = [], draw(st.sampled_from((0, 0, 3)))
    for job_id in range(1, draw(st.integers(1, max_jobs)) + 1):
        time += draw(st.sampled_from(GAPS))
        run, factor = draw(st.sampled_from(RUNS)), draw(st.sampled_from(factors))
        estimate = None if factor is None else run * factor
        rows.append((job_id, time, run, estimate, draw(sizes)))
    return rows


@st.composite
def failure_traces(draw, machine: str, max_failures: int = 8, down_times=DOWN_TIMES):
    """Rows (time, node, down time): in bursts, at the instants of other events, of nodes that are down."""
    nodes = machine_of(machine).nodes
    rows, time = [], draw(st.sampled_from((0, 1, 5, 10)))
    for _ in range(draw(st.integers(0, max_failures))):
        time += draw(st.sampled_from((0, 0, 1, 2, 5, 10, 40)))
        rows.append((time, draw(st.integers(0, nodes - 1)), draw(st.sampled_from(down_times))))
    return rows


@st.composite
def runs(draw, machines, failures: bool = False, overruns: bool = True, max_jobs: int = 24):
    """A machine, a workload for it and, if asked for, failures."""
    machine = draw(machines)
    jobs = draw(workloads(machine, max_jobs, overruns))
    return machine, jobs, draw(failure_traces(machine)) if failures else []


SIDES = st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 6))
# Few taken nodes leave large boxes that wrap; many leave small ones; none and all are corner cases.
TAKEN = st.sampled_from((0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0))


@st.composite
def occupancies(draw, sides=SIDES):
    """A torus with scattered taken nodes, or with taken boxes as jobs leave it."""
    dims = draw(sides)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if draw(st.booleans()):
        return rng.random(dims) >= draw(TAKEN)
    free = np.ones(dims, dtype=bool)
    for _ in range(draw(st.integers(0, 4))):
        shape = [rng.integers(1, side + 1) for side in dims]
        base = [rng.integers(side) for side in dims]
        free[np.ix_(*((start + np.arange(n)) % side for start, n, side in zip(base, shape, dims, strict=True)))] = False
    return free
