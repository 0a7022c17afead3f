"""The report says what the store has, stands alone, and executes nothing that a store says."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.dashboard.choices import default_choices
from faultsweep.analysis.dashboard.view import figure_of
from faultsweep.analysis.figures.draw import draw_html, draw_picture
from faultsweep.analysis.ranking import holm_levels
from faultsweep.analysis.regions import best_policies, policy_axis, region_axes
from faultsweep.analysis.report import write_report
from faultsweep.analysis.verdict import scope_of
from faultsweep.simcore.parameters import resolve
from faultsweep.sweeps.axes import read_axis
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.spec import write_toml
from scipy import stats

from faultsweep.errors import InputError
from tests.conftest import require

from .stores import STATUSES, make_results, write_results

SHAPE = (3, 4, 2, 6)
AXES = {"scheduler": ["fcfs", "backfill", "conservative"], "load_scale": [0.5, 1.0, 1.5, 2.0], "machine": ["a", "b"]}


def results(path, **attributes):
    """Waits that grow with the load; backfill is best by far at low loads, and hardly at the highest."""
    rng = np.random.default_rng(6)
    common = rng.gamma(9, 10, (1, 4, 1, 6)) * np.array(AXES["load_scale"])[None, :, None, None]
    factor = np.array([[1.5, 1.5, 1.5, 1.02], [1.0, 1.0, 1.0, 1.01], [1.2, 1.2, 1.2, 1.0]])[:, :, None, None]
    wait = common * factor * rng.normal(1, 0.02, SHAPE)
    status = np.full(SHAPE, STATUSES.index("done"), np.int8)
    status[2, 3, 1, 5] = STATUSES.index("failed")
    status[0, 0, 0, 5] = STATUSES.index("pending")
    data = make_results(AXES, {"mean_wait_s": wait, "utilisation": 1 / wait}, status, 6, **attributes)
    data["mean_wait_s"].attrs["units"] = "s"
    data["error"] = (
        data["status"].astype(str).copy(data=np.where(status == 2, "ValueError: <script>alert(1)</script>", ""))
    )
    return open_results(write_results(path / "a.zarr", data))


def p_of_ratio(one, other) -> float:
    """The p-value of two means being equal, by the delta method on the logarithm of their ratio."""
    error = stats.sem(one / one.mean() - other / other.mean())
    return 2 * stats.t.sf(abs(np.log(one.mean() / other.mean())) / error, len(one) - 1)


def test_the_best_policy_of_a_region_has_the_margin_of_the_ratio_of_means(tmp_path):
    data = results(tmp_path)
    found = best_policies(data, "mean_wait_s", "scheduler")
    assert found.columns[:2].tolist() == ["load_scale", "machine"]
    assert len(found) == 8
    row = found[(found["load_scale"] == 1.0) & (found["machine"] == "b")].iloc[0]
    waits = data["mean_wait_s"].sel(load_scale=1.0, machine="b").values
    assert (row["best"], row["next"], row["as_good"]) == ("backfill", "conservative", "backfill")
    ratio = waits[2].mean() / waits[1].mean()
    error = stats.sem(waits[2] / waits[2].mean() - waits[1] / waits[1].mean())
    level = holm_levels([p_of_ratio(waits[b], waits[a]) for a, b in ((1, 2), (1, 0), (2, 0))], 0.95)[0]
    factor = np.exp(stats.t.ppf((1 + level) / 2, waits.shape[1] - 1) * error)
    assert row["margin"] == pytest.approx(ratio - 1)
    assert (row["margin_low"], row["margin_high"]) == pytest.approx((ratio / factor - 1, ratio * factor - 1))
    close = found[found["load_scale"] == 2.0]
    assert all("backfill" in names and "conservative" in names for names in close["as_good"])


def test_more_is_better_for_utilisation(tmp_path):
    data = results(tmp_path)
    found = best_policies(data, "utilisation", "scheduler", ["load_scale"])
    means = data["utilisation"].where(data["utilisation"].notnull().all("scheduler")).mean("machine").mean("replicate")
    assert found["best"].tolist()[:3] == ["backfill"] * 3
    assert found["mean"].tolist() == pytest.approx(means.max("scheduler").values.tolist())
    assert (found["margin"] >= 0).all()


def test_axes_of_regions_are_those_that_matter(tmp_path):
    data = results(tmp_path)
    assert policy_axis(data) == "scheduler"
    assert region_axes(data["mean_wait_s"], "scheduler") == ["load_scale", "machine"]
    with pytest.raises(InputError, match="unknown axis 'sched'"):
        best_policies(data, "mean_wait_s", "sched")


@pytest.fixture
def page(tmp_path):
    known = {"spec": 'name = "a"', "pins": '{"log nasa": "sha256:00"}'}
    known["provenance"] = '[{"versions": {"python": "3.11", "numpy": "2.4"}, "batch_job": "", "folders": ["/a", "/b"]}]'
    data = results(tmp_path, title="A sweep of <waits>", **known)
    write_report(data, tmp_path / "report.html")
    return tmp_path / "report.html"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("a = ", "not valid TOML"),
        (f"a = {'9' * 5000}", "thousands of digits"),
        ("fixed = 3", "damaged: fixed is no table"),
        ("axes = [1]", "damaged: axes is no table"),
    ],
)
def test_a_damaged_spec_of_a_store_is_one_sentence(tmp_path, spec, problem):
    data = results(tmp_path, spec=spec)
    with pytest.raises(InputError, match=f"the attribute spec of the store.* {problem}"):
        write_report(data, tmp_path / "report.html")


def test_it_says_what_was_run_and_what_came_out(page):
    text = page.read_text()
    words = re.sub(r"<[^>]*>", " ", re.sub(r'src="data:[^"]*"', "", text))
    for part in (
        "A sweep of &lt;waits&gt;",
        "done    142    98.6%",
        "failed    1    0.7%",
        "The sweep is not finished: 1 cells are pending",
        "1    ValueError: &lt;script&gt;alert(1)&lt;/script&gt;    scheduler = conservative, load_scale = 2.0,",
        "Backfill has the lowest mean wait; second is Conservative,",
        "Best scheduler per region",
        "One run:   versions    python 3.11, numpy 2.4    folders    /a, /b",
        "log nasa    sha256:00",
    ):
        assert re.sub(r"\s+", " ", part) in re.sub(r"\s+", " ", words)
    assert "<script" not in text
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    assert text.count("<img") == 2 * 3  # each for a wide and a narrow window
    order = [
        'class="verdict"',
        "<img",
        "<h2>Effects",
        "<h2>Importance",
        "per region</h2>",
        "<h2>What was run",
        "<h2>Prov",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert all("alt=" in image for image in re.findall("<img[^>]*", text))


@pytest.mark.chromium
def test_it_opens_in_a_browser(page):
    if shutil.which("chromium") is None:
        require("chromium", "there is no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        asked, complaints = [], []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto(page.as_uri())
        widths = tab.evaluate("() => [...document.images].map(i => i.naturalWidth)")
        browser.close()
    assert all(width > 300 for width in widths)
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert complaints == []


def test_what_cannot_be_reported_is_one_sentence(tmp_path):
    data = results(tmp_path)
    with pytest.raises(InputError, match="unknown metric 'mean_wait'; did you mean 'mean_wait_s'"):
        write_report(data, tmp_path / "a.html", ["mean_wait"])
    with pytest.raises(InputError, match="unknown axis 'policy'"):
        write_report(data, tmp_path / "a.html", policy="policy")
    with pytest.raises(InputError, match="unknown axis 'replicate'"):
        write_report(data, tmp_path / "a.html", policy="replicate")
    data["status"][:] = 0
    with pytest.raises(InputError, match="no cell has a result yet; run the sweep first"):
        write_report(data, tmp_path / "a.html")


def test_a_sampled_axis_is_reported_by_its_parameters(tmp_path):
    raw = {"sample": {"load": [0, 1], "hours": [1, 9]}, "num": 128, "design": "sobol"}
    axis = read_axis("point", raw)
    load, hours = (np.array(axis.columns[name]) for name in ("load", "hours"))
    cells = (10 * load + 0.1 * hours)[:, None] + np.zeros(2)
    data = make_results({"point": axis.labels}, {"y": cells}, None, 2, spec=write_toml({"axes": {"point": raw}}))
    data = data.assign_coords(load=("point", load), hours=("point", hours))
    opened = open_results(write_results(tmp_path / "a.zarr", data))
    write_report(opened, tmp_path / "a.html")
    text = re.sub(r'src="data:[^"]*"', "", (tmp_path / "a.html").read_text())
    first = float(re.search(r"<td>load</td><td>(0\.\d+) ± ", text)[1])
    assert first == pytest.approx(100 / 12 / (100 / 12 + 0.01 * 64 / 12), abs=0.05)
    assert "means over bins of its points" in text
    figure = figure_of(opened, replace(default_choices(opened), x="hours"))
    assert not figure.panels[0].curves[0].style.joined
    draw_html(figure, tmp_path / "b.html")
    draw_picture(figure, tmp_path / "b.png")


@pytest.mark.parametrize(
    ("waits", "said"),
    [
        (np.zeros((2, 2, 3)), "All have the same mean wait"),
        (np.full((2, 2, 3), 5.0), "All have the same mean wait"),
        (np.array([[[1.0], [2.0]], [[3.0], [5.0]]]), "167 % worse: one replicate cannot tell them apart"),
        (np.array([[[1.0], [2.0]], [[3.0], [5.0]]]), "not tested"),
        (np.array([[[1.0], [2.0]], [[1.0], [2.0]]]), "FCFS has the lowest mean wait s, and so has Backfill."),
    ],
)
def test_what_is_the_same_everywhere_or_seen_once_has_no_best_policy(tmp_path, waits, said):
    axes = {"scheduler": ["fcfs", "backfill"], "load_scale": [0.8, 1.0]}
    data = make_results(axes, {"mean_wait_s": waits}, replicates=waits.shape[-1])
    write_report(open_results(write_results(tmp_path / "a.zarr", data)), tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text().replace("\u00a0", " ")
    assert said in text
    assert "nan %" not in text
    assert ("<h2>Importance" in text) == ("All have" not in said)
    assert ("confidence intervals" in text) == (waits.shape[-1] > 1)


def test_only_parameters_that_matter_are_listed(tmp_path):
    """A run without failures and checkpoints has neither predictors nor intervals of checkpoints."""
    axes = {"scheduler": ["fcfs", "backfill"], "load_scale": [0.8, 1.0]}
    fixed = resolve({"log": "nasa-model", "machine": "flat:128"})
    fixed = {name: value for name, value in fixed.items() if name not in axes}
    wait = np.random.default_rng(1).gamma(9, 10, (2, 2, 3))
    data = make_results(axes, {"mean_wait_s": wait}, replicates=3, fixed=fixed, target="simulator")
    write_report(open_results(write_results(tmp_path / "a.zarr", data)), tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    listed = text[text.index("Defaults that matter here") :].partition("</p>")[0]
    assert "slowdown_bound_s" in listed
    assert not re.search("checkpoint|accuracy|mtbf|placement|migration|max_restarts|recovery", listed)
    assert "seed = 0" in listed
    assert not re.search("(user|account|partition|qos)_max_", listed)
    assert listed.count(";") < 20


@pytest.mark.chromium
def test_a_small_sweep_is_two_pages_of_a4_and_fits_every_window(tmp_path):
    page = tmp_path / "report.html"
    write_report(results(tmp_path).isel(machine=[0]), page)
    browser = shutil.which("chromium")
    if browser is None:
        require("chromium", "there is no chromium on this machine")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        tab = chromium.new_context(color_scheme="dark").new_page()
        tab.goto(page.as_uri())
        assert tab.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(22, 24, 28)"
        for width in (400, 800, 1440):
            tab.set_viewport_size({"width": width, "height": 900})
            assert tab.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
        tab.pdf(path=tmp_path / "a.pdf", prefer_css_page_size=True)
        chromium.close()
    content = (tmp_path / "a.pdf").read_bytes()
    assert len(re.findall(rb"/Type /Page\b", content)) <= 2
    assert re.search(rb"/MediaBox \[0 0 59[456]\S* 84[123]", content)


def test_a_verdict_about_a_log_that_is_resampled_in_some_cells_says_so():
    attributes = {"configuration": json.dumps({"log": "nasa"})}
    for ways, scope in ((["none", "users"], "for this log only where it is not resampled"), (["users"], "")):
        assert scope_of(xr.Dataset(coords={"resample": ways}, attrs=attributes)) == scope


@pytest.mark.parametrize(
    ("fixed", "logs", "scope"),
    [
        ({"log": "nasa"}, None, "for this log only"),
        ({"log": "nasa", "resample": "none"}, None, "for this log only"),
        ({"log": "nasa", "resample": "users"}, None, ""),
        ({"log": "nasa-model"}, None, ""),
        ({}, ["nasa", "sdsc"], "for these logs only"),
        ({}, ["nasa", "lublin"], "for this log only"),
        ({}, None, ""),
    ],
)
def test_a_verdict_about_a_log_as_it_is_says_so(fixed, logs, scope):
    attributes = {"configuration": json.dumps(fixed)}
    found = xr.Dataset(coords={"log": logs} if logs else {}, attrs=attributes)
    assert scope_of(found) == scope
