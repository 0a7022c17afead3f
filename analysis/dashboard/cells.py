"""The configurations of a store as points: parallel coordinates, the Pareto front, and the table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.choices import axes_of, labels_of
from faultsweep.analysis.dashboard.plots import fit, place_bar, renew
from faultsweep.analysis.figures import page, parallel
from faultsweep.analysis.figures.figure import BLUE, VERMILION, Curve, Figure, Panel, Parallel, Style
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import in_words, labels_to_read, quantity
from faultsweep.analysis.pareto import is_on_front
from faultsweep.analysis.ranking import higher_is_better
from faultsweep.analysis.regions import measured_groups, measured_names
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.sweeps.open import has_result
from numpy.typing import NDArray

from faultsweep.errors import InputError

MOST_POINTS = 10_000
MOST_LINES = 500
_MOST_AXES = 12
_MOST_TICKS = 6
_HEIGHT = 360
Floats = NDArray[np.float64]


class Sample:
    """The configurations that are shown as points: all, or so many drawn at random from those with a result.

    Attributes
    ----------
    ids : their numbers, ascending.
    of : how many there are.
    apart : for each axis that says what is measured, the group of each label; groups have Pareto fronts of their own.
    """

    def __init__(self, data: xr.Dataset) -> None:
        """Choose them; nothing but the status is read."""
        self._data = data
        self._axes = axes_of(data)
        self._shape = tuple(data.sizes[axis] for axis in self._axes)
        self.of = int(np.prod(self._shape))
        known = has_result(data["status"])
        known = known.any(REPLICATE) if REPLICATE in known.dims else known
        ids = np.flatnonzero(known.transpose(*self._axes).values)
        self.with_result = len(ids)
        if len(ids) > MOST_POINTS:
            ids = np.sort(np.random.default_rng(0).choice(ids, MOST_POINTS, replace=False))
        self.ids = ids
        places = np.unravel_index(ids, self._shape)
        self.rows = dict(zip(self._axes, places, strict=True))
        self.apart = measured_groups(data)
        self.values = lru_cache(maxsize=None)(self._values)
        self.describe = lru_cache(maxsize=None)(self._describe)

    def words(self) -> str:
        """Return how many are shown, and of how many."""
        if len(self.ids) == self.with_result:
            return f"{len(self.ids):,} of {self.of:,} configurations have a result"
        return f"{len(self.ids):,} of {self.with_result:,} configurations with a result, drawn at random"

    def _values(self, metric: str) -> tuple[Floats, str]:
        """Return the means over replicates of a metric, in a unit to read, and what it is called."""
        values = self._data[metric].load()
        values = values.mean(REPLICATE, keep_attrs=True) if REPLICATE in values.dims else values
        flat = values.transpose(*self._axes).values.ravel()[self.ids].astype(float)
        small = in_units_to_read(xr.Dataset({metric: ("cell", flat, self._data[metric].attrs)}), [metric])
        return small[metric].values, without_tex(quantity(small, metric))

    def on_front(self, metrics: Sequence[str]) -> NDArray[np.bool_]:
        """Return which configurations no other one beats."""
        groups = np.zeros(len(self.ids), np.int64)
        for axis, numbers in self.apart.items():
            groups = groups * len(numbers) + numbers[self.rows[axis]]
        columns = [self.values(name)[0] for name in metrics]
        return is_on_front(columns, [is_higher_better(self._data, name) for name in metrics], groups)

    def apart_words(self) -> str:
        """Return a sentence that says of what each value has a front of its own, "" if all are compared."""
        words = " and ".join(in_words(self._data, axis) for axis in measured_names(self._data))
        return words and f"Each {words} has a front of its own: it says what is measured."

    def labels(self, axis: str) -> list[str]:
        """Return the label of each configuration on an axis, as text."""
        return np.array(labels_to_read(self._data, axis), object)[self.rows[axis]].tolist()

    def _describe(self) -> list[str]:
        """Return the labels of each configuration on the axes that vary (of one alone, on all), in a line."""
        varied = self.varied() or self._axes  # a store of one configuration varies nothing
        columns, words = [self.labels(axis) for axis in varied], [in_words(self._data, axis) for axis in varied]
        return [
            ", ".join(f"{a} {label}" for a, label in zip(words, row, strict=True)) for row in zip(*columns, strict=True)
        ]

    def few(self) -> NDArray[np.int64]:
        """Return the rows of so many configurations as lines can be followed."""
        last = len(self.ids) - 1
        return np.unique(np.linspace(0, last, min(MOST_LINES, last + 1)).astype(np.int64))

    def varied(self) -> list[str]:
        """Return the axes that have more than one label."""
        return [axis for axis in self._axes if self._data.sizes[axis] > 1]


def is_higher_better(data: xr.Dataset, metric: str) -> bool:
    """Tell whether more of a metric is better; no, where nothing says so."""
    try:
        return higher_is_better(data, metric)
    except InputError:
        return False


def taken_as_better(data: xr.Dataset, metrics: Sequence[str]) -> str:
    """Return of which metrics less is taken as better because nothing says so; "" where all is said."""
    unsaid = []
    for name in metrics:
        try:
            higher_is_better(data, name)
        except InputError:
            unsaid.append(in_words(data, name))
    if not unsaid:
        return ""
    return f"Less is taken as better of {' and '.join(unsaid)}: nothing says so. The table [better] of the spec does."


def pareto_figure(data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> Figure:
    """Return the Pareto front of two or three metrics as a figure; a third one counts, and is not drawn."""
    x, y = (sample.values(name)[0] for name in metrics[:2])
    front = sample.on_front(metrics)
    others = np.isfinite(x) & np.isfinite(y) & ~front
    curves = []
    for label, own, style in (
        ("other configurations", others, Style(BLUE, joined=False)),
        ("Pareto front", front, Style(VERMILION, "D", joined=False)),
    ):
        if own.any():
            none = np.full(int(own.sum()), np.nan)
            curves.append(Curve(label, x[own], y[own], none, none, style))
    names = [in_words(data, name) for name in metrics]
    title = f"Pareto front of {', '.join(names[:-1])} and {names[-1]}"
    caption = [
        f"Means over replicates; {sample.words()}.",
        f"On the front: no other configuration is as good in all {len(metrics)} metrics and better in one.",
        *filter(None, [sample.apart_words(), taken_as_better(data, metrics)]),
    ]
    panel = Panel("", sample.values(metrics[0])[1], sample.values(metrics[1])[1], curves=curves, log_y=False)
    return Figure(str(data.attrs.get("name", "sweep")), title, caption, [panel])


class ParetoPlot:
    """Two metrics against each other, a third one as colour, and the points that no other one beats.

    hvPlot draws it; from then on its source takes new numbers.
    """

    def __init__(self, data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> None:
        """Draw two or three metrics."""
        import holoviews as hv
        import hvplot.pandas  # noqa: F401 - gives data frames .hvplot
        from bokeh.models import ColumnDataSource, HoverTool

        frame = _points(data, sample, metrics)
        drawn = frame.hvplot.scatter(
            x="x",
            y="y",
            c="colour" if len(metrics) > 2 else BLUE,
            hover_cols=["cell", "words", "ink"],
            cmap="viridis",
            symmetric=False,
            responsive=True,
            height=_HEIGHT,
            size=40,
            alpha=0,
            tools=["box_select", "lasso_select", "tap"],
        )
        self.layout: Any = hv.render(drawn, backend="bokeh")
        cells = self.layout.renderers[0]
        self.layout.tools = [tool for tool in self.layout.tools if not isinstance(tool, HoverTool)]
        numbers = "@x{custom}, @y{custom}" + (", @colour{custom}" if len(metrics) > 2 else "")
        self.layout.add_tools(page.tips_of([cells], [("", "@words"), ("value", numbers)]))
        cells.nonselection_glyph = cells.selection_glyph = None
        cells.glyph.angle = np.nan  # a marker that is nowhere takes no time to paint, and is found all the same
        self._source = cells.data_source
        self._bars = [one for one in self.layout.right if type(one).__name__ == "ColorBar"]
        colours = self._bars[0].color_mapper if self._bars else None
        if colours is not None:
            page.style_bar(self._bars[0])
            self._bars.append(place_bar(self.layout, self._bars[0], 0))
            colours.update(tags=["keeps its colours", "on paper"], syncable=False)
        _stamp(self.layout, cells, colours)
        self.sources = [self._source]
        self._look = len(metrics) > 2
        if not self._look:
            self._source.data["colour"] = np.zeros(len(frame), np.float32)
        self._front = ColumnDataSource({"x": [], "y": []})  # apart, so that a brush draws it but once
        ring = {"size": 11, "fill_color": None, "line_color": VERMILION, "line_width": 1.8}
        self.layout.scatter("x", "y", source=self._front, **ring)
        _tune(self.layout)
        self.take(data, sample, metrics)

    def take(self, data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> bool:
        """Show other metrics, if there are as many as before."""
        if (len(metrics) > 2) != self._look:
            return False
        frame = _points(data, sample, metrics)
        renew(self._source, {name: frame[name].to_numpy() for name in frame if name != "front"})
        front = frame[frame["front"]]
        self._front.data = {name: front[name].to_numpy() for name in ("x", "y")}
        for axis, name, scale in (
            (self.layout.xaxis, "x", self.layout.x_range),
            (self.layout.yaxis, "y", self.layout.y_range),
        ):
            known = frame[name].to_numpy()[np.isfinite(frame[name].to_numpy())]
            low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
            room = 0.05 * (high - low) or 0.5
            label = textwrap.fill(sample.values(metrics[0 if name == "x" else 1])[1], 44)
            fit(scale, low - room, high + room, scale if axis[0].axis_label == label else None)
            axis.axis_label = label
        for bar in self._bars:
            bar.title = sample.values(metrics[2])[1]
            known = frame["colour"].to_numpy()[np.isfinite(frame["colour"].to_numpy())]
            if len(known):
                bar.color_mapper.low, bar.color_mapper.high = float(known.min()), float(known.max())
        return True


def _points(data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> pd.DataFrame:
    columns = [sample.values(name)[0] for name in metrics]
    front = sample.on_front(metrics)
    columns = [_as_short_as_can_be(values) for values in (*columns, np.zeros(len(sample.ids)))]
    names = dict(zip(("x", "y", "colour"), columns, strict=False))
    ink = _inks(names["colour"]) if len(metrics) > 2 else np.full(len(front), _packed(BLUE), np.int32)
    return pd.DataFrame({**names, "ink": ink, "cell": sample.ids, "words": sample.describe(), "front": front})


def _as_short_as_can_be(values: Floats) -> NDArray[Any]:
    """Return numbers in half the bytes where these can hold them."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    holds = np.finfo(np.float32)
    fits = not len(size) or (size.max() < holds.max and size.min() > holds.tiny)
    return values.astype(np.float32) if fits else values


