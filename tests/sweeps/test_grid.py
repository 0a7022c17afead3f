"""Grids: cells, canonical forms found in boxes equal to those found one by one, and speed."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from faultsweep.simcore.parameters import PARAMETERS, canonical, inert
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.grid import Grid, find_rows, sources
from faultsweep.sweeps.spec import read_spec
from faultsweep.sweeps.store.store import Chunks, chunk_shape
from faultsweep.sweeps.target import FunctionTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from faultsweep.errors import InputError


def function(a=0, b=0, c=0, d=0, e="x", f=1.5):
    return a


def grid(axes, inert=None, **raw):
    read = read_spec({"axes": axes, **raw}, FunctionTarget(function, "y", inert))
    return Grid(read.target, read.axes, read.fixed, read.formulas, read.exclude)


def test_cells_and_configurations():
    made = grid(
        {"a": [1, 2, 3], "p": [{"label": "u", "b": 5}, {"label": "v", "b": 6, "c": 7}]}, formulas={"d": "a * b"}
    )
    assert made.shape == (3, 2, 1)
    assert made.config(3) == {"a": 2, "b": 6, "c": 7, "d": 12, "e": "x", "f": 1.5}
    assert made.labels(3) == {"a": 2, "p": "v", "replicate": 0}
    columns = made.columns(np.array([0, 3, 5]))
    assert [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] == [
        {name: made.config(cell)[name] for name in columns} for cell in (0, 3, 5)
    ]


def test_exclusion_by_value_by_label_and_by_formula():
    made = grid(
        {"a": [1, 2, 3], "p": [{"label": "u", "b": 5}, {"label": "v", "b": 6}]},
        formulas={"d": "a * b"},
        exclude=[{"a": [1, 2], "p": "u"}, {"b": 6, "a": 3}, {"d": 12}],
    )
    assert made.excluded().reshape(3, 2).tolist() == [[True, False], [True, True], [False, True]]


def test_a_formula_that_fails_says_where():
    with pytest.raises(InputError, match=r"formulas\.d: formula '1 / \(a - 2\)' has no value .* \(at a=2\)"):
        grid({"a": [1, 2]}, formulas={"d": "1 / (a - 2)"})
    with pytest.raises(InputError, match=r"formulas\.d: "):
        grid({"a": [0]}, formulas={"d": "1 / a"})


def test_a_formula_needs_no_value_where_nobody_asks_for_one():
    """Where rules leave no cell, alone or together, or where only an older spec had rows."""
    formulas = {"d": "6 / (a - b)", "f": "d + 1"}
    axes = {"a": [2, 5], "b": [2, 3]}
    for exclude in ([{"a": 2, "b": 2}], [{"a": 2, "b": 2, "e": "u"}, {"a": 2, "b": 2, "e": ["v"]}]):
        made = grid({**axes, "e": ["u", "v"]}, formulas=formulas, exclude=exclude)
        configs = [made.config(cell) for cell in np.flatnonzero(~made.excluded())]
        assert {(c["a"], c["b"]): (c["d"], c["f"]) for c in configs} == {
            (2, 3): (-6, -5.0),
            (5, 2): (2, 3.0),
            (5, 3): (3, 4.0),
        }
        assert {type(c["d"]) for c in configs} == {int}
        assert len(np.unique(made.keys()[0])) == 8
    with pytest.raises(InputError, match=r"formulas\.d: .* \(at a=2, b=2\)"):
        grid({**axes, "e": ["u", "v"]}, formulas=formulas, exclude=[{"a": 2, "b": 2, "e": "u"}])
    read = read_spec({"axes": {"a": [5], "b": [2, 3]}, "formulas": formulas}, FunctionTarget(function, "y"))
    joined = [Axis("a", [2, 5], {"a": [2, 5]}), *read.axes[1:]]
    rows = [np.array([False, True]), np.array([True, True]), np.array([True])]
    made = Grid(read.target, joined, read.fixed, read.formulas, (), rows)
    assert [made.config(cell)["d"] for cell in range(4)][1:] == [-6, 2, 3]


def test_formulas_of_one_axis_are_of_one_type():
    made = grid({"a": [1, 2, 3]}, formulas={"b": "a / 2"})
    assert [made.config(cell)["b"] for cell in range(3)] == [0.5, 1.0, 1.5]
    assert {type(made.config(cell)["b"]) for cell in range(3)} == {float}


def test_a_rule_may_name_a_formula_of_nothing_that_varies():
    assert grid({"a": [1, 2]}, formulas={"b": "2 * 3"}, exclude=[{"b": 6, "a": 1}]).excluded().tolist() == [True, False]


def test_a_grid_that_no_memory_holds_is_refused():
    axes = {name: {"start": 0, "stop": 99_999, "step": 1} for name in ("a", "b")}
    with pytest.raises(InputError, match="the grid has 10,000,000,000 cells"):
        grid(axes)


# Rules as the simulator has them: they look at other parameters, one after another, and one makes another inert.
RULES = {
    "b": lambda c: c["a"] == 0,
    "c": lambda c: c["a"] == 0 or c["b"] == 0,
    "d": lambda c: c["e"] == "y" and c["c"] != 2,
    "f": lambda c: c["d"] == 0,
}
small = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)


def reference_form(target, config):
    """The canonical form by its definition, as the simulator's own ``canonical`` has it."""
    while True:
        neutral = {n: p.default if p.inert(config) else config[n] for n, p in target.parameters.items()}
        if neutral == config:
            return tuple(sorted(config.items()))
        config = neutral


