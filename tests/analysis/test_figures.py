"""Figures: what they say of their data, that they are drawn, and that their pages need nothing from outside."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser

import numpy as np
import pytest
from faultsweep.analysis.figures import FIGURES
from faultsweep.analysis.figures.describe import describe_truncated
from faultsweep.analysis.figures.draw import draw, draw_html, draw_picture
from faultsweep.analysis.figures.figure import Bars, Curve, Figure, Heat, Panel, Style, Table
from faultsweep.analysis.figures.krevat2003 import _by_size_class, figure_5_2, figure_5_6
from faultsweep.analysis.figures.oliner2004 import figure_6
from faultsweep.analysis.figures.picture import draw_panel
from faultsweep.analysis.figures.sweep import sweep_figure
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.spec import experiments
from faultsweep.sweeps.sweep import Sweep
from matplotlib.figure import Figure as Canvas

from tests.conftest import require

from .stores import STATUSES, make_results, write_results

SCHEDULERS = ["fcfs", "backfill", "migration", "backfill+migration"]
LOADS = [0.7, 1.0, 1.3, 1.6]
HELD = {"machine": "torus:4x4x8", "start_delay_s": 1.0, "estimates": "actual", "growth_limit": 1, "num_jobs": 10_000}


def results(path, replicates=3, log="sdsc-model", loads=LOADS):
    """Utilisations that follow the load up to a limit of each scheduler, and waits that grow with them."""
    rng = np.random.default_rng(5)
    limits = np.array([0.6, 0.85, 0.7, 0.9])[:, None]
    used = np.minimum(0.75 * np.array(loads), limits)[None, :, :, None] * np.ones((1, 1, 1, replicates))
    slowdown = 1 / (1.001 - used) * rng.uniform(0.9, 1.1, used.shape)
    metrics = {
        "utilisation": used,
        "lost_capacity": 0.5 * (1 - used),
        "unused_capacity": 0.5 * (1 - used),
        "mean_wait_s": 3600 * slowdown,
        "mean_bounded_slowdown": slowdown,
    }
    axes = {"workload": ["SDSC"], "scheduler": SCHEDULERS, "load_scale": loads}
    data = make_results(axes, metrics, replicates=replicates, fixed=HELD).assign_coords(log=("workload", [log]))
    return open_results(write_results(path / "a.zarr", data))


def test_a_curve_is_the_means_with_their_intervals(tmp_path):
    data = results(tmp_path)
    curve = figure_5_2(data).panels[0].curves[1]
    assert curve.label == "Backfill"
    assert curve.x.tolist() == pytest.approx([0.525, 0.75, 0.85, 0.85])
    expected = data["mean_bounded_slowdown"].sel(workload="SDSC", scheduler="backfill")
    assert curve.y.tolist() == pytest.approx(expected.mean("replicate").values.tolist())
    assert (curve.low < curve.y).all()
    assert (curve.y < curve.high).all()


def test_the_caption_says_what_was_varied_and_held(tmp_path):
    caption = figure_5_2(results(tmp_path)).text
    for part in (
        "Substitute log: the first 10,000 jobs of the model sdsc-model.",
        "load scale c (multiplies run times) 0.7 to 1.6 in 4 steps",
        "4×4×8 torus, start delay 1 s, actual estimates, growth limit I = 1",
        "Means of 3 replicates; intervals are ",
        "FCFS 60\u00a0%, Backfill 85\u00a0%, Migration 70\u00a0%, B+M 90\u00a0%",
    ):
        assert part in caption


def test_the_caption_says_what_was_varied_in_each_panel(tmp_path):
    status = np.ones((2, 1, 4, 1), dtype=np.int8)
    status[1, :, 2:] = STATUSES.index("excluded")
    axes = {"workload": ["NASA", "SDSC"], "scheduler": ["fcfs"], "load_scale": LOADS}
    metrics = {name: np.full(status.shape, 0.5) for name in ("utilisation", "mean_bounded_slowdown")}
    data = make_results(axes, metrics, status, fixed={**HELD, "log": "nasa"})
    caption = figure_5_2(open_results(write_results(tmp_path / "a.zarr", data))).text
    assert "load scale c (multiplies run times) 0.7 to 1.6 in 4 steps (NASA), 0.7, 1.0 (SDSC)." in caption


def test_the_caption_says_all_that_is_set_to_another_value_than_its_default(tmp_path):
    fixed = {"start_delay_s": 2.0, "size_map": "clip", "kill_at_estimate": True, "growth_limit": 1, "num_jobs": 9}
    data = make_results({"load_scale": LOADS, "procs_per_node": [4]}, {"mean_wait_s": np.ones((4, 1, 1))}, fixed=fixed)
    spec = "[fixed]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in fixed.items())
    layout = {"kind": "curves", "x": "load_scale", "along": "load_scale", "y": ["mean_wait_s"]}
    held = "Held: start delay 2 s, size_map = clip, kill_at_estimate = true, procs_per_node = 4."
    assert held in sweep_figure(data.assign_attrs(spec=spec), "mine", "", **layout).facts
    of_function = data.assign_attrs(spec=spec, target="f")
    caption = sweep_figure(of_function, "mine", "", **layout).facts
    assert held.replace(", procs", ", growth limit I = 1, procs") in caption


def test_a_copy_of_the_demonstration_is_drawn_as_it(tmp_path):
    copy = tmp_path / "my.toml"
    copy.write_text(experiments()["demo"].read_text().replace("stop = 1.3", "stop = 1.4"))
    assert Sweep.from_toml(copy).spec.layout().kind == "demo"


@pytest.mark.parametrize("log", [False, True])
def test_ticks_up_to_ten_million_are_written_in_full(tmp_path, log):
    x, none = np.arange(3.0), np.full(3, np.nan)
    curve = Curve("a", x, np.array([1e5, 1e6, 4e6]), none, none, Style("#000000"))
    figure = Figure("ticks", "", [], [Panel("", "x", "y", curves=[curve], log_y=log)])
    draw_picture(figure, tmp_path / "ticks.svg")
    assert re.search(r"<!-- \S*\b1000000\b", (tmp_path / "ticks.svg").read_text())
    draw_html(figure, tmp_path / "ticks.html")
    limit = '"min_exponent":7' if log else '"power_limit_high":7'
    assert limit in (tmp_path / "ticks.html").read_text()


def test_ticks_of_many_decades_have_room():
    x, none = np.arange(2.0), np.full(2, np.nan)
    axis = Canvas().subplots()
    y = np.array([1e-2, 1e6])
    draw_panel(axis, Panel("", "x", "y", curves=[Curve("a", x, y, none, none, Style("#000000"))], log_y=True))
    assert len(axis.get_yticks()) < 15


def test_curves_that_cover_each_other_can_be_told_apart():
    x, none = np.arange(3.0), np.full(3, np.nan)
    curves = [Curve(str(dashed), x, x, none, none, Style("#000000", dashed=dashed)) for dashed in (False, True)]
    axis = Canvas().subplots()
    draw_panel(axis, Panel("", "x", "y", curves=curves))
    below, above = axis.lines[:2]
    assert above.get_markerfacecolor() == "#ffffff"
    assert above.get_markersize() < below.get_markersize()


@pytest.mark.parametrize(("points", "labels"), [([0.25, 2, 16], ["0.25", "2", "16"]), (list(range(1, 12)), None)])
def test_a_few_points_of_a_logarithmic_axis_have_a_tick_each(points, labels):
    x = np.array(points, float)
    axis = Canvas().subplots()
    draw_panel(axis, Panel("", "x", "y", curves=[Curve("a", x, x, x, x, Style("#000000"))], log_x=True))
    axis.figure.canvas.draw()
    drawn = [label.get_text() for label in axis.get_xticklabels()]
    assert drawn == labels if labels else "$" in drawn[1]


def test_a_model_is_named_as_one_in_the_panel(tmp_path):
    (tmp_path / "log").mkdir()
    assert figure_5_2(results(tmp_path)).panels[0].title == "SDSC (model, not the log)"
    of_log = figure_5_2(results(tmp_path / "log", replicates=1, log="sdsc-sp2"))
    assert of_log.panels[0].title == "SDSC"
    assert "nothing is random, so there is no interval" in of_log.text
    assert np.isnan(of_log.panels[0].curves[0].low).all()


def test_capacities_are_stacked_to_the_whole(tmp_path):
    figure = figure_5_6(results(tmp_path, loads=[1.0]))
    panel = figure.panels[0]
    assert panel.stacked
    assert [bars.label for bars in panel.bars] == ["utilised", "lost", "unused"]
    assert np.sum([bars.y for bars in panel.bars], axis=0).tolist() == pytest.approx([1] * 4)
    assert "Backfill +25\u00a0% and -38\u00a0%" in figure.text


def test_size_classes_by_hand():
    labels, shares = _by_size_class(np.array([1, 2, 3, 4, 5, 8, 9, 100.0]), np.array([1, 1, 1, 1, 1, 1, 1, 3.0]))
    assert labels == ["1", "2", "3–4", "5–8", "9–16", "17–32", "33–64", "65–128"]
    assert shares.tolist() == pytest.approx([0.1, 0.1, 0.2, 0.2, 0.1, 0, 0, 0.3])


def test_prediction_is_compared_with_none_replicate_by_replicate(tmp_path):
    """Replicates that differ a thousandfold, and a change to exactly 0.75 in each but for the last bit of noise."""
    rng = np.random.default_rng(2)
    level = 10.0 ** rng.uniform(0, 3, (1, 2, 1, 10))
    factor = np.array([1.0, 0.75, 0.5])[None, None, :, None] * rng.uniform(0.99, 1.01, (1, 2, 3, 10))
    factor[:, :, 0] = 1
    metrics = {"mean_bounded_slowdown": level * factor}
    metrics |= {name: np.full(factor.shape, 1 / 3) for name in ("utilisation", "lost_capacity", "unused_capacity")}
    metrics |= {"failures_seen": np.full(factor.shape, 300.0), "failures_seen_per_day": np.full(factor.shape, 4.5)}
    axes = {"workload": ["LLNL"], "load_scale": [1.0, 1.2], "accuracy": [0.0, 0.5, 1.0]}
    fixed = {"placement": "balancing", "failures": "bursts", "num_failures": 1000, "num_jobs": 500, **HELD}
    data = make_results(axes, metrics, replicates=10, fixed=fixed).assign_coords(log=("workload", ["llnl-atlas"]))
    figure = figure_6(open_results(write_results(tmp_path / "a.zarr", data)))
    above, below = figure.panels
    assert above.title == "LLNL (Atlas, not T3D)"
    assert [curve.label for curve in below.curves] == ["load scale 1", "load scale 1.2"]
    for curve in below.curves:
        assert curve.y == pytest.approx([1, 0.75, 0.5], abs=0.01)
        assert np.isnan(curve.low[0])
        assert (curve.high[1:] - curve.low[1:] < 0.02).all()
    caption = figure.text
    for part in ("in place of the T3D log", "LLNL 1,000 (4.5 a day of the runs)", "Means of 10 replicates"):
        assert part in caption


def test_the_figure_of_any_sweep_has_a_curve_per_combination_of_rows(tmp_path):
    data = results(tmp_path)
    layout = {"kind": "curves", "x": "load_scale", "along": "load_scale", "y": ["mean_wait_s", "utilisation"]}
    figure = sweep_figure(data, "mine", "Mine", **layout, curves=["scheduler"], panels="workload")
    assert [(panel.title, panel.x_label, panel.y_label) for panel in figure.panels] == [
        ("SDSC", "Load scale", "Mean wait s"),  # these results have no units
        ("SDSC", "Load scale", "Utilisation"),
    ]
    curve = figure.panels[0].curves[1]
    assert (curve.label, curve.x.tolist()) == ("Backfill", LOADS)
    expected = data["mean_wait_s"].sel(workload="SDSC", scheduler="backfill")
    assert curve.y.tolist() == pytest.approx(expected.mean("replicate").values.tolist())
    assert (curve.low < curve.y).all()
    caption = figure.text
    for part in ("Jobs: the first 10,000 jobs of sdsc-model.", "load_scale 0.7 to 1.6 in 4 steps", "3 replicates"):
        assert part in caption


def test_the_figure_of_any_sweep_over_a_metric(tmp_path):
    layout = {"kind": "curves", "x": "utilisation", "along": "load_scale", "y": ["mean_bounded_slowdown"]}
    figure = sweep_figure(results(tmp_path), "mine", "", **layout, curves=["scheduler"])
    assert figure.panels[0].curves[1].x.tolist() == pytest.approx([0.525, 0.75, 0.85, 0.85])
    assert figure.title == "mine"


def test_the_figure_of_any_sweep_as_bars(tmp_path):
    layout = {"kind": "bars", "x": "scheduler", "along": "scheduler", "y": ["utilisation"], "curves": ["load_scale"]}
    panel = sweep_figure(results(tmp_path), "mine", "", **layout).panels[0]
    assert panel.categories == ["FCFS", "Backfill", "Migration", "B+M"]
    assert [bars.label for bars in panel.bars] == [f"load scale = {load:g}" for load in LOADS]
    assert panel.bars[3].y.tolist() == pytest.approx([0.6, 0.85, 0.7, 0.9])
    draw_picture(sweep_figure(results(tmp_path / "b"), "mine", "", **layout), tmp_path / "bars.png")


class _Addresses(HTMLParser):
    """Collects what a page would load: scripts, style sheets, images."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        """Note the address of everything that a tag loads."""
        self.found += [value for name, value in attrs if name in ("src", "href") and tag != "a"]


def figures():
    style = Style("#000000")
    x = np.array([0.1, 0.5, 0.9])
    curve = Curve("a <b>", x, 10 * x, 9 * x, 11 * x, style)
    bare = Curve("without intervals", x, x, np.full(3, np.nan), np.full(3, np.nan), style)
    categories = ["one", "two"]
    grouped = [Bars("left", np.ones(2), style, np.zeros(2), 2 * np.ones(2)), Bars("right", np.ones(2), style)]
    panels = [
        Panel("curves", "x", "y", curves=[curve, bare]),
        Panel("logarithmic", "x", "y", curves=[curve], log_y=True, log_x=True),
        Panel("stacked", "", "y", bars=grouped, categories=categories, stacked=True),
        Panel("grouped", "", "y", bars=grouped, categories=categories),
    ]
    table = Table(["what", "how much"], [["a", "1"], ["b", "2"]])
    return [
        Figure("panels", "All kinds of panels", ["A sentence."], panels),
        Figure("table", "A table", ["A sentence."], table=table),
    ]


@pytest.mark.parametrize("figure", figures(), ids=lambda figure: figure.name)
def test_every_kind_of_panel_is_drawn(tmp_path, figure):
    png, html = draw(figure, tmp_path / "out")[:2]
    from PIL import Image

    with Image.open(png) as image:
        assert image.info["Title"] == figure.title
        assert image.width >= 300
        pixels = np.asarray(image.convert("L"))
    assert 0.5 < (pixels > 250).mean() < 0.99
    page = html.read_text()
    parser = _Addresses()
    parser.feed(re.sub(r"(?s)(<script[^>]*>).*?(</script>)", r"\1\2", page))
    assert [address for address in parser.found if not address.startswith("data:")] == []
    assert "a <b>" not in page.split("</title>")[1].split("<script")[0]


@pytest.mark.chromium
def test_a_page_opens_in_a_browser_without_a_network(tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        require("chromium", "there is no Chromium on this machine")
    from playwright.sync_api import sync_playwright

    paths = [tmp_path / f"{figure.name}.html" for figure in figures()]
    for figure, path in zip(figures(), paths, strict=True):
        draw_html(figure, path)
    problems, asked = [], []
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(offline=True)
        for path in paths:
            page = context.new_page()
            page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-drawn], td", timeout=20_000)
        chromium.close()
    assert problems == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert sum(url.startswith("file:") for url in asked) == len(paths)


def test_the_png_of_a_single_panel_is_drawn(tmp_path):
    draw_picture(Figure("one", "One", ["A sentence."], figures()[0].panels[:1]), tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 10_000


def test_a_surface_is_in_the_picture_and_its_numbers_on_the_page(tmp_path):
    value = np.arange(6.0).reshape(2, 3)
    heat = Heat(["0", "50", "100"], ["0", "80"], value, value, value, "turnaround (h)")
    panels = [Panel("", "x", "y", heat=heat, surface=True), Panel("as a map", "x", "y", heat=heat)]
    figure = Figure("surface", "Surface", [], panels)
    canvas = Canvas()
    axis = canvas.add_subplot(projection="3d")
    draw_panel(axis, panels[0])
    assert axis.get_title() == "turnaround (h)"
    assert axis.get_zlim()[0] <= 0 < 5 <= axis.get_zlim()[1]
    assert axis.get_xlim()[1] >= 100
    draw(figure, tmp_path)
    assert (tmp_path / "surface.png").stat().st_size > 20_000
    page = (tmp_path / "surface.html").read_text()
    assert "<h2>as a map; turnaround (h)</h2>" in page
    assert page.count('<div class="panel">') == 1


def test_every_experiment_has_a_figure():
    from faultsweep.sweeps.spec import experiments

    assert set(experiments()) == {*FIGURES, "what-if"}  # whose figure is that of any sweep


def test_a_caption_says_which_runs_were_cut_short():
    status = [[1, 1, 4], [3, 1, 3]]
    left = [[0, 0, 0], [20, 0, 1200]]
    metrics = {"unfinished_jobs": left}
    data = make_results({"policy": ["a", "b"]}, metrics, replicates=3, status=status)
    assert describe_truncated(data) == (
        "2 of 5 runs were cut short because a job had restarted too often; their figures are of the jobs that finished "
        "(all but 1,200 at most)."
    )
    assert describe_truncated(data.isel(policy=[0])) == ""
