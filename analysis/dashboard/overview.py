"""What a store says before anything is chosen: the best policy, also by region, which axes matter, a first picture."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.choices import MOST_CURVES, default_choices
from faultsweep.analysis.dashboard.template import PANE
from faultsweep.analysis.effects import variance_shares, varied
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.describe import short_number
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Panel
from faultsweep.analysis.figures.layout import asks_for_log, labels
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.figures.units import axis_to_read, in_units_to_read
from faultsweep.analysis.figures.words import in_words, label_in_words, label_to_read, quantity, row_label
from faultsweep.analysis.ranking import higher_is_better
from faultsweep.analysis.regions import best_policies, is_as_good, policy_axis, region_axes
from faultsweep.analysis.statistics import REPLICATE, count_observations
from faultsweep.analysis.verdict import (
    OUT,
    describe_promise,
    describe_scope,
    how_much_worse,
    second_place,
    selected,
    selection_of,
)

from faultsweep.errors import InputError

_MOST_PANELS = 6
_MOST_ROWS = 12
_SMALL_SHARE = 0.005
_NO_SHARE = 0.0005
"""Below it a share reads 0.0 %."""
_BESIDE = """
:host { display: grid !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)) }
.scroll-button { display: none }
"""
"""As many panels in a row as the window has room for; Panel's own button would take a place."""
_TITLE = 30  # letters of a line above one of three plots beside each other
_MARGIN = ("margin", "margin_low", "margin_high")


@dataclass(frozen=True)
class Overview:
    """What stands on the landing page.

    Attributes
    ----------
    metric : the main metric; ``quantity`` is what it is called.
    sentence, rests_on : which policy is best, and what that rests on; "" where nothing can be said.
    regions : a row per region as ``best_policies`` gives it, or of the selection that the sweep was run for.
    policy : the axis whose labels are compared, None without one.
    shares : axis or pair of axes -> share of the variance between cells.
    means : the main metric over the two axes that matter most and the policies, the others averaged over; columns
        ``x, panel, curve, mean``.
    x, panel : the names of these two axes, "" where there are fewer.
    words : axis -> what it is called, with its unit.
    note : why something is not there.
    log : whether the values ask for a logarithmic scale, and have a place on it.
    """

    metric: str
    quantity: str
    sentence: str = ""
    rests_on: str = ""
    regions: pd.DataFrame = field(default_factory=pd.DataFrame)
    policy: str | None = None
    shares: dict[tuple[str, ...], float] = field(default_factory=dict)
    means: pd.DataFrame = field(default_factory=pd.DataFrame)
    x: str = ""
    panel: str = ""
    words: dict[str, str] = field(default_factory=dict)
    note: str = ""
    log: bool = False


def make_overview(results: xr.Dataset) -> Overview:
    """Return what a store says so far of its main metric; reads that metric whole."""
    metric = default_choices(results).metric
    data = in_units_to_read(results[[metric, "status"]], [metric])
    data.encoding = results.encoding
    values = data[metric] = data[metric].load()
    words, policy = quantity(data, metric), policy_axis(data)
    if not bool(values.notnull().any()):
        return Overview(metric, words, policy=policy, note="No cell has a result yet.")
    shares, note = _shares(values)
    sentence, rests_on, regions = _verdict(data, metric, policy, shares)
    if not regions.empty and not sentence:
        note = f"No best {in_words(data, policy or '')} over all: each region lacks a result of some policy."
    elif not sentence and policy is not None and not note:
        note = f"No best {in_words(data, policy)} by {in_words(data, metric)}: "
        note += "nothing says whether more is better. The table [better] of the spec does."
    x, panel = two_axes(values, shares, policy)
    means = _means(data, values, policy, x, panel)
    names = {axis: quantity(axis_to_read(data, axis) if axis == x else data, axis) for axis in map(str, values.dims)}
    regions = _to_read(data, regions)
    log = bool(x) and values[x].dtype.kind in "iuf" and asks_for_log([means["mean"].to_numpy(float)])
    log = log and not bool((values <= 0).any())
    return Overview(metric, words, sentence, rests_on, regions, policy, shares, means, x, panel, names, note, log)


