"""What a store says before anything is chosen: the best policy, also by region, which axes matter, a first picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from faultsweep.analysis.dashboard.choices import MOST_CURVES, default_choices
from faultsweep.analysis.dashboard.metrics import in_words, named
from faultsweep.analysis.dashboard.template import PANE
from faultsweep.analysis.effects import variance_shares, varied
from faultsweep.analysis.figures import page
from faultsweep.analysis.figures.describe import short_number
from faultsweep.analysis.figures.figure import LOOKS
from faultsweep.analysis.figures.sweep import quantity, row_label
from faultsweep.analysis.figures.texts import without_tex
from faultsweep.analysis.figures.units import in_units_to_read
from faultsweep.analysis.ranking import higher_is_better
from faultsweep.analysis.regions import best_policies, policy_axis, region_axes
from faultsweep.analysis.statistics import REPLICATE
from faultsweep.analysis.verdict import describe_promise, how_much_worse, selected, selection_of

from faultsweep.errors import InputError

_MOST_PANELS = 6
_MOST_ROWS = 12
_SMALL_SHARE = 0.005
_BESIDE = ":host { display: grid !important; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)) }"
"""As many panels in a row as the window has room for."""
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


def make_overview(results: xr.Dataset) -> Overview:
    """Return what a store says so far of its main metric; reads that metric whole."""
    metric = default_choices(results).metric
    data = in_units_to_read(results[[metric, "status"]], [metric])
    data.encoding = results.encoding
    values = data[metric] = data[metric].load()
    words, policy = quantity(data, metric), policy_axis(data)
    if not bool(values.notnull().any()):
        return Overview(metric, words, policy=policy, note="No cell has a result yet.")
    note = ""
    try:
        shares = variance_shares(values)
    except InputError as error:
        shares, note = {}, f"{error}."
    sentence, rests_on, regions = _verdict(data, metric, policy, shares)
    if not sentence and policy is not None and not note:
        note = (
            f"No best {policy} by {metric}: nothing says whether more is better. The table [better] of the spec does."
        )
    x, panel = two_axes(values, shares, policy)
    means = _means(data, values, policy, x, panel)
    names = {axis: named(data, axis) for axis in map(str, values.dims)}
    return Overview(metric, words, sentence, rests_on, regions, policy, shares, means, x, panel, names, note)


def _verdict(
    data: xr.Dataset, metric: str, policy: str | None, shares: dict[tuple[str, ...], float]
) -> tuple[str, str, pd.DataFrame]:
    """Return the answer, what it rests on, and the best policy by region."""
    with suppress(InputError, ValueError):  # of another metric than this one, or of a spec that nobody can read
        best = selection_of(data)
        if best is not None and (found := selected(data)) is not None:
            best_ones = found.table[found.table["result"] != "worse"]
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
    first, second = (row_label(policy, row[name], short=True) for name in ("best", "next"))
    words = quantity(data, metric).partition(" (")[0].lower()
    sentence = f"{first} has the {which} {words}"
    if row["next"]:
        worse = how_much_worse(*(float(row[part]) for part in _MARGIN))
        equal = row["next"] in row["as_good"].split(", ")
        sentence += f"; second is {second}, {worse}{': no significant difference' if equal else ''}"
    rest = [in_words(data, axis) for axis in varied(data[metric]) if axis != policy]
    over = f" over {', '.join(rest)} and" if rest else " over"
    rests_on = f"Means{over} {data.sizes.get(REPLICATE, 1)} replicates, compared in pairs; intervals are of 95 %."
    return f"{sentence}.", rests_on, regions


def two_axes(values: xr.DataArray, shares: dict[tuple[str, ...], float], policy: str | None) -> tuple[str, str]:
    """Return the two axes that matter most beside the policies, that of the horizontal axis first."""
    weight = {axis: sum(share for axes, share in shares.items() if axis in axes) for axis in varied(values)}
    others = sorted((axis for axis in weight if axis != policy), key=lambda axis: -weight[axis])[:2]
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
    means = means.isel({a: slice(0, n) for a, n in ((panel, _MOST_PANELS), (policy, MOST_CURVES)) if a})
    frame = means.rename("mean").to_dataframe().reset_index()
    label = {axis: [row_label(axis, one, short=True) for one in frame[axis]] for axis in (panel, policy) if axis}
    return pd.DataFrame(
        {
            "x": frame[x],
            "panel": label.get(panel, ""),
            "curve": label.get(policy or "", ""),
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
        [
            *(row_label(axis, row[axis], short=True) for axis in axes),
            row["best"],
            interval(row["mean"], row["low"], row["high"]),
            row["next"],
            ""
            if np.isnan(row["margin"])
            else how_much_worse(*(row[m] for m in ("margin", "margin_low", "margin_high"))),
            "" if not row["next"] else "no" if row["next"] in row["as_good"].split(", ") else "yes",
        ]
        for row in found.regions.head(_MOST_ROWS).to_dict("records")
    ]
    left = len(found.regions) - _MOST_ROWS
    more = f'<p class="small">{left} more regions: faultsweep report has all.</p>' if left > 0 else ""
    best = found.words[found.policy or ""].lower()
    head = [*(found.words[axis] for axis in axes), f"Best {best}", found.quantity, "Second", "Second is", "Told apart"]
    return table(head, rows, f"Best {best} by region") + more


def _selection_html(found: Overview) -> str:
    columns = [name for name in found.regions.columns if name not in ("mean", "low", "high", "worse_low", "worse_high")]
    rows = []
    for row in found.regions.head(3 * _MOST_ROWS).to_dict("records"):
        own = {**row, "worse": "" if np.isnan(row.get("worse", np.nan)) else f"{row['worse']:.1%}"}
        rows.append([*(own[name] for name in columns), interval(row["mean"], row["low"], row["high"])])
    head = [found.words.get(name, name.capitalize()) for name in columns]
    return table([*head, found.quantity], rows, "Best of the selection")


def shares_html(found: Overview) -> str:
    """Return bars of the share of the variance that each axis, and each pair beyond it, explains."""
    ordered = sorted(found.shares.items(), key=lambda item: -item[1])
    shown = [(axes, share) for axes, share in ordered if share >= _SMALL_SHARE or len(axes) == 1][:_MOST_ROWS]
    if not shown:
        return ""
    short = {axis: words.partition(" (")[0] for axis, words in found.words.items()}
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


def small_multiple(found: Overview) -> Any:
    """Return the picture of the main metric over the two axes that matter most: a panel per label of the second one."""
    import holoviews as hv
    import hvplot.pandas  # noqa: F401 - gives data frames .hvplot
    import panel as pn

    frame = found.means
    curves, panels = list(dict.fromkeys(frame["curve"])), list(dict.fromkeys(frame["panel"]))
    colours = {curve: LOOKS[number % len(LOOKS)].colour for number, curve in enumerate(curves)}
    numbers = frame["x"].dtype.kind in "iuf"
    across, down = (found.words[axis] if axis else "" for axis in (found.x, found.panel))
    plots: list[Any] = []
    for panel in panels:
        part = frame[frame["panel"] == panel].assign(x=lambda own: own["x"] if numbers else own["x"].astype(str))
        style = {"responsive": True, "height": 250, "legend": False, "xlabel": across, "ylabel": found.quantity}
        if numbers:
            drawn = part.hvplot.line(x="x", y="mean", by="curve", color=[*colours.values()], line_width=2.2, **style)
        else:
            drawn = part.hvplot.bar(x="x", y="mean", by="curve", color=[*colours.values()], **style)
        plot: Any = hv.render(drawn, backend="bokeh")
        page.style_plot(plot)
        plot.toolbar.active_scroll = None  # the wheel moves the page
        plot.output_backend, plot.toolbar_location = "canvas", None
        plot.title.text = without_tex(f"{down}: {panel}" if down else "")
        plot.xaxis.axis_label, plot.yaxis.axis_label = without_tex(across), without_tex(found.quantity)
        plots.append(plot)
    for plot in plots[1:]:
        plot.y_range = plots[0].y_range
    key = "".join(
        f"<span><span class='swatch' style='background:{colour}'></span> {escape(curve)}</span> "
        for curve, colour in colours.items()
        if curve
    )
    words = (
        f"Mean {found.quantity[0].lower()}{found.quantity[1:]}"
        if not found.quantity.startswith("Mean")
        else found.quantity
    )
    over = " and ".join(part.partition(" (")[0].lower() for part in (across, down) if part)
    text = f"<p>{escape(f'{words} over {over}, the other axes averaged over')}</p><p class='key'>{key}</p>"
    panes = [pn.pane.Bokeh(plot, sizing_mode="stretch_width") for plot in plots]
    picture = pn.FlexBox(*panes, sizing_mode="stretch_width", stylesheets=[_BESIDE])
    return pn.Column(pn.pane.HTML(text, stylesheets=[PANE]), picture, sizing_mode="stretch_width")
