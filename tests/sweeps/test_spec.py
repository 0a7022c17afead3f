"""Specs: every form of an axis, every mistake (all of them at once), and TOML that reads back."""

from __future__ import annotations

import contextlib
import math
from unittest.mock import patch

import numpy as np
import pytest
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.sweeps import axes
from faultsweep.sweeps.axes import read_axis, read_range
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.spec import find_spec, load_toml, read_spec, write_toml
from faultsweep.sweeps.sweep import Sweep
from faultsweep.sweeps.target import RESERVED, FunctionTarget
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError


def policy(scheduler="fcfs", load=1.0, growth=0, retry=False, limit_s=math.inf, seed=0, replicate=0):
    """A function with a parameter of every kind."""
    return load


def spec(**raw):
    return read_spec({"axes": {"load": [1, 2]}, **raw}, FunctionTarget(policy, ["y", "z"]), where="my.toml")


def axis(raw, name="load"):
    return read_axis(name, raw)


# --- forms ---


def test_list():
    assert axis([1, 2.5]).columns == {"load": [1, 2.5]}
    assert spec(axes={"load": [1, 2.5]}).axes[0].labels == [1.0, 2.5]
    assert spec(axes={"retry": [True, False]}).axes[0].labels == [True, False]


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ({"start": 0.1, "stop": 0.5, "step": 0.1}, [0.1, 0.2, 0.3, 0.4, 0.5]),
        ({"start": 1, "stop": 9, "step": 4}, [1, 5, 9]),
        ({"start": 1, "stop": 0, "step": -0.25}, [1.0, 0.75, 0.5, 0.25, 0.0]),
        ({"start": 0, "stop": 1, "step": 1 / 3}, [0.0, 0.333333333333333333, 0.66666666666666667, 1.0]),
        ({"start": 0, "stop": 1, "step": 1 / 11}, [*(i / 11 for i in range(11)), 1.0]),
        ({"start": 0, "stop": 1, "num": 5}, [0.0, 0.25, 0.5, 0.75, 1.0]),
        ({"start": 3, "stop": 3, "num": 1}, [3]),
        ({"start": 3.0, "stop": 3, "num": 1}, [3.0]),
        ({"start": 0.001, "stop": 1000, "geometric": 7}, [0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]),
        ({"start": 1, "stop": 1024, "geometric": 11}, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
        ({"start": 1, "stop": 10, "geometric": 3}, [1.0, 3.16227766016838, 10.0]),
        ({"start": 0, "stop": 10, "num": 6}, [0, 2, 4, 6, 8, 10]),
        ({"start": 0.1 + 0.2, "stop": 2 / 3, "geometric": 2}, [0.1 + 0.2, 2 / 3]),
        ({"start": 1e-20, "stop": 1e20 / 3, "num": 2}, [1e-20, 1e20 / 3]),
    ],
)
def test_ranges(raw, values):
    assert read_range(raw) == values
    assert {type(value) for value in read_range(raw)} == {type(value) for value in values}
    assert axis(raw).labels == values


@given(st.integers(-1000, 1000), st.integers(1, 999), st.integers(1, 60))
def test_a_range_by_step_has_the_numbers_that_one_would_type(start, step, count):
    raw = {"start": start / 1000, "stop": (start + step * (count - 1)) / 1000, "step": step / 1000}
    assert read_range(raw) == [(start + step * i) / 1000 for i in range(count)]


def test_zip_and_bundles_are_the_same_table():
    zipped = axis({"zip": {"scheduler": ["fcfs", "easy"], "growth": {"start": 0, "stop": 1, "step": 1}}}, "policy")
    bundles = axis([{"scheduler": "fcfs", "growth": 0}, {"scheduler": "easy", "growth": 1}], "policy")
    assert zipped == bundles
    assert zipped.labels == ["fcfs, 0", "easy, 1"]
    named = axis({"zip": {"scheduler": ["fcfs", "easy"], "growth": [0, 1]}, "labels": ["F", "E"]}, "policy")
    assert named.labels == ["F", "E"]


def test_bundles_take_what_they_leave_out_from_fixed_and_defaults():
    rows = [{"label": "none"}, {"label": "big", "growth": 4, "load": 2}]
    read = spec(axes={"policy": rows})
    assert read.axes[0].columns == {"growth": [0, 4], "load": [1.0, 2]}
    assert "growth" not in read.fixed


