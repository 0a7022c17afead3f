"""Draws a run as a PNG with matplotlib: Gantt chart, queue and free nodes, bands, and the occupancy of a torus."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.analysis.figures.texts import without_math
from faultsweep.analysis.view.content import (
    BANDS,
    COLOURS,
    CONTENT,
    DOWN_COLOUR,
    FREE_NODES,
    MARKS,
    MOST_MARKS,
    SECOND_BLUE,
    WAITING_JOBS,
    Content,
    Frames,
    Rectangles,
    caption_of_frame,
)
from faultsweep.analysis.view.replay import COUNTED, FATES, Stays

from faultsweep.arguments import NUMBER, PATH, takes
from faultsweep.files import writing

_WIDTH = 11.0
_HEIGHTS = {"gantt": 4.6, "queue": 1.9, "bands": 2.2, "occupancy": 2.3}
_DPI = 150
_FEW_MARKS = 150
AT_FRAME = "#333333"
"""Colour of what belongs to the time of the occupancy."""
HOLDERS = ("#8DD3C7", "#BEBADA", "#FB8072", "#80B1D3", "#FDB462", "#B3DE69", "#FCCDE5", "#BC80BD", "#CCEBC5", "#FFED6F")
"""Colours of jobs in an occupancy view, by job number; paler than those of fates, which mean something else."""


@takes(content=CONTENT, path=PATH, at_h=NUMBER)
def draw_png(content: Content, path: str | Path, at_h: float | None = None) -> None:
    """Write the picture; ``at_h`` is the time of the occupancy, by default when most nodes are idle in fragments."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure as Canvas

    parts = ["gantt", "queue", "bands", *(["occupancy"] if content.frames else [])]
    caption = without_math(textwrap.fill(" ".join(content.caption), 150))
    title = without_math(textwrap.fill(content.title, 95))
    head, foot = 0.3 * (title.count("\n") + 1) + 0.1, 0.19 * (caption.count("\n") + 1) + 0.2
    body = sum(_HEIGHTS[part] for part in parts)
    height = head + body + foot
    with rc_context({"font.size": 11, "axes.titlesize": 11, "axes.labelsize": 11, "legend.fontsize": 10}):
        canvas = Canvas(figsize=(_WIDTH, height))
        canvas.set_layout_engine("constrained", rect=(0, foot / height, 1, body / height))
        canvas.text(0.5, 1 - 0.08 / height, title, ha="center", va="top", fontsize=14, fontweight="bold")
        canvas.text(0.1 / _WIDTH, 0.1 / height, caption, va="bottom", fontsize=9.5, color="#333333", linespacing=1.25)
        grid = canvas.add_gridspec(len(parts), 1, height_ratios=[_HEIGHTS[part] for part in parts])
        gantt = canvas.add_subplot(grid[0])
        queue = canvas.add_subplot(grid[1], sharex=gantt)
        bands = canvas.add_subplot(grid[2], sharex=gantt)
        _gantt(gantt, content)
        _queue(queue, content)
        _bands(bands, content)
        if content.frames is not None:
            frame = _frame_at(content.frames, at_h)
            _occupancy(canvas, grid[3], content.frames, content.sides, frame)
            for axis in (gantt, queue, bands):
                axis.axvline(content.frames.time_h[frame], color=AT_FRAME, linewidth=1.4, linestyle=":")
        with writing(Path(path)):
            about = {"Title": content.title, "Description": caption}
            canvas.savefig(path, format="png", dpi=_DPI, facecolor="white", metadata=about)


def _frame_at(frames: Frames, at_h: float | None) -> int:
    if at_h is None:
        return frames.worst
    return max(0, int(np.searchsorted(frames.time_h, at_h, side="right")) - 1)


def _gantt(axis: Any, content: Content) -> None:
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator

    nodes = content.run.machine.nodes
    fates = sorted(set(content.run.stays.fate.tolist()))
    if content.raster is not None:
        extent = (content.start_h, content.stop_h, 0, nodes)
        axis.imshow(content.raster, origin="lower", aspect="auto", extent=extent, interpolation="nearest")
    elif content.rectangles is not None:
        boxes = content.rectangles
        colours = np.array(rectangle_colours(boxes, content.run.stays))
        for colour in dict.fromkeys(colours.tolist()):
            mine = colours == colour
            corners = _corners(boxes.start_h[mine], boxes.end_h[mine], boxes.low[mine], boxes.high[mine] + 1)
            axis.add_collection(PolyCollection(corners, facecolors=colour, linewidths=0, rasterized=True))
        node, since, until = content.down
        axis.add_collection(
            PolyCollection(_corners(since, until, node, node + 1), facecolors=DOWN_COLOUR, linewidths=0)
        )
    handles: list[Any] = [Patch(color=COLOURS[fate], label=FATES[fate]) for fate in fates]
    handles += [Patch(color=DOWN_COLOUR, label="node down")] if len(content.down[0]) else []
    for kind, (times, places, _) in content.marks.items():
        marker, colour = MARKS[kind]
        if not 0 < len(times) <= MOST_MARKS:
            continue
        size = 6 if len(times) <= _FEW_MARKS else 3
        style: dict[str, Any] = {"marker": marker, "color": colour, "markersize": size, "linestyle": "none"}
        edge: dict[str, Any] = {} if marker == "x" else {"markeredgecolor": "black", "markeredgewidth": 0.6}
        axis.plot(times, places + 0.5, **style, **edge)
        handles.append(Line2D([], [], **style, **edge, label=kind))
    for border in content.cluster_borders:
        axis.axhline(border, color="black", linewidth=0.9, linestyle=(0, (6, 3)))
    axis.set_xlim(content.start_h, content.stop_h)
    axis.set_ylim(0, nodes)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("node")
    axis.tick_params(labelbottom=False)
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "borderaxespad": 0.2}
    axis.legend(handles=handles, ncols=4, **above, columnspacing=1.2, handletextpad=0.5)


