"""How the time of one search grows with the side M of an M x M x M torus, for every finder (krevat2003, ch. 3).

    python -m benchmarks.finders                  # CSV, table of exponents and figure into benchmarks/results
    python -m benchmarks.finders --cap 30         # searches of up to half a minute: more sides for the slow finders

Two searches: the largest free box, and all free boxes of an eighth of the nodes (of the next size that is possible).
Three occupancies: the empty torus, 70 % of the nodes held by boxes as jobs leave them, and half of the nodes taken at
random.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.finders import FINDERS, boxes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

RESULTS = Path(__file__).resolve().parent / "results"
SIDES = (4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 28, 32)
SEARCHES = {"largest": "largest free box", "size": "all free boxes of M³/8 nodes"}
OCCUPANCIES = {"empty": "empty torus", "jobs": "70 % held by boxes", "random": "50 % taken at random"}
# Okabe and Ito's colours, and a marker each, so that neither colour nor print decides who can read the figure.
STYLES = {
    "exhaustive": ("#D55E00", "s"),
    "pop": ("#0072B2", "o"),
    "divisor": ("#009E73", "^"),
    "columns": ("#000000", "D"),
}
SMALLEST_FITTED = 6  # below, the cost of the call and the sums of lower powers of M weigh more than the highest power
DRAWS = 3  # occupancies of each kind and side

Occupancy = NDArray[np.uint8]


class Timing(NamedTuple):
    """Median processor time of one search by one finder over the occupancies drawn for a side."""

    search: str
    occupancy: str
    finder: str
    side: int
    seconds: float


class Exponent(NamedTuple):
    """Slope of log time against log M, with the ends of its 95 % interval."""

    search: str
    occupancy: str
    finder: str
    smallest: int
    largest: int
    exponent: float
    low: float
    high: float


@cache
def draw_occupancy(kind: str, side: int, draw: int) -> Occupancy:
    """Return a random occupancy of a torus of side³ nodes, 1 = free."""
    rng = np.random.default_rng((side, draw))
    free = np.ones((side, side, side), dtype=np.uint8)
    if kind == "random":
        return (rng.random(free.shape) < 0.5).astype(np.uint8)
    while kind == "jobs" and free.mean() > 0.3:
        # Jobs of up to half a side in each direction; one that meets a taken node tries again at half the size.
        shape = rng.integers(1, side // 2 + 1, 3)
        base = rng.choice(np.argwhere(free))
        while not free[wrapped_box(shape, base, side)].all():
            shape = np.maximum(shape // 2, 1)
        free[wrapped_box(shape, base, side)] = 0
    return free


def wrapped_box(shape: NDArray[np.int64], base: NDArray[np.int64], side: int) -> tuple[NDArray[np.int64], ...]:
    """Return the index of a box that may wrap around."""
    return np.ix_(*((start + np.arange(length)) % side for start, length in zip(base, shape, strict=True)))


def make_search(finder: str, search: str, free: Occupancy) -> Callable[[], object]:
    """Return the search of one occupancy as a function without arguments, all its scratch allocated."""
    module, sizes = FINDERS[finder], boxes.possible_sizes(free.shape)
    size = int(sizes[np.searchsorted(sizes, max(1, free.size // 8))])
    work = boxes.finder_work(free.shape)
    if search == "largest":
        out = np.zeros((1, 6), dtype=np.int64)
        return lambda: module.largest_free_box_kernel(free, work, out)
    out = np.zeros((boxes.num_boxes(free.shape, size), 6), dtype=np.int64)
    return lambda: module.free_boxes_kernel(free, size, work, out)


def time_call(function: Callable[[], object], least_s: float) -> float:
    """Return the least processor time of one call, s, among three rounds of calls that last ``least_s`` each."""
    calls, best = 1, np.inf
    for _ in range(4):  # the first round is one call, which also warms the caches
        began = time.process_time()
        for _ in range(calls):
            function()
        took = time.process_time() - began
        best = min(best, took / calls)
        if took > 0.2:
            break
        calls = max(1, int(least_s / max(best, 1e-7)))
    return best


def measure(cap_s: float, sides: tuple[int, ...] = SIDES, least_s: float = 0.02) -> Iterator[Timing]:
    """Time every search; a finder goes on to larger sides as long as a search is expected to stay below ``cap_s``.

    least_s: how long each round of calls lasts (``time_call``).
    """
    for search in SEARCHES:
        for occupancy in OCCUPANCIES:
            for finder in FINDERS:
                past: list[tuple[int, float]] = []
                for side in sides:
                    if expected_time(past, side) > cap_s:
                        break
                    draws = DRAWS if occupancy != "empty" else 1
                    drawn = [draw_occupancy(occupancy, side, draw) for draw in range(draws)]
                    seconds = float(
                        np.median([time_call(make_search(finder, search, free), least_s) for free in drawn])
                    )
                    past.append((side, seconds))
                    yield Timing(search, occupancy, finder, side, seconds)


def expected_time(past: list[tuple[int, float]], side: int) -> float:
    """Return the time that the growth of the last two sides lets expect at the next one."""
    if len(past) < 2:
        return 0.0
    (before, faster), (last, slower) = past[-2:]
    growth = np.log(slower / faster) / np.log(last / before)
    return slower * (side / last) ** max(growth, 1.0)


def fit_exponents(timings: list[Timing]) -> list[Exponent]:
    """Fit log time against log M by least squares for every curve with at least four sides."""
    exponents = []
    for key in dict.fromkeys(timing[:3] for timing in timings):
        curve = [(t.side, t.seconds) for t in timings if t[:3] == key and t.side >= SMALLEST_FITTED]
        if len(curve) < 4:
            continue
        side, seconds = np.array(curve).T
        fit = stats.linregress(np.log(side), np.log(seconds))
        half = stats.t.ppf(0.975, len(side) - 2) * fit.stderr
        exponents.append(Exponent(*key, int(side[0]), int(side[-1]), fit.slope, fit.slope - half, fit.slope + half))
    return exponents


def draw(timings: list[Timing], exponents: list[Exponent]) -> Figure:
    """Draw time against M: a row for each search, a column for each occupancy, the exponents in the legends."""
    figure = Figure(figsize=(13, 8), layout="constrained")
    axes = figure.subplots(len(SEARCHES), len(OCCUPANCIES), sharex=True, sharey=True)
    fitted = {exponent[:3]: exponent for exponent in exponents}
    for row, (search, search_title) in zip(axes, SEARCHES.items(), strict=True):
        for ax, (occupancy, occupancy_title) in zip(row, OCCUPANCIES.items(), strict=True):
            for finder, (colour, marker) in STYLES.items():
                curve = [(t.side, t.seconds) for t in timings if t[:3] == (search, occupancy, finder)]
                if curve:
                    label = _label(finder, fitted.get((search, occupancy, finder)))
                    ax.loglog(*zip(*curve, strict=True), color=colour, marker=marker, ms=5, lw=1.5, label=label)
            ax.set_title(f"{search_title}, {occupancy_title}", fontsize=10)
            ax.grid(which="major", color="0.88", lw=0.7)
            ax.legend(fontsize=8, loc="upper left", framealpha=0.9)
            ax.minorticks_off()
            ax.set_ylim(1e-6, 1e2)  # room for the legend
            ax.set_xticks([4, 6, 8, 12, 16, 24, 32], labels=["4", "6", "8", "12", "16", "24", "32"])
    for ax in axes[-1]:
        ax.set_xlabel("side M of an M × M × M torus")
    for ax in axes[:, 0]:
        ax.set_ylabel("processor time of one search, s")
    return figure


def _label(finder: str, exponent: Exponent | None) -> str:
    if exponent is None:
        return finder
    return f"{finder}: M^{exponent.exponent:.1f} ({exponent.low:.1f} to {exponent.high:.1f})"


def write_csv(path: Path, rows: list[Timing] | list[Exponent]) -> None:
    """Write named tuples as a CSV file with their field names as header."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0]._fields)
        writer.writerows([f"{value:.4g}" if isinstance(value, float) else value for value in row] for row in rows)


def main() -> None:
    """Measure, fit, and write CSV files and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cap", type=float, default=1.0, help="longest search to start, seconds (default 1)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="directory (default benchmarks/results)")
    options = parser.parse_args()
    for _ in measure(cap_s=1.0, sides=(4,)):  # compiles
        pass
    timings = []
    for timing in measure(options.cap):
        timings.append(timing)
        print(f"{timing.search:8} {timing.occupancy:7} {timing.finder:11} M = {timing.side:2} {timing.seconds:10.3g} s")
    exponents = fit_exponents(timings)
    for fit in exponents:
        print(f"{fit.search:8} {fit.occupancy:7} {_label(fit.finder, fit)} for M = {fit.smallest} to {fit.largest}")
    options.output.mkdir(parents=True, exist_ok=True)
    write_csv(options.output / "finders.csv", timings)
    write_csv(options.output / "finders-exponents.csv", exponents)
    draw(timings, exponents).savefig(options.output / "finders.png", dpi=130)
    print(f"Wrote finders.csv, finders-exponents.csv and finders.png in {options.output}")


if __name__ == "__main__":
    main()