def _shares(values: xr.DataArray) -> tuple[dict[tuple[str, ...], float], str]:
    """Return the share of the variance that axes explain, or why it is not known."""
    try:
        return variance_shares(values), ""
    except InputError as error:
        return {}, f"{error}."


def _to_read(data: xr.Dataset, regions: pd.DataFrame) -> pd.DataFrame:
    """Return the table of regions with labels in words."""
    axes = [name for name in regions if name in data.dims]
    return regions.assign(**{axis: [label_to_read(data, axis, one) for one in regions[axis]] for axis in axes})


def _verdict(
    data: xr.Dataset, metric: str, policy: str | None, shares: dict[tuple[str, ...], float]
) -> tuple[str, str, pd.DataFrame]:
    """Return the answer, what it rests on, and the best policy by region."""
    with suppress(InputError, ValueError):  # of another metric than this one, or of a spec that nobody can read
        best = selection_of(data)
        if best is not None and (found := selected(data)) is not None:
            best_ones = found.table[~found.table["result"].isin(OUT)]
            return found.sentence, describe_promise(best, found), best_ones
    if policy is None:
        return "", "", pd.DataFrame()
    try:
        higher = higher_is_better(data, metric)
    except InputError:
        return "", "", pd.DataFrame()
    matter = {axis for axes, share in shares.items() if share >= _SMALL_SHARE for axis in axes}
    areas = [axis for axis in region_axes(data[metric], policy) if axis in matter]
    whole, regions = (best_policies(data, metric, policy, regions=axes) for axes in ([], areas))
    if whole.empty:
        return "", "", regions
    row = whole.to_dict("records")[0]
    which = "highest" if higher else "lowest"
    sentence = f"{row_label(policy, row['best'])} has the {which} {in_words(data, metric)}"
    sentence += second_place(data, metric, policy, row)
    rest = [in_words(data, axis) for axis in varied(data[metric]) if axis != policy]
    over = f" over {', '.join(rest)} and" if rest else " over"
    most = int(count_observations(data[metric], data["status"]).max())
    count = f"{most} replicates, compared in pairs; intervals are of 95 %" if most > 1 else "one replicate"
    return f"{sentence}.", f"Means{over} {count}.{_so_far(data, metric, policy)}{describe_scope(data)}", regions


def _so_far(data: xr.Dataset, metric: str, policy: str) -> str:
    """Return in how many combinations of the other labels policies are compared, where it is not in all."""
    known = data[metric].notnull().all(policy)
    known = known.any(REPLICATE) if REPLICATE in known.dims else known
    if bool(known.all()):
        return ""
    every = f"every {in_words(data, policy)} has a result"
    return f" In {int(known.sum()):,} of {known.size:,} combinations of labels, where {every}."


def two_axes(values: xr.DataArray, shares: dict[tuple[str, ...], float], policy: str | None) -> tuple[str, str]:
    """Return the two axes that matter most beside the policies, that of the horizontal axis first."""
    weight = {axis: sum(share for axes, share in shares.items() if axis in axes) for axis in varied(values)}
    others = sorted((axis for axis in weight if axis != policy), key=lambda axis: -weight[axis])[:2]
    if shares:  # panels that are all alike say nothing
        others = others[:1] + [axis for axis in others[1:] if weight[axis] >= _NO_SHARE]
    # numbers go across; an axis of many labels has no room for a panel each
    others.sort(key=lambda axis: (values[axis].dtype.kind not in "iuf", -values.sizes[axis]))
    return (*others, "", "")[0], (*others, "", "")[1]


