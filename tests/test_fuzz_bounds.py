"""A short run of the fuzz test of all parameters at their bounds; ``make fuzz`` makes the long one."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.parameters import PARAMETERS

from tests import fuzz_bounds
from tests.fuzz_bounds import LEFT_OUT, Worker, check_build, pairs, run, settings

SHORT = 160


@pytest.mark.parametrize("first", range(0, SHORT, SHORT // 8))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_runs_at_the_bounds_of_parameters_end_well(first):
    for number in range(first, first + SHORT // 8):
        assert run(number) in ("done", "truncated", "refused"), f"run {number}"


def test_every_parameter_is_tried_at_its_bounds_and_inside():
    tried: dict[str, set] = {}
    for name, value in settings():
        tried.setdefault(name, set()).add(value)
    assert set(tried) == set(PARAMETERS) - LEFT_OUT
    for name, values in tried.items():
        parameter = PARAMETERS[name]
        for value in values - {parameter.default}:
            parameter.check(value)
        if parameter.kind in (int, float):
            low, high = parameter._bounds()
            assert {low, high} <= values
            assert any(low < value <= np.nextafter(low, high) or value == low + 1 for value in values)
    assert len(set(settings())) == len(settings())


def test_every_pair_of_values_has_its_run():
    seen = {number * fuzz_bounds.ORDER % len(pairs()) for number in range(len(pairs()))}
    assert len(seen) == len(pairs())


def test_most_runs_are_made():
    """Runs that are refused find little."""
    outcomes = [run(number) for number in range(1000, 1040)]
    assert outcomes.count("refused") < 30


@pytest.mark.skipif(is_interpreted() or bool(os.environ.get("NUMBA_BOUNDSCHECK")), reason="bounds are checked here")
def test_kernels_without_bounds_checks_are_noticed():
    with pytest.raises(RuntimeError, match="compiled without bounds checks"):
        check_build()


class Scripted(Worker):
    """A worker whose process does what a program says."""

    def __init__(self, program):
        super().__init__("unused")
        self._command = [sys.executable, "-c", f"import sys, os, signal, time\nprint('ready', flush=True)\n{program}"]


def test_a_run_that_hangs_is_killed_though_it_hears_no_other_signal(monkeypatch):
    monkeypatch.setattr(fuzz_bounds, "LIMIT_S", 0.2)
    worker = Scripted("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nfor line in sys.stdin: time.sleep(100)")
    began = time.perf_counter()
    assert worker.run(7) == "FAILED hangs: no end within 0.2 s"
    assert time.perf_counter() - began < 30
    assert worker._process is None


def test_a_run_that_crashes_is_told_with_the_signal():
    worker = Scripted("for line in sys.stdin: os.kill(os.getpid(), signal.SIGSEGV)")
    assert worker.run(7) == "FAILED crashes: exit code -11"
    worker.stop()
