"""Comparing stores: what differs, where, and by how much, against differences that were put there."""

from __future__ import annotations

import json

import numpy as np
import pytest
from faultsweep.analysis.compare import compare

from faultsweep import cli
from faultsweep.errors import InputError

from .stores import make_results, write_results

WAITS = np.array([[10.0, 20.0], [30.0, 40.0]])


@pytest.fixture
def a(tmp_path):
    data = make_results(
        {"scheduler": ["fcfs", "backfill"], "load_scale": [0.5, 1.0]},
        {"mean_wait_s": WAITS, "utilisation": WAITS / 100},
        fixed={"num_jobs": 100},
    )
    data["mean_wait_s"].attrs["units"] = "s"
    return str(write_results(tmp_path / "a.zarr", data))


def other(tmp_path, waits=WAITS, loads=(0.5, 1.0), status=None, fixed=None, **more):
    metrics = {"mean_wait_s": waits, "utilisation": WAITS / 100, **more}
    axes = {"scheduler": ["fcfs", "backfill"], "load_scale": list(loads)}
    data = make_results(axes, metrics, status=status, fixed=fixed or {"num_jobs": 100})
    return str(write_results(tmp_path / "b.zarr", data))


def test_equal_stores_are_equal(a, tmp_path):
    found = compare(a, other(tmp_path))
    assert found.same
    assert (found.both, found.equal, found.only_a, found.only_b, found.metrics) == (4, 4, 0, 0, [])


def test_a_difference_is_found_where_it_is(a, tmp_path):
    waits = WAITS + np.array([[0, 1e-13], [0, 10]])
    b = other(tmp_path, waits)
    found = compare(a, b)
    assert not found.same
    assert (found.both, found.equal) == (4, 2)
    (row,) = found.metrics
    assert (row.metric, row.unit, row.cells, row.compared) == ("mean_wait_s", "s", 2, 4)
    assert (row.a, row.b, row.largest, row.relative) == (40.0, 50.0, 10.0, 0.2)
    assert row.mean == pytest.approx(2.5, rel=1e-9)
    assert row.at == {"scheduler": "backfill", "load_scale": 1.0, "replicate": 0}
    assert [cell["load_scale"] for cell in found.differing] == [1.0, 1.0]
    assert found.differing[0]["scheduler"] == "backfill"
    assert compare(a, b, tolerance=1e-9).equal == 3
    assert compare(a, b, tolerance=0.2).same
    assert compare(a, b, metrics=["utilisation"]).same


def test_rows_cells_metrics_and_settings_of_one_store_alone_are_named(a, tmp_path):
    status = np.array([[1, 1], [0, 1]])
    found = compare(a, other(tmp_path, WAITS[:, ::-1], (1.0, 2.0), status, {"num_jobs": 200}, restarts=WAITS))
    assert found.rows == {"load_scale": ([0.5], [2.0])}
    assert (found.both, found.only_a, found.only_b) == (1, 1, 0)
    assert found.settings == {"num_jobs": (100, 200)}
    assert found.only_metrics == ([], ["restarts"])
    assert found.metrics[0].metric == "utilisation"  # the waits of the shared load are equal


def test_a_missing_value_differs_from_a_number_only(a, tmp_path):
    waits = WAITS.copy()
    waits[0, 0] = np.nan
    b = other(tmp_path, waits)
    found = compare(a, b)
    assert found.metrics[0].cells == 1
    assert found.metrics[0].relative == 1.0
    assert compare(b, b).same


def test_an_axis_that_is_fixed_in_the_other_store_is_compared_there(a, tmp_path):
    data = make_results({"load_scale": [0.5, 1.0]}, {"mean_wait_s": WAITS[1]}, fixed={"scheduler": "backfill"})
    found = compare(a, str(write_results(tmp_path / "b.zarr", data)))
    assert (found.both, found.equal) == (2, 2)
    assert found.rows == {"scheduler": (["fcfs"], [])}


def test_stores_of_other_axes_and_unknown_metrics_are_one_sentence(a, tmp_path):
    data = make_results({"machine": ["flat:4"]}, {"mean_wait_s": np.ones(1)})
    with pytest.raises(InputError, match=r"\w+: neither an axis nor fixed here; the axes are "):
        compare(a, str(write_results(tmp_path / "c.zarr", data)))
    with pytest.raises(InputError, match="--metric: unknown metric 'mean_wait'; did you mean 'mean_wait_s'"):
        compare(a, other(tmp_path), metrics=["mean_wait"])


@pytest.mark.parametrize("json_", [True, False])
def test_the_command_prints_what_differs_and_its_exit_code_says_so(a, tmp_path, monkeypatch, capsys, json_):
    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["faultsweep", "compare", *arguments])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return end.value.code, capsys.readouterr().out

    code, out = call(a, other(tmp_path, WAITS + np.array([[0, 0], [0, 10]])), *(["--json"] if json_ else []))
    assert code == 1
    if json_:
        assert json.loads(out)["metrics"][0]["largest"] == 10.0
    else:
        assert "4 cells have a result in both" in out
        assert "scheduler=backfill, load_scale=1.0, replicate=0 (40, 50)" in out
    code, out = call(a, a)
    assert code == 0
    assert "4 are equal, 0 differ" in out
