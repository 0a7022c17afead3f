"""Stores that a stranger has made to do harm: nothing of them runs, in any command and on any page."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import xarray as xr
import zarr
from faultsweep.analysis.compare import compare
from faultsweep.analysis.dashboard.choices import default_choices
from faultsweep.analysis.dashboard.view import figure_of, heat_map
from faultsweep.analysis.figures.draw import draw_html, draw_picture
from faultsweep.analysis.notebook import write_notebook
from faultsweep.analysis.report import write_report
from faultsweep.sweeps.open import open_jobs, open_results
from faultsweep.sweeps.rerun import rerun
from faultsweep.sweeps.status import read_status
from faultsweep.sweeps.store.merge import merge
from faultsweep.sweeps.store.opener import zstd_size
from faultsweep.sweeps.store.pack import pack
from faultsweep.sweeps.sweep import Sweep
from numcodecs.zstd import Zstd
from typer.testing import CliRunner

from faultsweep.cli import app, main
from faultsweep.errors import InputError
from faultsweep.terminal import plain

from .stores import make_results, write_results

RUN = "window.harmed=1"
MARKUP = (
    f"<img src=x onerror='{RUN}'></title></script></style><script>{RUN}</script>\"'><svg onload={RUN}>"
    f"<a href='javascript:{RUN}'>x</a> $$\\href{{javascript:{RUN}}}{{x}}$$ $\\frac{{ <!--<script>"
)
NAME = f"m<img src=x onerror={RUN}>"
"""A name of an array cannot have a slash."""
CONTROLS = "\x1b]0;owned\x07\x1b[2J\x9b2J\u202e\r"


def harmful(path, text=MARKUP, name=NAME):
    """A store with ``text`` wherever a store has text."""
    axes = {name: ["fcfs" + text, "x" + text, "y"], "load_scale": [0.5, 1.0, 1.5]}
    values = np.random.default_rng(1).gamma(3, 100, (3, 3, 3))
    status = np.ones((3, 3, 3), dtype=np.int8)
    status[2, 2] = 2
    metric = "mean_wait_s"
    data = make_results(axes, {metric: values}, status, 3, fixed={"machine": text, text: text})
    for variable in (name, "load_scale", metric, "status"):
        data[variable].attrs |= {"units": text, "long_name": text}
    data["error"] = (data["status"].dims, np.where(status == 2, text, "").astype(object))
    data["wall_s"] = (data["status"].dims, np.ones((3, 3, 3)))
    texts = ("name", "title", "target", "licence", "citation", "acknowledgements", "model_version", "submission")
    data.attrs |= dict.fromkeys(texts, text)
    data.attrs["spec"] = f"# {text!a}\n"
    run = {"versions": {text: text}, "host": text, "time": text, "batch_job": text}
    data.attrs |= {"provenance": json.dumps([run]), "pins": json.dumps({text: text})}
    data.attrs |= {"axes": json.dumps([{"name": axis, "parameters": [axis]} for axis in (*axes, "replicate")])}
    data.attrs |= {"formulas": json.dumps({}), "adding": "[]", "open_runs": "[]"}
    return write_results(path, data)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return harmful(tmp_path_factory.mktemp("harmful") / "s.zarr")


PLANTED = """() => {
  const deep = (root) => [...root.querySelectorAll('*')].flatMap(e => e.shadowRoot ? [e, ...deep(e.shadowRoot)] : [e]);
  return deep(document).filter(e => e.matches("img[src=x], svg[onload], a[href^=javascript]")).length;
}"""
"""How many elements of the page are the store's."""


def point_at_all(page):
    """Move the mouse over the first plot, so that it shows the notes on its points."""
    box = page.locator("canvas").first.bounding_box() if page.locator("canvas").count() else None
    for part in range(64 if box else 0):
        across, down = divmod(part, 8)
        page.mouse.move(box["x"] + (across + 0.5) * box["width"] / 8, box["y"] + (down + 0.5) * box["height"] / 8)


