"""The dashboard over odd stores, in a real browser: every control is turned, and nobody complains."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .driving import drive
from .odd_stores import MAKERS, far_numbers, one_cell, one_label, ten_axes
from .serving import Served, watched
from .stores import write_results
from .test_live import SWEEP
from .test_strangers import harmful

pytestmark = [pytest.mark.chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def context(browser):
    context = browser.new_context(accept_downloads=True, viewport={"width": 1300, "height": 3200})
    yield context
    context.close()


BLOCKED = "Data Load Response Blocked"
"""Tabulator says so where new rows come while it asks for others; it shows the new ones."""


def driven(context, place, *options):
    """Open a dashboard and turn all that there is; nothing may be complained about, in the browser or the server."""
    with Served(place, *options) as served:
        page, complaints = watched(context, served)
        page.goto(served.link)
        page.get_by_label("Metric", exact=True).wait_for()
        page.wait_for_timeout(2000)
        done = drive(page)
        assert [one for one in complaints if not one.startswith(BLOCKED)] == []
        page.close()
        served.stop()
    return done


@pytest.mark.parametrize("make", MAKERS)
def test_every_control_of_an_odd_store_can_be_turned(context, tmp_path, make):
    done = driven(context, write_results(tmp_path / "odd.zarr", make()))
    assert done["selects"] >= 8
    assert done["files"] >= 7


def test_every_control_of_a_strangers_store_can_be_turned(context, tmp_path):
    driven(context, harmful(tmp_path / "odd.zarr"), "--allow-rerun")


@pytest.mark.parametrize("other", [one_cell, far_numbers, ten_axes])
def test_stores_of_other_shapes_are_compared(context, tmp_path, other):
    """With other axes, with other labels of one axis, and with no label in common: a sentence or a table says so."""
    here = write_results(tmp_path / "odd.zarr", one_label() if other is not far_numbers else far_numbers())
    results = other()
    results = results.isel(load=[1, 2], replicate=[0]) if other is far_numbers else results
    with Served(here, "--compare", str(write_results(tmp_path / "other.zarr", results))) as served:
        page, complaints = watched(context, served)
        page.goto(served.link)
        words = "other axes" if other is not far_numbers else "cells that both have"
        page.locator("#compare").get_by_text(words).first.wait_for()
        assert complaints == []
        page.close()
        served.stop()


def test_every_control_can_be_turned_while_a_store_is_written(context, tmp_path):
    """First its results are in journals alone, then in chunks, which come while the controls are turned."""
    (tmp_path / "gated.py").write_text(SWEEP)
    with Served(tmp_path / "gated.zarr") as served, (tmp_path / "errors.txt").open("w") as errors:
        page, complaints = watched(context, served)
        page.goto(served.link)
        run = subprocess.Popen([sys.executable, "gated.py"], cwd=tmp_path, stderr=errors)
        try:
            page.get_by_text("Running: ").first.wait_for(timeout=60_000)
            page.get_by_label("Metric", exact=True).wait_for()
            page.wait_for_timeout(2000)
            drive(page)
            (tmp_path / "gate").touch()
            drive(page)
            page.get_by_text("100% done").first.wait_for(timeout=60_000)
        finally:
            (tmp_path / "gate").touch()
            assert run.wait(60) == 0, (tmp_path / "errors.txt").read_text()
        assert [one for one in complaints if not one.startswith(BLOCKED)] == []
        page.close()
        served.stop(f"{served.path} does not exist yet; the page waits for it\n")
