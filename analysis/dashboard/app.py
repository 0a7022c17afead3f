"""One user's page over a store: what it says at first, the knobs, the linked views, and what can be taken away."""

from __future__ import annotations

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
from bokeh.models import Toolbar
from faultsweep.analysis.dashboard import choices as ch
from faultsweep.analysis.dashboard import overview as ov
from faultsweep.analysis.dashboard.cells import ParallelPlot, ParetoPlot, formats_of, frame_of, taken_as_better
from faultsweep.analysis.dashboard.choices import Choices
from faultsweep.analysis.dashboard.difference import difference_html
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.analysis.dashboard.jobs import COLUMNS, MOST_RUNS, Distribution, keeps_jobs
from faultsweep.analysis.dashboard.knobs import SWITCHES, WIDE, Knobs
from faultsweep.analysis.dashboard.links import Links
from faultsweep.analysis.dashboard.onerun import OneRun, html
from faultsweep.analysis.dashboard.plots import CurvesPlot, HeatPlot
from faultsweep.analysis.dashboard.takeaway import DOWNLOADS, OVERVIEW, PICTURED, Make, Taken
from faultsweep.analysis.dashboard.template import PANE, TEMPLATE, WAITING
from faultsweep.analysis.dashboard.view import cells_at, figure_of, heat_map, ids_of_heat, ids_of_points, runs_of
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.layout import as_curves
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.figures.words import labels_to_read, quantity
from faultsweep.analysis.warmup import column_of
from numpy.typing import NDArray
from panel.io import hold

from faultsweep.errors import InputError
from faultsweep.extras import is_installed

_CHECK_EVERY_MS = 500
_WRITTEN_MS = 15
"""A message is with the browser by then, as a rule."""
_MOST_ROWS = 60
_MOST_SHOWN = 12
_STRETCH: dict[str, Any] = {"sizing_mode": "stretch_width"}
_WORDS = (
    *("head", "verdict", "regions", "shares", "message", "title", "key", "caption", "heat_words", "parallel_words"),
    *("pareto_words", "jobs_words", "chosen", "link", "difference"),
)
_OF_CURVES = ("metric", "x", "along", "curves", "facets", "show", "baseline", *SWITCHES)
_OF_HEAT = ("metric", "heat_x", "heat_y", "show", "baseline", "log_y", "delete_warm_up")
_OF_CELLS = ("metric", "second", "third")


_ENLARGE = """
const views = document.querySelector('.views');
if (cb_obj.value === 'all views') delete views.dataset.large; else views.dataset.large = cb_obj.value;
"""


class _Page(pn.Template):
    """A template that Panel need not describe anew with each part that is added."""

    def __repr__(self) -> str:
        return "dashboard"


def _make_table(frame: pd.DataFrame, titles: dict[str, str], filters: dict[str, Any]) -> Any:
    """Return the table, filled: what comes while the browser still builds it would be lost."""
    return pn.widgets.Tabulator(
        frame,
        titles=titles,
        formatters=formats_of(frame),
        header_filters=filters,
        pagination="remote",
        page_size=12,
        disabled=True,
        show_index=False,
        layout="fit_data_stretch",
        sizing_mode="stretch_width",
    )


