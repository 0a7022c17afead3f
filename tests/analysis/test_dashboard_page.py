"""The dashboard in a real browser: it shows what the store has, follows the store, and asks nobody else."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from faultsweep.analysis.figures.words import label_to_read
from faultsweep.analysis.statistics import mean_interval, paired_difference
from faultsweep.sweeps.open import has_result, open_results
from PIL import Image

from tests.conftest import ROOT, require

from .serving import Served, wait_for, watched
from .stores import STATUSES, make_results, write_results
from .test_live import SWEEP

pytestmark = pytest.mark.chromium

LOADS = [0.5, 1.0, 1.5, 2.0]
MINUTE = 60.0
"""Seconds in the unit in which these waits are read."""
POLICIES = ["never", "daly", "<b>young</b>"]
MACHINES = ["flat:128", "torus:4x4x8"]
SHAPE = (3, 4, 2, 5)
PENDING, DONE = STATUSES.index("pending"), STATUSES.index("done")
SOURCES = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === 'ColumnDataSource' && m.tags.includes('curves'))
  .map(m => ({label: m.data.label[0], x: [...m.data.x], y: [...m.data.y], low: [...m.data.low]}))"""


def make_store(path):
    """A store whose last load is pending at first."""
    rng = np.random.default_rng(3)
    wait = rng.gamma(3, 100, SHAPE) * np.array(LOADS)[None, :, None, None]
    status = np.full(SHAPE, DONE, np.int8)
    status[:, -1] = PENDING
    axes = {"policy": POLICIES, "load_scale": LOADS, "machine": MACHINES}
    data = make_results(axes, {"mean_wait_s": wait, "utilisation": wait / 1e4}, status, 5, name="small")
    data["mean_wait_s"].attrs["units"] = "s"
    return write_results(path / "small.zarr", data)


DRAWN = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === 'ColumnDataSource' && m.data.y).map(m => [...m.data.y])"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = make_store(tmp_path_factory.mktemp("dashboard"))
    data = xr.open_zarr(path, chunks=None).load()
    served = Served(path)
    served.data = data
    yield served
    served.stop()


@pytest.fixture(scope="module")
def context(browser):
    """One user for all pages, so that scripts are fetched and compiled once; all views have room on the screen."""
    context = browser.new_context(accept_downloads=True, viewport={"width": 1300, "height": 3000})
    yield context
    context.close()


@pytest.fixture(scope="module")
def opened(served, context):
    """The one page of this module."""
    page, complaints = watched(context, served)
    page.goto(served.link)
    page.complaints = complaints
    ready(page)
    wait_for(page, lambda: "metric=" in page.url)
    page.first = page.url
    yield page
    page.close()


@pytest.fixture
def page(served, opened):
    """The page as it is at first; at the end it must have complained about nothing and asked nobody else."""
    opened.set_viewport_size({"width": 1300, "height": 3000})
    ready(opened)
    yield opened
    assert opened.complaints == []
    clear = opened.get_by_role("button", name="Clear the selection")
    if clear.is_visible():
        clear.click()
        clear.wait_for(state="hidden")
    if opened.url != opened.first:
        opened.goto(served.address)


def ready(page):
    """Wait until all views are drawn."""
    page.wait_for_function("() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0")
    wait_for(page, lambda: len(page.evaluate(SOURCES)) == 3)
    for view in (".heat", ".parallel", ".pareto"):
        page.locator(f"{view} canvas").first.wait_for()
    page.locator(".tabulator-row").first.wait_for()


def plotted(page):
    """The curves as the browser has them: label -> x, y, low."""
    return {one["label"]: one for one in page.evaluate(SOURCES)}


def shown(page, text):
    page.locator("h2", has_text=text).first.wait_for()


def expect_curve(curve, interval, loads=3):
    assert curve["x"] == LOADS[:loads]
    assert curve["y"] == pytest.approx(interval["mean"].values[:loads].tolist())
    assert curve["low"] == pytest.approx(interval["low"].values[:loads].tolist())


@pytest.mark.sampled(1)
def test_it_draws_what_the_store_has(served, page):
    curves = plotted(page)
    assert list(curves) == POLICIES
    for policy, curve in curves.items():
        cells = served.data["mean_wait_s"].sel(policy=policy, machine="flat:128") / MINUTE
        expect_curve(curve, mean_interval(cells))
    assert (
        page.locator(
            "h2", has_text="Mean wait over load scale by policy, at machine = flat machine of 128 nodes"
        ).count()
        == 1
    )


