"""What the pictures of a run show, apart from how they are drawn: rectangles or a raster, marks, curves, occupancy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from faultsweep.analysis.figures.figure import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, YELLOW
from faultsweep.analysis.view.replay import COUNTED, DELAYED, DESTROYED, KEPT, PAUSED, RUNNING, Floats, Ints, Replay
from faultsweep.simcore.finders import FINDERS
from faultsweep.simcore.model.machines import TORUS
from numpy.typing import NDArray

from faultsweep.arguments import NAMES, NUMBER, TEXT, instance, takes
from faultsweep.errors import InputError

MOST_RECTANGLES = 100_000
"""Beyond this a picture has fewer pixels than rectangles: they are summed up into a raster."""
MOST_MARKS = 5_000
RASTER = (1_600, 512)
"""Columns and at most so many rows of a raster."""
BINS = 400
FRAME_NODES = 2_000_000
"""Nodes of all occupancy frames together: what a page can carry."""
HOUR = 3600.0

COLOURS = {COUNTED: BLUE, DESTROYED: VERMILION, DELAYED: ORANGE, RUNNING: SKY, KEPT: GREEN, PAUSED: PURPLE}
SECOND_BLUE = "#3D93C4"
"""Of every other job, so that neighbours can be told apart."""
DOWN_COLOUR = BLACK
FREE_NODES, WAITING_JOBS = "#8a8a8a", "#4d4d4d"
"""Colours of what has no fate."""
BANDS: dict[str, tuple[str, str]] = {
    "counted": ("work that counts", BLUE),
    "grown": ("nodes beyond the size asked for", SKY),
    "destroyed": ("destroyed by failures", VERMILION),
    "delayed": ("start delay", ORANGE),
    "paused": ("checkpoints, moves, restarts", PURPLE),
    "kept": ("kept for jobs that wait", GREEN),
    "down": ("down", BLACK),
    "idle": ("idle beside a queue that asks", YELLOW),
    "unused": ("unused, nobody asks", "#CCCCCC"),
}
"""Name -> label and colour; together they are the whole machine."""
MARKS = {
    "failure": ("x", BLACK),
    "checkpoint": ("o", "#FFFFFF"),
    "restart": ("^", "#FFFFFF"),
    "migration": ("D", YELLOW),
}
"""Kind -> marker and colour."""

FREE, DOWN = 0, -1


@dataclass(frozen=True)
class Rectangles:
    """Neighbouring nodes that one stay holds: shape (rectangles,) each; ``low`` to ``high`` are nodes, both held."""

    start_h: Floats
    end_h: Floats
    low: Ints
    high: Ints
    stay: Ints


@dataclass(frozen=True)
class Curves:
    """Means over equal parts of the window: shape (BINS,) each, and the exact means over the window itself."""

    edges_h: Floats
    bands: dict[str, Floats]
    queue_jobs: Floats
    free_nodes: Floats
    share: dict[str, float]


@dataclass(frozen=True)
class Frames:
    """Who holds each node of a torus at some instants.

    Attributes
    ----------
    time_h : (frames,).
    holder : int32 (frames, nodes): the job's number plus one, FREE or DOWN.
    in_largest : bool (frames, nodes), the nodes of the largest free box.
    free, largest, wanted : (frames,), free nodes, those of the largest free box, nodes that the queue asks for.
    """

    time_h: Floats
    holder: NDArray[np.int32]
    in_largest: NDArray[np.bool_]
    free: Ints
    largest: Ints
    wanted: Ints

    @property
    def worst(self) -> int:
        """Return the most fragmented frame: with most nodes free outside of the largest free box while jobs wait."""
        scattered = self.free - self.largest
        return int(np.argmax(np.where(self.wanted > 0, 1 + scattered, scattered / (scattered.max() + 1))))


@dataclass(frozen=True)
class Content:
    """Everything that is drawn of one run, in hours since its first arrival.

    Attributes
    ----------
    title, caption : what is shown; whole sentences.
    start_h, stop_h : the window.
    rectangles, raster : one of them is None. The raster is uint8 RGBA (rows, columns, 4), node 0 in row 0.
    down : rectangles of nodes that are down.
    """

    run: Replay
    title: str
    caption: list[str]
    start_h: float
    stop_h: float
    rectangles: Rectangles | None
    raster: NDArray[np.uint8] | None
    down: tuple[Ints, Floats, Floats]
    marks: dict[str, tuple[Floats, Floats, Ints]]
    curves: Curves
    frames: Frames | None

    @property
    def sides(self) -> tuple[int, int, int]:
        """Return the sides of the torus."""
        return self.run.machine.sides

    @property
    def cluster_borders(self) -> list[int]:
        """Return the first node of each cluster but the first; empty where there are no clusters."""
        return np.cumsum(self.run.machine.clusters, dtype=np.int64)[:-1].tolist()


CONTENT = instance(Content, "what make_content gives")


def caption_of_frame(frames: Frames, frame: int) -> str:
    """Return what an occupancy view shows: when, how many nodes are free, in what pieces, and who asks for nodes."""
    free, largest = int(frames.free[frame]), int(frames.largest[frame])
    return (
        f"Occupancy at {frames.time_h[frame]:,.2f} h: {free} nodes free, the largest free box has {largest};"
        f" the queue asks for {int(frames.wanted[frame]):,}"
    )


@takes(
    run=instance(Replay, "a Replay"), title=TEXT, caption=NAMES, start_h=NUMBER, stop_h=NUMBER, most_rectangles=NUMBER
)
def make_content(
    run: Replay,
    title: str,
    caption: list[str] | None = None,
    start_h: float = 0.0,
    stop_h: float | None = None,
    most_rectangles: int = MOST_RECTANGLES,
) -> Content:
    """Lay out what is drawn of a run between two times, in hours since its first arrival.

    Raises
    ------
    InputError
        The run has no length, or the window is empty or outside of the run.
    """
    length_h = (run.end_s - run.begin_s) / HOUR
    if length_h <= 0:
        raise InputError("the trace has nothing to draw: it ends when it begins")
    stop_h = length_h if stop_h is None else min(stop_h, length_h)
    if not 0 <= start_h < stop_h:
        raise InputError(
            f"--start-h {start_h:g}, --stop-h {stop_h:g}: expected 0 <= start < stop; the run has {length_h:.6g} h"
        )
    rectangles = _rectangles(run, start_h, stop_h)
    dense = len(rectangles.stay) > most_rectangles
    down = _window(run, *run.down, start_h, stop_h)
    marks = {kind: _marks_in(run, kind, start_h, stop_h) for kind in run.marks}
    return Content(
        run=run,
        title=title,
        caption=[*(caption or []), *_explain(run, len(rectangles.stay), dense, marks)],
        start_h=start_h,
        stop_h=stop_h,
        rectangles=None if dense else rectangles,
        raster=_raster(run, rectangles, down, start_h, stop_h) if dense else None,
        down=down,
        marks=marks,
        curves=_curves(run, start_h, stop_h),
        frames=_frames(run, start_h, stop_h) if run.machine.kind == TORUS else None,
    )


def _explain(run: Replay, count: int, dense: bool, marks: dict[str, tuple[Floats, Floats, Ints]]) -> list[str]:
    numbers = [f"{len(times):,} {kind}{'s' * (len(times) != 1)}" for kind, (times, _, _) in marks.items()]
    says = [f"In the window: {', '.join(numbers)}."]
    if dense:
        says.append(f"{count:,} rectangles are summed up: the deeper a colour, the more of the pixel's time it fills.")
    crowded = [kind for kind, (times, _, _) in marks.items() if len(times) > MOST_MARKS]
    if len(marks["checkpoint"][0]):
        known = "A checkpoint that a failure cut short is destroyed work."
        says.append(known if run.pauses is not None else "Work that counts includes the time of checkpoints.")
    if len(run.machine.clusters) > 1:
        says.append("Dashed lines are the borders of clusters.")
        says.append("Work that counts includes what jobs over several clusters lose to saturated trunks.")
    if not dense:
        says.append("Two blues tell neighbouring jobs apart.")
    if run.machine.kind == TORUS:
        says.append("Occupancy: a colour per job, white is free, black is down, dots are the largest free box.")
    if crowded:
        says.append(f"Too many to be marked: {', '.join(crowded)}s; a shorter window shows them.")
    if not run.sizes_known:
        says.append("Sizes are the nodes that each job held first (growth is not told apart; --jobs FILE tells).")
    if run.never_started and not run.sizes_known:
        says.append(f"{run.never_started:,} jobs never started; the trace does not say what they asked for.")
    return says


def hours(run: Replay, time_s: Floats) -> Floats:
    """Return times in hours since the first arrival."""
    return (np.asarray(time_s, float) - run.begin_s) / HOUR


def _window(
    run: Replay, what: Ints, start_s: Floats, end_s: Floats, start_h: float, stop_h: float
) -> tuple[Ints, Floats, Floats]:
    start, end = np.maximum(hours(run, start_s), start_h), np.minimum(hours(run, end_s), stop_h)
    inside = end > start
    return what[inside], start[inside], end[inside]


def _marks_in(run: Replay, kind: str, start_h: float, stop_h: float) -> tuple[Floats, Floats, Ints]:
    marks = run.marks[kind]
    at = hours(run, marks.time_s)
    inside = (at >= start_h) & (at <= stop_h)
    return at[inside], marks.node[inside], marks.job_id[inside]


def _rectangles(run: Replay, start_h: float, stop_h: float) -> Rectangles:
    """Return one rectangle per run of neighbouring nodes of each stay in the window."""
    stays = run.stays
    owner = np.repeat(np.arange(len(stays)), stays.num_nodes)
    first = np.ones(len(owner), bool)
    if len(owner):
        first[1:] = (np.diff(owner) != 0) | (np.diff(stays.node) != 1)
    last = np.append(first[1:], True)
    stay = owner[first]
    kept, start, end = _window(run, np.arange(len(stay)), stays.start_s[stay], stays.end_s[stay], start_h, stop_h)
    return Rectangles(start, end, stays.node[first][kept], stays.node[last[: len(owner)]][kept], stay[kept])


def _raster(
    run: Replay, rectangles: Rectangles, down: tuple[Ints, Floats, Floats], start_h: float, stop_h: float
) -> NDArray[np.uint8]:
    """Return an image in which each pixel has the colours of its fates, as deep as the share of time that they fill.

    Rectangles are cut at the pixels' borders, so that a short job does not fill a pixel; datashader sums up the shares.
    """
    import datashader as ds
    import datashader.transfer_functions as tf

    columns, rows = RASTER[0], min(RASTER[1], run.machine.nodes)
    width = (stop_h - start_h) / columns
    stays = run.stays
    per_node = rectangles.high - rectangles.low + 1
    which = np.repeat(np.arange(len(per_node)), per_node)
    node = np.concatenate([rectangles.low[which] + _count_up(per_node), down[0]])
    start = np.concatenate([rectangles.start_h[which], down[1]])
    end = np.concatenate([rectangles.end_h[which], down[2]])
    fate = np.concatenate([stays.fate[rectangles.stay][which], np.full(len(down[0]), len(COLOURS))])
    first = np.clip(((start - start_h) / width).astype(int), 0, columns - 1)
    last = np.clip(np.ceil((end - start_h) / width).astype(int) - 1, first, columns - 1)
    # a long stay covers many pixels whole: one row per pixel that it touches
    pieces = last - first + 1
    of = np.repeat(np.arange(len(pieces)), pieces)
    pixel = first[of] + _count_up(pieces)
    left, right = start_h + pixel * width, start_h + (pixel + 1) * width
    share = (np.minimum(end[of], right) - np.maximum(start[of], left)) / width
    names = [*map(str, COLOURS), "down"]
    frame = pd.DataFrame(
        {
            "x": pixel + 0.5,
            "y": node[of] + 0.5,
            "share": np.clip(share, 0, 1) * rows / run.machine.nodes,
            "fate": pd.Categorical.from_codes(fate[of], names),
        }
    )
    canvas = ds.Canvas(columns, rows, x_range=(0, columns), y_range=(0, run.machine.nodes))
    shares = canvas.points(frame, "x", "y", ds.by("fate", ds.sum("share")))
    colours = dict(zip(names, [*COLOURS.values(), DOWN_COLOUR], strict=True))
    image = tf.shade(shares.fillna(0), color_key=colours, how="linear", min_alpha=0, span=(0, 1))
    return np.ascontiguousarray(image.values).view(np.uint8).reshape(rows, columns, 4)


def _count_up(counts: Ints) -> Ints:
    """Return 0, 1, ... for each count: [2, 3] gives [0, 1, 0, 1, 2]."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)