class Dashboard:
    """One user's page over a store."""

    def __init__(self, store: FollowedStore, query: Mapping[str, str]) -> None:
        """Lay out the page for the choices that the link carries."""
        self.store = store
        self.version = store.version
        self.facts = store.facts()
        self.curves: CurvesPlot | None = None
        self.heat: HeatPlot | None = None
        self.pareto: ParetoPlot | None = None
        self.parallel: ParallelPlot | None = None
        self.jobs: Distribution | None = None
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
        self._large = ""
        self._seen = set(self._views) if pn.state.curdoc is None else set()
        note = ""
        found = self.facts.overview
        first = ch.first_choices(store.data, found.x, found.log)
        self._chose_log = "log_y" in query
        try:
            self.choices = ch.read_query(store.data, query, first)
        except InputError as error:
            self.choices, note = first, f"The link was not understood: {error}."
        self._make_parts()
        self._make_page()
        self._note(note)
        self._show_overview()
        self._seen.add("first")  # it is in the page from the start: to be told that it is seen takes half a second
        self._draw("first")
        with hold():
            self._offer()
        if pn.state.curdoc is None:
            self._show()
        else:
            pn.state.onload(self._show)  # the overview is there meanwhile

    # Choices

    def _chosen_by_user(self, changes: dict[str, Any]) -> None:
        """Take what a knob says, and what follows from it for the others."""
        data, wanted = self.store.data, replace(self.choices, **changes)
        if "metric" in changes:
            was = self.choices.metric  # takes the place of the one that takes its
            second, third = (was if part == wanted.metric else part for part in (wanted.second, wanted.third))
            steady = wanted.delete_warm_up and bool(column_of(data, wanted.metric))
            log_y = wanted.log_y if self._chose_log else self._asks_for_log(wanted.metric)
            wanted = replace(wanted, second=second, third=third, delete_warm_up=steady, log_y=log_y)
        self._chose_log |= changes.get("log_y", self.choices.log_y) != self.choices.log_y
        self._take(ch.with_baseline(data, wanted, "baseline" in changes))

    def _asks_for_log(self, metric: str) -> bool:
        """Tell whether a metric is drawn on a logarithmic scale where nobody has said so."""
        return self.facts.overview.log and metric == self.facts.overview.metric

    def _stand(self, axis: str, label: str) -> None:
        """Let an axis that is not drawn over stand at another label."""
        self._take(replace(self.choices, at={**self.choices.at, axis: label}))

    def _take(self, wanted: Choices) -> None:
        """Take new choices; where one contradicts another that is told, and the old ones stay."""
        data, before = self.store.data, self.choices
        try:
            wanted = ch.check(data, replace(wanted, at={a: v for a, v in wanted.at.items() if a in self.knobs.axes}))
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
            self._draw_seen(at_once="curves")
        _later(self.show_link)
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
        """Draw the views that are on the screen and not as they should be; all but one wait for their turn."""
        self._draw(at_once)
        if self._stale & self._seen:
            _later(self._draw_next)

    def _draw_next(self) -> None:
        """Draw one view, so that the browser has it before the next is begun."""
        self._draw(next((name for name in self._views if name in self._stale & self._seen), ""))
        self._draw_seen()

    def _draw(self, name: str) -> None:
        """Draw a view; where the store cannot be read any more, say so and keep what there is."""
        if name not in self._stale & self._seen:
            return
        self._stale.discard(name)
        with hold(), self._readable():
            self._views[name]()

    # Page

    def _make_parts(self) -> None:
        """Make the parts of the page, without anything in them."""
        data = self.store.data
        self.words: dict[str, Any] = {name: html() for name in _WORDS}
        self.boxes: dict[str, Any] = {
            name: pn.Column(min_height=300 if name == "first" else 360, **_STRETCH)
            for name in ("first", "curves", "heat", "parallel", "pareto", "jobs")
        }
        self.knobs = Knobs(data, self.choices, self._chosen_by_user, self._stand)
        known = {"hub": self.links.hub, "seen": self.links.seen}  # so that the page has them before any view
        self.knobs.view.jscallback(args=known, value=_ENLARGE)
        self.column = pn.widgets.Select(label="Of the jobs", options={w: c for c, w in COLUMNS.items()}, width=180)
        self.column.param.watch(lambda event: self._redraw("jobs"), "value")
        rows: tuple[pd.DataFrame, dict[str, str], dict[str, Any]] = (pd.DataFrame(), {}, {})
        with self._readable():
            rows = self._rows()
        self.table = _make_table(*rows)
        self.table.on_click(lambda event: self._row_clicked(event.row))
        self.clear = pn.widgets.Button(label="Clear the selection", width=160, visible=False)
        self.clear.on_click(lambda event: self._select(np.zeros(0, np.int64)))
        self.run = OneRun(self.store)
        self.taken = pn.widgets.Select(label="Take away the view", width=WIDE, options=list(PICTURED))

    def _make_page(self) -> None:
        """Set the parts into the template."""
        self.page = _Page(TEMPLATE, location=True)
        variables = {
            "jobs": keeps_jobs(self.store.data),
            "large": "" if self.choices.view == ch.ALL_VIEWS else self.choices.view,
            "compared": self.store.other is not None,
            "pane": PANE,
            "early": ov.early_html(self.facts.overview),
        }
        for name, value in variables.items():
            self.page.add_variable(name, value)
        for name, root in self._roots().items():
            self.page.add_panel(name, root)

    def _roots(self) -> dict[str, Any]:
        """Return what stands at each place of the template."""
        words, boxes = self.words, self.boxes
        offered = [one for one in DOWNLOADS if one[1] != "parquet" or is_installed("pyarrow")]
        take = pn.FlexBox(*(self._download(*one) for one in offered))
        roots = {name: words[name] for name in ("head", "verdict", "regions", "shares", "key")}
        roots |= {name: boxes[name] for name in ("first", "heat", "parallel", "pareto")}
        roots |= {name: words[name] for name in ("heat_words", "parallel_words", "pareto_words")}
        roots |= {
            "heading": pn.Column(words["title"], words["message"], **_STRETCH),
            "knobs": self.knobs.layout,
            "picture": boxes["curves"],
            "words": words["caption"],
            "chosen": pn.Column(words["chosen"], self.clear, **_STRETCH),
            "table": self.table,
            "run": self.run.layout,
            "take": pn.Column(self.taken, take, words["link"], **_STRETCH),
        }
        if keeps_jobs(self.store.data):
            roots |= {"jobs_words": words["jobs_words"], "jobs": pn.Column(self.column, boxes["jobs"], **_STRETCH)}
        if self.store.other is not None:
            roots["compared"] = words["difference"]
        return roots

    def _download(self, label: str, suffix: str, make: Make) -> Any:
        name = str(self.store.data.attrs.get("name", "sweep"))
        return pn.widgets.FileDownload(
            callback=lambda: io.BytesIO(make(self._to_take())),
            filename=f"{name}.{suffix}",
            label=label,
            width=150,
            embed=False,
        )

    def _to_take(self) -> Taken:
        return Taken(self.store.data, self.choices, self.taken.value, self.links.cells, self.column.value)

    def _offer(self) -> None:
        """Offer what can be chosen and taken away now."""
        self.knobs.offer(self.store.data, self.facts.metrics, self.choices)
        missing = {
            "Pareto front": len(self.choices.weighed) < 2,
            "distribution": not keeps_jobs(self.store.data),
            OVERVIEW: self.facts.overview.means.empty,
        }
        options = [view for view in PICTURED if not missing.get(view)]
        if self.taken.options != options:
            self.taken.options = options
        if self._large != self.choices.view:
            self._large = self.choices.view
            self.taken.value = self._large if self._large in options else options[0]

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
        self.words["title"].object = f"<h2>{escape(figure.title)}</h2>"
        if not any(np.isfinite(one.y).any() for panel in figure.panels for one in as_curves(panel)):
            self.curves, self.boxes["curves"].objects = None, [html("<p>No result yet.</p>")]
            self.words["key"].object = self.words["caption"].object = ""
            return
        ids = ids_of_points(data, now, figure)
        if self.curves is None or not self.curves.take(figure, now.bands, ids):
            self.curves = CurvesPlot(figure, now.bands, ids, self.curves)
            self.links.add("curves", self.curves.sources)
            self.boxes["curves"].objects = [_with_tools(self.curves.layout)]
            self.words["key"].object = _key(figure)
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
            self.boxes["heat"].objects = [_with_tools(self.heat.layout)]
        self.words["heat_words"].object = f"<h2>{escape(figure.title)}</h2>"

    def _draw_pareto(self) -> None:
        data, sample, shown = self.store.data, self.facts.sample, self.choices.weighed
        if len(shown) > 1 and (self.pareto is None or not self.pareto.take(data, sample, shown)):
            self.pareto = ParetoPlot(data, sample, shown)
            self.links.add("pareto", self.pareto.sources)
            self.boxes["pareto"].objects = [_with_tools(self.pareto.layout)]
        self.words["pareto_words"].object = (
            "<h2>Pareto front</h2><p class='small'>It weighs two metrics: choose a second one.</p>"
            if len(shown) < 2
            else "<h2>Pareto front</h2><p class='small'>Ringed: no other configuration is as good in all and better in "
            f"one. {escape(sample.apart_words())} {escape(taken_as_better(data, shown))} {escape(sample.words())}.</p>"
        )

    def _draw_parallel(self) -> None:
        data, sample, shown = self.store.data, self.facts.sample, self.choices.weighed
        if self.parallel is None or not self.parallel.take(data, sample, shown):
            self.parallel = ParallelPlot(data, sample, shown)
            self.links.add("parallel", self.parallel.sources)
            self.boxes["parallel"].objects = [_with_tools(self.parallel.layout)]
        self.words["parallel_words"].object = (
            f"<h2>Parallel coordinates</h2><p class='small'>A line per configuration, coloured by "
            f"{escape(sample.values(self.choices.metric)[1])}; a box over an axis selects.</p>"
        )

    def _rows(self) -> tuple[pd.DataFrame, dict[str, str], dict[str, Any]]:
        """Return the table of what is selected, its titles, and the filters of its columns."""
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
        return frame, titles, filters

    def _fill_table(self) -> None:
        frame, titles, filters = self._rows()
        if list(frame) != list(self.table.value):
            kept = [one for one in self.table.sorters if one["field"] in frame]  # Tabulator complains of others
            self.table.sorters = kept
            self.table.param.update(value=frame, titles=titles, header_filters=filters, formatters=formats_of(frame))
        elif titles != self.table.titles:  # another metric, or another unit
            self.table.param.update(value=frame, titles=titles, formatters=formats_of(frame))
        elif not frame.equals(self.table.value):
            self.table.param.update(value=frame)

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
            self.run.show(cells)

    def _draw_jobs(self) -> None:
        """Draw the distribution over the jobs of what is selected, or of the first curves."""
        data = self.store.data
        if not keeps_jobs(data):
            return
        cells = runs_of(data, self.choices, self.links.cells)
        found = self.jobs = Distribution(data, cells.tolist(), self.column.value, self.jobs)
        self.boxes["jobs"].objects = [_with_tools(found.layout)]
        key = "".join(
            f"<span><span class='swatch' style='background:{colour}'></span> {escape(name)}</span> "
            for name, colour in found.names
        )
        more = f" The first {MOST_RUNS} of {len(cells):,} selected." if len(cells) > MOST_RUNS else ""
        self.words["jobs_words"].object = f"<h2>Distribution over jobs</h2><p class='small'>{key}{more}</p>"

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
        if ch.axes_of(self.store.data) != self.knobs.axes:
            self._note("The store was replaced; reload the page.")
            return
        self.choices = ch.complete(self.store.data, self.choices)
        if not self._chose_log:
            self.choices = replace(self.choices, log_y=self._asks_for_log(self.choices.metric))
        self._show_overview()
        self._show()