@settings(max_examples=150, deadline=None)
@given(small, small, small, small, st.booleans(), st.sets(st.sampled_from(sorted(RULES))))
def test_equal_keys_are_equal_canonical_forms(a, b, c, d, bundle, rules):
    axes = {"a": a, "b": b, "c": c, "e": ["x", "y"]}
    if bundle:
        axes["p"] = [{"label": "one", "d": 1, "f": 2.5}, {"label": "two", "d": 0}]
    else:
        axes["d"] = d
    made = grid(axes, {name: RULES[name] for name in rules}, formulas={} if bundle else {"f": "a + d / 2"})
    keys = [tuple(key) for key in made.keys().T.tolist()]
    forms = [reference_form(made.target, made.config(cell)) for cell in range(made.size)]
    for group in (dict(zip(keys, forms, strict=True)), dict(zip(forms, keys, strict=True))):
        assert len(group) == len(set(group.values()))
    assert len(set(keys)) == len(set(forms))


class Simulator:
    """The simulator's table of parameters without the simulator."""

    parameters = PARAMETERS
    outputs = ()
    inert = staticmethod(inert)


def test_the_simulators_own_rules_give_its_own_canonical_forms():
    axes = [
        Axis("scheduler", ["fcfs", "backfill", "migration"], {"scheduler": ["fcfs", "backfill", "migration"]}),
        Axis("machine", ["torus:2x2x2", "flat:8"], {"machine": ["torus:2x2x2", "flat:8"]}),
        Axis("growth_limit", [0, 1, 5], {"growth_limit": [0, 1, 5]}),
        Axis("migration_free_frac", [0.1, 0.5], {"migration_free_frac": [0.1, 0.5]}),
        Axis("estimates", ["actual", "f-model"], {"estimates": ["actual", "f-model"]}),
        Axis("estimate_factor", [1.0, 3.0], {"estimate_factor": [1.0, 3.0]}),
        Axis("replicate", [0, 1], {"replicate": [0, 1]}),
    ]
    fixed = {name: p.default for name, p in PARAMETERS.items() if name not in {axis.name for axis in axes}}
    made = Grid(Simulator(), axes, fixed)
    keys = [tuple(key) for key in made.keys().T.tolist()]
    forms = [tuple(canonical(made.config(cell)).items()) for cell in range(made.size)]
    assert len(set(keys)) == len(set(forms)) == len(set(zip(keys, forms, strict=True)))


def test_keys_do_not_change_when_the_grid_grows_or_a_parameter_is_added():
    def more(a=0, b=0, c=0, d=0, e="x", f=1.5, g=9):
        return a

    first = grid({"a": [1, 2], "b": [0, 3]})
    second = Grid(
        FunctionTarget(more, "y"), [Axis("a", [5, 1, 2], {"a": [5, 1, 2]}), *first.axes[1:]], {**first.fixed, "g": 9}
    )
    assert np.array_equal(second.keys().reshape(2, 3, 2)[:, 1:], first.keys().reshape(2, 2, 2))