@contextlib.contextmanager
def unharmed(browser, address, ready, without_policy=False):
    """Yield a page that is looked at; at the end nothing of the store has run, and nobody else was asked.

    ``without_policy``: the browser heeds no content security policy, so that escaping alone has to hold.
    """
    page = browser.new_page(bypass_csp=without_policy)
    elsewhere, refused = [], []
    own = address.partition("?")[0]
    page.on("request", lambda request: request.url.startswith((own, "data:", "blob:")) or elsewhere.append(request.url))
    page.on("console", lambda message: "Content Security Policy" in message.text and refused.append(message.text))
    page.goto(address)
    page.wait_for_function(ready)
    yield page
    page.wait_for_timeout(300)  # a picture that is not there tells so a little later
    assert page.evaluate("window.harmed") is None
    assert page.evaluate(PLANTED) == 0
    assert elsewhere == []
    assert refused == [], "text of the store became markup, and only the policy has stopped it"
    page.close()


@pytest.mark.chromium
def test_nothing_of_a_store_runs_on_a_page(store, browser, tmp_path):
    pytest.importorskip("panel")  # which adds scripts of its own to pages of Bokeh
    data = open_results(store)
    write_report(data, tmp_path / "report.html")
    choices = default_choices(data)
    draw_html(figure_of(data, choices), tmp_path / "figure.html")
    draw_html(heat_map(data, choices), tmp_path / "heat.html")
    draw_picture(figure_of(data, choices), tmp_path / "figure.svg")
    for name in ("report.html", "figure.html", "heat.html", "figure.svg"):
        drawn = "() => document.readyState === 'complete'"
        if name in ("figure.html", "heat.html"):
            drawn = "() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0"
        with unharmed(browser, (tmp_path / name).as_uri(), drawn) as page:
            point_at_all(page)


@pytest.mark.chromium
def test_nothing_runs_on_the_page_of_a_run_or_in_a_notebook(browser, tmp_path):
    """Labels, the name of the axis, of the store and of an event trace are markup."""
    folder = tmp_path / f"{NAME}.zarr"
    rows = [{"label": MARKUP, "scheduler": "fcfs"}, {"label": "y", "scheduler": "backfill"}]
    fixed = {"log": "nasa-model", "num_jobs": 30, "machine": "torus:4x4x8"}
    sweep = Sweep(name="s", title=MARKUP, axes={"policy": rows}, fixed=fixed)
    data = sweep.run(folder, workers=1, progress=False)
    run = sweep.rerun(folder, select={"policy": MARKUP}, events=True).run
    run.events.write_csv(tmp_path / f"{NAME}.csv")
    for number, words in enumerate((["--select", f"policy={MARKUP}"], ["--machine", "torus:4x4x8"])):
        source = folder if number == 0 else tmp_path / f"{NAME}.csv"
        result = CliRunner().invoke(app, ["view", str(source), *words, "-o", str(tmp_path / str(number))])
        assert result.exit_code == 0, result.output
    hostile = replace(run, config={**run.config, "scheduler": MARKUP, "machine": MARKUP}, status=MARKUP)
    shown = (sweep, hostile, data, data["mean_wait_s"])
    (tmp_path / "notebook.html").write_text("".join(one._repr_html_() for one in shown))
    pages = [path for number in "01" for path in (tmp_path / number).glob("*.html")]
    assert len(pages) == 2
    for path in pages:
        with unharmed(
            browser, path.as_uri(), "() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0"
        ) as page:
            point_at_all(page)
    with unharmed(browser, (tmp_path / "notebook.html").as_uri(), "() => document.readyState === 'complete'"):
        pass