@pytest.mark.slow
def test_it_is_dark_where_the_reader_wants_it_dark(served, page):
    light = "getComputedStyle(document.documentElement).backgroundColor + getComputedStyle(document.body).filter"
    assert page.evaluate(light) == "rgb(255, 255, 255)none"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(light) == "rgb(22, 24, 28)invert(0.91) hue-rotate(180deg)"
    wait_for(page, lambda: page.evaluate(INK) == ["#000000", "#ffffff"])  # which the filter turns into white and black
    page.emulate_media(color_scheme="light")
    wait_for(page, lambda: page.evaluate(INK) == ["#ffffff", "#000000"])


INK = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .find(m => m.type === 'CategoricalColorMapper' && m.tags.length).palette
  .map(colour => typeof colour === 'string' ? colour : '#' + (colour >>> 8).toString(16).padStart(6, '0'))"""


def test_a_click_shows_the_cells_with_the_command_that_reruns_each(served, page):
    page.evaluate("""() => { const s = Bokeh.documents.flatMap(d => [...d._all_models.values()])
      .find(m => m.tags.includes('curves') && m.data.label[0] === 'daly');
      s.selected.indices = [1]; }""")
    wait_for(page, lambda: page.locator("table.cells tr").count() == 6)
    text = page.locator("table.cells").inner_text()
    assert f"faultsweep rerun {served.path} --select policy=daly,load_scale=1.0,machine=flat:128,replicate=4" in text
    value = served.data["mean_wait_s"].sel(policy="daly", load_scale=1.0, machine="flat:128", replicate=4).item()
    heading = page.locator("table.cells th").all_inner_texts()
    assert heading[:4] == ["Policy", "Load scale", "Machine", "Replicate"]
    assert page.locator("table.cells tbody td").nth(2).inner_text() == label_to_read(served.data, "machine", "flat:128")
    unit = heading[4].removeprefix("Mean wait (").rstrip(")")
    assert f"{value / {'s': 1, 'min': 60, 'h': 3600}[unit]:.6g}" in text


HEAT = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === 'ColumnDataSource' && m.data.column)
  .map(m => ({x: [...m.data.x], y: [...m.data.y], value: [...m.data.value].map(v => isFinite(v) ? v : null)}))"""


def heat_of(page):
    """The heat map as the browser has it: label across, label upwards -> value."""
    found = page.evaluate(HEAT)
    return {(x, y): value for one in found for x, y, value in zip(one["x"], one["y"], one["value"], strict=True)}


@pytest.mark.slow
def test_a_click_on_the_heat_map_shows_the_cells_behind_it(served, page):
    wait_for(page, lambda: len(heat_of(page)) == 12)
    page.locator(".heat canvas").first.scroll_into_view_if_needed()
    box = page.locator(".heat canvas").first.bounding_box()
    frame = page.evaluate("""() => { const views = Object.values(Bokeh.index).flatMap(v => [...v.children()]);
      const plot = function find(all) { for (const v of all) { if (v.model && v.model.type === 'Figure'
          && v.model.renderers.some(r => r.data_source.data.column)) return v;
        const inner = find([...(v.children ? v.children() : [])]); if (inner) return inner; } }(views);
      const {left, top, width, height} = plot.frame.bbox; return {left, top, width, height}; }""")
    # the cell of load_scale 1.0 (second of four) and policy daly (second of three, counted from below)
    x, y = frame["left"] + frame["width"] * 1.5 / 4, frame["top"] + frame["height"] * (1 - 1.3 / 3)
    page.mouse.click(box["x"] + x, box["y"] + y)
    wait_for(page, lambda: page.locator("table.cells tr").count() == 6)
    text = page.locator("table.cells").inner_text()
    assert f"faultsweep rerun {served.path} --select policy=daly,load_scale=1.0,machine=flat:128,replicate=4" in text


INSIDE = """([width, height]) => {
  const source = Bokeh.documents.flatMap(d => [...d._all_models.values()])
    .find(m => m.type === 'ColumnDataSource' && m.tags.includes('pareto'));
  const find = views => { for (const v of views) {
    if (v.model && v.model.type === 'Figure' && v.model.renderers.some(r => r.data_source === source)) return v;
    const inner = find([...(v.children ? v.children() : [])]); if (inner) return inner; } };
  const {x_scale, y_scale} = find(Object.values(Bokeh.index)).frame;
  return [...source.data.cell].filter((cell, i) => {
    const x = x_scale.compute(source.data.x[i]) - 95, y = y_scale.compute(source.data.y[i]) - 30;
    return x >= 0 && x <= width && y >= 0 && y <= height; });
}"""
CHOSEN = """() => Object.fromEntries(Bokeh.documents.flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === 'ColumnDataSource' && m.tags.includes('linked'))
  .map(m => [m.data.colour && m.data.words ? 'pareto' : m.data.xs ? 'lines' : m.data.column ? 'heat' : m.data.label
    ? m.data.label[0] : 'dots', m.selected.indices.filter(i => i >= 0).map(i => m.data.cell[i])]))"""