def test_a_million_cells_take_seconds():
    axes = {name: list(range(10)) for name in ("a", "b", "c", "d")} | {"f": [i / 7 for i in range(100)]}
    start = time.perf_counter()
    made = grid(axes, {"f": lambda c: c["d"] == 3, "b": lambda c: c["a"] in (1, 2)})
    keys = made.keys()
    source = sources(keys, made.excluded(), np.arange(made.size))
    assert time.perf_counter() - start < 10
    assert len(np.unique(source)) == (8 * 10 * 10 * 9 * 100 + 8 * 10 * 10) + 2 * (10 * 9 * 100 + 10)


def test_sources_prefer_the_first_in_rank_and_skip():
    keys = np.array([[1, 1, 2, 2, 3], [0, 0, 0, 0, 0]], dtype=np.uint64)
    skip = np.array([False, False, False, False, True])
    assert sources(keys, skip, np.arange(5)).tolist() == [0, 0, 2, 2, -1]
    assert sources(keys, skip, np.array([5, 1, 2, 0, 4])).tolist() == [1, 1, 3, 3, -1]
    with pytest.raises(AssertionError):
        sources(np.array([[1, 1], [0, 1]], dtype=np.uint64), np.zeros(2, bool), np.arange(2))


def test_a_cell_is_found_by_labels_and_by_values():
    axes = grid({"f": [0.5, 1.0], "p": [{"label": "u", "b": 5}, {"label": "v", "b": 6}]}).axes
    assert find_rows(axes, {"f": "0.50", "p": "v"}) == (0, 1, 0)
    assert find_rows(axes, {"f": 1, "b": "5"}) == (1, 0, 0)
    for select, sentence in (
        ({"f": "0.7", "p": "u"}, "unknown value of f '0.7'; did you mean '0.5'?"),
        ({"g": "1"}, "unknown axis or varied parameter 'g'"),
        ({"f": "1"}, "p has 2 values (u, v); name one"),
    ):
        with pytest.raises(InputError) as caught:
            find_rows(axes, select)
        assert sentence in str(caught.value)
    assert find_rows(axes, {"f": 1, "p": "V"}, lambda name, value: "v" if name == "p" else value) == (1, 1, 0)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_chunks_cut_the_grid_into_disjoint_parts(shape):
    lengths = chunk_shape(shape)
    assert 4_096 < np.prod(lengths) <= 16_384
    chunks = Chunks(tuple(shape), lengths)
    if chunks.num > 200 or np.prod(shape) > 100_000:
        return
    of_all = chunks.of_all()
    seen = np.zeros(int(np.prod(shape)), dtype=int)
    for chunk in range(chunks.num):
        cells = chunks.cells(chunk)
        seen[cells] += 1
        assert (of_all[cells] == chunk).all()
        shuffled = np.random.default_rng(0).permutation(cells)
        assert np.array_equal(cells[chunks.places(chunk, shuffled)], shuffled)
    assert (seen == 1).all()


def test_a_slice_of_a_large_grid_touches_few_chunks():
    chunks = Chunks((4,) * 10, chunk_shape((4,) * 10))
    assert chunks.num == 64
    for one, two in itertools.combinations(range(10), 2):
        assert chunks.counts[one] * chunks.counts[two] <= 4


@pytest.mark.parametrize("names", [["a"], ["b", "a"], ["f"], ["a", "b", "c"]])
def test_cells_that_differ_in_some_parameters(monkeypatch, names):
    """The first cell of each combination, and how many have it, as a look at each cell finds."""
    monkeypatch.setattr("faultsweep.sweeps.grid._BLOCK", 7)
    made = grid({"a": [1, 2, 3], "b": [5, 6, 7, 8], "c": [0, 1]})
    cells = np.random.default_rng(1).permutation(made.size)[:17]
    first, number = {}, {}
    for cell in cells.tolist():
        key = tuple(made.config(cell)[name] for name in names)
        first.setdefault(key, cell)
        number[key] = number.get(key, 0) + 1
    found, counts = made.different(cells, names)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == {first[key]: number[key] for key in first}
