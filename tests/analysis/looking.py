"""Draws every shipped figure as readers see it: at three widths, in light and dark, as a picture and as a page.

``python -m tests.analysis.looking FOLDER`` simulates a small part of every shipped experiment (kept in the folder for
the next time) and puts the figures together on contact sheets, ``FOLDER/sheets``, for someone to look at.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faultsweep.analysis.figures.draw import draw_html
from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.layout import DARK, LIGHT
from faultsweep.cluster.connect import connect
from faultsweep.sweeps.open import open_results
from faultsweep.sweeps.spec import experiments, load_toml
from faultsweep.sweeps.substitutes import replace_logs
from faultsweep.sweeps.sweep import Sweep
from PIL import Image, ImageDraw

from faultsweep.cli.figure import _figure, _layout

from .picturing import drawn

WIDTHS = (400, 800, 1440)
LOOKS = {"light": LIGHT, "dark": DARK}
PER_INCH = 96
_SHEET = (1240, 960)
"""Width and height of a sheet in pixels; one that is larger is made smaller by what shows it."""
_GAP, _LINE = 8, 14
_MOST_LABELS = 7
"""Labels of an axis of numbers that are simulated."""
_LONG = ("num_failures", "load_scale", "cp_frac")


def small_sweep(name: str, jobs: int = 400, replicates: int = 4) -> Sweep:
    """Return a shipped experiment with few jobs and replicates, all its axes, and models for its logs."""
    raw: dict[str, Any] = replace_logs({"name": name, **load_toml(experiments()[name])}, None, {}, {})
    many = 2000 if name.startswith("akshitha") else jobs  # of four clusters
    raw["fixed"] |= {"days": 5.0} if raw.get("target") == "failures" else {"num_jobs": many}
    raw["replicates"] = replicates
    raw.pop("exclude", None)  # it names labels that may be left out here
    for axis in set(_LONG) & set(raw["axes"]):
        raw["axes"][axis] = _some(raw["axes"][axis])
    return Sweep(**raw)


def _some(labels: Any) -> Any:
    """Return the first, the last and some labels between them of a long axis of numbers."""
    if not isinstance(labels, list) or len(labels) <= _MOST_LABELS:
        return labels
    places = {round(n * (len(labels) - 1) / (_MOST_LABELS - 1)) for n in range(_MOST_LABELS)}
    return [labels[place] for place in sorted(places)]


def shipped_figures(folder: Path, names: list[str]) -> Iterator[Figure]:
    """Yield the figure of each experiment; what its store in the folder lacks is simulated."""
    os.environ["FAULTSWEEP_LOGS"] = str(folder)  # without real logs, whose replicates are copies
    with connect("local", 2) as client:
        for name in names:
            sweep = small_sweep(name)
            sweep.run(folder / f"{name}.zarr", cluster=client, progress=False, results=False)
            yield _figure(sweep, _layout(name, sweep), open_results(folder / f"{name}.zarr"))


def draw_pictures(figures: list[Figure], folder: Path) -> None:
    """Draw each figure with matplotlib in each width and look."""
    for figure in figures:
        for width in WIDTHS:
            for look, theme in LOOKS.items():
                picture = drawn(figure, width / PER_INCH, theme, PER_INCH)
                picture.save(folder / f"picture-{width}-{look}-{figure.name}.png")


def draw_pages(figures: list[Figure], folder: Path) -> None:
    """Draw each figure with Bokeh, as Chromium shows the page in each width and look."""
    from playwright.sync_api import sync_playwright

    for figure in figures:
        draw_html(figure, folder / f"{figure.name}.html")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for width in WIDTHS:
            for look in LOOKS:
                context = chromium.new_context(color_scheme=look, viewport={"width": width, "height": 700})
                tab = context.new_page()
                for figure in figures:
                    tab.goto((folder / f"{figure.name}.html").as_uri())
                    tab.wait_for_selector("html[data-drawn], td")
                    tab.wait_for_timeout(300)
                    tab.screenshot(path=folder / f"page-{width}-{look}-{figure.name}.png", full_page=True)
                context.close()
        chromium.close()


def write_sheets(folder: Path) -> list[Path]:
    """Put the drawn figures of each way to draw, width and look together on sheets, and return these."""
    (folder / "sheets").mkdir(exist_ok=True)
    sheets = []
    for way in ("picture", "page"):
        for width in WIDTHS:
            for look in LOOKS:
                kind = f"{way}-{width}-{look}"
                paths = sorted(folder.glob(f"{kind}-*.png"))
                for number, sheet in enumerate(_sheets(paths, kind, width)):
                    sheets.append(folder / "sheets" / f"{kind}-{number:02}.png")
                    sheet.save(sheets[-1])
    return sheets


def _sheets(paths: list[Path], kind: str, width: int) -> Iterator[Image.Image]:
    """Yield sheets on which figures of one width stand in columns, as far as possible in their own size."""
    columns = max(2, _SHEET[0] // width) if width < _SHEET[0] else 1
    each = _SHEET[0] // columns
    sheet, heights = None, [0] * columns
    for path in paths:
        picture = Image.open(path).convert("RGB")
        scale = min(1.0, (each - _GAP) / picture.width)
        picture = picture.resize((round(scale * picture.width), round(scale * picture.height)))
        column = heights.index(min(heights))
        if sheet is None or (any(heights) and heights[column] + picture.height + _LINE > _SHEET[1]):
            if sheet is not None:
                yield sheet.crop((0, 0, _SHEET[0], max(heights)))
            sheet, heights, column = Image.new("RGB", (_SHEET[0], 4 * _SHEET[1]), "#888888"), [0] * columns, 0
        at = (column * each, heights[column])
        ImageDraw.Draw(sheet).text((at[0] + 2, at[1] + 1), path.stem.removeprefix(f"{kind}-"), fill="#000000")
        sheet.paste(picture, (at[0], at[1] + _LINE))
        heights[column] += picture.height + _LINE + _GAP
    if sheet is not None:
        yield sheet.crop((0, 0, _SHEET[0], max(heights)))


def main() -> None:
    """Simulate, draw, and put together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="experiments; all if none is named")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    figures = list(shipped_figures(given.folder.resolve(), given.names or sorted(experiments())))
    draw_pictures(figures, given.folder)
    draw_pages(figures, given.folder)
    for sheet in write_sheets(given.folder):
        print(sheet)


if __name__ == "__main__":
    main()