@pytest.mark.parametrize("design", ["latin-hypercube", "sobol", "halton", "random"])
def test_sample(design):
    raw = {
        "sample": {
            "load": [0.5, 2.0],
            "limit_s": {"low": 1, "high": 1000, "log": True},
            "growth": {"low": 1, "high": 6, "whole": True},
        },
        "num": 64,
        "design": design,
        "seed": 3,
    }
    one, two = axis(raw, "sample"), axis(raw, "sample")
    assert one == two
    assert axis({**raw, "seed": 4}, "sample") != one
    assert one.labels == list(range(64))
    assert all(0.5 <= value <= 2 for value in one.columns["load"])
    assert all(1 <= value <= 1000 for value in one.columns["limit_s"])
    assert set(one.columns["growth"]) == {1, 2, 3, 4, 5, 6}
    if design != "random":  # evenly spread, and evenly in the logarithm
        assert abs(np.mean(one.columns["load"]) - 1.25) < 0.03
        assert abs(np.mean(np.log10(one.columns["limit_s"])) - 1.5) < 0.06


def test_whole_numbers_of_a_logarithm_are_spread_in_it():
    raw = {"sample": {"growth": {"low": 1, "high": 1000, "log": True, "whole": True}}, "num": 1024, "design": "sobol"}
    values = axis(raw, "sample").columns["growth"]
    assert min(values) == 1
    assert 990 <= max(values) <= 1000
    assert all(type(value) is int for value in values)
    # the numbers below x have a share of log(x / 0.5) / log(1000.5 / 0.5)
    for below, x in ((2, 1.5), (32, 31.5), (500, 499.5)):
        share = math.log(x / 0.5) / math.log(1000.5 / 0.5)
        assert abs(np.mean(np.array(values) < below) - share) < 0.003


def test_everything_that_is_not_named_has_its_default():
    read = spec(seed=7, replicates=3)
    assert read.fixed == {"scheduler": "fcfs", "growth": 0, "retry": False, "limit_s": math.inf, "seed": 7}
    assert [axis.name for axis in read.axes] == ["load", "replicate"]
    assert read.axes[-1].columns == {"replicate": [0, 1, 2]}


def test_formulas_come_in_an_order_that_works():
    read = spec(formulas={"growth": "seed + 1", "seed": "2 * load", "limit_s": "max(growth, seed)"})
    assert list(read.formulas) == ["seed", "growth", "limit_s"]
    assert set(read.fixed) == {"scheduler", "retry"}


def test_metrics_can_be_a_part():
    assert [out.name for out in spec(metrics=["z"]).outputs] == ["z"]


# --- mistakes ---