def _means(data: xr.Dataset, values: xr.DataArray, policy: str | None, x: str, panel: str) -> pd.DataFrame:
    if not x:
        x, policy = policy or "", None
    if not x:
        return pd.DataFrame()
    keep = [axis for axis in (x, panel, policy) if axis]
    means = values.mean([dim for dim in values.dims if dim not in keep])
    means = means.assign_coords({x: axis_to_read(data, x)[x].values})
    means = means.isel({a: slice(0, n) for a, n in ((panel, _MOST_PANELS), (policy, MOST_CURVES)) if a})
    frame = means.rename("mean").to_dataframe().reset_index()
    x_labels = frame[x] if frame[x].dtype.kind in "iuf" else [label_to_read(data, x, one) for one in frame[x]]
    return pd.DataFrame(
        {
            "x": x_labels,
            "panel": [label_in_words(data, panel, one) for one in frame[panel]] if panel else "",
            "curve": [label_to_read(data, policy, one) for one in frame[policy]] if policy else "",
            "mean": frame["mean"],
        }
    )


# The page


def html_of(found: Overview) -> str:
    """Return the words of the landing page; whatever a store says is text."""
    parts = []
    if found.sentence:
        parts.append(f'<p class="verdict">{escape(found.sentence)}</p>')
    if found.rests_on:
        parts.append(f'<p class="small">{escape(found.rests_on)}</p>')
    if found.note:
        parts.append(f'<p class="small">{escape(found.note)}</p>')
    return "".join(parts)


def early_html(found: Overview) -> str:
    """Return what the page says before its scripts have been read."""
    return f"{html_of(found)}<div class='two'><div>{regions_html(found)}</div><div>{shares_html(found)}</div></div>"


def regions_html(found: Overview) -> str:
    """Return the table of the best policy by region."""
    if found.regions.empty or "best" not in found.regions:
        return _selection_html(found) if not found.regions.empty else ""
    axes = list(found.regions.columns[: list(found.regions.columns).index("best")])
    rows = [
        [*(row[axis] for axis in axes), *_region_in_words(found.policy or "", row)]
        for row in found.regions.head(_MOST_ROWS).to_dict("records")
    ]
    left = len(found.regions) - _MOST_ROWS
    more = f'<p class="small">{left} more regions: faultsweep report has all.</p>' if left > 0 else ""
    best = _low(found.words[found.policy or ""])
    head = [*(_without_unit(found.words[axis]) for axis in axes), f"Best {best}", found.quantity, "Second", "Second is"]
    return table([*head, "Told apart"], rows, f"Best {best} by region") + more


def _region_in_words(policy: str, row: dict[Any, Any]) -> list[str]:
    """Return the best label, its mean, the second one, how much worse that is, and whether they are told apart."""
    best, second = (row_label(policy, row[name]) for name in ("best", "next"))
    worse = "" if np.isnan(row["margin"]) else how_much_worse(*(row[part] for part in _MARGIN))
    apart = "" if not row["next"] else "no" if is_as_good(row, row["next"]) else "yes"
    return [best, interval(row["mean"], row["low"], row["high"]), second, worse, apart]


def _without_unit(words: str) -> str:
    return words.partition(" (")[0]


def _selection_html(found: Overview) -> str:
    columns = [name for name in found.regions.columns if name not in ("mean", "low", "high", "worse_low", "worse_high")]
    rows = []
    for row in found.regions.head(3 * _MOST_ROWS).to_dict("records"):
        own = {**row, "worse": "" if np.isnan(row.get("worse", np.nan)) else f"{row['worse']:.1%}"}
        rows.append([*(own[name] for name in columns), interval(row["mean"], row["low"], row["high"])])
    head = [_without_unit(found.words.get(name, name.capitalize())) for name in columns]
    return table([*head, found.quantity], rows, "Best of the selection")


