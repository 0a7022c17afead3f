"""One user's page over a store: what it says at first, the knobs, the linked views, and what can be taken away."""

from __future__ import annotations

import asyncio
import io
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import panel as pn
import xarray as xr
from faultsweep.analysis.dashboard import choices as ch
from faultsweep.analysis.dashboard import overview as ov
from faultsweep.analysis.dashboard.cells import ParallelPlot, ParetoPlot, frame_of, labels_at
from faultsweep.analysis.dashboard.choices import Choices
from faultsweep.analysis.dashboard.difference import difference_html
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.analysis.dashboard.jobs import COLUMNS, MOST_RUNS, Distribution, Gantt, jobs_of, keeps_jobs
from faultsweep.analysis.dashboard.links import Links
from faultsweep.analysis.dashboard.metrics import grouped, label_in_words, named
from faultsweep.analysis.dashboard.plots import CurvesPlot, HeatPlot
from faultsweep.analysis.dashboard.takeaway import DOWNLOADS, Make
from faultsweep.analysis.dashboard.template import PANE, TEMPLATE, WAITING
from faultsweep.analysis.dashboard.view import cells_at, figure_of, heat_map, ids_of_heat, ids_of_points, rerun_command
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.layout import as_curves
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.open import fixed_parameters
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.analysis.warmup import column_of
from numpy.typing import NDArray
from panel.io import hold

from faultsweep.errors import InputError
from faultsweep.extras import is_installed

_WIDE = 290
_CHECK_EVERY_MS = 500
_MOST_ROWS = 60
_MOST_SHOWN = 12
_NONE = "(none)"
_STRETCH: dict[str, Any] = {"sizing_mode": "stretch_width"}
_SWITCHES = {
    "log_x": "Logarithmic horizontal axis",
    "log_y": "Logarithmic vertical axis or colours",
    "bands": "95 % intervals over replicates",
    "delete_warm_up": "Without the warm-up of each run (MSER-5)",
}
_NAMES = {
    "metric": "Metric",
    "x": "Horizontal axis",
    "along": "A point per label of",
    "curves": "A curve per label of",
    "facets": "A panel per label of",
    "heat_x": "Heat map, horizontal",
    "heat_y": "Heat map, vertical",
    "second": "Second metric",
    "third": "Third metric",
    "show": "Show",
    "baseline": "Baseline",
    "view": "View",
}
_WORDS = (
    *("head", "verdict", "regions", "shares", "message", "title", "key", "caption", "heat_words", "parallel_words"),
    *("pareto_words", "jobs_words", "chosen", "run_words", "link", "difference"),
)
_METRICS = ("metric", "second", "third")
_OF_CURVES = ("metric", "x", "along", "curves", "facets", "show", "baseline", *_SWITCHES)
_OF_HEAT = ("metric", "heat_x", "heat_y", "show", "baseline", "log_y", "delete_warm_up")
_OF_CELLS = ("metric", "second", "third")


_ENLARGE = """
const views = document.querySelector('.views');
if (cb_obj.value === 'all views') delete views.dataset.large; else views.dataset.large = cb_obj.value;
"""


def _html(**more: Any) -> Any:
    return pn.pane.HTML("", stylesheets=[PANE], **{**_STRETCH, **more})


class _Select(pn.widgets.Select):
    """A select that passes over what it does not offer any more: the browser may be a moment behind."""

    def _process_property_change(self, msg: dict[str, Any]) -> dict[str, Any]:
        try:
            return super()._process_property_change(msg)
        except ValueError:
            self.param.trigger("value")  # the browser shows what is chosen
            return {name: value for name, value in msg.items() if name != "value"}


class _Page(pn.Template):
    """A template that Panel need not describe anew with each part that is added."""

    def __repr__(self) -> str:
        return "dashboard"


