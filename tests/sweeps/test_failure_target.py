"""Sweeps of the failure generators alone: the same failures as elsewhere, and Table I of zhang2004 from them."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.analysis.figures.zhang2004 import PAPER_TABLE_1, table_1
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.sweeps.failure_target import FailureTarget, generate
from faultsweep.sweeps.open import open_jobs
from faultsweep.sweeps.rerun import rerun
from faultsweep.sweeps.sweep import Sweep
from scipy import stats
from typer.testing import CliRunner

from faultsweep.cli import app
from faultsweep.cli.failures import _generate
from faultsweep.errors import InputError


def run(client, path, **raw):
    return Sweep(target="failures", **raw).run(path, cluster=client, progress=False)


def test_the_failures_are_those_that_generate_writes(client, tmp_path):
    results = run(
        client,
        tmp_path / "a.zarr",
        fixed={"days": 40.0, "machine": "flat:320"},
        axes={"failures": ["weibull", "mtbf", "bursts"], "mtbf_h": [5.0]},
        replicates=2,
        keep_jobs=True,
    )
    for kind in ("weibull", "mtbf", "bursts"):
        path = tmp_path / f"{kind}.csv"
        _generate(
            source=kind, days=40.0, output=str(path), machine="flat:320", replicate=1, mtbf_h=5.0, json_output=False
        )
        expected, found = read_failures(path), open_jobs(results, failures=kind, replicate=1)
        assert len(expected) > 10
        for name in ("time_s", "node", "down_s"):
            assert np.array_equal(found[name], getattr(expected, name)), name
        cell = results.sel(failures=kind, replicate=1, mtbf_h=5.0)
        assert cell["failures_drawn"] == len(expected)
        assert cell["failures_drawn_per_day"] == len(expected) / 40
    again = rerun(tmp_path / "a.zarr", {"failures": "bursts", "mtbf_h": 5.0, "replicate": 1})
    assert again.different == []
    for option in ("--jobs-out", "--events-out", "--trace-out"):
        arguments = ["rerun", str(tmp_path / "a.zarr"), "--select", "failures=mtbf,replicate=1", option, "x.csv"]
        done = CliRunner().invoke(app, arguments)
        assert "only simulations have jobs, events and a trace" in str(done.exception)


def test_correlation_and_skew_show(client, tmp_path):
    results = run(
        client,
        tmp_path / "a.zarr",
        fixed={"days": 500.0, "machine": "flat:320"},
        axes={"burst_window": [2, 64], "zipf_alpha": [0.01, 0.99]},
    ).squeeze()
    correlation, share = results["gap_autocorrelation"], results["worst_tenth_share"]
    assert (abs(correlation.sel(burst_window=2)) < 0.06).all()
    assert (correlation.sel(burst_window=64) > 0.5).all()
    assert (share.sel(zipf_alpha=0.99) > 0.6).all()
    assert (share.sel(zipf_alpha=0.01) < 0.2).all()
    # the order within segments changes no gap
    gaps = results["mean_gap_s"].isel(zipf_alpha=0)
    assert gaps.sel(burst_window=64).item() == pytest.approx(gaps.sel(burst_window=2).item(), rel=0.02)


def test_table_1(client, tmp_path):
    """The means that the model has over 62 days (computed apart), and where the paper's samples lie."""
    raw = {"days": 62.0, "machine": "flat:320"}
    results = run(client, tmp_path / "a.zarr", fixed=raw, axes={"weibull_shape": list(PAPER_TABLE_1)}, replicates=200)
    table = table_1(results).table
    for row, (shape, mean) in zip(table.rows, {0.2: 14.0, 0.55: 176.4, 0.65: 218.0, 0.85: 273.2}.items(), strict=True):
        counts = results["failures_drawn"].sel(weibull_shape=shape).values
        assert abs(counts.mean() - mean) < 3.3 * counts.std() / np.sqrt(200)
        half = stats.t.ppf(0.975, 199) * counts.std(ddof=1) / np.sqrt(200)
        low, high = counts.mean() - half, counts.mean() + half
        if counts.min() > 0:  # on the scale of the logarithm, which zeros do not have
            low, high = counts.mean() * np.exp([-half / counts.mean(), half / counts.mean()])
        assert row[1] == f"{counts.mean():.1f} ({low:.1f} to {high:.1f})"
        paper, _ = PAPER_TABLE_1[shape]
        assert row[-1] == f"{100 * np.mean(counts <= paper):.1f} %"
        low, high = np.quantile(counts, [0.025, 0.975])
        assert (low <= paper <= high) == (shape != 0.2)


def test_what_does_nothing_is_a_copy():
    sweep = Sweep(target="failures", axes={"failures": ["weibull", "mtbf"], "zipf_alpha": [0, 1]}, fixed={"mtbf_h": 9})
    plan = sweep.plan(measure=False)
    assert (plan.cells, plan.simulations) == (4, 3)


def test_nonsense_is_refused_in_one_sentence():
    for raw, sentence in (
        ({"target": "failure"}, "target: unknown target 'failure'; did you mean 'failures'?"),
        ({"target": "failures", "fixed": {"scheduler": "fcfs"}}, "unknown parameter 'scheduler'"),
        ({"target": "failures", "fixed": {"machine": "ring:4"}}, "ring"),
        ({"target": "failures", "fixed": {"failures": "none"}}, "failures: unknown"),
    ):
        with pytest.raises(InputError) as error:
            Sweep(axes={"days": [1.0, 2.0]}, **raw)
        assert sentence in str(error.value)
        assert "\n" not in str(error.value)


def test_no_failure_at_all_is_not_a_number():
    target = FailureTarget()
    config = {name: p.default for name, p in target.parameters.items()} | {"days": 1e-6}
    values = dict(zip([out.name for out in target.outputs], target.run(config).values, strict=True))
    assert values.pop("failures_drawn") == values.pop("failures_drawn_per_day") == 0
    assert np.isnan(list(values.values())).all()


def test_what_is_no_generator_is_refused():
    with pytest.raises(InputError, match=r"failures: 'none' draws none \(valid: .*weibull"):
        generate({"failures": "none"}, 10.0)
