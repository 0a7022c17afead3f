"""The page: widgets for the choices, the view that they describe, and what can be taken away from it."""

from __future__ import annotations

import io
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pandas as pd
import panel as pn
from bokeh.models import CustomJS
from faultsweep.analysis.dashboard import choices as ch
from faultsweep.analysis.dashboard.choices import Choices
from faultsweep.analysis.dashboard.follow import FollowedStore
from faultsweep.analysis.dashboard.plots import CurvesPlot, HeatPlot
from faultsweep.analysis.dashboard.view import cells_of, figure_of, shown
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.warmup import column_of
from panel.io import hold

from faultsweep.errors import InputError
from faultsweep.extras import is_installed

_WIDE = 300
_CHECK_EVERY_MS = 500
_MOST_ROWS = 200
_NONE = "(none)"
_SWITCHES = {
    "log_x": "Logarithmic horizontal axis",
    "log_y": "Logarithmic vertical axis or colours",
    "bands": "95 % intervals over replicates",
    "delete_warm_up": "Without the warm-up of each run (MSER-5)",
}


_PAGE = """
{% extends base %}
{% block contents %}
<style>
@media (prefers-color-scheme: dark) {
  html { background: #16181c }
  body { background: #fff; min-height: 100vh; margin: 0; filter: invert(.91) hue-rotate(180deg) }
}
</style>
{{ embed(roots.location) }}
<div style="display: flex; gap: 12px; padding: 8px">
  <div style="flex: none">{{ embed(roots.knobs) }}</div>
  <div style="flex: auto; min-width: 0">
    {{ embed(roots.heading) }}
    {{ embed(roots.picture) }}
    {{ embed(roots.words) }}
  </div>
</div>
{% endblock %}
"""
"""In the dark everything is inverted but for the hue, which Panel's widgets and a live picture's colours both bear.

Several roots: where a knob appears or goes, or a title needs another line, the picture is not laid out anew."""