BAD = {
    "unknown key": ({"axis": {}}, "unknown key 'axis'; did you mean 'axes'?"),
    "name": ({"name": "a/b"}, "name: expected letters"),
    "name type": ({"name": 3}, "name: expected text, got 3"),
    "fixed is no table": ({"fixed": 3}, "fixed: expected a table, got 3"),
    "misspelt parameter": ({"fixed": {"growht": 1}}, "fixed: unknown parameter 'growht'; did you mean 'growth'?"),
    "misspelt axis": ({"axes": {"laod": [1]}}, "axes.laod: unknown parameter 'laod'; did you mean 'load'? (valid: "),
    "empty axis": ({"axes": {"load": []}}, "axes.load: an axis without values"),
    "axis is a number": ({"axes": {"load": 1}}, "axes.load: expected a list of values, or a table with start and stop"),
    "nested list": ({"axes": {"load": [[1]]}}, "axes.load: expected numbers, text, times, true or false in the list"),
    "duplicate": ({"axes": {"load": [1, 2, 1]}}, "axes.load: the label 1 stands twice"),
    "duplicate as float": ({"axes": {"load": [1, 1.0]}}, "axes.load: the label 1.0 stands twice"),
    "nan": ({"axes": {"load": [math.nan]}}, "axes.load: load: nan is not a finite number"),
    "nan as a label": ({"axes": {"a": [{"label": math.nan, "load": 1}]}}, "axes.a: nan is not a value of an axis"),
    "inf": ({"axes": {"load": [math.inf]}}, "axes.load: load: inf is not a finite number"),
    "mixed": ({"axes": {"load": [1, "a"]}}, "axes.load: labels are all text, all numbers, all booleans or all times;"),
    "path as a name": (
        {"axes": {"../x": [{"label": "a", "load": 1}]}},
        "axes.../x: '../x' cannot be a name in a store",
    ),
    "file as a name": ({"axes": {"zarr.json": [{"label": "a", "load": 1}]}}, "'zarr.json' cannot be a name in a store"),
    "jobs as a name": ({"axes": {"jobs": [{"label": "a", "load": 1}]}}, "the name 'jobs' is taken in every store"),
    "whole beside fraction": ({"axes": {"load": [2**53 + 1, 0.5]}}, "axes.load: load: 9007199254740993 beside numbers"),
    "whole too large": ({"axes": {"load": [2**63]}}, "axes.load: load: whole numbers of an axis have at most 63 bits"),
    "range without way": ({"axes": {"load": {"start": 1, "stop": 2}}}, "exactly one of step, num, geometric"),
    "range with two ways": (
        {"axes": {"load": {"start": 1, "stop": 2, "num": 3, "step": 1}}},
        "exactly one of step, num, geometric",
    ),
    "range key": ({"axes": {"load": {"start": 1, "end": 2, "num": 3}}}, "axes.load: unknown key 'end'"),
    "range step 0": (
        {"axes": {"load": {"start": 1, "stop": 2, "step": 0}}},
        "axes.load: step: 0 does not lead from 1 to 2",
    ),
    "range backwards": ({"axes": {"load": {"start": 2, "stop": 1, "step": 1}}}, "does not lead from 2 to 1"),
    "range num 0": ({"axes": {"load": {"start": 1, "stop": 2, "num": 0}}}, "axes.load: num: expected 2 to"),
    "range num huge": ({"axes": {"load": {"start": 1, "stop": 2, "num": 10**9}}}, "axes.load: num: expected 2 to"),
    "range nan": (
        {"axes": {"load": {"start": math.nan, "stop": 2, "num": 2}}},
        "axes.load: start: expected a finite number",
    ),
    "geometric from 0": ({"axes": {"load": {"start": 0, "stop": 2, "geometric": 2}}}, "start and stop must be above 0"),
    "zip lengths": (
        {"axes": {"p": {"zip": {"load": [1], "growth": [1, 2]}}}},
        "axes.p: zip: parameters need equally many values (load has 1, growth has 2)",
    ),
    "zip labels": (
        {"axes": {"p": {"zip": {"load": [1]}, "labels": ["a", "b"]}}},
        "axes.p: labels: expected a list of 1",
    ),
    "bundle mix": ({"axes": {"p": [{"load": 1}, 2]}}, "axes.p: a list mixes bundles (tables) and plain values: 2"),
    "bundle labels": (
        {"axes": {"p": [{"label": "a", "load": 1}, {"label": "a", "load": 2}]}},
        "axes.p: the label 'a' stands twice",
    ),
    "bundle list": (
        {"axes": {"p": [{"label": "a", "load": [1, 2]}]}},
        "axes.p: bundle 1: load: expected one number, text, time, true or false, got [1, 2]",
    ),
    "bundle true and 1": (
        {"axes": {"p": [{"label": "a", "load": True}, {"label": "b", "load": 1}]}},
        "axes.p: load: values of one axis are all text, all numbers, all booleans or all times, got bool, int",
    ),
    "label list": (
        {"axes": {"p": {"zip": {"load": [1]}, "labels": [[1]]}}},
        "axes.p: row 1: expected a label as text, number or time, got [1]",
    ),
    "zip of lists": (
        {"axes": {"p": {"zip": {"load": [[1]]}}}},
        "axes.p: zip.load: expected numbers, text, times, true or",
    ),
    "half a character": (
        {"axes": {"scheduler": ["\ud800"]}},
        "axes.scheduler: label: the text '\\ud800' is not valid Unicode",
    ),
    "sample whole": (
        {"axes": {"s": {"sample": {"load": {"low": 0.5, "high": 1.5, "whole": True}}, "num": 4}}},
        "axes.s: sample.load: whole: low and high must be whole numbers of at most 53 bits, got 0.5 and 1.5",
    ),
    "sample flag": (
        {"axes": {"s": {"sample": {"load": {"low": 1, "high": 2, "log": "no"}}, "num": 4}}},
        "axes.s: sample.load: log: expected true or false, got 'no'",
    ),
    "sample seed": (
        {"axes": {"s": {"sample": {"load": [0, 1]}, "num": 4, "seed": -1}}},
        "axes.s: seed: expected a whole number of 0 or more, got -1",
    ),
    "range huge": (
        {"axes": {"load": {"start": 1, "stop": 10**400, "num": 3}}},
        "axes.load: stop: expected a finite number, got a larger one",
    ),
    "bundle nothing": ({"axes": {"p": [{"label": "a"}]}}, "axes.p: bundles name a label only"),
    "bundle parameter": ({"axes": {"p": [{"label": "a", "lod": 1}]}}, "axes.p: unknown parameter 'lod'"),
    "sample design": ({"axes": {"s": {"sample": {"load": [0, 1]}, "num": 4, "design": "lhs"}}}, "unknown design 'lhs'"),
    "sample bounds": (
        {"axes": {"s": {"sample": {"load": [2, 1]}, "num": 4}}},
        "axes.s: sample.load: low 2 is above high 1",
    ),
    "sample log": (
        {"axes": {"s": {"sample": {"load": {"low": 0, "high": 1, "log": True}}, "num": 4}}},
        "sample.load: log: low must be above 0",
    ),
    "sobol": ({"axes": {"s": {"sample": {"load": [0, 1]}, "num": 5, "design": "sobol"}}}, "powers of two only, got 5"),
    "two axes": (
        {"axes": {"load": [1], "p": [{"label": "a", "load": 2}]}},
        "axes.p: parameter 'load' is already set by axes.load",
    ),
    "axis and fixed": ({"fixed": {"load": 1}}, "axes.load: parameter 'load' is already set by fixed"),
    "seed twice": ({"seed": 1, "fixed": {"seed": 2}}, "fixed: parameter 'seed' is already set by fixed"),
    "formula and axis": ({"formulas": {"load": "1"}}, "formulas.load: parameter 'load' is already set by axes.load"),
    "formula name": ({"formulas": {"growth": "laod * 2"}}, "formulas.growth: unknown parameter 'laod'; did you mean"),
    "formula circle": ({"formulas": {"growth": "seed", "seed": "growth"}}, "formulas: formulas go in a circle"),
    "formula target": ({"formulas": {"x": "1"}}, "formulas.x: unknown parameter 'x'"),
    "replicate axis": (
        {"axes": {"replicate": [1]}},
        "axes.replicate: the name 'replicate' is taken in every store; set replicates",
    ),
    "reserved axis": ({"axes": {"status": [{"load": 1}]}}, "axes.status: the name 'status' is taken in every store"),
    "metric axis": ({"axes": {"y": [{"load": 1}]}}, "axes.y: the name 'y' is taken in every store"),
    "axis named like another's parameter": (
        {"axes": {"load": [{"label": "a", "growth": 1}], "p": [{"label": "b", "load": 2}]}},
        "axes.load: the name is that of a parameter that axes.p sets",
    ),
    "labels of an own parameter": (
        {"axes": {"load": {"zip": {"load": [1, 2]}, "labels": ["a", "b"]}}},
        "axes.load: labels differ from the values of the parameter 'load'",
    ),
    "replicates": ({"replicates": 0}, "replicates: expected 1 to 1,000,000, got 0"),
    "replicates text": ({"replicates": "3"}, "replicates: expected a whole number, got '3'"),
    "replicates true": ({"replicates": True}, "replicates: expected a whole number, got True"),
    "metric": ({"metrics": ["x"]}, "metrics: unknown metric 'x'"),
    "metrics empty": ({"metrics": []}, "metrics: expected a list of metrics, got []"),
    "keep_jobs": ({"keep_jobs": 1}, "keep_jobs: expected true or false, got 1"),
    "exclude axis": (
        {"exclude": [{"laod": 1}]},
        "exclude 1: unknown axis or varied parameter 'laod'; did you mean 'load'?",
    ),
    "exclude value": ({"exclude": [{"load": 3}]}, "exclude 1: unknown value of load 3 (valid: 1, 2)"),
    "exclude nothing": ({"exclude": [{"load": []}]}, "exclude 1: load: an empty list excludes nothing"),
    "exclude value of an axis with a wrong one": (
        {"axes": {"load": [2.0, math.inf, 1.0]}, "exclude": [{"load": 3}]},
        "exclude 1: unknown value of load 3 (valid: 2.0, 1.0)",
    ),
    "exclude true": ({"exclude": [{"load": True}]}, "exclude 1: unknown value of load True (valid: 1, 2)"),
    "exclude text": ({"exclude": [{"load": "1"}]}, "exclude 1: unknown value of load '1' (valid: 1, 2)"),
    "exclude empty": ({"exclude": [{}]}, "exclude 1: expected a table"),
    "exclude no list": ({"exclude": {"load": 1}}, "exclude: expected [[exclude]] tables"),
}


