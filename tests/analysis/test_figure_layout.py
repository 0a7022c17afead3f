"""What both ways to draw a figure share: scales, places of intervals, units, colours; and the texts beside it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
import xarray as xr
from faultsweep.analysis.figures.captions import data_sheet, latex, markdown
from faultsweep.analysis.figures.draw import draw, draw_html
from faultsweep.analysis.figures.figure import (
    BLACK,
    BLUE,
    GREEN,
    LOOKS,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    Bars,
    Curve,
    Figure,
    Heat,
    Panel,
    Style,
    Table,
)
from faultsweep.analysis.figures.heat import texts
from faultsweep.analysis.figures.layout import (
    DARK,
    LIGHT,
    asks_for_log,
    beyond,
    cells,
    columns_for,
    is_banded,
    labels,
    log_ticks,
    named_ticks,
    places,
    shared_scales,
    y_limits,
)
from faultsweep.analysis.figures.page import cells_of_heat, columns_of, make_plot, plots_of
from faultsweep.analysis.figures.picture import draw_panel, make_canvas, svg_text
from faultsweep.analysis.figures.units import in_units_to_read
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure as Canvas

from faultsweep.errors import InputError
from faultsweep.units import time_unit

X = np.array([1.0, 2.0, 4.0])
COLOURS = (BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE)


def curve(label, y, number=0, x=X, half=1.0):
    y = np.asarray(y, float)
    return Curve(label, x, y, y - half, y + half, LOOKS[number])


def figure(*panels, columns=2):
    return Figure("a", "A title", ["A sentence."], list(panels), columns)


@pytest.mark.parametrize(
    ("largest", "unit"), [(0.02, "ms"), (1, "s"), (90, "s"), (600, "min"), (250_000, "h"), (3e6, "days")]
)
def test_times_have_a_unit_to_read(largest, unit):
    assert time_unit(largest)[0] == unit


def test_a_metric_keeps_its_words_in_another_unit():
    from faultsweep.analysis.figures.sweep import quantity

    data = xr.Dataset({"mean_wait_s": ("load", [600.0, 250_000.0]), "lost_node_s": ("load", [3600.0, 7200.0])})
    data["mean_wait_s"].attrs["units"], data["lost_node_s"].attrs["units"] = "s", "s"
    found = in_units_to_read(data, ["mean_wait_s", "lost_node_s", "absent"])
    assert quantity(found, "mean_wait_s") == "Mean wait (h)"
    assert found["mean_wait_s"].values.tolist() == pytest.approx([1 / 6, 69.44], rel=1e-4)
    assert quantity(found, "lost_node_s") == "Lost (node h)"
    assert found["lost_node_s"].values.tolist() == [1, 2]
    assert data["mean_wait_s"].attrs["units"] == "s"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (4.0, 21.0, "4 to 21"),
        (-0.5, 12345.6, "−0.5 to 12,346"),
        (4.0, np.inf, "4 or more"),
        (-np.inf, 21.0, "21 or less"),
        (-np.inf, np.inf, "open at both ends"),
        (np.nan, np.nan, "none"),
    ],
)
def test_an_interval_is_told_in_words(low, high, words):
    one = np.array([5.0])
    told = Curve("a", one, one, np.array([low]), np.array([high]), LOOKS[0])
    [data] = columns_of(Panel("", "x", "y", [told]))
    heat = cells_of_heat(Heat(["b"], ["c"], one[None], np.array([[low]]), np.array([[high]]), "h"))
    assert (data["interval"], heat["interval"]) == ([words], [words])
    assert (data["number"], heat["number"]) == (["5"], ["5"])


def test_a_range_of_many_sizes_asks_for_a_logarithmic_axis():
    assert asks_for_log([np.array([1.0, 40.0])])
    assert not asks_for_log([np.array([1.0, 15.0])])
    assert not asks_for_log([np.array([0.0, 40.0])])
    assert not asks_for_log([np.full(2, np.nan)])


def test_panels_that_are_compared_share_their_scale_in_both_ways_to_draw():
    panels = [Panel(t, "x", y, [curve("a", v)]) for t, y, v in (("1", "h", X), ("2", "h", 10 * X), ("3", "%", X))]
    shared = shared_scales(figure(*panels))
    limits = y_limits(shared)
    assert limits[0] == limits[1] != limits[2]
    axes = make_canvas(shared).axes
    assert [axis.get_ylim() for axis in axes] == limits
    assert [(plot.y_range.start, plot.y_range.end) for plot in plots_of(shared)] == limits


def test_a_scale_that_is_shared_is_logarithmic_for_all_or_none():
    low, high = (Panel(str(n), "x", "y", [curve("a", n * X, half=0.1)]) for n in (1, 100))
    assert [panel.log_y for panel in shared_scales(figure(low, high)).panels] == [True, True]
    assert [panel.log_y for panel in shared_scales(figure(low)).panels] == [False]
    said = replace(high, log_y=False)
    assert [panel.log_y for panel in shared_scales(figure(low, said)).panels] == [False, False]
    assert [panel.log_y for panel in shared_scales(figure(low, replace(high, signed=True))).panels] == [False, False]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, -2.0, np.nan])
def test_numbers_without_a_logarithm_have_a_linear_axis(value):
    flat = figure(Panel("", "x", "y", [curve("a", np.full(3, value))], log_y=True))
    assert [panel.log_y for panel in shared_scales(flat).panels] == [False]
    assert make_canvas(flat).axes[0].get_yscale() == "linear"


def test_ratios_near_one_are_not_flattened_by_an_interval_or_by_another_panel():
    """They have a logarithmic axis with 1 on it, on which their means take a good part of the height."""
    x, y = np.arange(5.0), np.array([1.0, 0.95, 0.9, 0.85, 0.8])
    near = replace(curve("a", y, x=x), low=np.array([np.nan, 0.7, 0.7, 0.6, 1e-6]), high=1.5 - np.r_[0, 0, 0, 0, -1e6])
    far = curve("a", 40 * y, x=x)
    panels = [Panel(t, "x", "ratio", [c], ratio=True, scale=t) for t, c in (("near", near), ("far", far))]
    drawn = shared_scales(figure(*panels))
    assert [panel.log_y for panel in drawn.panels] == [True, True]
    (low, high), (far_low, far_high) = y_limits(drawn)
    assert np.log(1 / 0.8) > 0.1 * np.log(high / low)
    assert low < 0.6 < 1.3 < high
    assert far_low < 1 < 40 < far_high
    axes = make_canvas(drawn).axes
    assert [axis.get_ylim() for axis in axes] == y_limits(drawn)
    assert all(any(line.get_ydata()[0] == 1 for line in axis.lines) for axis in axes)
    assert all(axis.yaxis.get_tick_params()["labelleft"] for axis in axes)
    spans = [[part.location for part in plot.center if hasattr(part, "location")] for plot in plots_of(drawn)]
    assert spans == [[1], [1]]


def test_one_wild_interval_does_not_flatten_the_means():
    wild = replace(curve("a", X), low=np.array([-1e6, 1, 3]), high=np.array([1e6, 3, 5]))
    low, high = y_limits(figure(Panel("", "x", "y", [wild])))[0]
    assert -20 < low < high < 20


def test_intervals_of_few_replicates_do_not_flatten_bars():
    """Where most intervals are a hundred times their means they have arrows, and the bars stay readable."""
    style, means = Style("#000000"), np.array([2.0, 3.0, 2.5])
    bars = Bars("a", means, style, low=means / 100, high=means * 100)
    low, high = y_limits(figure(Panel("", "x", "y", bars=[bars], categories=["a", "b", "c"])))[0]
    assert low == 0
    assert means.max() < high < 4 * means.max()


def test_marks_of_means_of_zero_are_seen_whole():
    curves = [curve("a", np.array([0.0, 1, 2]), half=0), curve("b", np.array([1.0, 2, 3]), half=0)]
    low, high = y_limits(figure(Panel("", "x", "y", curves)))[0]
    assert -0.05 * high < low < 0
    assert y_limits(figure(Panel("", "x", "y", curves[1:])))[0][0] == 0


def test_a_small_difference_keeps_its_whole_interval():
    """The interval is the answer there: that it has 0 in it has to be seen."""
    small = replace(curve("a", X / 100), low=X / 100 - 5, high=X / 100 + 5)
    low, high = y_limits(figure(Panel("", "x", "y", [small], signed=True)))[0]
    assert low < small.low.min()
    assert high > small.high.max()


def test_a_line_with_a_point_without_an_interval_has_bars():
    """A baseline against itself has none; beside it a band would be missing, not narrow."""
    whole = curve("a", X)
    partly = replace(whole, low=np.where(X[0] == X, np.nan, whole.low), high=np.where(X[0] == X, np.nan, whole.high))
    assert is_banded(Panel("", "x", "y", [whole]))
    assert not is_banded(Panel("", "x", "y", [whole, partly]))
    beside = shared_scales(figure(Panel("", "x", "y", [whole]), Panel("", "x", "y", [partly])))
    assert not any(map(is_banded, beside.panels))  # what is compared is drawn alike


def test_a_line_that_goes_back_has_bars():
    """Over a utilisation that falls again beyond saturation a band would cross itself."""
    back = replace(curve("a", X), x=X[::-1])
    assert not is_banded(Panel("", "x", "y", [back]))


def test_most_intervals_are_seen_whole_and_those_that_go_on_have_arrows():
    wide = [replace(curve(str(n), X), low=X - 50, high=X + 50) for n in range(3)]
    low, high = y_limits(figure(Panel("", "x", "y", wide)))[0]
    assert low < X.min() - 50
    assert high > X.max() + 50
    wild = replace(wide[0], high=np.where(X[0] == X, 1e6, X + 50))
    drawn = figure(Panel("", "x", "y", [wild, *wide[1:]]))
    below, above = beyond(wild, y_limits(drawn)[0])
    assert above.tolist() == (X[0] == X).tolist()
    assert not below.any()
    assert "the interval goes on" in markdown(drawn)
    assert "the interval goes on" not in markdown(figure(Panel("", "x", "y", wide)))
    axis = Canvas().subplots()
    draw_panel(axis, drawn.panels[0])
    assert [line.get_marker() for line in axis.lines].count("^") == 1
    html = plots_of(drawn)[0]
    assert [one.glyph.marker for one in html.renderers if getattr(one.glyph, "marker", "") == "triangle"] == [
        "triangle"
    ]


def test_bars_on_a_logarithm_are_points():
    bars = [Bars("a", np.array([1.0, 1000.0]), LOOKS[0], np.array([0.5, 500.0]), np.array([2.0, 2000.0]))]
    panel = Panel("", "x", "y", bars=bars, categories=["b", "c"], log_y=True)
    axis = Canvas().subplots()
    draw_panel(axis, panel)
    assert not axis.patches
    assert axis.lines[0].get_ydata().tolist() == [1, 1000]
    glyphs = [type(one.glyph).__name__ for one in plots_of(figure(panel))[0].renderers]
    assert "VBar" not in glyphs
    assert "Scatter" in glyphs


def test_points_of_an_even_panel_stand_at_equal_distances_with_their_values_below():
    x = np.array([0.0, 1, 90])
    panel = Panel("", "x", "y", [replace(curve("a", x), x=x)], even=True)
    assert places(panel)[0].tolist() == [0, 1, 2]
    assert named_ticks(panel) == {0: "0", 1: "1", 2: "90"}
    assert plots_of(figure(panel))[0].xaxis.ticker.ticks == [0, 1, 2]


def test_a_scale_of_less_than_a_decade_has_ticks():
    assert log_ticks(3.1, 4.6) == [3.5, 4, 4.5]
    assert log_ticks(11, 19) == [12, 14, 16, 18]


def test_numbers_of_a_map_have_equally_many_decimals_and_fit():
    value = np.array([[1.7, 2.0], [0.25, -0.001]])
    assert texts(Heat(["a", "b"], ["c", "d"], value, value, value, "h")) == ["1.70", "2.00", "0.25", "0.00"]
    change = np.array([[-12.34, np.nan]])
    assert texts(Heat(["a", "b"], ["c"], change, change, change, "%", 0.0)) == ["−12.3", ""]


def test_intervals_of_many_curves_stand_beside_each_other_and_bands_of_two_do_not():
    two = Panel("", "x", "y", [curve(str(n), X, n) for n in range(2)])
    four = Panel("", "x", "y", [curve(str(n), X, n) for n in range(4)])
    assert is_banded(two)
    assert all(np.array_equal(at, X) for at in places(two))
    at = np.array(places(four))
    assert (np.diff(at, axis=0) > 0).all()
    assert np.allclose(at.mean(axis=0), X)
    assert np.abs(at - X).max() < 0.3
    over_a_metric = replace(four, curves=[curve(str(n), X, n, x=X + n / 10) for n in range(4)])
    assert np.array_equal(places(over_a_metric)[3], X + 0.3)


def test_both_ways_to_draw_have_the_same_order_and_places():
    panel = Panel("", "x", "y", [curve(str(n), (n + 1) * X, n) for n in range(3)])
    [plot] = plots_of(figure(panel))
    sources = {r.name: r.data_source.data for r in plot.renderers}
    assert list(sources) == ["0", "1", "2"] == [label for label, _ in labels(figure(panel))]
    canvas = make_canvas(figure(panel))
    drawn = [container[0].get_xdata() for container in canvas.axes[0].containers]
    for name, at in zip(sources, drawn, strict=True):
        assert np.array_equal(sources[name]["at"], at)
    assert [text.get_text() for text in canvas.legends[0].get_texts()] == ["0", "1", "2"]


def test_a_legend_covers_no_panel():
    many = [curve(f"a policy with a long name {n}", (n + 1) * X, n) for n in range(6)]
    canvas = make_canvas(figure(Panel("title", "x", "y", many), Panel("other", "x", "y", many)))
    canvas.draw_without_rendering()
    legend = canvas.legends[0].get_window_extent()
    boxes = [axis.get_tightbbox() for axis in canvas.axes]
    assert all(legend.y0 >= box.y1 for box in boxes)
    assert 0 <= legend.x0 < legend.x1 <= canvas.bbox.x1


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_an_interval_is_seen_on_a_bar_of_any_colour(theme):
    """It differs from the bar, or it has an edge of the paper's colour below it."""
    y = np.array([4.0, 5.0])
    for colour in COLOURS:
        panel = Panel("", "x", "y", bars=[Bars("a", y, Style(colour), y - 1, y + 1)], categories=["b", "c"])
        [axis] = make_canvas(figure(panel), theme=theme).axes
        lines = [part.lines[2][0] for part in axis.containers if isinstance(part, ErrorbarContainer)]
        colours = [to_hex(line.get_color()[0]) for line in lines]
        assert colours[-1] == theme.ink
        assert max(contrast(theme.colour(colour).lower(), one) for one in colours) > 1.7
        assert len(lines) == 1 or lines[0].get_linewidth()[0] >= lines[1].get_linewidth()[0] + 1.5
        glyphs = [one.glyph for one in plots_of(figure(panel))[0].renderers]
        segments = [one for one in glyphs if type(one).__name__ == "Segment"]
        assert [one.line_color for one in segments] == [LIGHT.paper, LIGHT.ink][-len(lines) :]
        assert len(lines) == 1 or segments[0].line_width >= segments[1].line_width + 1.5