class Dashboard:
    """One user's page over a store."""

    def __init__(self, store: FollowedStore, query: Mapping[str, str]) -> None:
        """Lay out the page for the choices that the link carries."""
        self.store = store
        self.version = store.version
        self._quiet = False
        self.drawn: CurvesPlot | HeatPlot | None = None
        note = ""
        try:
            self.choices = ch.read_query(store.data, query)
        except InputError as error:
            self.choices, note = ch.default_choices(store.data), f"The link was not understood: {error}."
        self._make_widgets()
        self._make_page()
        self._note(note)
        self._show()

    # Widgets

    def _make_widgets(self) -> None:
        data = self.store.data
        self.widgets: dict[str, Any] = {
            "view": pn.widgets.Select(name="View", options=list(ch.VIEWS), width=_WIDE),
            "metric": pn.widgets.Select(name="Metric", options=ch.scalar_metrics(data), width=_WIDE),
            "x": pn.widgets.Select(name="Horizontal axis", width=_WIDE),
            "along": pn.widgets.Select(name="A point per label of", width=_WIDE),
            "curves": pn.widgets.Select(name="A curve per label of", width=_WIDE),
            "facets": pn.widgets.Select(name="A panel per label of", width=_WIDE),
            "heat_x": pn.widgets.Select(name="Heat map, horizontal", width=_WIDE),
            "heat_y": pn.widgets.Select(name="Heat map, vertical", width=_WIDE),
            "show": pn.widgets.Select(name="Show", options=list(ch.SHOWN), width=_WIDE),
            "baseline": pn.widgets.Select(name="Baseline", width=_WIDE),
        }
        self.switches = pn.widgets.CheckBoxGroup(options=self._switches())
        self.switches.param.watch(self._switched, "value")
        self.at: dict[str, Any] = {}
        self.places: dict[str, Any] = {}
        for name, widget in self.widgets.items():
            widget.param.watch(self._changed(name), "value")
        for axis in ch.axes_of(data):
            self._make_axis(axis)

    def _switches(self) -> dict[str, str]:
        """Return what the switches say -> their names; the last one is there where per-job results are."""
        deletable = bool(column_of(self.store.data, self.choices.metric))
        return {words: name for name, words in _SWITCHES.items() if deletable or name != "delete_warm_up"}

    def _make_axis(self, axis: str) -> None:
        """Make the knob of an axis: a slider over numbers, a select over names."""
        data = self.store.data
        labels = ch.labels_of(data, axis)
        number = data[axis].dtype.kind in "iuf" and len(labels) > 1
        unit = data[axis].attrs.get("units")
        name = f"{axis} ({unit})" if unit and unit != "1" else axis
        kind = pn.widgets.DiscreteSlider if number else pn.widgets.Select
        # a title is markup to the browser; the labels of a slider are numbers, those of a select are text to it
        self.at[axis] = kind(name=escape(name), options=labels, width=_WIDE)
        self.at[axis].param.watch(self._changed(axis), "value")
        self.places[axis] = pn.Column(self.at[axis])  # hidden as one: each part of a slider would be laid out by itself

    def _offer(self) -> None:
        """Offer in every widget what can be chosen beside the other choices, and show the choices that are made."""
        data, now = self.store.data, self.choices
        axes, metrics, across = ch.axes_of(data), ch.scalar_metrics(data), ch.x_axes(data)
        few = [axis for axis in axes if 1 < data.sizes[axis] <= ch.MOST_CURVES and axis != now.along]
        options: dict[str, Iterable[str]] = {
            "metric": metrics,
            "x": [*(x for x, axis in across.items() if axis not in (now.curves, now.facets)), *metrics],
            "along": [axis for axis in axes if axis not in (now.curves, now.facets)],
            "curves": ["", *(axis for axis in few if axis != now.facets)],
            "facets": ["", *(axis for axis in few if axis != now.curves and data.sizes[axis] <= ch.MOST_FACETS)],
            "heat_x": [axis for axis in axes if axis != now.heat_y],
            "heat_y": ["", *(axis for axis in axes if axis != now.heat_x)],
            "baseline": ["", *ch.baselines(data, now.along)],
        }
        with self._silently():
            for name, each in options.items():
                self.widgets[name].options = {text or _NONE: text for text in each}
            for name, widget in self.widgets.items():
                widget.value = getattr(now, name)
            for axis, widget in self.at.items():
                self.places[axis].visible = axis in now.at and data.sizes[axis] > 1
                if axis in now.at:
                    widget.value = now.at[axis]
            heat = now.view == "heat map"
            self.switches.options = self._switches()
            self.switches.value = [name for name in _SWITCHES if getattr(now, name)]
            for name in ("x", "curves", "facets"):
                self.widgets[name].visible = not heat
            self.widgets["along"].visible = not heat and now.x not in across
            for name in ("heat_x", "heat_y"):
                self.widgets[name].visible = heat
            self.widgets["baseline"].visible = len(self.widgets["baseline"].options) > 1

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
        self._take(self._with_baseline(name, wanted))

    def _take(self, wanted: Choices) -> None:
        """Take new choices; where one contradicts another that is told, and the old ones stay."""
        data = self.store.data
        try:
            wanted = ch.check(data, replace(wanted, at={a: v for a, v in wanted.at.items() if a in self.at}))
        except InputError as error:
            self._note(str(error))
        else:
            self.choices = wanted
            self._note("")
        self._show()

    def _show(self) -> None:
        """Offer and draw, in one message to the browser, which then lays the page out once."""
        with hold():
            self._offer()
            self.draw()

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
        self.progress = pn.indicators.Progress(name="Share of the cells that are done", value=0, max=100, width=_WIDE)
        self.share, self.message = pn.pane.HTML(width=_WIDE), pn.pane.HTML()
        self.title, self.caption = pn.pane.HTML(), pn.pane.HTML()
        self.plot = pn.Column(sizing_mode="stretch_width", min_height=440)
        self.cells = pn.pane.HTML(sizing_mode="stretch_width")
        self.link = pn.widgets.TextInput(name="Link to this view", disabled=True, width=_WIDE)
        self.command = pn.widgets.TextInput(name="Command that opens this view", disabled=True, width=_WIDE)
        offered = [one for one in _DOWNLOADS if one[1] != "parquet" or is_installed("pyarrow")]
        take = [self._download(*one) for one in offered]
        knobs = [*self.widgets.values(), self.switches, *self.places.values()]
        left = pn.Column(
            self.share, self.progress, *knobs, *take, self.link, self.command, width=_WIDE + 30, scroll=False
        )
        self.page = pn.Template(_PAGE, location=True)
        self.page.add_panel("knobs", left)
        self.page.add_panel("heading", pn.Column(self.title, self.message, sizing_mode="stretch_width"))
        self.page.add_panel("picture", self.plot)
        self.page.add_panel("words", pn.Column(self.caption, self.cells, sizing_mode="stretch_width"))

    def _download(self, label: str, suffix: str, make: Callable[[Dashboard], bytes]) -> Any:
        name = str(self.store.data.attrs.get("name", "sweep"))
        return pn.widgets.FileDownload(
            callback=lambda: io.BytesIO(make(self)), filename=f"{name}.{suffix}", label=label, width=_WIDE, embed=False
        )

    def _note(self, text: str) -> None:
        self.message.object = f"<p role='alert' style='color:#A00000;font-size:15px'>{escape(text)}</p>" if text else ""

    def draw(self) -> None:
        """Draw the choices anew; where the store cannot be read any more, say so and keep what there is."""
        try:
            self._draw()
        except (OSError, KeyError, ValueError) as error:  # a chunk that is gone, or not whole
            self._note(
                f"{self.store.place} cannot be read ({type(error).__name__}: {error}); reload the page to retry."
            )

    def _draw(self) -> None:
        data, now = self.store.data, self.choices
        share, words = self.store.share
        self.progress.value = int(100 * share)
        self.share.object = f"<b>{escape(Path(self.store.place).name)}</b><br>{escape(words)}"
        figure = without_tex(shown(data, now))
        if not self._redraw(figure):
            self.drawn = self._drawn_anew(figure)
            self.plot.objects = [pn.pane.Bokeh(self.drawn.layout, sizing_mode="stretch_width")]
        self.title.object = f"<h2 style='font-size:20px;margin:4px'>{escape(figure.title)}</h2>"
        self.caption.object = f"<p style='font-size:14px;color:#333'>{escape(' '.join(figure.caption))}</p>"
        self.cells.object = (
            "<p>Click a point, a bar or a cell of the heat map to see the cells of the store behind it.</p>"
        )
        self.show_link()

    def _redraw(self, figure: Figure) -> bool:
        """Let what is drawn take the numbers of a figure, if it looks alike."""
        heat = figure.panels[0].heat
        if isinstance(self.drawn, HeatPlot):
            return heat is not None and self.drawn.take(figure.panels[0], heat)
        return self.drawn is not None and heat is None and self.drawn.take(figure, self.choices.bands)

    def _drawn_anew(self, figure: Figure) -> CurvesPlot | HeatPlot:
        heat = figure.panels[0].heat
        if heat is not None:
            return HeatPlot(figure.panels[0], heat, self._tapped_cell)
        return CurvesPlot(figure, self.choices.bands, self._tapped)

    def show_link(self) -> None:
        """Let the address of the page, the link and the command say what is shown."""
        query = self.choices.query()
        if pn.state.location is not None:
            pn.state.location.search = "?" + urlencode(query)
            self.link.value = f"{pn.state.location.href.partition('?')[0]}?{urlencode(query)}"
        self.command.value = shlex.join(["faultsweep", "dashboard", self.store.place, "--view", urlencode(query)])

    def _tapped(self, panel: int, curve: int, point: int) -> None:
        """Show the cells behind a point."""
        data, now = self.store.data, self.choices
        rows = {now.along: self._row_of(panel, curve, point)}
        rows |= {now.curves: curve} if now.curves else {}
        rows |= {now.facets: panel} if now.facets else {}
        self.cells.object = _table(cells_of(data, now, rows))

    def _tapped_cell(self, row: int, column: int) -> None:
        """Show the cells behind a cell of the heat map."""
        now = self.choices
        rows = {now.heat_x: column} | ({now.heat_y: row} if now.heat_y else {})
        self.cells.object = _table(cells_of(self.store.data, now, rows))

    def _row_of(self, panel: int, curve: int, point: int) -> int:
        """Return which label of the axis of the points a point stands for."""
        shown = figure_of(self.store.data, self.choices).panels[panel]
        rows = None if shown.bars else shown.curves[curve].rows
        return point if rows is None else int(rows[point])

    def follow(self) -> None:
        """Draw again if the store has changed."""
        if self.version == self.store.version:
            return
        self.version = self.store.version
        if ch.axes_of(self.store.data) != list(self.at):
            self._note("The store is another one now; reload the page.")
            return
        for axis, widget in self.at.items():
            with self._silently():
                widget.options = ch.labels_of(self.store.data, axis)
        self.choices = ch.complete(self.store.data, self.choices)
        self._show()


