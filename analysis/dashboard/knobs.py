"""The widgets that choose what is shown: each offers what can be chosen beside the other choices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Any

import panel as pn
import xarray as xr
from faultsweep.analysis.dashboard import choices as ch
from faultsweep.analysis.dashboard.choices import Choices
from faultsweep.analysis.dashboard.jobs import keeps_jobs
from faultsweep.analysis.dashboard.metrics import grouped, offered
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.figures.words import label_in_words, labels_to_read, quantity
from faultsweep.analysis.warmup import column_of

WIDE = 290
NONE = "(none)"
SWITCHES = {
    "log_x": "Logarithmic horizontal axis",
    "log_y": "Logarithmic vertical axis or colours",
    "bands": "95 % intervals over replicates",
    "delete_warm_up": "Without the warm-up of each run (MSER-5)",
}
"""Choices that are on or off -> what they say."""
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
_METRICS = ("metric", "second", "third")


class _Select(pn.widgets.Select):
    """A select that passes over what it does not offer any more: the browser may be a moment behind."""

    def _process_property_change(self, msg: dict[str, Any]) -> dict[str, Any]:
        try:
            return super()._process_property_change(msg)
        except ValueError:
            self.param.trigger("value")  # the browser shows what is chosen
            return {name: value for name, value in msg.items() if name != "value"}


class Knobs:
    """All widgets that choose what is shown.

    Attributes
    ----------
    view : the select of the view that is shown large.
    layout : the widgets in a column.
    """

    def __init__(
        self,
        data: xr.Dataset,
        now: Choices,
        chosen: Callable[[dict[str, Any]], None],
        stand: Callable[[str, str], None],
    ) -> None:
        """Make them for a store.

        Parameters
        ----------
        data, now : the store, and the choices that are made.
        chosen : called with the choices that the user makes, name -> value.
        stand : called with an axis and the label that its knob stands at.
        """
        self._chosen, self._stand = chosen, stand
        self._quiet = False
        self._metrics: list[str] = []
        self._now = now
        self._data = data
        self._selects = {name: self._make_select(name, label) for name, label in _NAMES.items()}
        self.view = self._selects["view"]
        self.view.options = [view for view in ch.VIEWS if view != "distribution" or keeps_jobs(data)]
        self._selects["show"].options = list(ch.SHOWN)
        self._find = pn.widgets.TextInput(label="Find a metric", placeholder="part of a name or meaning", width=WIDE)
        self._find.param.watch(lambda event: self.offer(self._data, self._metrics, self._now), "value_input")
        self._switches = pn.widgets.CheckBoxGroup(options=self._offered_switches())
        self._switches.param.watch(lambda event: self._choose({n: n in event.new for n in SWITCHES}), "value")
        self._at: dict[str, Any] = {}
        self._places: dict[str, Any] = {}
        for axis in ch.axes_of(data):
            self._make_axis(axis)
        for widget in (*self._selects.values(), *self._at.values(), self._switches):
            widget._debounce = 0  # Panel would wait 50 ms for more
        first, *others = self._selects.values()
        self.layout = pn.Column(first, self._find, *others, self._switches, *self._places.values(), width=WIDE + 25)

    def _make_select(self, name: str, label: str) -> Any:
        select = _Select(label=label, width=WIDE)
        select.param.watch(lambda event: self._choose({name: event.new}), "value")
        return select

    def _make_axis(self, axis: str) -> None:
        """Make the knob of an axis: a slider over numbers, a select over names."""
        data = self._data
        words, labels = labels_to_read(data, axis), ch.labels_of(data, axis)
        number = data[axis].dtype.kind in "iuf" and len(labels) > 1
        kind = pn.widgets.DiscreteSlider if number else pn.widgets.Select
        # titles, and the labels of a slider with their unit, are markup to the browser; those of a select are text
        options = dict(zip([without_tex(escape(one)) for one in words] if number else words, labels, strict=True))
        title = quantity(data, axis).partition(" (")[0]
        self._at[axis] = kind(label=without_tex(escape(title)), options=options, width=WIDE)
        self._at[axis].param.watch(lambda event: self._quiet or self._stand(axis, event.new), "value")
        self._places[axis] = pn.Column(
            self._at[axis]
        )  # hidden as one: each part of a slider would be laid out by itself

    def _choose(self, changes: dict[str, Any]) -> None:
        if not self._quiet:
            self._chosen(changes)

    @property
    def axes(self) -> list[str]:
        """The axes that there are knobs for."""
        return list(self._at)

    def offer(self, data: xr.Dataset, metrics: list[str], now: Choices) -> None:
        """Offer in every widget what can be chosen beside the other choices, and show the choices that are made."""
        self._data, self._metrics, self._now = data, metrics, now
        with self._silently():
            for name in _METRICS:
                _set(self._selects[name], groups=self._offered_metrics(name))
            for name, options in {**self._offered_axes(), "baseline": self._offered_baselines()}.items():
                _set(self._selects[name], options=options)
            for name, widget in self._selects.items():
                widget.value = getattr(now, name)
            _set(self._switches, options=self._offered_switches())
            self._switches.value = [name for name in SWITCHES if getattr(now, name)]
            self._show_knobs()

    def _show_knobs(self) -> None:
        """Show the knobs that do something now, and where each stands."""
        data, now = self._data, self._now
        for axis, widget in self._at.items():
            self._places[axis].visible = axis in now.at and data.sizes[axis] > 1
            if axis in now.at:
                widget.value = now.at[axis]
        self._selects["along"].visible = now.x not in ch.x_axes(data)
        for name in ("baseline", "show"):
            self._selects[name].visible = len(self._selects["baseline"].options) > 1

    def _offered_switches(self) -> dict[str, str]:
        """Return what the switches say -> their names; the last one is there where per-job results are."""
        deletable = bool(column_of(self._data, self._now.metric))
        return {words: name for name, words in SWITCHES.items() if deletable or name != "delete_warm_up"}

    def _offered_metrics(self, name: str) -> dict[str, dict[str, str]]:
        """Return group -> words -> metric of what one of the selects of metrics offers."""
        data, chosen = self._data, self._now.metric
        every = list(dict.fromkeys([*self._metrics, chosen]))
        if name != "metric":
            taken = {getattr(self._now, other) for other in _METRICS if other != name}
            return {" ": {NONE: ""}, **grouped(data, [own for own in every if own not in taken])}
        groups = grouped(data, every, self._find.value_input or "")
        if any(chosen in group.values() for group in groups.values()):
            return groups
        return {"Chosen": {offered(data, chosen): chosen}, **groups}

    def _offered_axes(self) -> dict[str, dict[str, str]]:
        """Return, for each select of axes, words -> axis."""
        data, now = self._data, self._now
        axes, across = ch.axes_of(data), ch.x_axes(data)
        few = [axis for axis in axes if 1 < data.sizes[axis] <= ch.MOST_CURVES and axis != now.along]
        varied = [x for x, axis in across.items() if axis not in (now.curves, now.facets) and data.sizes[axis] > 1]
        own = [now.x] if now.x in across else []
        panels = [axis for axis in few if axis != now.curves and data.sizes[axis] <= ch.MOST_FACETS]
        offered = {
            "x": [*(varied or across), *own, *self._metrics, *([] if own else [now.x])],
            "along": [axis for axis in axes if axis not in (now.curves, now.facets)],
            "curves": ["", *(axis for axis in few if axis != now.facets)],
            "facets": ["", *panels],
            "heat_x": [axis for axis in axes if axis != now.heat_y],
            "heat_y": ["", *(axis for axis in axes if axis != now.heat_x)],
        }
        return {name: self._in_words(list(dict.fromkeys(each))) for name, each in offered.items()}

    def _in_words(self, names: list[str]) -> dict[str, str]:
        """Return words -> name; a name that reads like another one is told beside its words."""
        found: dict[str, str] = {}
        for name in names:
            words = offered(self._data, name) if name else NONE
            found[words if words not in found else f"{words} [{name}]"] = name
        return found

    def _offered_baselines(self) -> dict[str, str]:
        data = self._data
        every = ch.baselines(data, self._now.along)
        words = [label_in_words(data, *ch.baseline_of(data, one)) for one in every]
        alike = len(set(words)) < len(words)
        return {NONE: "", **dict(zip(every if alike else words, every, strict=True))}

    @contextmanager
    def _silently(self) -> Iterator[None]:
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before


def _set(widget: Any, **new: Mapping[str, Any]) -> None:
    """Set what is another one now: equal options would be sent to the browser all the same."""
    for name, value in new.items():
        if getattr(widget, name) != value:
            widget.param.update(**{name: value})