@pytest.mark.chromium
@pytest.mark.slow
def test_escaping_alone_keeps_the_dashboard_from_running_anything(store, browser):
    """Without the policy what is planted on the page runs, and nothing of the store does."""
    command = [sys.executable, "-P", "-m", "faultsweep", "dashboard", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        link = process.stdout.readline().strip()
        ready = "() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0"
        with unharmed(browser, link, ready, without_policy=True) as page:
            page.set_viewport_size({"width": 1280, "height": 9000})  # parts are drawn once they are on the screen
            page.locator(".tabulator-row").first.wait_for()
            page.wait_for_timeout(500)
            point_at_all(page)
            for view in ("heat map", "curves", "Pareto front", "parallel coordinates", "all views"):
                page.get_by_label("View", exact=True).select_option(view)
                page.wait_for_timeout(700)
                point_at_all(page)
            planted = browser.new_page(bypass_csp=True)
            planted.goto(link)
            planted.evaluate(f"document.body.insertAdjacentHTML('beforeend', '<b onclick=\"{RUN}\" id=b>b</b>')")
            planted.evaluate("document.getElementById('b').click()")
            assert planted.evaluate("window.harmed") == 1  # no policy is at work here
            planted.close()
    finally:
        process.terminate()
        assert process.wait(20) == 0


@pytest.mark.chromium
def test_nothing_of_a_store_runs_in_the_dashboard(store, browser):
    command = [sys.executable, "-P", "-m", "faultsweep", "dashboard", str(store)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        link = process.stdout.readline().strip()
        ready = "() => typeof Bokeh !== 'undefined' && Bokeh.documents.length > 0"
        with unharmed(browser, link, ready) as page:
            page.set_viewport_size({"width": 1280, "height": 9000})  # parts are drawn once they are on the screen
            page.locator(".tabulator-row").first.wait_for()
            page.wait_for_timeout(500)
            page.get_by_label("View", exact=True).select_option("heat map")
            page.wait_for_timeout(700)
            point_at_all(page)
            response = page.request.get(link.partition("?")[0])
            assert response.headers["x-frame-options"] == "DENY"
            policy = response.headers["content-security-policy"]
            assert "frame-ancestors 'none'" in policy
            assert "script-src 'self' 'nonce-" in policy
            assert "unsafe-inline'" not in policy.partition("script-src")[2].partition(";")[0]
            page.evaluate(f"document.body.insertAdjacentHTML('beforeend', '<b onclick=\"{RUN}\" id=b>b</b>')")
            page.evaluate("document.getElementById('b').click()")  # the policy holds where escaping has been forgotten
            assert page.evaluate("window.harmed") is None
            page.close = lambda: None
    except AssertionError as error:
        if "only the policy" not in str(error):  # the last lines have just asked for that
            raise
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_a_notebook_quotes_what_a_store_says(store, tmp_path):
    write_notebook(str(store), tmp_path / "n.ipynb")
    cells = json.loads((tmp_path / "n.ipynb").read_text())["cells"]
    words = "".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert "<img" not in words
    assert "<script" not in words
    for cell in cells:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), "cell", "exec")