def _table(cells: pd.DataFrame) -> str:
    """Return cells as a table in HTML; whatever a store says is text."""
    head = "".join(f"<th style='text-align:left;padding:2px 8px'>{escape(str(name))}</th>" for name in cells.columns)
    rows = []
    for row in cells.head(_MOST_ROWS).itertuples(index=False):
        texts = [escape(f"{value:.6g}" if isinstance(value, float) else str(value)) for value in row]
        texts[-1] = f"<code style='white-space:nowrap'>{texts[-1]}</code>"
        rows.append("".join(f"<td style='padding:2px 8px'>{text}</td>" for text in texts))
    more = f"<p>{len(cells) - _MOST_ROWS:,} more: see the exported data.</p>" if len(cells) > _MOST_ROWS else ""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<div style='overflow-x:auto'><table><tr>{head}</tr>{body}</table>{more}</div>"


def _picture(suffix: str) -> Callable[[Dashboard], bytes]:
    def make(dashboard: Dashboard) -> bytes:
        from faultsweep.analysis.figures.draw import draw_html, draw_picture

        figure = shown(dashboard.store.data, dashboard.choices)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"figure.{suffix}"
            (draw_html if suffix == "html" else draw_picture)(figure, path)
            return path.read_bytes()

    return make


def _csv(dashboard: Dashboard) -> bytes:
    return cells_of(dashboard.store.data, dashboard.choices).to_csv(index=False).encode()


