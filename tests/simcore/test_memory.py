"""What runs cost that follow one another in a process."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

RUNS = """
import resource
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload

log = load_workload("sdsc-model", num_jobs=10_000)
faults = []
for _ in range(10):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    simulate(log, machine="flat:128", scheduler="backfill")
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(faults))
"""


@pytest.mark.compiled
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="how memory is kept depends on the C library")
def test_a_run_uses_the_memory_of_the_one_before_it():
    """Else it would get about 1,400 pages anew.

    The least of ten runs counts: a system short of memory takes pages back at any time.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", RUNS], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100