@pytest.mark.parametrize("width", [400, 800, 1440])
@pytest.mark.parametrize(
    "names",
    [
        ["1", "2", "3–4", "5–8", "9–16", "17–32", "33–64", "65–128"],
        ["A", "B", "C", "D", "E", "all"],
        ["FCFS", "Backfill", "Migration", "B+M"],
        [str(100 * n) for n in range(12)],
    ],
    ids=lambda names: names[-1],
)
def test_no_name_below_bars_touches_the_next(names, width):
    """There is room for a character between them; slanted names are side by side."""
    y = np.arange(1.0, len(names) + 1)
    panels = [Panel(title, "size", "share (%)", bars=[Bars("a", y, LOOKS[0])], categories=names) for title in "ab"]
    canvas = make_canvas(figure(*panels), width / 96)
    canvas.draw_without_rendering()
    for axis in canvas.axes:
        shown = [label for label in axis.get_xticklabels() if label.get_text() and not label.get_rotation()]
        boxes = [label.get_window_extent() for label in shown]
        assert all(right.x0 - left.x1 >= 7 for left, right in pairwise(boxes))


@pytest.mark.parametrize(
    ("names", "slanted"),
    [
        (["FCFS", "Backfill", "Migration", "B+M"], False),
        (["1", "2", "3–4", "5–8", "9–16", "17–32", "33–64", "65–128"], True),
    ],
)
def test_names_below_the_bars_of_a_page_are_slanted_where_they_would_touch(names, slanted):
    plot = make_plot(Panel("", "", "y", bars=[Bars("a", np.ones(len(names)), LOOKS[0])], categories=names))
    assert (plot.xaxis[0].major_label_orientation != "horizontal") == slanted