def _with_tools(layout: Any) -> Any:
    """Return a picture whose tools are always there: not all who look have a mouse that stands over it."""
    for bar in layout.select({"type": Toolbar}):
        bar.autohide = False
    return pn.pane.Bokeh(layout, **_STRETCH)


def _later(part: Callable[..., None], *arguments: Any) -> None:
    """Do something after what is under way has reached the browser; at once where nothing is served."""
    if pn.state.curdoc is None:
        part(*arguments)
    else:  # the next tick would come before messages are written
        pn.state.curdoc.add_timeout_callback(lambda: part(*arguments), _WRITTEN_MS)


def _at(choices: Choices | None) -> Any:
    return None if choices is None else dict(choices.at)


def _differ(before: Choices | None, now: Choices, parts: Iterable[str]) -> bool:
    return before is None or any(getattr(before, part) != getattr(now, part) for part in parts)


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
    """Return cells as a table in HTML, in the words and units of the pictures; whatever a store says is text."""
    columns, titles = [], []
    for name in map(str, cells):
        title, texts = _column(data, name, cells[name].head(_MOST_ROWS))
        titles.append(title)
        columns.append(texts)
    body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in zip(*columns, strict=True))
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in titles)
    more = f"<p>{len(cells) - _MOST_ROWS:,} more: see the exported data.</p>" if len(cells) > _MOST_ROWS else ""
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='Selected cells'>"
        f"<table class='cells'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{more}"
    )


