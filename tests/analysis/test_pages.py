"""Pages stay as they were when somebody looked at them in Chromium, light and dark, wide and narrow."""

from __future__ import annotations

import base64
import io
from dataclasses import replace
from pathlib import Path

import pytest
from faultsweep.analysis.figures.draw import draw_html
from matplotlib import get_data_path
from PIL import Image

from .picturing import MOST, check_kept, difference
from .test_pictures import figures

pytestmark = pytest.mark.chromium

KINDS = ("bands", "dodged", "log", "dots", "signed", "bars", "points", "stacked", "heat", "cells", "regions", "table")
CASES = [(name, 800, "light") for name in KINDS]
CASES += [(name, 400, "dark") for name in ("dodged", "bars", "stacked", "heat", "cells", "regions", "table")]
CASES += [("dodged", 1440, "light"), ("heat", 1440, "dark")]


def _with_font(page):
    # other machines have other fonts: pages get the one that comes with matplotlib
    font = base64.b64encode(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf").read_bytes()).decode()
    face = f"@font-face{{font-family:helvetica;src:url(data:font/ttf;base64,{font})}}"
    return page.replace("</style>", f"{face} body{{font-family:helvetica!important}}</style>", 1)


def shown(browser, figure, width, look, folder):
    """Return the page of a figure as a window of this width shows it, half as large."""
    path = folder / "a.html"
    draw_html(figure, path)
    path.write_text(_with_font(path.read_text()))
    tab = browser.new_page(color_scheme=look, viewport={"width": width - 8, "height": 600})
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-drawn], td", timeout=20_000)
    tab.evaluate("() => document.fonts.load('13px helvetica')")
    tab.set_viewport_size({"width": width, "height": 600})  # what was drawn in another font is drawn again
    tab.wait_for_timeout(400)
    picture = Image.open(io.BytesIO(tab.screenshot(full_page=True))).convert("RGB")
    tab.close()
    return picture.resize((picture.width // 2, picture.height // 2), Image.Resampling.BOX)


@pytest.mark.parametrize(("name", "width", "look"), CASES)
@pytest.mark.sampled(6)
def test_a_page_is_as_it_was(browser, name, width, look, tmp_path):
    check_kept(shown(browser, figures()[name], width, look, tmp_path), f"pages/{name}-{width}-{look}")


@pytest.mark.sampled(0)
def test_another_page_is_told_apart(browser, tmp_path):
    """Another colour, another order, another word, a curve less, and the other look are seen."""
    bars, lines = figures()["bars"], figures()["dodged"]
    [panel] = bars.panels
    first, second, *others = panel.bars
    swapped = [replace(first, style=second.style), replace(second, style=first.style), *others]
    planted = [
        (bars, replace(bars, panels=[replace(panel, bars=swapped)])),
        (bars, replace(bars, panels=[replace(panel, bars=panel.bars[::-1])])),
        (bars, replace(bars, panels=[replace(panel, categories=["Even", "another policy", "All-B"])])),
        (lines, replace(lines, panels=[replace(one, curves=one.curves[:4]) for one in lines.panels])),
    ]
    for figure in (bars, lines):
        kept = shown(browser, figure, 800, "light", tmp_path)
        assert difference(kept, shown(browser, figure, 800, "light", tmp_path)) == 0
        for other in (other for one, other in planted if one is figure):
            assert difference(kept, shown(browser, other, 800, "light", tmp_path)) > MOST