def test_a_category_without_bars_keeps_its_room():
    values = np.array([np.nan, 2.0, np.nan])
    axis = make_canvas(
        Figure("a", "t", [], [Panel("", "", "y", bars=[Bars("b", values, LOOKS[0])], categories=["a", "b", "c"])])
    ).axes[0]
    left, right = axis.get_xlim()
    assert left <= -0.4
    assert right >= 2.4


def test_a_narrow_picture_has_its_panels_below_each_other():
    shared = figure(*[Panel(str(n), "x", "y", [curve("a", X)]) for n in range(6)], columns=3)
    assert [columns_for(shared, width, 3.2) for width in (4, 7, 12)] == [1, 2, 3]
    assert make_canvas(shared, 4.0).get_size_inches()[1] > 2 * make_canvas(shared, 12.0).get_size_inches()[1]


def test_panels_of_another_quantity_begin_a_row(tmp_path):
    """Where a window has no room for three panels in a row, the second row of three begins on the left as well."""
    panels = [Panel(str(n), "x", "wait" if n < 3 else "loss", [curve("a", X)]) for n in range(6)]
    rows = figure(*panels, columns=3)
    assert [cells(rows, columns) for columns in (1, 2, 3)] == [[*range(6)], [0, 1, 2, 4, 5, 6], [*range(6)]]
    assert cells(figure(*panels[2:], columns=2), 2) == [0, 1, 2, 3]
    axes = make_canvas(rows, 8.0).axes
    assert [axis.get_title() for axis in axes] == [str(n) for n in range(6)]
    assert [axis.get_ylabel() for axis in axes] == ["wait", "", "wait", "loss", "", "loss"]
    assert axes[3].get_position().x0 == axes[0].get_position().x0
    draw_html(rows, tmp_path / "a.html")
    kinds = re.findall('<div class="(panel|panel first)">', (tmp_path / "a.html").read_text())
    assert kinds == ["panel"] * 3 + ["panel first"] + ["panel"] * 2