@pytest.mark.parametrize("mistake", BAD)
def test_each_mistake_is_one_sentence_with_file_and_key(mistake):
    raw, sentence = BAD[mistake]
    with pytest.raises(InputError) as caught:
        spec(**raw)
    lines = str(caught.value).splitlines()
    assert all(line.startswith("my.toml: ") for line in lines)
    assert any(sentence in line for line in lines), lines


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(InputError) as caught:
        spec(axis=1, fixed={"growht": 1}, axes={"load": [], "x": [1]}, replicates=0, metrics=["q"], exclude=[{"v": 1}])
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    for key in ("unknown key", "fixed", "axes.load", "axes.x", "replicates", "metrics", "exclude 1"):
        assert any(key in line for line in lines)


def test_a_log_and_a_machine_that_are_not_there_are_reported_with_the_other_mistakes():
    raw = {"fixed": {"log": "nassa", "bogus": 1}, "axes": {"machine": ["flat:8", "torus:4"], "load_scale": []}}
    with pytest.raises(InputError) as caught:
        read_spec(raw, SimulatorTarget(), where="my.toml")
    lines = str(caught.value).splitlines()
    for sentence in (
        "unknown parameter 'bogus'",
        "axes.load_scale: an axis without values",
        "unknown log 'nassa'",
        "'torus:4'",
    ):
        assert sum(sentence in line for line in lines) == 1, lines
    assert len(lines) == 4
    # what an unreadable axis would have set is not missed
    with pytest.raises(InputError) as caught:
        read_spec({"axes": {"workload": []}}, SimulatorTarget())
    assert "no job log" not in str(caught.value)