class Dashboard:
    """One user's page over a store."""

    def __init__(self, store: FollowedStore, query: Mapping[str, str]) -> None:
        """Lay out the page for the choices that the link carries."""
        self.store = store
        self.version = store.version
        self.facts = store.facts()
        self._quiet = False
        self.curves: CurvesPlot | None = None
        self.heat: HeatPlot | None = None
        self.pareto: ParetoPlot | None = None
        self.parallel: ParallelPlot | None = None
        self.links = Links(self._chosen, self._scrolled)
        self._views: dict[str, Callable[[], None]] = {
            "first": self._draw_first,
            "curves": self._draw_curves,
            "heat": self._draw_heat,
            "parallel": self._draw_parallel,
            "pareto": self._draw_pareto,
            "jobs": self._draw_jobs,
            "table": self._fill_table,
        }
        self._stale: set[str] = set()
        self._seen = set(self._views) if pn.state.curdoc is None else set()
        note = ""
        try:
            self.choices = ch.read_query(store.data, query)
        except InputError as error:
            self.choices, note = ch.default_choices(store.data), f"The link was not understood: {error}."
        self._make_widgets()
        self._make_page()
        self._note(note)
        self._show_overview()
        with hold():
            self._offer()
        if pn.state.curdoc is None:
            self._show()
        else:
            pn.state.onload(self._show)  # the overview is there meanwhile

    # Widgets

    def _make_widgets(self) -> None:
        data = self.store.data
        self.widgets: dict[str, Any] = {name: _Select(label=label, width=_WIDE) for name, label in _NAMES.items()}
        self.widgets["view"].options = [view for view in ch.VIEWS if view != "distribution" or keeps_jobs(data)]
        known = {"hub": self.links.hub, "seen": self.links.seen}  # so that the page has them before any view
        self.widgets["view"].jscallback(args=known, value=_ENLARGE)
        self.widgets["show"].options = list(ch.SHOWN)
        self.find = pn.widgets.TextInput(label="Find a metric", placeholder="part of a name or meaning", width=_WIDE)
        self.find.param.watch(lambda event: self._offer(), "value_input")
        self.switches = pn.widgets.CheckBoxGroup(options=self._switches())
        self.switches.param.watch(self._switched, "value")
        self.at: dict[str, Any] = {}
        self.places: dict[str, Any] = {}
        for name, widget in self.widgets.items():
            widget.param.watch(self._changed(name), "value")
        for axis in ch.axes_of(data):
            self._make_axis(axis)
        for widget in (*self.widgets.values(), *self.at.values(), self.switches):
            widget._debounce = 0  # Panel would wait 50 ms for more

    def _switches(self) -> dict[str, str]:
        """Return what the switches say -> their names; the last one is there where per-job results are."""
        deletable = bool(column_of(self.store.data, self.choices.metric))
        return {words: name for name, words in _SWITCHES.items() if deletable or name != "delete_warm_up"}

    def _make_axis(self, axis: str) -> None:
        """Make the knob of an axis: a slider over numbers, a select over names."""
        data = self.store.data
        labels = ch.labels_of(data, axis)
        number = data[axis].dtype.kind in "iuf" and len(labels) > 1
        kind = pn.widgets.DiscreteSlider if number else pn.widgets.Select
        # a title is markup to the browser; the labels of a slider are numbers, those of a select are text to it
        self.at[axis] = kind(label=without_tex(escape(named(data, axis))), options=labels, width=_WIDE)
        self.at[axis].param.watch(self._changed(axis), "value")
        self.places[axis] = pn.Column(self.at[axis])  # hidden as one: each part of a slider would be laid out by itself

    def _offer(self) -> None:
        """Offer in every widget what can be chosen beside the other choices, and show the choices that are made."""
        data, now = self.store.data, self.choices
        axes, across = ch.axes_of(data), ch.x_axes(data)
        metrics = list(dict.fromkeys([*self.facts.metrics, now.metric]))
        few = [axis for axis in axes if 1 < data.sizes[axis] <= ch.MOST_CURVES and axis != now.along]
        varied = [x for x, axis in across.items() if axis not in (now.curves, now.facets) and data.sizes[axis] > 1]
        words = {named(data, name): name for name in metrics}
        called = {name: named(data, name) for name in across}
        options: dict[str, Any] = {
            "x": {
                **{called[x]: x for x in (varied or across)},
                **({called[now.x]: now.x} if now.x in across else {}),
                **words,
            },
            "along": [axis for axis in axes if axis not in (now.curves, now.facets)],
            "curves": ["", *(axis for axis in few if axis != now.facets)],
            "facets": ["", *(axis for axis in few if axis != now.curves and data.sizes[axis] <= ch.MOST_FACETS)],
            "heat_x": [axis for axis in axes if axis != now.heat_y],
            "heat_y": ["", *(axis for axis in axes if axis != now.heat_x)],
            "baseline": {
                _NONE: "",
                **{label_in_words(data, *ch.baseline_of(data, one)): one for one in ch.baselines(data, now.along)},
            },
        }
        with self._silently():
            for name in _METRICS:
                wanted = [own for own in metrics if name == "metric" or own != now.metric]
                groups = grouped(data, wanted, (self.find.value_input or "") if name == "metric" else "")
                known = {own for group in groups.values() for own in group.values()}
                if name != "metric":
                    groups = {" ": {_NONE: ""}, **groups}
                elif now.metric not in known:
                    groups = {"Chosen": {named(data, now.metric): now.metric}, **groups}
                self._set(self.widgets[name], groups=groups)
            for name, each in options.items():
                named_ones = each if isinstance(each, dict) else {called.get(text, _NONE): text for text in each}
                self._set(self.widgets[name], options=named_ones)
            for name, widget in self.widgets.items():
                widget.value = getattr(now, name)
            for axis, widget in self.at.items():
                self.places[axis].visible = axis in now.at and data.sizes[axis] > 1
                if axis in now.at:
                    widget.value = now.at[axis]
            self._set(self.switches, options=self._switches())
            self.switches.value = [name for name in _SWITCHES if getattr(now, name)]
            self.widgets["along"].visible = now.x not in across
            self.widgets["baseline"].visible = len(self.widgets["baseline"].options) > 1
            self.widgets["show"].visible = self.widgets["baseline"].visible

    @staticmethod
    def _set(widget: Any, **new: Any) -> None:
        """Set what is another one now: equal options would be sent to the browser all the same."""
        for name, value in new.items():
            if getattr(widget, name) != value:
                widget.param.update(**{name: value})

    @contextmanager
    def _silently(self) -> Any:
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def _changed(self, name: str) -> Callable[[Any], None]:
        def changed(event: Any) -> None:
            if not self._quiet:
                self._choose(name, event.new)

        return changed

    def _switched(self, event: Any) -> None:
        if not self._quiet:
            on: dict[str, Any] = {name: name in event.new for name in _SWITCHES}
            self._take(replace(self.choices, **on))

    def _choose(self, name: str, value: Any) -> None:
        now = self.choices
        wanted = replace(now, at={**now.at, name: value}) if name in self.at else replace(now, **{name: value})
        if name == "metric" and not column_of(self.store.data, value):
            wanted = replace(wanted, delete_warm_up=False)
        if name == "metric":
            second, third = ("" if part == value else part for part in (wanted.second, wanted.third))
            wanted = replace(wanted, second=second, third=third)
        self._take(self._with_baseline(name, wanted))

    def _take(self, wanted: Choices) -> None:
        """Take new choices; where one contradicts another that is told, and the old ones stay."""
        data, before = self.store.data, self.choices
        try:
            wanted = ch.check(data, replace(wanted, at={a: v for a, v in wanted.at.items() if a in self.at}))
        except InputError as error:
            self._note(str(error))
        else:
            self.choices = wanted
            self._note("")
        self._show(before)

    def _show(self, before: Choices | None = None) -> None:
        """Offer what can be chosen now, and draw what is on the screen and has changed."""
        now, moved = self.choices, _at(before) != _at(self.choices)
        if moved or _differ(before, now, _OF_CURVES):
            self._stale.add("curves")
        if moved or _differ(before, now, _OF_HEAT):
            self._stale.add("heat")
        if _differ(before, now, _OF_CELLS):
            self._stale |= {"parallel", "pareto", "table"}
        if before is None or (moved and not len(self.links.cells)):
            self._stale.add("jobs")
        with hold():
            self._offer()
            self.show_link()
            self._draw_seen(at_once="curves")
        if before is None:
            _later(self._chosen, self.links.cells)

    def _scrolled(self, parts: set[str]) -> None:
        """Draw what has come onto the screen."""
        self._seen = parts
        self._draw_seen()

    def _redraw(self, name: str) -> None:
        self._stale.add(name)
        self._draw_seen()

    def _draw_seen(self, at_once: str = "") -> None:
        """Draw the views that are on the screen and not as they should be, each in a message of its own."""
        for name in [name for name in self._views if name in self._stale & self._seen]:
            if name == at_once:
                self._draw(name)
            else:
                _later(self._draw, name)

    def _draw(self, name: str) -> None:
        """Draw a view; where the store cannot be read any more, say so and keep what there is."""
        if name not in self._stale & self._seen:
            return
        self._stale.discard(name)
        with hold(), self._readable():
            self._views[name]()

    def _with_baseline(self, name: str, wanted: Choices) -> Choices:
        """Return the choices with a baseline where one is needed, and without one where it is not."""
        valid = ch.baselines(self.store.data, ch.along_of(self.store.data, wanted))
        if name == "baseline":
            show = "value" if not wanted.baseline else "difference" if wanted.show == "value" else wanted.show
            return replace(wanted, show=show)
        if wanted.show == "value":
            return replace(wanted, baseline="")
        if wanted.baseline not in valid:
            own = [one for one in valid if one.startswith(f"{wanted.curves}=")]
            return replace(wanted, baseline=(own or valid or [""])[0])
        return wanted

    # Page

    def _make_page(self) -> None:
        data = self.store.data
        self.words: dict[str, Any] = {name: _html() for name in _WORDS}
        self.boxes: dict[str, Any] = {
            name: pn.Column(min_height={"first": 300, "gantt": 0}.get(name, 360), **_STRETCH)
            for name in ("first", "curves", "heat", "parallel", "pareto", "jobs", "gantt")
        }
        self.column = pn.widgets.Select(label="Of the jobs", options={w: c for c, w in COLUMNS.items()}, width=180)
        self.column.param.watch(lambda event: self._redraw("jobs"), "value")
        self.table = pn.widgets.Tabulator(
            pd.DataFrame(),
            pagination="remote",
            page_size=12,
            disabled=True,
            show_index=False,
            header_filters={},
            layout="fit_data_stretch",
            sizing_mode="stretch_width",
        )
        self.table.on_click(lambda event: self._row_clicked(event.row))
        self._fields: list[str] = []
        self.clear = pn.widgets.Button(label="Clear the selection", width=160, visible=False)
        self.clear.on_click(lambda event: self._select(np.zeros(0, np.int64)))
        self.replicate = pn.widgets.Select(label="Replicate", width=120, visible=False)
        self.replicate.param.watch(lambda event: self._draw_run(), "value")
        self.again = pn.widgets.Button(label="Simulate it again, for nodes and events", width=280, visible=False)
        self.again.on_click(self._simulate_again)
        offered = [one for one in DOWNLOADS if one[1] != "parquet" or is_installed("pyarrow")]
        take = pn.FlexBox(*(self._download(*one) for one in offered))
        knobs = [self.widgets["metric"], self.find, *(w for n, w in self.widgets.items() if n != "metric")]
        left = pn.Column(*knobs, self.switches, *self.places.values(), width=_WIDE + 25, scroll=False)
        self.page = _Page(TEMPLATE, location=True)
        self.page.add_variable("jobs", keeps_jobs(data))
        self.page.add_variable("large", "" if self.choices.view == ch.ALL_VIEWS else self.choices.view)
        self.page.add_variable("compared", self.store.other is not None)
        self.page.add_variable("pane", PANE)
        self.page.add_variable("early", ov.early_html(self.facts.overview))
        w, b = self.words, self.boxes
        roots = {
            "head": w["head"],
            "verdict": w["verdict"],
            "regions": w["regions"],
            "shares": w["shares"],
            "first": b["first"],
            "heading": pn.Column(w["title"], w["message"], **_STRETCH),
            "knobs": left,
            "key": w["key"],
            "picture": b["curves"],
            "words": w["caption"],
            "heat_words": w["heat_words"],
            "heat": b["heat"],
            "parallel_words": w["parallel_words"],
            "parallel": b["parallel"],
            "pareto_words": w["pareto_words"],
            "pareto": b["pareto"],
            "chosen": pn.Column(w["chosen"], self.clear, **_STRETCH),
            "table": self.table,
            "run": pn.Column(w["run_words"], pn.Row(self.replicate, self.again), b["gantt"], **_STRETCH),
            "take": pn.Column(take, w["link"], **_STRETCH),
        }
        if keeps_jobs(data):
            roots |= {"jobs_words": w["jobs_words"], "jobs": pn.Column(self.column, b["jobs"], **_STRETCH)}
        if self.store.other is not None:
            roots["compared"] = w["difference"]
        for name, root in roots.items():
            self.page.add_panel(name, root)

    def _download(self, label: str, suffix: str, make: Make) -> Any:
        name = str(self.store.data.attrs.get("name", "sweep"))
        return pn.widgets.FileDownload(
            callback=lambda: io.BytesIO(make(self.store.data, self.choices, self.links.cells)),
            filename=f"{name}.{suffix}",
            label=label,
            width=150,
            embed=False,
        )

    def _note(self, text: str) -> None:
        self.words["message"].object = f"<p role='alert' class='alert'>{escape(text)}</p>" if text else ""

    # Overview

    def _show_overview(self) -> None:
        found = self.facts.overview
        self._stale.add("first")
        self._show_progress()
        self.words["verdict"].object = ov.html_of(found)
        self.words["regions"].object = ov.regions_html(found)
        self.words["shares"].object = ov.shares_html(found)
        if self.store.other is not None:
            self.words["difference"].object = difference_html(self.store.data, self.store.other)

    def _draw_first(self) -> None:
        found = self.facts.overview
        self.boxes["first"].visible = not found.means.empty
        self.boxes["first"].objects = [] if found.means.empty else [ov.small_multiple(found)]

    def _show_progress(self) -> None:
        share, words = self.store.share
        title = str(self.store.data.attrs.get("title") or self.store.data.attrs.get("name") or "sweep")
        self.words["head"].object = (
            f"<h1>{escape(title)}</h1><progress max='100' value='{100 * share:.0f}' aria-label='share that is done'>"
            f"</progress><p class='small'>{escape(Path(self.store.place).name)}: {escape(words)}</p>"
        )

    # Views

    @contextmanager
    def _readable(self) -> Any:
        try:
            yield
        except (OSError, KeyError, ValueError) as error:  # a chunk that is gone, or not whole
            self._note(
                f"{self.store.place} cannot be read ({type(error).__name__}: {error}); reload the page to retry."
            )

    def _draw_curves(self) -> None:
        data = self.store.data
        now = replace(self.choices, view="curves")
        figure = without_tex(figure_of(data, now))
        ids = ids_of_points(data, now, figure)
        if self.curves is None or not self.curves.take(figure, now.bands, ids):
            self.curves = CurvesPlot(figure, now.bands, ids)
            self.links.add("curves", self.curves.sources)
            self.boxes["curves"].objects = [pn.pane.Bokeh(self.curves.layout, **_STRETCH)]
            self.words["key"].object = _key(figure)
        self.words["title"].object = f"<h2>{escape(figure.title)}</h2>"
        self.words["caption"].object = f"<p class='small'>{escape(' '.join(figure.caption))}</p>"

    def _draw_heat(self) -> None:
        data = self.store.data
        now = replace(self.choices, view="heat map")
        figure = without_tex(heat_map(data, now))
        panel, ids = figure.panels[0], ids_of_heat(data, now)
        heat = panel.heat
        if heat is not None and (self.heat is None or not self.heat.take(panel, heat, ids)):
            self.heat = HeatPlot(panel, heat, ids)
            self.links.add("heat", self.heat.sources)
            self.boxes["heat"].objects = [pn.pane.Bokeh(self.heat.layout, **_STRETCH)]
        self.words["heat_words"].object = f"<h2>{escape(figure.title)}</h2>"

    def _draw_pareto(self) -> None:
        data, sample, shown = self.store.data, self.facts.sample, self.choices.weighed
        if len(shown) > 1 and (self.pareto is None or not self.pareto.take(data, sample, shown)):
            self.pareto = ParetoPlot(data, sample, shown)
            self.links.add("pareto", self.pareto.sources)
            self.boxes["pareto"].objects = [pn.pane.Bokeh(self.pareto.layout, **_STRETCH)]
        self.words["pareto_words"].object = (
            "<h2>Pareto front</h2><p class='small'>It weighs two metrics: choose a second one.</p>"
            if len(shown) < 2
            else "<h2>Pareto front</h2><p class='small'>Ringed: no other configuration is as good in all and better in "
            f"one. {escape(sample.words())}.</p>"
        )

    def _draw_parallel(self) -> None:
        data, sample, shown = self.store.data, self.facts.sample, self.choices.weighed
        if self.parallel is None or not self.parallel.take(data, sample, shown):
            self.parallel = ParallelPlot(data, sample, shown)
            self.links.add("parallel", self.parallel.sources)
            self.boxes["parallel"].objects = [pn.pane.Bokeh(self.parallel.layout, **_STRETCH)]
        self.words["parallel_words"].object = (
            f"<h2>Parallel coordinates</h2><p class='small'>A line per configuration, coloured by "
            f"{escape(sample.values(self.choices.metric)[1])}; a box over an axis selects.</p>"
        )

    def _fill_table(self) -> None:
        frame, titles = frame_of(self.store.data, self.facts.sample, self.choices.weighed)
        if len(self.links.cells):
            frame = frame[frame["cell"].isin(self.links.cells)].reset_index(drop=True)
        titles = {field: escape(title) for field, title in titles.items()}
        filters = {
            field: {"type": "number", "func": ">=", "placeholder": "at least"}
            if frame[field].dtype.kind in "iuf"
            else {"type": "input", "func": "like", "placeholder": "has"}
            for field in frame
            if field != "cell"
        }
        if list(frame) != self._fields:
            self._fields = list(frame)
            self.table.param.update(value=frame, titles=titles, header_filters=filters)
        else:
            self.table.param.update(value=frame, titles=titles)

    def _row_clicked(self, row: int) -> None:
        frame = self.table.value
        if row < len(frame):
            self._select(np.array([int(frame["cell"].iloc[row])]))

    def _select(self, cells: NDArray[np.int64]) -> None:
        self.links.choose(cells)

    # What is selected

    def _chosen(self, cells: NDArray[np.int64]) -> None:
        """Show what is selected: the table, the jobs, and one run by itself."""
        sample = self.facts.sample
        with hold(), self._readable():
            if len(cells):
                text = f"{len(cells):,} of {sample.of:,} configurations are selected."
            else:
                text = (
                    f"{sample.words()}. Click a point, a bar, a line or a row, or draw a box: what is selected in one "
                    "view is selected in all."
                )
            table = ""
            if 0 < len(cells) <= _MOST_SHOWN:
                table = _table(self.store.data, cells_at(self.store.data, cells, self.choices.weighed))
            self.words["chosen"].object = f"<p>{escape(text)}</p>{table}"
            self.clear.visible = bool(len(cells))
            self._stale |= {"table", "jobs"}
            self._draw_seen()
            replicates = [str(one) for one in self.store.data[REPLICATE].values] if len(cells) == 1 else []
            with self._silently():
                self.replicate.options = replicates
                self.replicate.value = replicates[0] if replicates else None
            self._draw_run()

    def _draw_jobs(self) -> None:
        """Draw the distribution over the jobs of what is selected, or of the first curves."""
        data = self.store.data
        if not keeps_jobs(data):
            return
        cells = self.links.cells
        if not len(cells):
            now = replace(self.choices, view="curves")
            series = [own for panel in ids_of_points(data, now, figure_of(data, now)) for own in panel]
            cells = np.concatenate([np.zeros(0, np.int64), *(own[len(own) // 2 : len(own) // 2 + 1] for own in series)])
        found = Distribution(data, cells.tolist(), self.column.value)
        self.boxes["jobs"].objects = [pn.pane.Bokeh(found.layout, **_STRETCH)]
        key = "".join(
            f"<span><span class='swatch' style='background:{colour}'></span> {escape(name)}</span> "
            for name, colour in found.names
        )
        more = f" The first {MOST_RUNS} of {len(cells):,} selected." if len(cells) > MOST_RUNS else ""
        self.words["jobs_words"].object = f"<h2>Distribution over jobs</h2><p class='small'>{key}{more}</p>"

    def _draw_run(self) -> None:
        """Show the parameters of one configuration, the command that repeats it, and its chart."""
        if self._quiet:
            return
        data, cells = self.store.data, self.links.cells
        one = len(cells) == 1
        for part in (self.replicate, self.boxes["gantt"]):
            part.visible = one and (part is self.replicate or keeps_jobs(data))
        self.again.visible = one and self.store.may_rerun
        if not one:
            self.words["run_words"].object = ""
            self.boxes["gantt"].objects = []
            return
        labels = labels_at(data, int(cells[0]))
        command = rerun_command(self.store.place, {**labels, REPLICATE: self.replicate.value})
        rows = [[named(data, name), name, value] for name, value in labels.items()]
        fixed = [[name, value] for name, value in fixed_parameters(data).items()]
        copy = f"<button class='copy' type='button' data-copy='{escape(command, quote=True)}'>Copy</button>"
        self.words["run_words"].object = (
            "<h2>One run</h2>"
            + ov.table(["Axis", "Parameter", "Label"], rows, "Labels of the run")
            + f"<details><summary>{len(fixed)} parameters that all cells share</summary>"
            + ov.table(["Parameter", "Value"], fixed, "Parameters that all cells share")
            + "</details>"
            + (f"<p>Repeat it: <code>{escape(command)}</code> {copy}</p>" if command else "")
            + ("" if keeps_jobs(data) else "<p class='small'>Its jobs are not stored (keep_jobs = true does).</p>")
        )
        if keeps_jobs(data):
            try:
                number = [str(label) for label in data[REPLICATE].values].index(str(self.replicate.value))
                chart = Gantt(jobs_of(data, int(cells[0]), number))
            except InputError as error:
                self.boxes["gantt"].objects = [_with(f"<p>{escape(str(error))}</p>")]
            else:
                note = (
                    "When each job ran, from its last start; stacked by size, because the store keeps no nodes. "
                    "Orange: it was restarted."
                )
                note += f" {chart.left_out:,} jobs are left out." if chart.left_out else ""
                self.boxes["gantt"].objects = [
                    _with(f"<p class='small'>{note}</p>"),
                    pn.pane.Bokeh(chart.layout, **_STRETCH),
                ]

    async def _simulate_again(self, event: Any) -> None:
        """Simulate the run again, where the server was told that it may, and show its chart with nodes and events."""
        from faultsweep.analysis.dashboard.again import chart_of, simulate

        labels = {**labels_at(self.store.data, int(self.links.cells[0])), REPLICATE: str(self.replicate.value)}
        box = self.boxes["gantt"]
        box.visible = True
        box.objects = [_with("<p role='status'>Simulating it again.</p>")]
        try:
            content = await asyncio.to_thread(simulate, Path(self.store.place), labels)
        except InputError as error:
            box.objects = [_with(f"<p role='alert' class='alert'>{escape(str(error))}</p>")]
        else:
            words = _with(f"<p class='small'>{escape(' '.join(content.caption))}</p>")
            box.objects = [words, pn.pane.Bokeh(chart_of(content), **_STRETCH)]

    # Link

    def show_link(self) -> None:
        """Let the address of the page, the link and the command say what is shown."""
        query = self.choices.query()
        link = "?" + urlencode(query)
        if pn.state.location is not None:
            pn.state.location.search = link
            link = f"{str(pn.state.location.href).partition('?')[0]}{link}"
        command = shlex.join(["faultsweep", "dashboard", self.store.place, "--view", urlencode(query)])
        self.words["link"].object = "".join(
            f"<p>{words} <button class='copy' type='button' data-copy='{escape(text, quote=True)}'>Copy</button><br>"
            f"<code>{escape(text)}</code></p>"
            for words, text in (("Link to this view", link), ("Command that opens this view", command))
        )

    def follow(self) -> None:
        """Draw again if the store has changed, and say how far its run is."""
        with hold():
            self._show_progress()
        if self.version == self.store.version:
            return
        self.version = self.store.version
        self.facts = self.store.facts()
        if ch.axes_of(self.store.data) != list(self.at):
            self._note("The store is another one now; reload the page.")
            return
        for axis, widget in self.at.items():
            with self._silently():
                widget.options = ch.labels_of(self.store.data, axis)
        self.choices = ch.complete(self.store.data, self.choices)
        self._show_overview()
        self._show()


def _later(part: Callable[..., None], *arguments: Any) -> None:
    """Do something after what is under way has reached the browser; at once where nothing is served."""
    if pn.state.curdoc is None:
        part(*arguments)
    else:
        pn.state.curdoc.add_next_tick_callback(lambda: part(*arguments))


def _at(choices: Choices | None) -> Any:
    return None if choices is None else dict(choices.at)


def _differ(before: Choices | None, now: Choices, parts: Iterable[str]) -> bool:
    return before is None or any(getattr(before, part) != getattr(now, part) for part in parts)


def _with(text: str) -> Any:
    pane = _html()
    pane.object = text
    return pane


def _key(figure: Figure) -> str:
    """Return the legend; each entry is a button that hides its series."""
    found = {curve.label: curve.style.colour for panel in figure.panels for curve in as_curves(panel)}
    if len(found) < 2:
        return ""
    return (
        "<div class='key'>"
        + "".join(
            f"<button type='button' aria-pressed='true' data-name='{escape(label, quote=True)}'>"
            f"<span class='swatch' style='background:{escape(colour, quote=True)}'></span>{escape(label)}</button>"
            for label, colour in found.items()
        )
        + "</div>"
    )


def _table(data: xr.Dataset, cells: pd.DataFrame) -> str:
    """Return cells as a table in HTML; whatever a store says is text."""
    rows = []
    for row in cells.head(_MOST_ROWS).itertuples(index=False):
        texts = [escape(f"{value:.6g}" if isinstance(value, float) else str(value)) for value in row]
        copy = f" <button class='copy' type='button' data-copy='{escape(str(row[-1]), quote=True)}'>Copy</button>"
        texts[-1] = f"<code>{texts[-1]}</code>{copy}" if row[-1] else ""
        rows.append("".join(f"<td>{text}</td>" for text in texts))
    called = {name: named(data, name) if name in data else name.capitalize() for name in map(str, cells.columns)}
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in called.values())
    more = f"<p>{len(cells) - _MOST_ROWS:,} more: see the exported data.</p>" if len(cells) > _MOST_ROWS else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='Selected cells'>"
        f"<table class='cells'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def make_page(store: FollowedStore) -> Any:
    """Return the page for the session at hand, which its link describes."""
    query = {name: values[0].decode() for name, values in pn.state.session_args.items()}
    dashboard = Dashboard(store, query)
    pn.state.add_periodic_callback(dashboard.follow, _CHECK_EVERY_MS)
    pn.state.onload(dashboard.show_link)  # the page tells its own address only once it is there
    return dashboard.page


def make_waiting_page(store: FollowedStore) -> Any:
    """Return a page that loads again and again until the store is there."""
    page = pn.Template(WAITING)
    page.add_panel("words", _with(f"<h1>Waiting for {escape(store.place)}</h1><p>It does not exist yet.</p>"))
    return page