def _parquet(dashboard: Dashboard) -> bytes:
    file = io.BytesIO()
    cells_of(dashboard.store.data, dashboard.choices).to_parquet(file, index=False)
    return file.getvalue()


_DOWNLOADS: tuple[tuple[str, str, Callable[[Dashboard], bytes]], ...] = (
    ("Picture (PNG)", "png", _picture("png")),
    ("Picture (SVG)", "svg", _picture("svg")),
    ("Picture (HTML)", "html", _picture("html")),
    ("Data (CSV)", "csv", _csv),
    ("Data (Parquet)", "parquet", _parquet),
)


_NAME_SLIDERS = """
const deep = (root) => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...deep(e.shadowRoot)] : [e]);
const name = () => deep(document).filter(e => e.getAttribute('role') === 'slider').forEach(e => {
  const words = e.getRootNode().host?.previousElementSibling?.shadowRoot?.querySelector('.bk-clearfix');
  if (words) e.setAttribute('aria-label', words.innerText);
});
name();
setInterval(name, 1000);
"""
"""Gives the handles of sliders, for those who do not see them, the names that stand above them."""


def make_page(store: FollowedStore) -> Any:
    """Return the page for the session at hand, which its link describes."""
    query = {name: values[0].decode() for name, values in pn.state.session_args.items()}
    dashboard = Dashboard(store, query)
    pn.state.add_periodic_callback(dashboard.follow, _CHECK_EVERY_MS)
    document = pn.state.curdoc
    if document is not None:  # a page that is being served has one
        document.js_on_event("document_ready", CustomJS(code=_NAME_SLIDERS))
    pn.state.onload(dashboard.show_link)  # the page tells its own address only once it is there
    return dashboard.page
