"""Sobol indices against the closed form of the Ishigami function, from the designs that specs offer."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.analysis.sensitivity import sobol_indices
from faultsweep.sweeps.axes import read_axis
from faultsweep.sweeps.spec import write_toml

from faultsweep.errors import InputError

from .stores import make_results

# sin x + 7 sin^2 y + 0.1 z^4 sin x on [-pi, pi]^3 (Ishigami and Homma 1990)
FIRST, TOTAL = [0.3139, 0.4424, 0.0], [0.5576, 0.4424, 0.2437]
RANGE = [-3.141592653589793, 3.141592653589793]


def results(design, num, replicates=1, scale=(1.0, 1.0)):
    """A store of the function, without and with noise over replicates, at two labels of another axis."""
    raw = {"sample": {"x": RANGE, "y": RANGE, "z": RANGE}, "num": num, "design": design}
    axis = read_axis("point", raw)
    x, y, z = (np.array(axis.columns[name]) for name in "xyz")
    values = np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)
    cells = np.stack([factor * values for factor in scale])[..., None] + np.zeros(replicates)
    spec = write_toml({"axes": {"machine": ["a", "b"], "point": raw}})
    data = make_results({"machine": ["a", "b"], "point": axis.labels}, {"f": cells}, None, replicates, spec=spec)
    return data.assign_coords({name: ("point", axis.columns[name]) for name in "xyz"})


def test_a_saltelli_design_gives_first_and_total_indices():
    found = sobol_indices(results("saltelli", 1024, scale=(1.0, 5.0)), "f")
    assert found["parameter"].values.tolist() == ["x", "y", "z"]
    for machine in "ab":
        one = found.sel(machine=machine)
        assert np.abs(one["first"].values - FIRST).max() < 0.03
        assert np.abs(one["total"].values - TOTAL).max() < 0.03
        assert (np.abs(one["first"].values - FIRST) < 2 * one["first_half"].values + 1e-9).all()


@pytest.mark.parametrize("design", ["latin-hypercube", "sobol", "random"])
def test_other_designs_give_first_indices(design):
    found = sobol_indices(results(design, 1024), "f")
    assert set(found) == {"first", "first_half"}
    assert np.abs(found["first"].values - FIRST).max() < 0.08


def test_a_saltelli_design_changes_one_coordinate_at_a_time():
    axis = read_axis("point", {"sample": {"x": [0, 1], "y": [0, 1]}, "num": 4, "design": "saltelli"})
    points = np.stack([axis.columns["x"], axis.columns["y"]], 1).reshape(4, 4, 2)
    assert len(axis) == 16
    for a, with_x, with_y, b in points:
        assert with_x.tolist() == [b[0], a[1]]
        assert with_y.tolist() == [a[0], b[1]]


def test_points_without_a_result_and_constants_give_no_index():
    gaps = results("saltelli", 64)
    gaps["f"][0, 3] = np.nan
    found = sobol_indices(gaps, "f")
    assert np.isnan(found["first"].sel(machine="a")).all()
    assert np.isfinite(found["first"].sel(machine="b")).all()
    assert np.isnan(sobol_indices(results("saltelli", 64, scale=(0, 0)), "f")["total"]).all()


def test_what_cannot_be_decomposed_is_one_sentence():
    with pytest.raises(InputError, match="64 points are too few for indices, they need 65"):
        sobol_indices(results("latin-hypercube", 64), "f")
    with pytest.raises(InputError, match="unknown metric 'g'"):
        sobol_indices(results("sobol", 128), "g")
    with pytest.raises(InputError, match="unknown sampled axis 'machine'"):
        sobol_indices(results("sobol", 128), "f", "machine")
    with pytest.raises(InputError, match="no axis is sampled"):
        sobol_indices(make_results({"x": [1.0]}, {"f": [1.0]}), "f")