def test_a_function_needs_its_arguments():
    def needs(a, b):
        return a

    with pytest.raises(InputError, match="no value for b: set it in fixed, axes or formulas"):
        read_spec({"axes": {"a": [1]}}, FunctionTarget(needs, "y"))
    with pytest.raises(InputError, match="takes no parameter 'replicate', so replicates would be equal"):
        read_spec({"axes": {"a": [1]}, "fixed": {"b": 1}, "replicates": 2}, FunctionTarget(needs, "y"))


@pytest.mark.parametrize(
    ("file", "name"), [("a.toml", "a"), ("my sweep (2).toml", "my-sweep-2-"), ("größe.toml", "größe")]
)
def test_a_sweep_without_a_name_is_called_as_its_file(tmp_path, file, name):
    (tmp_path / file).write_text('[fixed]\nlog = "sdsc-model"\n[axes]\nseed = [1]\n')
    assert Sweep.from_toml(tmp_path / file).spec.name == name
    assert Sweep.from_toml(tmp_path / file).store_path().name == f"{name}.zarr"


@pytest.mark.parametrize("name", ["~nobody-of-this-name/a", "a" * 300])
@pytest.mark.parametrize("parameter", ["log", "machine", "failures"])
def test_a_file_that_there_cannot_be_is_refused_by_a_sentence(parameter, name):
    """The home of somebody who is unknown, and a name that is too long."""
    fixed = {"log": "sdsc-model", "machine": "flat:128", parameter: f"{name}.toml"}
    with pytest.raises(InputError, match="cannot be read"):
        Sweep(fixed=fixed, axes={"seed": [1, 2]}).plan()