@pytest.mark.parametrize(("count", "apart"), [(1, True), (6, False)])
def test_rings_on_narrow_bars_are_small(count, apart):
    y, flagged = np.array([4.0, 5.0]), np.array([True, True])
    bars = [Bars(str(n), y, LOOKS[n], flagged=flagged) for n in range(count)]
    [axis] = make_canvas(figure(Panel("", "", "y", bars=bars, categories=["b", "c"])), 4.0).axes
    sizes = {line.get_markersize() for line in axis.lines if line.get_markerfacecolor() == "none"}
    assert sizes == {12.0} if apart else max(sizes) < 72 * 4.0 / (2 * count)


def test_ticks_of_a_logarithmic_axis():
    assert log_ticks(0.9, 25) == [1, 2, 5, 10, 20]
    assert len(log_ticks(1e-3, 1e9)) <= 13


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_text_and_lines_are_seen_on_their_paper(theme):
    assert contrast(theme.ink, theme.paper) > 7
    assert contrast(theme.faint, theme.paper) > 4.5
    assert all(contrast(theme.colour(style.colour), theme.paper) > 2 for style in LOOKS)


def test_a_picture_of_a_page_follows_light_and_dark():
    text = svg_text(figure(Panel("", "x", "y", [replace(curve("a", X), style=Style(BLACK))])), 4.0)
    assert "prefers-color-scheme:dark" in text
    for theme in (LIGHT, DARK):
        assert theme.ink in text
    assert f":{DARK.colour(BLACK)}" in text
    assert text == svg_text(figure(Panel("", "x", "y", [replace(curve("a", X), style=Style(BLACK))])), 4.0)


