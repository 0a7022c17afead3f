"""The benchmark of large grids runs: real workers and simulated ones, with faults, and to the bit."""

from __future__ import annotations

import pytest

from benchmarks import grid


@pytest.mark.slow
def test_large_grids_small():
    figures = grid.main(["--small"])
    (run,), (killed,), (simulated,) = figures["run"], figures["killed"], figures["simulated"]
    assert run["right to the bit"] == killed["right to the bit"] == simulated["the same to the bit"] == "True"
    assert killed["kills of the sweep"] == 2
    assert run["sweep, us of processor a cell"] > 0
    assert simulated["stops with faults"] == 2, "the sweep was resumed twice"


def test_curves_are_drawn(tmp_path):
    row = {f"{who}, us of processor a cell": 2.0 for who in ("sweep", "scheduler", "workers")}
    rows = [{"cells": 10, "workers": 2, **row}, {"cells": 100, "workers": 4, **row}]
    grid.draw({"cells": rows, "workers": rows}, tmp_path / "grid.png")
    assert (tmp_path / "grid.png").stat().st_size > 10_000
