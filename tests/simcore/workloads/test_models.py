"""Workload models: published statistics, the logs that they stand for, seeds, and the same jobs on all processors."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from faultsweep.simcore.workloads import calibrate, lublin
from faultsweep.simcore.workloads.calibrated import from_busy_time, to_busy_time
from faultsweep.simcore.workloads.models import MODELS, generate
from faultsweep.simcore.workloads.requested import requested_times
from faultsweep.simcore.workloads.swf import read_swf
from faultsweep.simcore.workloads.tables import FILES, TABLES
from faultsweep.simcore.workloads.transforms import span
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError

COLUMNS = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
FINGERPRINT = """
import hashlib
from faultsweep.simcore.workloads import models, transforms
for name in models.MODELS:
    w = models.generate(name, 3000, seed=5)
    digest = hashlib.sha256(b"".join(getattr(w, c).tobytes() for c in ("submit_s", "run_s", "requested_s", "size")))
    digest.update(transforms.estimates(transforms.scale_load(w, 1.1), "f-model", 2.5).tobytes())
    print(name, digest.hexdigest())
"""


def over_seeds(measure, name, num_jobs=10_000, seeds=range(12)):
    """Return mean and standard deviation of a figure of a model over seeds."""
    values = [measure(generate(name, num_jobs, seed)) for seed in seeds]
    return np.mean(values), np.std(values)


def work_per_node(workload):
    return (workload.size * workload.run_s).sum() / workload.nodes


@pytest.mark.parametrize("name", MODELS)
def test_models_give_valid_workloads(name):
    workload = generate(name, 2_000, seed=3)
    assert len(workload) == 2_000
    assert workload.job_id.tolist() == list(range(1, 2_001))
    assert (np.diff(workload.submit_s) >= 0).all()
    assert (workload.run_s >= 1).all()
    assert (workload.requested_s >= workload.run_s).all()
    assert workload.size.min() >= 1
    assert workload.size.max() <= workload.nodes == {"llnl-model": 320, "intrepid-model": 40_960}.get(name, 128)
    for column in ("submit_s", "run_s", "requested_s"):
        values = getattr(workload, column)
        assert values.dtype == np.float64
        np.testing.assert_array_equal(values, np.rint(values))
    assert workload.size.dtype == workload.job_id.dtype == workload.user.dtype == np.int64
    assert any("Acknowledge" in line for line in workload.header)


@pytest.mark.parametrize("name", MODELS)
def test_models_depend_on_seed_and_replicate_alone_and_longer_ones_begin_alike(name):
    long, short = generate(name, 900, seed=4, replicate=2), generate(name, 300, seed=4, replicate=2)
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(long, column)[:300], getattr(short, column))
    assert long.content_hash == short.content_hash == generate(name, 10, seed=9).content_hash
    for other in (generate(name, 300, seed=5, replicate=2), generate(name, 300, seed=4, replicate=3)):
        assert (other.run_s != short.run_s).any()
        assert (other.submit_s != short.submit_s).any()


def test_models_have_10000_jobs_by_default_and_unknown_ones_are_named():
    assert len(generate("nasa-model")) == 10_000
    with pytest.raises(
        InputError, match=r"did you mean 'nasa-model'\? \(valid: atlas-model, intrepid-model, llnl-model, lublin, "
    ):
        generate("nasa-modell")
    with pytest.raises(InputError, match="lublin: cannot make -1 jobs"):
        generate("lublin", -1)
    with pytest.raises(InputError, match="too few"):
        lublin.generate(10, nodes=4)


@pytest.mark.parametrize(
    ("name", "mean_size", "std_size", "mega_node_seconds"),
    [("nasa-model", 6.3, 14.4, 0.881), ("sdsc-model", 9.7, 14.8, 7.1)],
)
def test_calibrated_models_agree_with_krevat2003_table_4_1(name, mean_size, std_size, mega_node_seconds):
    for measure, published in (
        (lambda w: w.size.mean(), mean_size),
        (lambda w: w.size.std(), std_size),
        (lambda w: work_per_node(w) / 1e6, mega_node_seconds),
    ):
        mean, spread = over_seeds(measure, name)
        assert abs(mean - published) < 2 * spread
        assert abs(mean / published - 1) < 0.03


@pytest.mark.shared
def test_shipped_parameters_are_those_of_the_logs(job_logs):
    from importlib.resources import files

    folder = files("faultsweep.simcore.workloads")
    derived = calibrate.main(str(job_logs))
    assert derived == {name: (folder / name).read_text("utf-8") for name in FILES}


@pytest.mark.shared
def test_sdsc_model_agrees_with_its_log_by_size_class(job_logs):
    log = span(read_swf(job_logs / "SDSC-SP2-1998-4.2-cln.swf.gz"), 0, 10_000)
    model = generate("sdsc-model", 100_000)
    for low, high in ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 128)):
        of_log, of_model = (w.run_s[(w.size >= low) & (w.size <= high)] for w in (log, model))
        assert abs(len(of_model) / 100_000 - len(of_log) / 10_000) < 0.006
        assert abs(of_model.mean() / of_log.mean() - 1) < 0.12
        assert abs(np.median(of_model) / np.median(of_log) - 1) < 0.12
    hours = [np.bincount((w.submit_s / 3600).astype(int) % 24, minlength=24) / len(w) for w in (log, model)]
    start = 18  # the log begins on a Friday at 18:11
    assert np.abs(np.roll(hours[0], start) - hours[1]).max() < 0.02
    assert abs(np.diff(model.submit_s).mean() / np.diff(log.submit_s).mean() - 1) < 0.1
    in_log, in_model = (np.mean(w.requested_s[w.run_s > 60] % 600 == 0) for w in (log, model))
    assert abs(in_log - in_model) < 0.08


@pytest.mark.shared
def test_lublin_agrees_with_the_output_of_the_authors_program(job_logs):
    """The archive's sample is one of the typeless model for 256 nodes; the model must not be further than chance."""
    sample = read_swf(job_logs / "lublin_256.swf")
    runs = [lublin.generate(10_000, seed, nodes=256, kinds=("typeless",)) for seed in range(12)]
    for measure in (
        lambda w: w.size.mean(),
        lambda w: w.size.std(),
        lambda w: (w.size == 1).mean(),
        lambda w: np.isin(w.size, 2 ** np.arange(9)).mean(),
        lambda w: w.run_s.mean(),
        lambda w: np.log(w.run_s).mean(),
        lambda w: np.log(w.run_s).std(),
        lambda w: np.corrcoef(w.size, w.run_s)[0, 1],
        lambda w: (w.size * w.run_s).mean(),
        lambda w: w.submit_s[-1],
        lambda w: np.log1p(np.diff(w.submit_s)).mean(),
        lambda w: np.angle(np.exp(2j * np.pi * w.submit_s / 86400).mean() * np.exp(-1.2j * np.pi)),
    ):
        values = [measure(run) for run in runs]
        assert abs(measure(sample) - np.mean(values)) < 4 * np.std(values)