def test_what_a_box_selects_in_one_view_is_selected_in_all(served, page):
    page.locator(".pareto canvas").first.scroll_into_view_if_needed()
    box = page.locator(".pareto canvas").first.bounding_box()
    page.mouse.move(box["x"] + 95, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.55, box["y"] + box["height"] * 0.75, steps=8)
    page.mouse.up()
    wait_for(page, lambda: page.get_by_text("configurations are selected").count() == 1)
    wait_for(page, lambda: page.evaluate(CHOSEN)["lines"])
    chosen = page.evaluate(CHOSEN)
    cells = set(chosen["pareto"])
    assert 0 < len(cells) < 18
    inside = page.evaluate(INSIDE, [box["width"] * 0.55 - 95, box["height"] * 0.75 - 30])
    assert cells == set(inside)
    assert set(chosen["lines"]) == set(chosen["dots"]) == cells
    in_heat = {policy * 8 + load * 2 for policy in range(3) for load in range(4)}
    assert set(chosen["heat"]) == cells & in_heat
    for number, policy in enumerate(POLICIES):
        assert set(chosen[policy]) == cells & {number * 8 + load * 2 for load in range(3)}
    page.get_by_role("button", name="Clear the selection").click()
    wait_for(page, lambda: not any(page.evaluate(CHOSEN).values()))


def test_one_row_is_one_run_with_a_command_to_copy(served, page):
    page.locator(".tabulator-row").nth(1).locator(".tabulator-cell").nth(1).click()
    page.get_by_role("heading", name="One run").wait_for()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.address.rstrip("/"))
    page.locator("p", has_text="Repeat it").get_by_role("button", name="Copy").click()
    wait_for(page, lambda: "replicate=0" in page.evaluate("navigator.clipboard.readText()"))
    assert page.evaluate("navigator.clipboard.readText()").startswith(
        f"faultsweep rerun {served.path} --select policy="
    )
    assert page.get_by_text("Its jobs are not stored").count() == 1


RANGES = """view => {
  const find = views => { for (const v of views) {
    if (v.model?.type === 'Figure') return v.model;
    const inner = find([...(v.children ? v.children() : [])]); if (inner) return inner; } };
  const inside = v => { for (let e = v.el; e; e = e.parentElement ?? e.getRootNode().host)
    if (e.dataset?.part === view) return true; };
  const plot = find(Object.values(Bokeh.index).flatMap(v => [...v.children()]).filter(inside));
  return [plot.x_range.start, plot.x_range.end, plot.y_range.start, plot.y_range.end]; }"""


@pytest.mark.slow
def test_what_is_zoomed_stays_until_the_axis_shows_something_other(served, page):
    """A drag moves the curves; a knob, and another kind of drawing, leave them there; another metric is shown whole."""
    wait_for(page, lambda: page.evaluate(RANGES, "curves")[1] > 1)
    before = page.evaluate(RANGES, "curves")
    page.locator(".curves canvas").first.scroll_into_view_if_needed()
    box = page.locator(".curves canvas").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 40, box["y"] + box["height"] / 2 + 30, steps=4)
    page.mouse.up()
    wait_for(page, lambda: page.evaluate(RANGES, "curves")[0] < before[0])
    moved = page.evaluate(RANGES, "curves")
    page.get_by_label("Machine", exact=True).select_option("4×4×8 torus")
    shown(page, "4×4×8 torus")
    assert page.evaluate(RANGES, "curves") == pytest.approx(moved)
    page.get_by_label("95 % intervals").uncheck()
    wait_for(page, lambda: "bands=false" in page.url)
    wait_for(page, lambda: page.evaluate(RANGES, "curves") == pytest.approx(moved))
    page.get_by_label("Metric", exact=True).select_option("Utilisation")
    shown(page, "Utilisation over load scale")
    wait_for(page, lambda: page.evaluate(RANGES, "curves")[3] < 2)
    assert page.evaluate(RANGES, "curves")[:2] == pytest.approx(moved[:2])