class Harm:
    """An object that, unpickled, makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def with_pickle(path, mark):
    """A group of Zarr 3 whose consolidated metadata has an array of Zarr 2 with a pickle compressor."""
    from numcodecs import Pickle

    root = json.loads((path / "zarr.json").read_text())
    members = root["consolidated_metadata"]["metadata"]
    members["mean_wait_s"] = {
        **{"zarr_format": 2, "shape": [3, 3, 3], "chunks": [3, 3, 3], "dtype": "|O", "order": "C", "fill_value": 0},
        **{"compressor": {"id": "pickle"}, "filters": [{"id": "pickle"}], "attributes": {}, "dimension_separator": "."},
    }
    (path / "zarr.json").write_text(json.dumps(root))
    (path / "mean_wait_s" / "0.0.0").write_bytes(bytes(Pickle().encode(np.array([Harm(mark)], dtype=object))))
    (path / "mean_wait_s" / ".zarray").write_text(json.dumps(members["mean_wait_s"]))


def openers(path, folder):
    """Everything that opens a store, by name."""
    sweep = Sweep(axes={"load_scale": [1.0]}, fixed={"log": "nasa-model", "num_jobs": 10})
    return {
        "open_results": lambda: open_results(path).load(),
        "open_jobs": lambda: open_jobs(open_results(path)),
        "compare": lambda: compare(str(path), str(path)),
        "report": lambda: write_report(open_results(path), folder / "r.html"),
        "notebook": lambda: write_notebook(str(path), folder / "n.ipynb"),
        "merge": lambda: merge([path, path], folder / "m.zarr"),
        "pack": lambda: pack(path, folder / "p.zarr.zip"),
        "status": lambda: read_status(path),
        "rerun": lambda: rerun(path, "load_scale=1.0"),
        "plan": lambda: sweep.plan(path, measure=False, progress=False),
        "run": lambda: sweep.run(path, progress=False, workers=1),
    }


@pytest.mark.parametrize("what", sorted(openers("", None)))
def test_no_pickle_of_a_store_is_opened(tmp_path, what):
    path = harmful(tmp_path / "s.zarr", text="x", name="policy")
    with_pickle(path, tmp_path / "harmed")
    with pytest.raises(InputError, match=r"'mean_wait_s' is not of Zarr 3"):
        openers(path, tmp_path)[what]()
    assert not (tmp_path / "harmed").exists()


def edited(path, change):
    root = json.loads((path / "zarr.json").read_text())
    change(root["consolidated_metadata"]["metadata"], root)
    (path / "zarr.json").write_text(json.dumps(root))
    return path


HARMS = {
    "codec": (lambda m, r: m["wall_s"]["codecs"].append({"name": "numcodecs.pickle"}), "is coded by"),
    "nested codec": (lambda m, r: m["wall_s"].update(codecs=[{"name": "sharding_indexed"}]), "is coded by"),
    "object type": (lambda m, r: m["wall_s"].update(data_type={"name": "object"}), "which no store has"),
    "endless text": (
        lambda m, r: m["wall_s"].update(
            data_type={"name": "fixed_length_utf32", "configuration": {"length_bytes": 1 << 40}}
        ),
        "which no store has",
    ),
    "endless coordinate": (lambda m, r: m["load_scale"].update(shape=[10**9]), "too many files"),
    "endless grid": (
        lambda m, r: [m[n].update(shape=[3, 10**9, 3]) for n in ("status", "wall_s", "error", "mean_wait_s")],
        "too many files",
    ),
    "endless labels": (
        lambda m, r: m["load_scale"].update(
            shape=[10**9], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [10**5]}}
        ),
        "1,000,000,000 values along load_scale",
    ),
    "endless cells": (
        lambda m, r: m["status"].update(
            shape=[3, 10**9, 3], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [3, 10**5, 3]}}
        ),
        "a grid has at most",
    ),
    "endless vector": (
        lambda m, r: m["mean_wait_s"].update(
            shape=[3, 3, 3, 10**9],
            dimension_names=[*m["status"]["dimension_names"], "inner"],
            chunk_grid={"name": "regular", "configuration": {"chunk_shape": [1, 1, 1, 10**5]}},
        ),
        "values a cell",
    ),
    "endless chunk": (
        lambda m, r: m["wall_s"]["chunk_grid"]["configuration"].update(chunk_shape=[10**6, 10**6, 1]),
        "chunks of at most 1 GiB",
    ),
    "other grid": (lambda m, r: m["error"].update(shape=[3, 3, 4]), "the grid"),
    "name": (lambda m, r: m.update({"../../outside": m["wall_s"]}), "is no name of a part"),
    "transformer": (lambda m, r: m["wall_s"].update(storage_transformers=[{"name": "x"}]), "storage transformers"),
    "negative": (lambda m, r: m["wall_s"].update(shape=[3, -3, 3]), "has the shape"),
    "no status": (lambda m, r: m.pop("status"), "it has no variable status"),
    "attributes": (lambda m, r: r["attributes"].update(metrics="7"), "attribute metrics"),
    "deep": (lambda m, r: r["attributes"].update(axes="[" * 10**5), "attribute axes"),
    "title": (lambda m, r: r["attributes"].update(title={"a": 1}), "attribute title"),
}


@pytest.mark.parametrize("how", sorted(HARMS))
def test_what_no_store_has_is_refused_in_a_sentence(tmp_path, how):
    change, sentence = HARMS[how]
    path = edited(harmful(tmp_path / "s.zarr", text="x", name="policy"), change)
    for opened in (lambda: open_results(path), lambda: read_status(path)):
        with pytest.raises(InputError, match=sentence) as caught:
            opened()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["load_scale", "policy", "mean_wait_s"])
def test_a_chunk_that_unpacks_to_gigabytes_is_refused(tmp_path, name):
    path = harmful(tmp_path / "s.zarr", text="x", name="policy")
    [chunk] = [file for file in (path / name / "c").rglob("*") if file.is_file()]
    content = bytes(Zstd().encode(bytes(1 << 20)))
    assert zstd_size(content) == 1 << 20
    # the frame says that it holds 2^40 bytes
    chunk.write_bytes(content[:4] + b"\xe0" + (1 << 40).to_bytes(8, "little") + content[9:])
    assert zstd_size(chunk.read_bytes()) == 1 << 40
    with pytest.raises(InputError, match="made to fill the memory"):
        open_results(path).load()


@pytest.mark.parametrize("size", [0, 1, 255, 256, 65_791, 65_792, 1 << 20])
def test_the_size_of_a_frame_is_read(size):
    assert zstd_size(bytes(Zstd().encode(bytes(size)))) == size
    assert zstd_size(b"hello") is None


def test_metadata_beside_the_root_is_not_believed(tmp_path):
    """The file of an array may say what its root does not: nobody reads it."""
    path = harmful(tmp_path / "s.zarr", text="x", name="policy")
    expected = open_results(path).load()
    (path / "mean_wait_s" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array", "codecs": []}')
    (path / "wall_s" / ".zarray").write_text("{}")
    xr.testing.assert_identical(open_results(path).load(), expected)


SPEC = """
name = "s"
[fixed]
log = "nasa-model"
num_jobs = 10
machine = "flat:128"
[axes]
scheduler = ["fcfs", "backfill"]
load_scale = [1.0]
"""
COMMANDS = [
    *["status STORE", "status STORE --json", "check STORE", "check STORE --repair", "check STORE --seal"],
    *[
        "plan s.toml --store STORE",
        "run s.toml --store STORE",
        "best s.toml --store STORE",
        "figure s.toml --store STORE",
    ],
    *[
        "refine s.toml --along load_scale --between backfill,fcfs --store STORE",
        "submit s.toml --store STORE --dry-run",
    ],
    *["rerun STORE --select load_scale=1", "rerun STORE --select nosuch=1", "view STORE -o view"],
    *["report STORE -o report.html", "report STORE -o report.html --metric nosuch", "notebook STORE -o book.ipynb"],
    *["pack STORE packed.zarr.zip", "unpack STORE.zip unpacked.zarr", "report STORE.zip -o report.html"],
    *["merge STORE other.zarr -o merged.zarr", "compare STORE other.zarr", "compare STORE.zip other.zarr --json"],
    *["logs STORE", "cancel STORE"],
]
"""Every command that opens a store; the dashboard has tests of its own."""


def said(capfd, words):
    """Return what a command prints; it ends with an exit code and no traceback."""
    with pytest.raises(SystemExit), patch.object(sys, "argv", ["faultsweep", *words]):
        main()
    return "".join(capfd.readouterr())


def test_control_characters_do_not_reach_the_terminal_and_no_pickle_is_opened(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SPEC)
    harmful(tmp_path / "other.zarr", text=CONTROLS + "b", name="policy")
    harmful(tmp_path / "controls.zarr", text=CONTROLS, name="policy" + CONTROLS)
    with_pickle(harmful(tmp_path / "pickle.zarr", text=CONTROLS, name="policy"), tmp_path / "harmed")
    for name in ("controls", "pickle"):
        shutil.make_archive(f"{name}.zarr", "zip", f"{name}.zarr")
        for command in COMMANDS:
            words = command.replace("STORE", f"{name}.zarr").split()
            text = said(capfd, words)
            assert not [char for char in text if char in CONTROLS and not char.isprintable()], (words, text)
            assert (
                name == "controls" or words[0] in ("logs", "cancel", "best", "refine") or "is not of Zarr 3" in text
            ), text
            for made in ("view", "report.html", "book.ipynb", "packed.zarr.zip", "unpacked.zarr", "merged.zarr"):
                shutil.rmtree(made, ignore_errors=True)
                Path(made).unlink(missing_ok=True)
    assert "\\x1b]0;owned" in said(capfd, ["status", "controls.zarr"])
    assert not (tmp_path / "harmed").exists()


def test_text_of_any_language_is_printed_as_it_is():
    for text in ("Größe 95\u00a0% ×\n\tя 日本 é 🙂", "a\\b"):
        assert plain(text) == text
    assert plain("\x1b[2Jx\u202ey\x00") == "\\x1b[2Jx\\u202ey\\x00"


def test_a_group_of_zarr_2_is_no_store(tmp_path):
    zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    with pytest.raises(InputError, match="it has no zarr"):
        open_results(tmp_path / "a.zarr")