def test_a_file_that_is_marked_as_utf_8_is_read(tmp_path):
    (tmp_path / "x.toml").write_text("seed = 1", encoding="utf-8-sig")
    assert load_toml(tmp_path / "x.toml") == {"seed": 1}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = ", "not valid TOML: Invalid value"),
        ("a = 1\na = 2", "not valid TOML: Cannot overwrite a value"),
        (b"\xff\xfe", "cannot be read"),
        (f"a = {'1' * 5000}", "a number has thousands of digits"),
    ],
)
def test_a_file_that_is_not_toml(tmp_path, text, sentence):
    path = tmp_path / "x.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert sentence in str(caught.value)


def test_a_spec_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"missing\.toml: no such spec file"):
        find_spec(tmp_path / "missing.toml")
    with pytest.raises(InputError, match=r": is a folder; name a spec file, or one of 'faultsweep list experiments'$"):
        find_spec(tmp_path)
    with pytest.raises(InputError, match="unknown experiment or spec file 'demon'"):
        find_spec("demon")


@given(st.text(max_size=30))
def test_no_text_breaks_the_reader(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzz.toml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(InputError):
        read_spec(load_toml(path), FunctionTarget(policy, "y"))


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["start", "stop", "num", "step", "zip", "sample", "label", "load", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(["name", "seed", "fixed", "axes", "formulas", "exclude", "metrics", "replicates"]), json_like
    )
)
def test_no_structure_breaks_the_reader(raw):
    """Whatever a file holds, it is read or refused with a sentence."""
    raw.pop("seed", None) if raw.get("seed") is None else None
    # A short limit: what is tried here is the structure, not how long a million values take.
    with patch.object(axes, "LONGEST_AXIS", 1000), contextlib.suppress(InputError):
        read_spec(raw, FunctionTarget(policy, "y"))


values = st.one_of(
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6),
        st.one_of(values, st.lists(values, max_size=3), st.dictionaries(st.sampled_from(["a", "b c", "d.e"]), values)),
        max_size=5,
    )
)
def test_toml_reads_back(raw):
    import tomllib

    raw.pop("exclude", None)
    assert tomllib.loads(write_toml(raw)) == raw


def test_a_resolved_spec_reads_back_as_the_same_sweep(tmp_path):
    raw = {
        "name": "x",
        "replicates": 2,
        "axes": {"load": {"start": 1, "stop": 2, "num": 3}, "p": [{"label": "a", "growth": 1}, {"label": "b"}]},
        "exclude": [{"load": [1.0, 2.0], "p": "a"}],
        "formulas": {"limit_s": "10 * load"},
    }
    first = spec(**raw)
    (tmp_path / "x.toml").write_text(first.to_toml())
    second = spec(**load_toml(tmp_path / "x.toml"))
    assert (first.axes, first.fixed, first.exclude) == (second.axes, second.fixed, second.exclude)
    assert first.formulas["limit_s"].text == second.formulas["limit_s"].text


def test_every_parameter_can_be_an_axis():
    """No metric, and nothing else that a store has, is called like a parameter."""
    target = SimulatorTarget()
    assert not set(target.parameters) & ({out.name for out in target.outputs} | RESERVED)


def test_a_varied_argument_with_the_name_of_a_result_is_refused():
    target = FunctionTarget(lambda a, b=0: {"b": a}, ["b"])
    with pytest.raises(InputError, match=r"^axes\.x: the parameter 'b' has the name of a result"):
        read_spec({"axes": {"x": {"zip": {"a": [1, 2], "b": [3, 4]}}}}, target)
    with pytest.raises(InputError, match=r"^formulas\.b: the parameter 'b' has the name of a result"):
        read_spec({"axes": {"a": [1, 2]}, "formulas": {"b": "2 * a"}}, target)


def layout(figure=None, **axes):
    raw = {"axes": axes, "replicates": 1, **({"figure": figure} if figure is not None else {})}
    target = FunctionTarget(lambda load=0, policy="", machine="", size=0: 0, ["y", "z"])
    return read_spec(raw, target, where="my.toml").layout()


LOADS, POLICIES, MACHINES = [1, 2, 3], ["a", "b"], ["flat", "torus"]