@pytest.mark.slow
def test_a_curve_is_hidden_and_shown(served, page):
    hidden = """name => Bokeh.documents.flatMap(d => [...d._all_models.values()])
      .filter(m => m.type === 'GlyphRenderer' && m.name === name).map(m => m.visible)"""
    page.get_by_role("button", name="daly").click()
    assert set(page.evaluate(hidden, "daly")) == {False}
    assert page.get_by_role("button", name="daly").get_attribute("aria-pressed") == "false"
    page.get_by_role("button", name="daly").press("Enter")
    assert set(page.evaluate(hidden, "daly")) == {True}


@pytest.mark.slow
def test_all_controls_have_names(served, page):
    """By a script of our own: nothing may be fetched for it."""
    nameless = page.evaluate(NAMELESS)
    assert nameless == []
    assert page.locator("html").get_attribute("lang") == "en"
    assert page.evaluate("[...document.querySelectorAll('section')].every(s => s.getAttribute('aria-label'))")


NAMELESS = """() => {
  const deep = (root) => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...deep(e.shadowRoot)] : [e]);
  const shown = e => e.getClientRects().length && getComputedStyle(e).visibility !== 'hidden';
  const words = e => e.role === 'slider' ? e.getAttribute('aria-label') :
    [e.getAttribute('aria-label'), e.title, e.textContent, e.placeholder,
    ...[...(e.labels || [])].map(l => l.textContent)].some(t => t && t.trim());
  const wanted = 'button, a[href], input, select, textarea, [role=slider], [role=img], progress, [role=region]';
  return deep(document).filter(e => e.matches(wanted) && shown(e) && !words(e)).map(e => e.outerHTML.slice(0, 120));
}"""


def download(page, words, path):
    """Press a button, and return what the browser has saved."""
    with page.expect_download() as found:
        page.get_by_text(words).click()
    found.value.save_as(path)
    return path


@pytest.mark.slow
def test_what_is_shown_can_be_taken_away(served, page, tmp_path):
    """Each button is pressed; each file is opened, and has the policies, the metric and the numbers that are shown."""
    shown = served.data["mean_wait_s"].sel(machine="flat:128")[:, :3]
    assert Image.open(download(page, "(PNG)", tmp_path / "a.png")).convert("L").getextrema() != (255, 255)
    svg = ElementTree.parse(download(page, "(SVG)", tmp_path / "a.svg")).getroot()  # noqa: S314 - it is our own
    words = " ".join("".join(svg.itertext()).split())
    assert "Mean wait over load scale by policy" in words
    assert all(policy in words for policy in POLICIES)
    assert download(page, "(PDF)", tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "a.pdf").read_bytes().rstrip().endswith(b"%%EOF")
    table = pd.read_csv(download(page, "(CSV)", tmp_path / "a.csv"))
    assert len(table) == 3 * 4 * 5
    kept = table.dropna(subset="mean_wait_s").set_index(["policy", "load_scale", "replicate"])["mean_wait_s"]
    assert len(kept) == shown.size
    for (policy, load, replicate), value in kept.items():
        assert value == pytest.approx(shown.sel(policy=policy, load_scale=load, replicate=replicate).item())
    again = pd.read_parquet(download(page, "(Parquet)", tmp_path / "a.parquet"))
    assert list(again) == list(table)
    assert np.allclose(again["mean_wait_s"], table["mean_wait_s"], equal_nan=True)
    book = json.loads(download(page, "Notebook", tmp_path / "a.ipynb").read_text())
    assert str(served.path) in "".join(line for cell in book["cells"] for line in cell["source"])
    page.get_by_label("Take away the view").select_option("parallel coordinates")
    assert "Mean wait over all axes" in download(page, "(SVG)", tmp_path / "parallel.svg").read_text()