def test_a_page_has_one_legend_and_the_colours_of_both_themes(tmp_path):
    panels = [Panel(str(n), "x", "y", [curve("a <b>", X), curve("c", X, 1)]) for n in range(2)]
    draw_html(figure(*panels), tmp_path / "a.html")
    text = (tmp_path / "a.html").read_text()
    assert text.count("<button") == 2
    assert "a &lt;b&gt;</button>" in text
    script = text[text.index("const TO_DARK") :]
    colours = json.loads(script[script.index("{") : script.index(";")])
    assert colours[BLUE.lower()] == DARK.colour(BLUE)


def test_the_legend_of_a_page_has_the_marks_of_bars_that_are_drawn_as_points(tmp_path):
    for log, mark in ((False, '<rect x="4"'), (True, '<circle cx="14"')):
        bars = [Bars("a policy", np.array([1.0, 100.0]), LOOKS[0])]
        draw_html(
            figure(
                Panel("", "", "y", bars=[*bars, Bars("another", bars[0].y, LOOKS[1])], categories=["A", "B"], log_y=log)
            ),
            tmp_path / "a.html",
        )
        button = (tmp_path / "a.html").read_text().split('data-name="a policy">')[1].split("</button>")[0]
        assert mark in button
        assert "stroke-width" not in button


