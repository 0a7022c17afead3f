"""Hyper-Erlang distributions against their formulas, and models fitted to logs: what is kept, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import canonical
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads import models
from faultsweep.simcore.workloads.fitted import fit_model, fit_quality, generate, model_text, read_model
from faultsweep.simcore.workloads.hyper_erlang import MAX_ORDER, HyperErlang, fit
from faultsweep.simcore.workloads.models import generate as generate_named
from faultsweep.simcore.workloads.transforms import map_sizes, span
from faultsweep.sweeps.logs import load_workload
from scipy import stats

from faultsweep.errors import InputError

COLUMNS = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
SAMPLES = {
    "exponential": lambda rng: rng.exponential(100, 5000),
    "long tail": lambda rng: rng.lognormal(5, 2, 5000),
    "nearly constant": lambda rng: rng.normal(100, 8, 5000),
    "two values": lambda rng: rng.choice([1.0, 1000.0], 5000, p=[0.9, 0.1]),
    "uniform": lambda rng: rng.uniform(10, 20, 5000),
}


def mixture(found):
    """The two Erlang distributions and their shares, by another library."""
    parts = [stats.gamma(found.order, scale=mean / found.order) for mean in found.means]
    return list(zip((found.share, 1 - found.share), parts, strict=True))


def solvable(order, values):
    """Whether a hyper-Erlang distribution of an order has these moments, by the theory of moments.

    Two positive points with positive shares have given moments m1, m2, m3 if m2 > m1^2 and m1 m3 > m2^2.
    """
    m1, m2, m3 = (np.mean(values**k) for k in (1, 2, 3))
    m2, m3 = m2 * order / (order + 1), m3 * order**2 / ((order + 1) * (order + 2))
    return m2 > m1**2 and m1 * m3 > m2**2


@pytest.mark.parametrize("name", SAMPLES)
def test_fit_has_the_moments_and_the_least_order(name):
    values = SAMPLES[name](np.random.default_rng(1))
    found = fit(values)
    assert 0 < found.share < 1
    assert min(found.means) > 0
    for k, moment in enumerate(found.moments(), start=1):
        assert moment == pytest.approx(np.mean(values**k), rel=1e-9)
        assert moment == pytest.approx(sum(w * part.moment(k) for w, part in mixture(found)), rel=1e-9)
    assert [order for order in range(1, found.order + 1) if solvable(order, values)] == [found.order]


@pytest.mark.parametrize("name", SAMPLES)
def test_draws_and_distribution_function_belong_together(name):
    found = fit(SAMPLES[name](np.random.default_rng(1)))
    draws = found.draw(*np.random.default_rng(2).random((2, 20_000)))
    assert stats.kstest(draws, found.cumulative).pvalue > 1e-3
    points = np.quantile(draws, [0.01, 0.3, 0.7, 0.99])
    expected = sum(w * part.cdf(points) for w, part in mixture(found))
    np.testing.assert_allclose(found.cumulative(points), expected, rtol=1e-9)


@pytest.mark.parametrize("values", [[5.0], [5.0] * 9, [100.0, 100.001] * 20])
def test_values_that_are_as_good_as_the_same_are_constant(values):
    found = fit(np.array(values))
    assert found == HyperErlang(0, 1.0, (pytest.approx(np.mean(values)),) * 2)
    assert found.draw(np.zeros(2), np.zeros(2)).tolist() == [np.mean(values)] * 2
    assert MAX_ORDER < 1e5


def log(count=4000, seed=3):
    return generate_named("sdsc-model", count, seed)


@pytest.mark.compiled
def test_a_model_is_like_its_log():
    """Its rate of arrivals, its sizes and its work: means over seeds within five standard errors."""
    original = log()
    model = fit_model(original)
    drawn = [generate(model, 4000, seed) for seed in range(30)]
    for measure in (
        lambda w: w.submit_s[-1] / len(w),
        lambda w: w.size.mean(),
        lambda w: (w.size * w.run_s).mean(),
        lambda w: (w.size == 1).mean(),
    ):
        found = [measure(workload) for workload in drawn]
        assert abs(np.mean(found) - measure(original)) < 5 * np.std(found) / np.sqrt(30)


def test_quality_shows_matched_moments_and_the_distance():
    original = log()
    found = list(fit_quality(original, fit_model(original)))
    assert {row.what for row in found} == {"gap", "run"}
    assert sum(row.jobs for row in found) == 2 * len(original)
    for row in found:
        if row.order:
            assert row.model == pytest.approx(row.log, rel=1e-6)
        assert 0 < row.distance < 1


def test_a_file_gives_the_same_jobs_and_longer_ones_begin_alike(tmp_path):
    model = fit_model(log(500))
    path = tmp_path / "m.toml"
    path.write_text(model_text(model))
    assert read_model(path) == model
    (tmp_path / "marked.toml").write_text(model_text(model), encoding="utf-8-sig")
    assert read_model(tmp_path / "marked.toml") == model
    long, short = load_workload(path, num_jobs=600, seed=4), load_workload(path, num_jobs=200, seed=4)
    direct = generate(model, 600, 4)
    assert long.content_hash == short.content_hash == direct.content_hash
    assert short.nodes == 128
    assert (np.diff(long.submit_s) >= 0).all()
    assert (long.run_s >= 1).all()
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(long, column), getattr(direct, column))
        np.testing.assert_array_equal(getattr(long, column)[:200], getattr(short, column))
    assert (load_workload(path, num_jobs=200, seed=4, replicate=1).run_s != short.run_s).any()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = ", "not valid TOML"),
        ("a = 1\n", "is no workload model"),
        ("{}", "is damaged"),
        ("share = 2.0", "is damaged"),
        ("means_s = [1]", "is damaged"),
    ],
)
def test_damaged_files_are_named(tmp_path, text, message):
    path = tmp_path / "m.toml"
    good = model_text(fit_model(log(50)))
    if text == "{}":
        good = good[: good.index("[[classes]]")]
    elif "s" in text and "=" in text and not text.startswith("a"):
        name = text.split(" =")[0]
        start = good.index(f"{name} = ")
        end = min(good.index(mark, start) for mark in (", means", " }") if mark in good[start:])
        good = good[:start] + text + good[end:]
    else:
        good = text
    path.write_text(good)
    with pytest.raises(InputError, match=f"m.toml: {message}"):
        load_workload(path)


def test_a_model_needs_a_log_that_lasts():
    with pytest.raises(InputError, match="jobs that come at different times"):
        fit_model(log(1))
    with pytest.raises(InputError, match="cannot be read"):
        load_workload("nowhere/m.toml")


def assert_close(found, expected):
    """Assert that two models are the same but for the last bits, which NumPy's functions differ in with processors."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        assert found == (pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected)