@pytest.mark.slow
def test_a_page_that_is_taken_away_draws_what_was_shown(served, page, context, tmp_path):
    here = page.evaluate(SOURCES)
    page.get_by_label("Take away the view").select_option("curves")
    path = download(page, "(HTML)", tmp_path / "a.html")
    complaints, other = [], context.new_page()
    other.on("console", lambda message: message.type in ("error", "warning") and complaints.append(message.text))
    other.on("pageerror", lambda error: complaints.append(str(error)))
    other.on(
        "request", lambda request: request.url.startswith(("file:", "data:", "blob:")) or complaints.append(request.url)
    )
    other.goto(path.as_uri())
    other.locator("canvas").first.wait_for()
    drawn = other.evaluate(DRAWN)
    assert here
    for curve in here:
        assert any(np.allclose(y, curve["y"]) for y in drawn if len(y) == len(curve["y"])), curve["label"]
    other.close()
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 800, 1440])
def test_it_fits_every_window(served, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    wait_for(page, lambda: page.evaluate("document.documentElement.scrollWidth") <= width)


def test_the_heat_map_has_a_value_for_each_pair(served, page):
    shown(page, "over load scale and policy")
    wait_for(page, lambda: len(heat_of(page)) == 12)
    waits = served.data["mean_wait_s"].mean("replicate") / MINUTE
    for (load, policy), value in heat_of(page).items():
        expected = waits.sel(machine="flat:128", load_scale=float(load), policy=policy).item()
        assert value is None if float(load) == 2.0 else value == pytest.approx(expected)
    page.get_by_label("Heat map, vertical").select_option("Machine")
    shown(page, "over load scale and machine, at policy = never")
    wait_for(page, lambda: len(heat_of(page)) == 8)
    assert heat_of(page)["1", "4×4×8 torus"] == pytest.approx(
        waits.sel(policy="never", load_scale=1.0, machine="torus:4x4x8").item()
    )


@pytest.mark.slow
def test_a_difference_is_paired(served, page):
    page.get_by_label("Baseline").select_option("policy = never")
    shown(page, "difference to policy = never")
    cells = served.data["mean_wait_s"].sel(machine="flat:128") / MINUTE
    found = paired_difference(cells, "policy", "never").sel(policy="daly")
    expect_curve(plotted(page)["daly"], found)
    assert plotted(page)["never"]["y"] == [0, 0, 0]
    page.get_by_label("Show", exact=True).select_option("ratio")
    shown(page, "ratio to policy = never")
    means = cells.mean("replicate")
    ratio = (means.sel(policy="daly") / means.sel(policy="never")).values[:3]
    assert plotted(page)["daly"]["y"] == pytest.approx(ratio.tolist())


@pytest.mark.slow
def test_a_metric_is_across(served, page):
    page.get_by_label("Horizontal axis", exact=True).select_option("Utilisation")
    shown(page, "Mean wait over utilisation along load scale by policy")
    cells = served.data.sel(machine="flat:128", policy="daly").isel(load_scale=slice(3)).mean("replicate")
    wait_for(page, lambda: plotted(page)["daly"]["x"] == pytest.approx(cells["utilisation"].values.tolist()))
    assert plotted(page)["daly"]["y"] == pytest.approx((cells["mean_wait_s"] / MINUTE).values.tolist())
    page.get_by_label("A point per label of").select_option("Machine")
    shown(page, "over utilisation along machine by policy, at load scale = 0.5")


@pytest.mark.slow
def test_a_view_travels_as_a_link(served, page):
    page.get_by_label("Machine", exact=True).select_option("4×4×8 torus")
    page.get_by_label("Logarithmic vertical axis or colours").check()
    wait_for(page, lambda: "log_y=true" in page.url)
    link = page.locator("code", has_text="http://").inner_text()
    assert "token" not in link
    assert link == page.url
    page.goto(link)
    shown(page, "4×4×8 torus")
    assert page.get_by_label("Logarithmic vertical axis or colours").is_checked()


@pytest.mark.slow
def test_a_link_to_what_is_not_there_says_so(served, page):
    page.goto(f"{served.address}?metric=mean_wait")
    wait_for(page, lambda: page.get_by_role("alert").count() == 1)
    assert "unknown metric 'mean_wait'; did you mean 'mean_wait_s'" in page.get_by_role("alert").inner_text()


def test_knobs_change_what_is_drawn(served, page):
    page.get_by_label("Machine", exact=True).select_option("4×4×8 torus")
    shown(page, "4×4×8 torus")
    page.get_by_label("Metric", exact=True).select_option("Utilisation")
    shown(page, "Utilisation over load scale")
    cells = served.data["utilisation"].sel(policy="never", machine="torus:4x4x8")
    expect_curve(plotted(page)["never"], mean_interval(cells))


def test_it_follows_a_store_that_is_being_written(served, page):
    page.get_by_text("75% done").first.wait_for()
    part = served.data[["status"]].isel(load_scale=[3]).drop_vars(["policy", "machine", "replicate", "load_scale"])
    part["status"][:] = DONE
    with contextlib.suppress(UserWarning):
        part.to_zarr(served.path, region={"load_scale": slice(3, 4)})
    wait_for(page, lambda: page.get_by_text("100% done").count() == 1)
    cells = served.data["mean_wait_s"].sel(policy="never", machine="flat:128") / MINUTE
    wait_for(page, lambda: len(plotted(page)["never"]["x"]) == 4)
    expect_curve(plotted(page)["never"], mean_interval(cells), loads=4)


@pytest.mark.parametrize("query", ["", "?token=", "?token=wrong"])
def test_nobody_gets_in_without_the_token(served, query):
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(served.address + query)  # noqa: S310 - the address of our own server
    assert refused.value.code == 403
    assert "carries the token" in refused.value.read().decode()


# A real sweep, with its jobs, compared with one of before a change


SPEC = """
title = "Real"
replicates = 2
keep_jobs = true
[fixed]
num_jobs = {jobs}
log = "sdsc-model"
[axes]
scheduler = ["fcfs", "backfill"]
load_scale = [0.8, 1.2]
checkpoint_interval_s = [3600.0, 14400.0]
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    for name, jobs in (("before", 60), ("after", 80)):
        (folder / f"{name}.toml").write_text(SPEC.format(jobs=jobs))
        command = ["run", f"{name}.toml", "--store", f"{name}.zarr", "--workers", "1"]
        subprocess.run([sys.executable, "-P", "-m", "faultsweep", *command], cwd=folder, check=True, timeout=300)
    served = Served(folder / "after.zarr", "--compare", str(folder / "before.zarr"), "--allow-rerun")
    yield served
    served.stop()


@pytest.fixture(scope="module")
def real_opened(real, browser):
    context = browser.new_context(
        viewport={"width": 1440, "height": 3600}, bypass_csp=True
    )  # axe is not the page's own
    page, page_complaints = watched(context, real)
    page.complaints = page_complaints
    page.goto(real.link)
    page.locator(".jobs canvas").first.wait_for()
    page.locator(".tabulator-row").first.wait_for()
    yield page
    context.close()


@pytest.fixture
def real_page(real_opened):
    yield real_opened
    assert real_opened.complaints == []


@pytest.mark.slow
def test_two_stores_stand_beside_each_other(real, real_page):
    waits = {name: open_results(real.path.with_name(f"{name}.zarr"))["mean_wait_s"] for name in ("before", "after")}
    changes = (waits["after"] - waits["before"]).mean(["scheduler", "load_scale", "checkpoint_interval_s"])
    found = mean_interval(changes, scale="identity")
    row = real_page.get_by_role("region", name="Differences").locator("tr", has_text="Mean wait").first.inner_text()
    of, words, before, after, difference = row.split("\t")
    assert of == "all"
    scale = {"s": 1, "min": 60, "h": 3600}[words.partition("(")[2].rstrip(")")]
    assert float(after) == pytest.approx(waits["after"].mean().item() / scale, rel=1e-3)
    assert float(before) == pytest.approx(waits["before"].mean().item() / scale, rel=1e-3)
    numbers = [float(part) for part in difference.replace("[", "").replace("]", "").replace(",", "").split()]
    assert numbers == pytest.approx([found[part].item() / scale for part in ("mean", "low", "high")], rel=0.01)


@pytest.mark.slow
def test_one_run_has_its_chart_and_is_simulated_again(real, real_page):
    real_page.locator(".tabulator-row").nth(1).locator(".tabulator-cell").nth(1).click()
    real_page.get_by_role("heading", name="One run").wait_for()
    real_page.get_by_text("stacked by size").wait_for()
    jobs = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
      .filter(m => m.type === 'ColumnDataSource' && m.data.restarts).map(m => m.data.job.length)"""
    wait_for(real_page, lambda: real_page.evaluate(jobs) == [80])
    labels = real_page.get_by_role("region", name="Labels of the run").inner_text()
    assert "Checkpoint interval\tcheckpoint_interval_s\t4 h" in labels
    large = real_page.viewport_size
    real_page.set_viewport_size({"width": 400, "height": 3600})
    wait_for(real_page, lambda: real_page.evaluate("document.documentElement.scrollWidth") <= 400)
    real_page.set_viewport_size(large)
    real_page.get_by_role("button", name="Simulate it again").click()
    real_page.get_by_text("It is as in the store.").wait_for(timeout=120_000)
    real_page.get_by_role("button", name="Play").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(real, real_page, scheme):
    """With axe-core, where it has been fetched; the table's roles are those of Tabulator, which axe finds fault with.

    In the dark the page is drawn inverted, which axe does not know of: contrasts are measured below.
    """
    script = ROOT / "build/axe/node_modules/axe-core/axe.min.js"
    if not script.is_file():
        require("axe", "axe-core is not there: npm install --prefix build/axe axe-core fetches it")
    real_page.emulate_media(color_scheme=scheme)
    wait_for(real_page, lambda: real_page.evaluate(NAMELESS) == [])
    real_page.evaluate(script.read_text())
    rules = {} if scheme == "light" else {"color-contrast": {"enabled": False}}
    options = {"resultTypes": ["violations"], "rules": rules}
    found = real_page.evaluate("options => axe.run(document, options)", options)
    faults = [(one["id"], node["html"]) for one in found["violations"] for node in one["nodes"]]
    assert [fault for fault in faults if "tabulator" not in fault[1]] == []
    assert len(found["passes"]) > 20
    real_page.emulate_media(color_scheme="light")


FAINT = r"""() => {
  const inside = root => [...root.querySelectorAll('*')]
    .flatMap(e => e.shadowRoot ? [e, ...inside(e.shadowRoot)] : [e]);
  const parts = colour => { const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
    return [r / 255, g / 255, b / 255, a]; };
  const over = (ink, share, back) => back.map((own, i) => own * (1 - share) + ink[i] * share);
  const hue = [[-.574, 1.43, .144], [.426, .43, .144], [.426, 1.43, -.856]];
  const inverted = getComputedStyle(document.body).filter === 'invert(0.91) hue-rotate(180deg)';
  const seen = colour => !inverted ? colour : hue.map(row =>
    Math.min(1, Math.max(0, row.reduce((sum, part, i) => sum + part * (.91 - .82 * colour[i]), 0))));
  const light = colour => seen(colour).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const faint = [];
  let count = 0;
  for (const e of inside(document.body)) {
    const text = [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.trim()).join('');
    if (!/[\p{L}\d]/u.test(text) || e.disabled || !e.checkVisibility()) continue;
    const above = [];
    const parent = a => a.assignedSlot ?? a.parentElement ?? a.getRootNode().host;
    for (let a = e; a; a = parent(a)) above.unshift(getComputedStyle(a));
    const back = above.map(s => parts(s.backgroundColor)).reduce((b, own) => over(own, own[3], b), [1, 1, 1]);
    const own = parts(getComputedStyle(e).color);
    const ink = over(own, own[3] * above.reduce((share, s) => share * s.opacity, 1), back);
    const [low, high] = [light(ink), light(back)].sort((a, b) => a - b);
    if ((high + .05) / (low + .05) < 4.5) faint.push(text.slice(0, 60));
    count += 1;
  }
  return {inverted, count, faint};
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_texts_can_be_read(real, real_page, scheme):
    """The contrast of every text is 4.5 or more, after the filter of the dark; symbols without letters are left out."""
    real_page.emulate_media(color_scheme=scheme)
    found = real_page.evaluate(FAINT)
    real_page.emulate_media(color_scheme="light")
    assert found["inverted"] == (scheme == "dark")
    assert found["count"] > 100
    assert found["faint"] == []


@pytest.mark.slow
def test_everything_is_reached_by_the_keyboard(real, real_page):
    """From the link past the knobs to the buttons of the end, and a knob is turned."""
    real_page.goto(real.address)  # else the keyboard would go on from what was clicked last
    real_page.locator(".jobs canvas").first.wait_for()
    active = """() => {
      let e = document.activeElement;
      while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
      const words = (e.labels?.[0] ?? e).textContent.trim() || e.title;
      return [e.tagName, words.slice(0, 30), e.getAttribute('role')]; }"""
    reached = []
    for _ in range(200):
        real_page.keyboard.press("Tab")
        reached.append(real_page.evaluate(active))
        if reached[-1][2] == "slider" and "ArrowRight" not in reached:
            reached.append("ArrowRight")
            real_page.keyboard.press("ArrowRight")
            wait_for(real_page, lambda: "at.checkpoint_interval_s=14400" in real_page.url)
    texts = {one[1] for one in reached if one != "ArrowRight"}
    assert {"To the views", "Metric", "Horizontal axis", "Third metric", "Scheduler"} - texts <= {"Scheduler"}
    assert {"Picture (PNG)", "Data (Parquet)", "Notebook", "Copy"} <= texts
    assert {"Pan", "Box Zoom", "Box Select", "Reset"} <= texts, "the tools of the plots, too"


@pytest.mark.slow
def test_every_control_does_something_and_nothing_fails(real, real_page):
    """Each option of each select, each switch; whatever is refused is told in the page, and is not an error."""
    real_page.goto(real.address)
    real_page.locator(".jobs canvas").first.wait_for()
    from playwright import sync_api as playwright

    knobs = real_page.locator("#explore details select")
    wait_for(real_page, lambda: knobs.count() >= 11)
    options = real_page.get_by_label("Metric", exact=True).locator("option")
    offered = options.count()
    real_page.get_by_label("Find a metric").fill("p99")
    wait_for(real_page, lambda: 0 < options.count() < offered)
    real_page.get_by_label("Find a metric").fill("")
    wait_for(real_page, lambda: options.count() == offered)
    real_page.get_by_label("Of the jobs").select_option("Response time")
    wait_for(
        real_page,
        lambda: real_page.evaluate("""() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
      .some(m => String(m.axis_label).startsWith('Response time'))"""),
    )
    turned = 0
    for number in range(knobs.count()):
        knob = knobs.nth(number)
        if not knob.is_visible():
            continue
        for option in knob.locator("option").all_text_contents()[-2:]:
            before = real_page.url
            if option not in knob.locator("option").all_text_contents() or knob.input_value() == option:
                continue
            with contextlib.suppress(
                AssertionError, playwright.TimeoutError
            ):  # chosen already, refused, or gone by now
                knob.select_option(label=option, timeout=1500)
                wait_for(real_page, lambda url=before: real_page.url != url, 3.0)
                turned += 1
    assert turned >= 12
    for name in ("Logarithmic horizontal axis", "95 % intervals", "Without the warm-up"):
        box = real_page.get_by_label(name)
        before = real_page.url
        if box.count() and box.first.is_enabled():
            box.first.click()
            wait_for(real_page, lambda url=before: real_page.url != url or real_page.get_by_role("alert").count(), 15)


@pytest.mark.slow
def test_a_page_waits_for_a_store_that_does_not_exist_yet(tmp_path, context):
    served = Served(tmp_path / "small.zarr")
    page, complaints = watched(context, served)
    page.goto(served.link)
    page.get_by_role("heading", name="Waiting for").wait_for()
    (tmp_path / "made").mkdir()
    make_store(tmp_path / "made").rename(served.path)
    page.get_by_role("heading", name="Waiting for").wait_for(state="detached")
    page.get_by_role("heading", name="small").first.wait_for()
    ready(page)
    assert complaints == []
    page.close()
    served.stop(f"{served.path} does not exist yet; the page waits for it\n")


@pytest.mark.slow
def test_a_page_that_was_there_first_follows_the_run_from_its_journals(tmp_path, context):
    """Opened before the store exists; then progress and values come while chunks have none, without a reload."""
    (tmp_path / "gated.py").write_text(SWEEP)
    served = Served(tmp_path / "gated.zarr")
    page, complaints = watched(context, served)
    page.goto(served.link)
    page.get_by_role("heading", name="Waiting for").wait_for()
    with (tmp_path / "errors.txt").open("w") as errors:
        run = subprocess.Popen([sys.executable, "gated.py"], cwd=tmp_path, stderr=errors)
    try:
        page.get_by_text("Running: ").first.wait_for(timeout=60_000)
        page.evaluate("window.opened = true")
        wait_for(page, lambda: len(plotted(page).get("y = 0", {"x": []})["x"]) == 6, 60)
        assert plotted(page)["y = 0.5"]["x"] == [0, 1, 2, 3, 4, 5]
        assert plotted(page)["y = 0.5"]["y"] == [0.5, 2.5, 4.5, 6.5, 8.5, 10.5]
        assert has_result(open_results(served.path)["status"]).sum() < 12, "chunks do not have them yet"
        page.get_by_text("12 of 16 cells have a result").first.wait_for()
        (tmp_path / "gate").touch()
        page.get_by_text("100% done").first.wait_for(timeout=60_000)
        wait_for(page, lambda: plotted(page)["y = 0"]["y"] == [0, 2, 4, 6, 8, 10, 12, 14])
        assert page.evaluate("window.opened")
        assert run.wait(60) == 0, (tmp_path / "errors.txt").read_text()
    finally:
        (tmp_path / "gate").touch()
        run.wait(60)
    assert complaints == []
    page.close()
    served.stop(f"{served.path} does not exist yet; the page waits for it\n")
