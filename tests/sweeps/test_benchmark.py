"""The benchmark of the sweep engine runs, and says which targets are reached."""

from __future__ import annotations

import pytest

from benchmarks import sweep_overhead


@pytest.mark.slow
def test_every_part_runs_small(capsys, tmp_path):
    figures = sweep_overhead.main(["--small", "--output", str(tmp_path)])
    assert set(figures) == set(sweep_overhead.TARGETS)
    for part, targets in sweep_overhead.TARGETS.items():
        assert all(float(figures[part][name]) > 0 for name in targets)
        assert figures[part]["measured"]
        assert part == "simulations" or any(name.startswith("xyzpy") for name in figures[part])
    assert capsys.readouterr().out.count(" target ") == sum(map(len, sweep_overhead.TARGETS.values()))


def test_targets_stand_beside_figures(capsys):
    sweep_overhead.print_figures({"efficiency": 0.94, "s": 3.0, "files": 7}, {"efficiency": 0.95, "s": 5.0})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("target >= 0.95: MISSED")
    assert lines[1].endswith("target <= 5: reached")
    assert lines[2].split() == ["files", "7"]
    assert sweep_overhead.misses({"efficiency": 0.94, "s": 3.0}, {"efficiency": 0.95, "s": 5.0}) == ["efficiency"]
    assert sweep_overhead.misses({"efficiency": 0.95, "s": 6.0}, {"efficiency": 0.95, "s": 5.0}) == ["s"]
