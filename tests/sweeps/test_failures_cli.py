"""``faultsweep failures describe | fit | generate``, and failures in sweeps."""

from __future__ import annotations

import json
import math
import tomllib

import numpy as np
import pytest
from faultsweep.analysis.pictures.failures import draw
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.parameters import PARAMETERS, resolve
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from faultsweep.sweeps.simulator import SimulatorTarget
from faultsweep.sweeps.sweep import Sweep
from typer.testing import CliRunner

from faultsweep.cli.failures import app
from faultsweep.errors import InputError


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def output(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception:
        raise result.exception
    return result.output


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.csv.gz"
    output("generate", "weibull", "--machine", "flat:64", "--days", 62, "--burst-window", 16, "--seed", 3, "-o", path)
    return path


def test_generate_writes_what_a_run_sees(trace):
    written = read_failures(trace)
    config = resolve({"failures": "weibull", "machine": "flat:64", "burst_window": 16, "seed": 3})
    seen = source_for(config, 64, Span(0.0, 1e9, 1e9)).until(62 * DAY_S)
    for name in ("time_s", "node", "down_s"):
        assert np.array_equal(getattr(written, name), getattr(seen, name))
    assert written.num_nodes == 64


def test_what_a_single_failure_does_not_tell_is_not_shown_as_a_number(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("# nodes: 3\ntime_s,node,down_s\n5,2,60\n")
    said = output("describe", path, "--picture", tmp_path / "one.png")
    assert "1 in 0.0 days\n" in said
    assert "nan" not in said
    assert "- of the system, - of a node" in said


def test_fit_writes_parameters_that_a_spec_takes(tmp_path):
    path, spec = tmp_path / "incidents.csv", tmp_path / "incidents.toml"
    output("generate", "bursts", "--machine", "flat:64", "--days", 200, "--failures-per-day", 5, "-o", path)
    said = output("fit", path, "-o", spec)
    assert "burst-tail" in said
    assert "model, mean of ten" in said
    fixed = tomllib.loads(spec.read_text())["fixed"]
    assert fixed == json.loads(output("fit", path, "--json"))
    assert resolve(fixed)["burst_tail"] == fixed["burst_tail"]
    assert fixed["failures_per_day"] == pytest.approx(5, rel=0.05)
    path.write_text("time_s,node,down_s\n1,0,0\n")
    with pytest.raises(InputError, match="are not enough to estimate bursts"):
        output("fit", path)


def test_generate_has_an_option_for_every_parameter_that_a_generator_heeds(tmp_path):
    text = output("generate", "--help")
    for name, parameter in PARAMETERS.items():
        if parameter.group == "failures" and not name.startswith(
            ("failures", "num_", "failure_system", "failure_filter", "failure_columns")
        ):
            assert "--" + name.replace("_", "-") in text
    path = tmp_path / "f.csv"
    repair = ("--mttr-h", 2, "--repair-distribution", "exponential")
    said = output("generate", "mtbf", "--node-mtbf-h", 1000, *repair, "--days", 100, "-o", path)
    assert f"{len(read_failures(path)):,} failures of 128 nodes in 100 days" in said
    output("generate", "bursts", "--failures-per-day", 2, "--days", 100, "-o", path)
    assert len(read_failures(path)) == 200


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("weibul", "-o", "f.csv"), "did you mean 'weibull'"),
        (("mtbf", "-o", "f.csv"), "neither is given"),
        (("weibull", "-o", "no/such/folder/f.csv"), "does not exist"),
        (("weibull", "--machine", "ring:4", "-o", "f.csv"), "ring:4"),
    ],
)
def test_generate_refuses(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        output("generate", *arguments)


def test_describe(trace, tmp_path):
    text = output("describe", trace, "--picture", tmp_path / "trace.png")
    for piece in (
        "failures",
        "MTBF",
        "autocorrelation",
        "dispersion",
        "skew",
        "Weibull",
        "lognormal",
        "exponential",
        "KS",
    ):
        assert piece in text
    assert (tmp_path / "trace.png").stat().st_size > 20_000
    figures = json.loads(output("describe", trace, "--json"))
    assert figures["rate"]["failures"] == len(read_failures(trace))
    assert figures["fits"]["Weibull"]["shape"] == pytest.approx(0.85, abs=0.1)


def test_describe_short_logs(tmp_path):
    for rows in ("1,0,0", "1,0,0\n1,0,0", "1,0,5\n2,1,0\n2,1,0"):
        path = tmp_path / "short.csv"
        path.write_text(f"time_s,node,down_s\n{rows}\n")
        output("describe", path, "--picture", tmp_path / "short.svg")
        json.loads(output("describe", path, "--json"))


def test_pictures_have_known_formats(trace, tmp_path):
    with pytest.raises(InputError, match=r"\.png, \.pdf, \.svg"):
        draw(read_failures(trace), tmp_path / "trace.gif")


def test_sweeps_check_and_pin_failure_files(trace, tmp_path):
    target = SimulatorTarget()
    values = {"log": ["nasa-model"], "failures": ["none", "weibull", str(trace)]}
    assert target.precheck(values) == []
    pins = target.pins(values)
    assert set(pins) == {"log nasa-model", f"failures {trace}"}
    assert pins[f"failures {trace}"] == read_failures(trace).content_hash
    (tmp_path / "bad.csv").write_text("nothing\n")
    problems = target.precheck({**values, "failures": ["weibul", "absent.csv", str(tmp_path / "bad.csv")]})
    assert len(problems) == 3
    assert "did you mean 'weibull'" in problems[0]
    assert "no such file" in problems[1]
    assert "not a failure log" in problems[2]


def test_replicates_of_a_trace_of_our_own_are_one_run(trace, tmp_path):
    """Nothing is drawn where jobs and failures are files that are taken as they are."""
    (tmp_path / "jobs.swf").write_text("; MaxNodes: 320\n; MaxProcs: 320\n1 0 -1 9 4 " + "-1 " * 13)
    fixed = {"machine": "flat:320", "log": "jobs.swf", "failures": str(trace)}
    for changed, simulations in (
        ({}, 1),
        ({"failure_fit": "repeat"}, 3),
        ({"node_map": "permutation"}, 3),
        ({"num_failures": 5}, 3),
        ({"failures": "weibull"}, 3),
    ):
        sweep = Sweep(axes={"load_scale": [1.0]}, fixed=fixed | changed, replicates=3, folder=tmp_path)
        assert sweep.plan(tmp_path / "a.zarr", measure=False).simulations == simulations, changed


@pytest.mark.shared
def test_describe_real_logs(shared, tmp_path):
    logs = shared / "failure-logs"
    for name, options in {
        "lanl/LA-UR-05-7318-failure-data-1996-2005.csv.xz": ("--system", 20),
        "bluegene-l/bgl-ras-fatal-2005.txt.xz": ("--filter-s", 600),
    }.items():
        figures = json.loads(output("describe", logs / name, *options, "--json", "--picture", tmp_path / "log.png"))
        assert not math.isnan(figures["gaps"]["coefficient_of_variation"])


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(InputError, match=r"written as \.png, \.pdf, \.svg"):
        output("describe", tmp_path / "nosuch.csv", "--picture", tmp_path / "log.jpeg")