def _column(data: xr.Dataset, name: str, values: pd.Series) -> tuple[str, list[str]]:
    """Return what a column of the table of cells is called, and its values as HTML."""
    if name == "rerun":
        return "Rerun", [_copied(str(command)) for command in values]
    if name in data.dims:
        words = dict(zip(data[name].values.tolist(), labels_to_read(data, name), strict=True))
        title = quantity(data, name).partition(" (")[0]
        return title, [escape(without_tex(words.get(label, str(label)))) for label in values]
    if name not in data:
        return name.capitalize(), [_text(value) for value in values]
    small = xr.Dataset({name: ("row", values.to_numpy(), data[name].attrs)})
    small = in_units_to_read(small, [name])
    return without_tex(quantity(small, name)), [_text(value) for value in small[name].values.tolist()]


def _copied(command: str) -> str:
    if not command:
        return ""
    copy = f"<button class='copy' type='button' data-copy='{escape(command, quote=True)}'>Copy</button>"
    return f"<code>{escape(command)}</code> {copy}"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return escape(str(value))


def make_page(store: FollowedStore) -> Any:
    """Return the page for the session at hand, which its link describes."""
    query = {name: values[0].decode() for name, values in pn.state.session_args.items()}
    try:
        dashboard = Dashboard(store, query)
    except InputError as error:  # a store that was waited for has nothing to show
        page = pn.Template(WAITING)
        page.add_panel("words", html(f"<h1>{escape(store.place)}</h1><p role='alert'>{escape(str(error))}</p>"))
        return page
    pn.state.add_periodic_callback(dashboard.follow, _CHECK_EVERY_MS)
    pn.state.onload(dashboard.show_link)  # the page tells its own address only once it is there
    return dashboard.page


def make_waiting_page(store: FollowedStore) -> Any:
    """Return a page that loads again and again until the store is there."""
    page = pn.Template(WAITING)
    page.add_panel("words", html(f"<h1>Waiting for {escape(store.place)}</h1><p>It does not exist yet.</p>"))
    return page