def _curves(run: Replay, start_h: float, stop_h: float) -> Curves:
    """Return means over parts of the window, exact: every change is counted at its time."""
    stays, nodes = run.stays, run.machine.nodes
    asked = np.array([run.size.get(job, 0) for job in stays.job_id.tolist()], float)
    useful = np.minimum(asked, stays.num_nodes)
    counts = np.isin(stays.fate, (COUNTED, RUNNING))
    times = np.unique(
        np.concatenate([[run.begin_s, run.end_s], stays.start_s, stays.end_s, run.down[1], run.down[2], run.queue_s])
    )

    def level(start_s: Floats, end_s: Floats, amount: Floats) -> Floats:
        out = np.zeros(len(times))
        np.add.at(out, np.searchsorted(times, start_s), amount)
        np.add.at(out, np.searchsorted(times, end_s), -amount)
        return np.cumsum(out)

    def of_fate(fates: NDArray[np.bool_], amount: Floats) -> Floats:
        return level(stays.start_s[fates], stays.end_s[fates], amount[fates])

    held = stays.num_nodes.astype(float)
    bands = {
        "counted": of_fate(counts, useful),
        "grown": of_fate(counts, held - useful),
        "destroyed": of_fate(stays.fate == DESTROYED, held),
        "delayed": of_fate(stays.fate == DELAYED, held),
        "paused": of_fate(stays.fate == PAUSED, held),
        "kept": of_fate(stays.fate == KEPT, held),
        "down": level(run.down[1], run.down[2], np.ones(len(run.down[0]))),
    }
    free = np.maximum(nodes - sum(bands.values()), 0)
    wanted = _step(times, run.queue_s, run.queue_nodes)
    bands["idle"], bands["unused"] = np.minimum(free, wanted), np.maximum(free - wanted, 0)
    edges = np.linspace(start_h, stop_h, BINS + 1)
    at = hours(run, times)
    means = {name: _means(at, values / nodes, edges) for name, values in bands.items()}
    ends = edges[[0, -1]]
    return Curves(
        edges_h=edges,
        bands=means,
        queue_jobs=_means(at, _step(times, run.queue_s, run.queue_jobs.astype(float)), edges),
        free_nodes=_means(at, free, edges),
        share={name: float(_means(at, values / nodes, ends)[0]) for name, values in bands.items()},
    )


