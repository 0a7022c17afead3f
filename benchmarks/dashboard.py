"""How fast the dashboard answers on a store of a million cells: ``python -m benchmarks.dashboard``.

First view: from the request to the verdict, and to the first curves. Brush: frames that the browser's own trace counts
while a box is drawn over the 10,000 points of the Pareto front, with all other views following.

A real browser turns knobs of the running dashboard and waits until the new picture is drawn. The store has ten axes of
four labels (4^10 = 1,048,576 cells), two metrics and no replicates. Times are medians of some turns; beside the wall
time stand the processor times of the server and of the browser (all of its processes; it draws without a graphics
card), which other programs on the machine hardly change. They follow each other, so their sum is about the wall time on
an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from faultsweep.sweeps.runner.prepare import attributes, prepare
from faultsweep.sweeps.store.store import DONE, create
from faultsweep.sweeps.sweep import Sweep

TARGET_MS = 150.0
TARGET_FRAMES = 20.0
RESULTS = Path(__file__).resolve().parent / "results" / "dashboard.json"
AXES = "abcdefghij"
# Chooses an option of the select that a label names, and resolves when Bokeh has drawn other numbers.
TURN = """async ([label, option]) => {
  const deep = (root) => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...deep(e.shadowRoot)] : [e]);
  const all = deep(document);
  const title = all.find(e => e.tagName === 'LABEL' && e.textContent.trim() === label);
  const select = title.getRootNode().querySelector('select');
  const numbers = () => JSON.stringify(Bokeh.documents.flatMap(d => [...d._all_models.values()])
    .filter(m => m.type === 'ColumnDataSource' && (m.data.label || m.data.column))
    .map(m => [...(m.data.value || m.data.y)]));
  const before = numbers(), start = performance.now();
  select.value = [...select.options].find(o => o.textContent === option).value;
  select.dispatchEvent(new Event('change'));
  while (numbers() === before || numbers() === '[]') await new Promise(r => requestAnimationFrame(r));
  await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));
  return performance.now() - start;
}"""


def nothing(a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0, j=0):
    """Have ten arguments; it is never called."""
    return {"y": 0.0, "z": 0.0}


def make_store(path: Path, axes: int) -> int:
    """Write a store of ``4 ** axes`` cells whose values are random; returns the cells."""
    labels = {name: [f"{name}{i}" for i in range(4)] if name < "c" else [0, 1, 2, 3] for name in AXES[:axes]}
    spec = Sweep(function=nothing, axes=labels, outputs=["y", "z"]).spec
    path.with_name(path.name + ".run").mkdir()
    prepared = prepare(spec, path)
    extra = {**attributes(spec, prepared), "provenance": json.dumps([])}
    store = create(path, prepared.grid, prepared.outputs, extra)
    random = np.random.default_rng(0)
    for name in ("y", "z"):
        store.arrays[name][...] = random.random(prepared.grid.shape)
    store.arrays["status"][...] = DONE
    return prepared.grid.size


def measure(path: Path, turns: int) -> dict[str, Any]:
    """Return how long knobs take in the browser, in ms."""
    from playwright.sync_api import sync_playwright

    command = [sys.executable, "-m", "faultsweep", "dashboard", str(path)]
    start = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        link = server.stdout.readline().strip()
        ready = time.perf_counter() - start
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            browser = [one for one in psutil.Process().children(recursive=True) if "chrom" in one.name()]
            turn = partial(_turn, psutil.Process(server.pid), browser, turns)
            page = chromium.new_page()
            begin, served = time.perf_counter(), _used([psutil.Process(server.pid)])
            page.goto(link)
            page.wait_for_function("() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0")
            page.locator("#overview .verdict, #overview .shares").first.wait_for()
            overview = time.perf_counter() - begin
            page.locator(".curves canvas").first.wait_for()
            curves = time.perf_counter() - begin
            page.locator(".tabulator-row").first.wait_for()
            page.locator(".pareto canvas").first.wait_for()
            whole = time.perf_counter() - begin
            page.wait_for_timeout(3000)
            used = {"server, s": round(_used([psutil.Process(server.pid)]) - served, 2)}
            first = {
                "overview, s": round(overview, 2),
                "curves, s": round(curves, 2),
                "all, s": round(whole, 2),
                **used,
            }
            found = {
                "another label of an axis": turn(page, "b", ["b1", "b2", "b3", "b0"]),
                "another metric": turn(page, "Metric", ["Z", "Y"]),
                "another horizontal axis": turn(page, "Horizontal axis", ["d", "e", "c"]),
            }
            found["another axis of the heat map"] = turn(page, "Heat map, horizontal", ["d", "e", "c"])
            frames = _brush(chromium, page)
            memory = round(psutil.Process(server.pid).memory_info().rss / 1e6)
            chromium.close()
    finally:
        server.terminate()
        server.wait()
    return {
        "start, s": round(ready, 2),
        "load average": round(os.getloadavg()[0], 1),
        **{
            "first view": first,
            "server memory, MB": memory,
            "brush": frames,
        },
        **found,
    }


def _brush(chromium: Any, page: Any) -> dict[str, float]:
    """Return the frames a second that the browser draws while a box grows over the Pareto front."""
    page.locator(".pareto canvas").first.scroll_into_view_if_needed()
    page.wait_for_timeout(500)
    box = page.locator(".pareto canvas").first.bounding_box()
    page.mouse.move(box["x"] + 110, box["y"] + 40)
    page.mouse.down()
    chromium.start_tracing(page=page, categories=["disabled-by-default-devtools.timeline.frame", "devtools.timeline"])
    start = time.perf_counter()
    for step in range(40):
        page.mouse.move(box["x"] + 110 + 5 * step, box["y"] + 40 + 5 * step)
    took = time.perf_counter() - start
    trace = json.loads(chromium.stop_tracing())
    page.mouse.up()
    drawn = sum(event["name"] == "DrawFrame" for event in trace["traceEvents"])
    return {"frames a second": round(drawn / took, 1), "frames": drawn, "s": round(took, 2)}


def _turn(
    server: psutil.Process, browser: list[psutil.Process], turns: int, page: Any, label: str, options: list[str]
) -> dict[str, float]:
    page.evaluate(TURN, [label, options[0]])
    page.wait_for_timeout(500)
    before = _used([server]), _used(browser)
    took = [page.evaluate(TURN, [label, options[number % len(options)]]) for number in range(1, turns + 1)]
    page.wait_for_timeout(500)
    used = [1000 * (after - was) / turns for after, was in zip((_used([server]), _used(browser)), before, strict=True)]
    return {
        "median, ms": round(float(np.median(took))),
        "processor of the server, ms": round(used[0]),
        "processor of the browser, ms": round(used[1]),
    }


def _used(processes: list[psutil.Process]) -> float:
    """Return the processor time that processes and their children have used, s."""
    every = {child.pid: child for one in processes for child in (one, *one.children(recursive=True))}
    return sum(sum(one.cpu_times()[:2]) for one in every.values())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, and write the figures into benchmarks/results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a small store, nothing written")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "million.zarr"
        cells = make_store(path, 5 if options.small else 10)
        figures = {"cells": cells, **measure(path, 2 if options.small else 8)}
    for name, value in figures.items():
        note = ""
        if isinstance(value, dict) and "median, ms" in value:
            reached = value["median, ms"] <= TARGET_MS
            note = f"   target <= {TARGET_MS:g} ms: {'reached' if reached else 'MISSED'}"
        print(f"    {name:32} {value}{note}")
    if not options.small:
        RESULTS.write_text(json.dumps(figures, indent=1) + "\n")
    return figures


if __name__ == "__main__":
    main()