def test_lublin_follows_its_published_constants():
    kind, n = lublin.KINDS["batch"], 200_000
    only_batch = lublin.generate(n, kinds=("batch",))
    assert abs((only_batch.size == 1).mean() - kind.serial_prob) < 0.005
    parallel = only_batch.size[only_batch.size > 1]
    # sizes of jobs that are no powers of two by intent are uniform in the logarithm, some by chance powers of two
    assert abs(np.isin(parallel, 2 ** np.arange(8)).mean() * (1 - kind.serial_prob) - kind.power_of_two_prob) < 0.01
    largest = only_batch.run_s[only_batch.size == 128]
    p = kind.p_slope * 128 + kind.p_intercept
    gamma = p * np.prod(kind.run_first) + (1 - p) * np.prod(kind.run_second)
    # cut at e^12 s and in whole seconds, so a little less than the mean of the mixture
    assert gamma - 0.35 < np.log(largest).mean() < gamma
    assert only_batch.run_s.max() <= np.exp(12)
    both = lublin.generate(20_000)
    assert both.size.max() <= 128
    assert lublin._day_weights(kind).mean() == pytest.approx(1)
    mode = (kind.day[0] - 1) * kind.day[1]  # of the day's gamma, in half hours counted from 1
    assert lublin._day_weights(kind).argmax() == round(mode) - 1


@given(st.floats(0, 1e8), st.lists(st.floats(0.1, 5), min_size=24, max_size=24))
def test_busy_time_can_be_undone(clock, hours):
    days = [1, 1.2, 1.1, 1, 0.9, 0.5, 0.4]
    there = to_busy_time(hours, days, np.array([clock]))
    assert from_busy_time(hours, days, there)[0] == pytest.approx(clock, abs=1e-3)
    week = 7 * 86400
    assert there[0] // week == pytest.approx(clock // week, abs=1e-9) or there[0] % week < 1e-3


@given(st.lists(st.floats(1, 2e5), min_size=1, max_size=20), st.floats(0, 1, exclude_max=True))
def test_requested_times_are_popular_values_that_are_long_enough(runs, u):
    run = np.array(runs)
    requested = requested_times(run, np.full(len(run), u))
    assert (requested >= run).all()
    popular = TABLES["requested-times"]["values_s"]
    assert all(value in popular or value % 3600 == 0 for value in requested)
    assert all(value in popular for value, job in zip(requested, run, strict=True) if job <= 600)


def test_the_same_jobs_on_processors_with_other_instructions(tmp_path):
    from numpy._core import _multiarray_umath

    dispatched = [name for name in _multiarray_umath.__cpu_dispatch__ if _multiarray_umath.__cpu_features__.get(name)]
    tunables = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4"
    plain, other = (
        subprocess.run(
            [sys.executable, "-c", FINGERPRINT],
            cwd=tmp_path,
            env=os.environ | env,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for env in ({}, {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched), "GLIBC_TUNABLES": tunables})
    )
    assert plain == other
    assert len(plain.splitlines()) == len(MODELS)