def _step(times: Floats, change_s: Floats, value: Floats) -> Floats:
    """Return the value of a step function at each time: that of its last change."""
    row = np.searchsorted(change_s, times, side="right") - 1
    return np.where(row >= 0, value[np.maximum(row, 0)], 0) if len(value) else np.zeros(len(times))


def _means(at: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the means of a step function between edges."""
    integral = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(at))])
    inside = np.interp(edges, at, integral)
    return np.diff(inside) / np.diff(edges)


def _frames(run: Replay, start_h: float, stop_h: float) -> Frames:
    """Return the occupancy at the instants of the window, at evenly spaced ones of them if they are too many."""
    stays, sides = run.stays, run.machine.sides
    changes = np.unique(np.concatenate([[run.begin_s], stays.start_s, stays.end_s, run.down[1], run.down[2]]))
    at = hours(run, changes)
    instants = changes[(at >= start_h) & (at <= stop_h)]
    if not len(instants):
        instants = np.array([run.begin_s + start_h * HOUR])
    most = max(2, FRAME_NODES // run.machine.nodes)
    if len(instants) > most:
        instants = instants[np.unique(np.linspace(0, len(instants) - 1, most).astype(int))]
    holder = np.zeros((len(instants), run.machine.nodes), np.int32)
    for k in range(len(stays)):
        frames = slice(*np.searchsorted(instants, [stays.start_s[k], stays.end_s[k]]))
        if frames.start < frames.stop:
            holder[frames, stays.node[stays.first_node[k] : stays.first_node[k + 1]]] = stays.job_id[k] + 1
    for node, since, until in zip(*run.down, strict=True):
        holder[slice(*np.searchsorted(instants, [since, until])), node] = DOWN
    free = holder == FREE
    in_largest = np.stack([_largest_box(frame, sides) for frame in free])
    return Frames(
        time_h=hours(run, instants),
        holder=holder,
        in_largest=in_largest,
        free=free.sum(1),
        largest=in_largest.sum(1),
        wanted=_step(instants, run.queue_s, run.queue_nodes).astype(np.int64),
    )


def _largest_box(free: NDArray[np.bool_], sides: tuple[int, int, int]) -> NDArray[np.bool_]:
    """Return which nodes are in the first largest free box (krevat2003: the maximal free partition)."""
    size, shape, base = FINDERS["columns"].largest_free_box(free.reshape(sides))
    inside = np.zeros(sides, bool)
    if size:
        along = [(start + np.arange(length)) % side for start, length, side in zip(base, shape, sides, strict=True)]
        inside[np.ix_(*along)] = True
    return inside.ravel()
