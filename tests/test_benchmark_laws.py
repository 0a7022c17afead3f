"""The benchmark of how the time of a run grows."""

from __future__ import annotations

import json

import pytest
from faultsweep.simcore.policies.catalogue import ROLES

from benchmarks import laws


def test_an_exponent_is_that_of_the_power():
    assert laws.exponent((1, 2, 4), (3.0, 12.0, 48.0)) == pytest.approx(2)
    assert laws.exponent((1, 2, 4), (3.0, 3.0, 3.0)) == pytest.approx(0)


def test_machines_grow_where_they_are_marked(tmp_path):
    assert laws.machine_of("torus:4x4x{8}", 2, tmp_path) == "torus:4x4x16"
    assert laws.machine_of("clusters:{50}+{50}", 3, tmp_path) == "clusters:150+150"
    site = laws.machine_of(laws.CASES["site, backfill"]["machine"], 2, tmp_path)
    with open(site) as file:
        text = file.read()
    assert "count = 32" in text
    assert "node = 32" in text


def test_every_scheduler_is_measured_on_every_kind_of_machine_that_it_is_for():
    for name, policy in ROLES["scheduling"].policies.items():
        for kind, words in laws.KINDS.items():
            assert (f"{kind}, {name}" in laws.CASES) == (words in policy.machines and name != "own")


@pytest.mark.parametrize("name", laws.CASES)
def test_every_case_is_one_that_runs(tmp_path, name, monkeypatch):
    monkeypatch.setitem(laws.AXES, "nodes", laws.Axis((2,), jobs=20))
    assert laws.time_of_a_job(laws.CASES[name], "nodes", 2, tmp_path, repeat=1) > 0


def test_a_case_is_measured_written_and_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(laws.AXES, "jobs", laws.Axis((50, 100)))
    assert laws.main(["--case", "flat, fcfs", "--axis", "jobs", "--output", str(tmp_path)]) == 0
    (row,) = json.loads((tmp_path / "laws.json").read_text())
    assert row["case"] == "flat, fcfs"
    assert all(seconds > 0 for seconds in row["seconds"])
    assert (tmp_path / "laws.png").stat().st_size > 1000
    assert "exponent" in capsys.readouterr().out

    assert laws.main(["--case", "flat, backfill", "--axis", "jobs", "--output", str(tmp_path)]) == 0
    both = json.loads((tmp_path / "laws.json").read_text())
    assert [found["case"] for found in both] == ["flat, backfill", "flat, fcfs"]
    assert both[1] == row