@pytest.mark.shared
def test_the_shipped_model_is_that_of_its_log(shared):
    atlas = map_sizes(span(load_workload("llnl-atlas", shared / "job-logs"), 0, 10_000), 320, size_map="scale")
    shipped, again = read_model(models.LLNL_FILE), fit_model(atlas)
    assert_close({**again, "name": "llnl-model"}, shipped)


def test_target_utilisation_is_the_load_offered():
    workload = log(300)
    for target in (0.7, 0.95):
        run = simulate(workload, machine="flat:160", target_utilisation=target, load_scale=3.0)
        assert run.metrics["offered_load"] == pytest.approx(target)
        ratio = run.jobs["run_s"] / workload.run_s
        np.testing.assert_allclose(ratio, ratio[0])
    assert canonical({"target_utilisation": 0.7, "load_scale": 3.0}) == canonical({"target_utilisation": 0.7})
    one = Workload(*(np.array([value]) for value in (1, 0.0, 5.0, 5.0, 1, 1)))
    with pytest.raises(InputError, match="target_utilisation needs jobs that come at different times"):
        simulate(one, machine="flat:1", target_utilisation=0.5)


def test_the_seed_of_a_fitted_model_matters():
    assert canonical({"log": "m.toml", "seed": 3})["seed"] == 3
    assert canonical({"log": "m.swf", "seed": 3})["seed"] == 0


@pytest.mark.shared
def test_the_shipped_model_of_intrepid_is_that_of_its_first_jobs(shared):
    log = map_sizes(load_workload("anl-intrepid-1200", shared / "job-logs"), 40_960, size_map="scale")
    shipped, again = read_model(models.INTREPID_FILE), fit_model(log, users=True)
    assert {**again, "name": "intrepid-model"} == shipped
    drawn = models.generate("intrepid-model", 20_000)
    shares = np.sort(np.unique(drawn.user, return_counts=True)[1])[::-1] / 20_000
    np.testing.assert_allclose(shares[:10], np.array(shipped["users"][:10]) / 1_200, atol=0.01)