def test_captions_are_texts_beside_the_picture(tmp_path):
    shown = replace(figure(Panel("", "x", "y", [curve("a", X)])), title="50 % of a_b", facts=["Fact <one>."])
    shown = replace(shown, source="Krevat (2003), figure 5-1", table=Table(["a", "b"], [["1", "2|3"]]))
    assert markdown(shown) == "**50 % of a\\_b.** A sentence.\n"
    assert "\\caption{50 \\% of a\\_b. A sentence.}" in latex(shown)
    sheet = data_sheet(shown)
    assert "After Krevat (2003), figure 5-1." in sheet
    assert "| 1 | 2\\|3 |" in sheet
    assert "- Fact \\<one\\>." in sheet
    paths = draw(replace(shown, table=None), tmp_path, ["svg", "pdf"])
    assert [path.name for path in paths] == ["a.svg", "a.pdf", "a.md", "a.tex", "a-data.md"]
    assert all(path.stat().st_size for path in paths)
    with pytest.raises(InputError, match="unknown format 'jpg'"):
        draw(shown, tmp_path, ["jpg"])


SIGHT = {
    "all cones": np.eye(3),
    "no green cones": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no red cones": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}
"""Linear RGB as eyes see it (Machado, Oliveira and Fernandes 2009, severity 1)."""


def lab(colour, sight):
    """The CIELAB coordinates of a colour as seen."""
    encoded = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(sight) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = np.cbrt(xyz / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eyes", SIGHT)
def test_colours_can_be_told_apart(theme, eyes):
    """A difference of 2.3 is just noticed by who compares areas; curves are thin, and compared with a legend."""
    colours = [theme.colour(colour) for colour in COLOURS]
    distances = {
        (one, other): np.linalg.norm(lab(one, SIGHT[eyes]) - lab(other, SIGHT[eyes]))
        for one, other in combinations(colours, 2)
    }
    assert min(distances.values()) > 15, min(distances, key=distances.get)