def test_the_figure_without_a_table_is_the_first_metric_over_the_first_numbers():
    found = layout(policy=POLICIES, size=[4], load=LOADS, machine=MACHINES)
    assert (found.kind, found.x, found.along, found.y) == ("curves", "load", "load", ("y",))
    assert (found.curves, found.panels) == (("policy", "machine"), "")


def test_the_figure_of_names_is_bars():
    found = layout(policy=POLICIES, machine=MACHINES)
    assert (found.kind, found.x, found.curves, found.panels) == ("bars", "policy", ("machine",), "")


def test_many_curves_go_into_panels():
    found = layout(policy=list("abcde"), machine=MACHINES, load=LOADS)
    assert (found.curves, found.panels) == (("machine",), "policy")


def test_a_figure_over_a_metric_goes_along_the_axis_that_is_left():
    wanted = {"x": "z", "y": ["y", "z"], "curves": "policy", "panels": "machine", "log_y": True}
    found = layout(wanted, policy=POLICIES, machine=MACHINES, load=LOADS)
    assert (found.kind, found.x, found.along, found.y, found.log_y) == ("curves", "z", "load", ("y", "z"), True)


@pytest.mark.parametrize(
    ("figure", "sentence"),
    [
        ({"curve": "policy"}, "unknown key 'curve'; did you mean 'curves'?"),
        ({"kind": "curve"}, "kind: unknown kind 'curve'; did you mean 'curves'?"),
        ({"x": "laod"}, "x: unknown axis, varied parameter or metric 'laod'; did you mean 'load'?"),
        ({"y": "wait"}, "y: unknown metric 'wait' (valid: y, z)"),
        ({"y": ["y", "y"]}, "y: expected different names, got ['y', 'y']"),
        ({"panels": ["policy", "machine"]}, "panels: expected one name, got ['policy', 'machine']"),
        ({"panels": "polcy"}, "panels: unknown axis 'polcy'; did you mean 'policy'?"),
        ({"curves": "policy"}, "curves: machine vary and are none of x, curves and panels"),
        ({"x": "load", "curves": ["load"]}, "x: no axis is left for it"),
        ({"kind": "curves", "x": "policy"}, "kind: curves need numbers along x, and 'policy' has names"),
        ({"delete_warm_up": True}, "delete_warm_up: needs keep_jobs = true in the spec, and means over jobs as y"),
        ({"kind": "bars", "x": "z"}, "kind: bars stand over an axis or a varied parameter, and x is the metric 'z'"),
        ({"x": ["load"]}, "x: unknown axis, varied parameter or metric ['load']"),
        ({"curves": [["load"]]}, "curves: unknown axis ['load']"),
        (
            {"kind": "demo"},
            "kind: demo is drawn over workload, policy, load_scale alone; this sweep lacks workload, load_scale and"
            " varies machine, load",
        ),
        ({"log_y": 1}, "log_y: expected true or false, got 1"),
        ("curves", "figure: expected a table, got 'curves'"),
    ],
)
def test_a_mistake_in_the_table_of_the_figure_names_its_key(figure, sentence):
    with pytest.raises(InputError) as error:
        layout(figure, policy=POLICIES, machine=MACHINES, load=LOADS)
    assert str(error.value).startswith("my.toml: figure: ")
    assert sentence in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_all_mistakes_of_a_figure_are_told_at_once_and_beside_others():
    target = FunctionTarget(lambda load=0: 0, ["y"])
    figure = {"x": 3, "y": "mean", "curves": "nope", "foo": 1, "log_x": 0}
    with pytest.raises(InputError) as error:
        read_spec({"axes": {"load": [1, 2]}, "fixed": {"lod": 1}, "figure": figure}, target, where="my.toml")
    keys = [line.split(": ")[1:3] for line in str(error.value).splitlines()]
    assert keys[0] == ["fixed", "unknown parameter 'lod'; did you mean 'load'? (valid"]
    expected = ["unknown key 'foo' (valid", "log_x", "y", "curves", "x"]
    assert keys[1:] == [["figure", part] for part in expected]


