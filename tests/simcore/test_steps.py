"""The processor time of the calls that advance a run."""

from __future__ import annotations

import threading
import time

import pytest
from faultsweep.simcore.engine.steps import Meter
from faultsweep.simcore.simulate import simulate
from faultsweep.sweeps.logs import load_workload


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_only_the_time_of_the_calls_counts_whatever_thread_makes_them():
    meter = Meter(lambda state, budget: busy(state) or budget)
    other = threading.Thread(target=busy, args=(0.1,))
    other.start()
    busy(0.05)
    assert [meter(0.02, 7), meter(0.01, 8)] == [7, 8]
    thread = threading.Thread(target=meter, args=(0.03, 0))
    thread.start()
    thread.join()
    time.sleep(0.05)
    other.join()
    assert 0.06 <= meter.taken_s < 0.075


def test_the_time_of_a_call_that_fails_counts():
    def fail(state, budget):
        busy(0.01)
        raise InterruptedError

    meter = Meter(fail)
    with pytest.raises(InterruptedError):
        meter(0, 0)
    assert meter.taken_s >= 0.01


@pytest.mark.parametrize("machine", ["flat:128", "clusters:128+128"])
def test_a_run_knows_its_processor_time(machine):
    run = simulate(load_workload("sdsc-model", num_jobs=2000), machine=machine)
    assert 0 < run.processor_s < 1.5 * run.elapsed_s