def shares_html(found: Overview) -> str:
    """Return bars of the share of the variance that each axis, and each pair beyond it, explains."""
    ordered = sorted(found.shares.items(), key=lambda item: -item[1])
    shown = [(axes, share) for axes, share in ordered if share >= _SMALL_SHARE or len(axes) == 1][:_MOST_ROWS]
    if not shown:
        return ""
    short = {axis: _without_unit(words) for axis, words in found.words.items()}
    rows = "".join(
        f'<tr><th scope="row">{escape(" × ".join(short[axis] for axis in axes))}</th><td class="n">{share:.1%}</td>'
        f'<td><span class="bar" style="width:{max(0.0, min(100.0, 100 * share)):.1f}%"></span></td></tr>'
        for axes, share in shown
    )
    return (
        f'<table class="shares"><caption>Share of the variance of {escape(found.quantity)} between cells</caption>'
        f"<tbody>{rows}</tbody></table>"
    )


def interval(mean: float, low: float, high: float) -> str:
    """Return a number with its interval: "12.3 [11.9, 12.8]"."""
    bounds = "" if np.isnan(low) else f" [{short_number(low, 3)}, {short_number(high, 3)}]"
    return "" if np.isnan(mean) else f"{short_number(mean, 3)}{bounds}"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], name: str) -> str:
    """Return a table in HTML, with a name for those who do not see it; whatever its cells say is text."""
    top = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(name, quote=True)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def overview_figure(found: Overview, name: str = "sweep") -> Figure:
    """Return the main metric over the two axes that matter most: a panel per label of the second one."""
    frame = found.means
    across = found.words.get(found.x or found.policy or "", "")
    titles = [] if frame.empty else list(frame["panel"].unique())
    panels = [_panel_of(found, frame[frame["panel"] == title], title, across) for title in titles]
    by = f" by {_low(found.words[found.panel])}" if found.panel else ""
    title = f"{_without_unit(found.quantity)} over {_low(across)}{by}"
    return Figure(name, title, ["Means over the other axes and over replicates."], panels, columns=3)


def _panel_of(found: Overview, frame: pd.DataFrame, title: str, across: str) -> Panel:
    numbers = frame["x"].dtype.kind in "iuf"
    categories = [] if numbers else list(dict.fromkeys(frame["x"].astype(str)))
    curves, bars = [], []
    for number, (label, own) in enumerate(frame.groupby("curve", sort=False)):
        look = LOOKS[number % len(LOOKS)]
        y, words = own["mean"].to_numpy(float), str(label) or found.quantity
        if numbers:
            none = np.full(len(own), np.nan)
            style = replace(look, dashed=number >= len(LOOKS))
            curves.append(Curve(words, own["x"].to_numpy(float), y, none, none, style))
        else:
            bars.append(Bars(words, y, look))
    return Panel(title, across, found.quantity, curves=curves, bars=bars, categories=categories)


def _low(words: str) -> str:
    words = _without_unit(words)
    return words if words[1:2].isupper() else words[:1].lower() + words[1:]


def small_multiple(found: Overview) -> Any:
    """Return the first picture as it stands in the page, with its legend."""
    import panel as pn

    figure = without_tex(overview_figure(found))
    plots = page.plots_of(figure)
    for plot, own in zip(plots, figure.panels, strict=True):
        page.write_large(plot)
        plot.height, plot.toolbar_location = 250, None
        plot.title.visible = bool(own.title)
        plot.title.text = textwrap.fill(own.title, _TITLE)
    key = "".join(
        f"<span><span class='swatch' style='background:{curve.style.colour}'></span> {escape(label)}</span> "
        for label, curve in labels(figure)
    )
    others = set(found.words) - {found.x, found.panel, found.policy, REPLICATE}
    rest = ", the other axes averaged over" if others else ""
    text = f"<p>{escape(figure.title)}{rest}</p><p class='key'>{key}</p>"
    panes = [pn.pane.Bokeh(plot, sizing_mode="stretch_width") for plot in plots]
    picture = pn.Column(*panes, sizing_mode="stretch_width", stylesheets=[_BESIDE])
    return pn.Column(pn.pane.HTML(text, stylesheets=[PANE]), picture, sizing_mode="stretch_width")