def _packed(colour: str) -> int:
    """Return "#RRGGBB" as a number, as the pixels of a canvas have it: alpha (left 0), blue, green, red."""
    return int(colour[5:7] + colour[3:5] + colour[1:3], 16)


def _inks(values: Floats) -> NDArray[np.int32]:
    """Return the colour of each value, packed, as the colour bar has it."""
    from bokeh.palettes import Viridis256

    palette = np.array([_packed(colour) for colour in Viridis256])
    halves = values.astype(np.float64) / 2  # so that what lies between the two is finite
    known = halves[np.isfinite(halves)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
    share = np.clip((halves - low) / ((high - low) or 1.0), 0, 1)  # what is infinite has the colour of an end
    inks = np.where(np.isfinite(share), palette[np.nan_to_num(share * 255).astype(int)], _packed("#BBBBBB"))
    return inks.astype(np.int32)


_STAMP = """
if (plot.stamping) return;
plot.stamping = true;
queueMicrotask(() => {
  plot.stamping = false;
  const width = Math.round(plot.inner_width * scale), height = Math.round(plot.inner_height * scale);
  if (!(width > 0 && height > 0)) return;
  const {start: left, end: right} = plot.x_range, {start: low, end: high} = plot.y_range;
  const {x, y} = points.data, known = colours && palettes.get(colours);
  const packed = ([, ...hex]) => [4, 2, 0].reduce((sum, n) => sum << 8 | parseInt(hex[n] + hex[n + 1], 16), 0);
  const kept = new Map(known?.dark ? known.light.map((own, n) => [packed(own), packed(colours.palette[n])]) : []);
  const ink = known?.dark ? Array.from(points.data.ink, own => kept.get(own) ?? own) : points.data.ink;
  const chosen = points.selected.indices, pixels = new Uint32Array(width * height);
  const across = width / (right - left), up = height / (high - low), radius = 3 * scale, disc = [];
  for (let r = -Math.ceil(radius); r <= radius; r++) for (let c = -Math.ceil(radius); c <= radius; c++)
    if (r * r + c * c <= (radius + 0.3) ** 2) disc.push([r, c]);
  const stamp = (i, alpha) => {
    const column = Math.round((x[i] - left) * across), row = Math.round((y[i] - low) * up);
    if (!(column > -9 && column < width + 9 && row > -9 && row < height + 9)) return;
    for (const [r, c] of disc) {
      const own = column + c, line = row + r;
      if (own < 0 || own >= width || line < 0 || line >= height) continue;
      const at = line * width + own;
      pixels[at] = ((Math.min(255, (pixels[at] >>> 24) + alpha) << 24) | ink[i]) >>> 0;
    }
  };
  for (let i = 0; i < x.length; i++) stamp(i, chosen.length ? 14 : 150);
  for (const i of chosen) if (i >= 0) stamp(i, 200);
  const image = new (picture.data.image[0].constructor)(pixels.buffer, [height, width]);
  picture.data = {image: [image], x: [left], y: [low], dw: [right - left], dh: [high - low]};
});
"""
"""Draws all points into one picture: ten thousand markers of Bokeh's take 0.15 s, this takes 5 ms. Where many points
lie on each other they are darker. Colours of a third metric are those that the page gives the colour bar."""


def _stamp(plot: Any, cells: Any, colours: Any) -> None:
    """Draw points as one picture, made in the browser; their own glyph is there to be pointed at and selected."""
    from bokeh.models import ColumnDataSource, CustomJS

    nothing = {"image": [np.zeros((1, 1), np.uint32)], "x": [0.0], "y": [0.0], "dw": [0.0], "dh": [0.0]}
    picture = ColumnDataSource(nothing)
    picture.syncable = False
    plot.image_rgba("image", "x", "y", "dw", "dh", source=picture, level="underlay")
    for tool in plot.tools:
        if hasattr(tool, "renderers"):
            tool.renderers = [cells]
    source = cells.data_source
    draw = CustomJS(
        args={"plot": plot, "points": source, "picture": picture, "colours": colours, "scale": 1}, code=_STAMP
    )
    listened: list[tuple[Any, ...]] = [
        (plot, "inner_width", "inner_height"),
        (plot.x_range, "start", "end"),
        (plot.y_range, "start", "end"),
        (source, "data"),
        (source.selected, "indices"),
        *([(colours, "palette")] if colours is not None else []),  # changes with light and dark
    ]
    for model, *names in listened:
        for name in names:
            model.js_on_change(name, draw)


def _tune(plot: Any) -> None:
    """Let a plot of HoloViews look as the others do, and select while the mouse moves."""
    from bokeh.models import BoxSelectTool, LassoSelectTool

    page.style_plot(plot)
    page.write_large(plot)
    plot.xaxis.ticker.desired_num_ticks = 4  # large numbers are long
    plot.output_backend = "canvas"  # where there is no graphics card WebGL is slower
    for tool in plot.toolbar.tools:
        if isinstance(tool, BoxSelectTool | LassoSelectTool):
            tool.continuous = True
        if isinstance(tool, BoxSelectTool):
            plot.toolbar.active_drag = tool
    plot.toolbar.active_scroll = None  # the wheel moves the page


def parallel_of(data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> Parallel:
    """Return a line per configuration over the axes that vary and some metrics; so many that they can be followed."""
    rows = sample.few()
    axes = sample.varied()[:_MOST_AXES]
    found = [_scaled_axis(data, sample, axis, rows) for axis in axes]
    found += [(sample.values(name)[1], *parallel.scaled(sample.values(name)[0][rows])) for name in metrics]
    names, ticks = [name for name, _, _ in found], [own for _, _, own in found]
    table = np.stack([at for _, at, _ in found], axis=1) if len(rows) else np.zeros((0, len(names)))
    values, words = sample.values(metrics[0])
    return Parallel(names, ticks, table, values[rows], words)


def _scaled_axis(
    data: xr.Dataset, sample: Sample, axis: str, rows: NDArray[np.int64]
) -> tuple[str, Floats, list[tuple[float, str]]]:
    """Return what an axis is called, where the lines cross it, and some of its labels."""
    count = data.sizes[axis]
    last, step = max(1, count - 1), -(-count // _MOST_TICKS)
    words = without_tex(labels_to_read(data, axis))
    ticks = [(n / last, words[n]) for n in range(0, count, step)]
    return without_tex(_without_unit(data, axis)), sample.rows[axis][rows] / last, ticks


def _without_unit(data: xr.Dataset, axis: str) -> str:
    return quantity(data, axis).partition(" (")[0]


def parallel_figure(data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> Figure:
    """Return the parallel coordinates as a figure."""
    found = parallel_of(data, sample, metrics)
    title = f"{_without_unit(data, metrics[0])} over all axes"
    shown = f"A line per configuration, {len(found.lines):,} of {sample.of:,}, coloured by {found.quantity}"
    caption = [f"{shown}; means over replicates."]
    return Figure(str(data.attrs.get("name", "sweep")), title, caption, [Panel("", "", "", parallel=found)])


class ParallelPlot:
    """A line per configuration over its axes and metrics, each scaled to its range; a box over an axis selects.

    hvPlot's parallel coordinates are a curve per class, which nothing can be selected in.
    """

    def __init__(self, data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> None:
        """Draw the axes that vary, and some metrics."""
        from bokeh.models import BoxSelectTool, ColumnDataSource

        self._lines, self._dots, self._ticks = (
            ColumnDataSource({name: [] for name in names})
            for names in (("xs", "ys", "value", "cell", "words"), ("x", "y", "cell"), ("x", "y", "text"))
        )
        self.layout, self._colours = page.draw_parallel(self._lines, self._ticks, "pan,wheel_zoom,tap,reset")
        self._colours.update(tags=["keeps its colours", "on paper"], syncable=False)
        select = BoxSelectTool(continuous=True)
        self.layout.add_tools(select)
        self.layout.toolbar.active_drag = select
        dots = self.layout.scatter("x", "y", size=4, source=self._dots, alpha=0)  # to be selected; lines cannot be
        dots.nonselection_glyph = None
        self.sources = [self._lines, self._dots]
        self.take(data, sample, metrics)

    def take(self, data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> bool:
        """Show other metrics."""
        found, rows = parallel_of(data, sample, metrics), sample.few()
        ids, described = sample.ids[rows], sample.describe()
        renew(self._lines, {**parallel.source_of(found), "cell": ids, "words": [described[row] for row in rows]})
        count = len(found.names)
        x = np.tile(np.arange(count, dtype=float), len(rows))
        renew(self._dots, {"x": x, "y": found.lines.ravel(), "cell": np.repeat(ids, count)})
        parallel.label_plot(self.layout, self._colours, self._ticks, found)
        return True


def frame_of(data: xr.Dataset, sample: Sample, metrics: Sequence[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the table of the configurations, and what its columns are called.

    Columns have names of their own (``a0``, ``m0``): those of a store may be anything.
    """
    columns: dict[str, Any] = {"cell": sample.ids}
    titles = {"cell": "no."}
    for number, axis in enumerate(sample.varied()):
        values = data[axis].values
        own = values[sample.rows[axis]] if values.dtype.kind in "iuf" else pd.Series(sample.labels(axis), dtype=object)
        columns[f"a{number}"], titles[f"a{number}"] = own, quantity(data, axis)
    for number, metric in enumerate(metrics):
        columns[f"m{number}"], titles[f"m{number}"] = sample.values(metric)
    return pd.DataFrame(columns), titles


def formats_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return how numbers of a table are written: labels as they are, results to four digits or so."""
    from bokeh.models.widgets.tables import NumberFormatter

    formats = {}
    for field in [name for name in frame if frame[name].dtype.kind == "f"]:
        known = np.abs(frame[field].to_numpy()[np.isfinite(frame[field].to_numpy())])
        largest = float(known.max(initial=0.0))
        places = 3 - int(np.floor(np.log10(largest))) if largest else 0
        text = "0,0.[000000]" if str(field).startswith("a") else "0,0." + "0" * max(0, places)
        text = "0.000e+0" if places > 7 else text.removesuffix(".")
        formats[str(field)] = NumberFormatter(format=text, text_align="right", nan_format="")
    return formats


def labels_at(data: xr.Dataset, cell: int) -> dict[str, str]:
    """Return axis -> label, as text, of a configuration."""
    axes = axes_of(data)
    rows = np.unravel_index(cell, tuple(data.sizes[axis] for axis in axes))
    return {axis: labels_of(data, axis)[int(row)] for axis, row in zip(axes, rows, strict=True)}