def rectangle_colours(boxes: Rectangles, stays: Stays) -> list[str]:
    """Return the colour of each rectangle: that of its fate; work that counts in two blues, by job number."""
    blues = (COLOURS[COUNTED], SECOND_BLUE)
    pairs = zip(stays.fate[boxes.stay].tolist(), stays.job_id[boxes.stay].tolist(), strict=True)
    return [blues[job % 2] if fate == COUNTED else COLOURS[fate] for fate, job in pairs]


def _corners(left: Any, right: Any, low: Any, high: Any) -> Any:
    return np.stack(
        [np.stack([left, low], 1), np.stack([right, low], 1), np.stack([right, high], 1), np.stack([left, high], 1)], 1
    )


def _queue(axis: Any, content: Content) -> None:
    from matplotlib.ticker import MaxNLocator

    curves = content.curves
    axis.stairs(curves.free_nodes, curves.edges_h, color=FREE_NODES, linewidth=1.4, fill=True, alpha=0.45)
    axis.set_ylabel("free nodes\n(grey area)")
    axis.set_ylim(bottom=0)
    other = axis.twinx()
    other.stairs(curves.queue_jobs, curves.edges_h, color=WAITING_JOBS, linewidth=1.4)
    other.set_ylabel("waiting jobs\n(line)", color=WAITING_JOBS)
    other.set_ylim(bottom=0, top=max(1.0, 1.05 * float(curves.queue_jobs.max())))
    for place in (axis.yaxis, other.yaxis):
        place.set_major_locator(MaxNLocator(nbins=5, integer=True))  # there is no half a job
    axis.tick_params(labelbottom=False)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)


def _bands(axis: Any, content: Content) -> None:
    curves = content.curves
    base = np.zeros(len(curves.edges_h) - 1)
    for name, (label, colour) in BANDS.items():
        values = 100 * curves.bands[name]
        if not values.any():
            continue
        share = f"{label}, {100 * curves.share[name]:.3g} %"
        axis.stairs(base + values, curves.edges_h, baseline=base, fill=True, color=colour, label=share, linewidth=0)
        base = base + values
    axis.set_ylim(0, 100)
    axis.set_ylabel("share of the nodes (%)")
    axis.set_xlabel("time since the first arrival (h)")
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "borderaxespad": 0.2}
    axis.legend(ncols=3, **above, columnspacing=1.2, handletextpad=0.5)


def _occupancy(canvas: Any, place: Any, frames: Frames, sides: tuple[int, int, int], frame: int) -> None:
    """Draw the slices of the torus along x side by side; nodes of the largest free box have a dot."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch, Rectangle

    axis = canvas.add_subplot(place)
    X, Y, Z = sides
    code = holder_codes(frames.holder[frame]).reshape(sides)
    image = np.ma.masked_all((Y, X * (Z + 1) - 1))
    for at in range(X):
        image[:, at * (Z + 1) : at * (Z + 1) + Z] = code[at]
    colours = ListedColormap([DOWN_COLOUR, "#FFFFFF", *HOLDERS])
    axis.pcolormesh(
        np.arange(image.shape[1] + 1),
        np.arange(Y + 1),
        image,
        cmap=colours,
        vmin=-1.5,
        vmax=len(HOLDERS) + 0.5,
        edgecolors="#777777",
        linewidth=0.4,
    )
    for at in range(X):
        border: dict[str, Any] = {"fill": False, "edgecolor": "black", "linewidth": 1.5, "clip_on": False}
        axis.add_patch(Rectangle((at * (Z + 1), 0), Z, Y, **border))
    x, y, z = np.unravel_index(np.flatnonzero(frames.in_largest[frame]), sides)
    if len(x):
        axis.plot(x * (Z + 1) + z + 0.5, y + 0.5, "o", color=AT_FRAME, markersize=4, linestyle="none")
    axis.set_aspect("equal")
    axis.set_xticks([at * (Z + 1) + Z / 2 for at in range(X)], [f"x = {at}" for at in range(X)])
    axis.set_yticks(np.arange(Y) + 0.5, range(Y))
    axis.set_ylabel("y")
    axis.set_xlabel(f"slices of the torus along x; z from 0 to {Z - 1} in each")
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_title(caption_of_frame(frames, frame))
    handles = [
        Patch(facecolor=HOLDERS[0], edgecolor="#777777", label="held (a colour per job)"),
        Patch(facecolor="white", edgecolor="#777777", label="free (dot: in the largest free box)"),
        Patch(facecolor=DOWN_COLOUR, label="down"),
    ]
    axis.legend(handles=handles, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.36), frameon=False)


def holder_codes(holder: Any) -> Any:
    """Return -1 for a node that is down, 0 for a free one, else 1 to 10 by the number of the job that holds it."""
    return np.where(holder > 0, 1 + (holder - 1) % len(HOLDERS), holder)