def test_all_values_of_an_axis_that_are_refused_are_told_at_once():
    with pytest.raises(InputError) as error:
        read_spec(
            {"axes": {"load_scale": [math.nan, math.inf, -1.0]}, "fixed": {"log": "nasa-model"}}, SimulatorTarget()
        )
    assert [line.split(": ", 2)[2].split(" (")[0] for line in str(error.value).splitlines()] == [
        "expected a number, got nan",
        "inf is outside the valid range 1e-09 to 1e+09",
        "-1.0 is outside the valid range 1e-09 to 1e+09",
    ]


@pytest.mark.parametrize("command_name", ["run", "figure"])
def test_an_unknown_target_is_told_with_what_else_is_wrong(tmp_path, command, command_name):
    spec = tmp_path / "my.toml"
    spec.write_text('target = 1\nfoo = 1\nreplicates = "x"\n[axes]\na = [nan, 1]\n[figure]\ny = "what"\n')
    code, _, err = command(command_name, str(spec))
    lines = [line.removeprefix(f"{spec}: ") for line in err.splitlines()]
    assert code == 2
    assert [line.split(" (")[0] for line in lines] == [
        "target: unknown target '1'",
        "unknown key 'foo'",
        "axes.a: a: nan is not a finite number",
        "replicates: expected a whole number, got 'x'",
    ]


def test_curves_that_cannot_be_told_apart_are_refused():
    with pytest.raises(InputError, match="policy x machine are 14 curves in a panel, at most 12 can be told apart"):
        layout({"curves": ["policy", "machine"]}, policy=list("abcdefg"), machine=MACHINES, load=LOADS)


def test_other_names_of_the_field_are_one_label():
    named = {"scheduler": ["fcfs", "EASY", "conservative-backfilling"], "queue_order": ["spt", "saf"]}
    rules = [{"scheduler": "easy", "queue_order": "sjf"}]
    found = read_spec({"axes": named, "fixed": {"log": "sdsc-model"}, "exclude": rules}, SimulatorTarget())
    assert {axis.name: list(axis.labels) for axis in found.axes if axis.name in named} == {
        "scheduler": ["fcfs", "backfill", "conservative"],
        "queue_order": ["sjf", "saf"],
    }
    assert found.exclude == [{"scheduler": ["backfill"], "queue_order": ["sjf"]}]
    search = {"along": "load_scale", "policies": ["FIFO", "easy"]}
    axes = {"scheduler": ["fcfs", "backfill", "conservative"], "load_scale": [0.5, 1.0]}
    found = read_spec({"axes": axes, "fixed": {"log": "sdsc-model"}, "refine": search}, SimulatorTarget())
    assert (found.searches[0].axis, found.searches[0].policies) == ("scheduler", ("fcfs", "backfill"))
    with pytest.raises(InputError, match="two of backfill, easy are names of one value"):
        read_spec({"axes": {"scheduler": ["backfill", "easy"]}, "fixed": {"log": "sdsc-model"}}, SimulatorTarget())


@pytest.mark.parametrize(
    ("parameter", "given", "name"),
    [
        ("scheduler", "FCFS", "fcfs"),
        ("scheduler", "First_Fit", "first-fit"),
        ("scheduler", "CBF", "conservative"),
        ("node_choice", "cons_tres", "consecutive"),
        ("node_choice", "LFF", "lff"),
        ("queue_order", "FIFO", "fcfs"),
        ("queue_order", "wfp3", "wfp"),
        ("estimates", "perfect", "actual"),
        ("checkpoint", "Young", "young"),
        ("predictor", "Mine.py:Rule", "Mine.py:Rule"),
    ],
)
def test_names_are_read_in_any_case_and_kept_as_they_are_written_here(parameter, given, name):
    assert PARAMETERS[parameter].check(given) == name


def test_no_alias_hides_a_policy():
    named = [parameter for parameter in PARAMETERS.values() if parameter.aliases]
    assert len(named) > 1
    for parameter in named:
        assert set(parameter.aliases.values()) <= set(parameter.choices)
        assert not set(parameter.aliases) & set(parameter.choices)


@pytest.mark.parametrize(("given", "meant"), [("eazy", "easy"), ("slurn", "slurm")])
def test_a_misspelt_name_or_alias_is_recognised(given, meant):
    with pytest.raises(InputError, match=f"unknown scheduler '{given}'; did you mean '{meant}'"):
        PARAMETERS["scheduler"].check(given)
