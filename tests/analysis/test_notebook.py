"""The notebook is run as Jupyter runs it: every cell, in a kernel of its own."""

from __future__ import annotations

import ast
import json
import re

import numpy as np
import pytest
from faultsweep.analysis.notebook import write_notebook

from faultsweep.errors import InputError

from .stores import make_results, write_results


def make_store(tmp_path, axes, **attributes):
    shape = [len(labels) for labels in axes.values()] + [3]
    data = make_results(axes, {"mean_wait_s": np.arange(np.prod(shape)) ** 1.5}, replicates=3, **attributes)
    data["mean_wait_s"].attrs["units"] = "s"
    return write_results(tmp_path / "a.zarr", data)


def text_of(notebook):
    return "\n".join("".join(cell["source"]) for cell in notebook["cells"])


def test_the_notebook_executes_from_its_folder(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    store = make_store(tmp_path, {"scheduler": ["fcfs", "backfill"], "load_scale": [0.5, 1.0]}, title="Waits")
    (tmp_path / "books").mkdir()
    path = tmp_path / "books" / "a.ipynb"
    write_notebook(str(store), path)
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    assert "'../a.zarr'" in text_of(book)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    cells = [cell["outputs"] for cell in book["cells"] if cell["cell_type"] == "code"]
    outputs = [[output for output in cell if "data" in output] for cell in cells]
    assert outputs[1][0]["data"]["text/plain"] == "{'done': 12}"
    assert re.search(
        r"scheduler +load_scale.*\nfcfs +0.5 +[\d.]+ +[-\d.]+ +[\d.]+ +3", outputs[2][0]["data"]["text/plain"], re.S
    )
    assert any("image/png" in output.get("data", {}) for output in outputs[3])
    assert "backfill" in outputs[4][0]["data"]["text/plain"]


@pytest.mark.parametrize(
    "axes", [{"scheduler": ["fcfs", "backfill"]}, {"load_scale": [0.5, 1.0, 1.5]}, {"load_scale": [1.0]}]
)
def test_other_stores_have_notebooks_that_run(tmp_path, axes):
    """In this process: the cells are plain Python but for what the last line of each shows."""
    store = make_store(tmp_path, axes)
    write_notebook(str(store), tmp_path / "a.ipynb")
    cells = json.loads((tmp_path / "a.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    program = compile(
        "import matplotlib; matplotlib.use('Agg')\n" + code.replace("'a.zarr'", repr(str(store))), "a", "exec"
    )
    values = {}
    exec(program, values)  # noqa: S102 - the notebook is this project's own
    assert values["mean"].sizes == {name: len(labels) for name, labels in axes.items()}
    assert len(values["axis"].containers) == np.prod([len(v) for k, v in axes.items() if k != values["X"]])


def test_what_a_stranger_named_is_neither_markup_nor_code(tmp_path):
    axes = {"policy": ["$(touch evil)\n<img src=x onerror=alert(1)>", "'); import os; ("], "load_scale": [0.5, 1.0]}
    store = make_store(tmp_path, axes, title="a\n<script>alert(1)</script>", licence="<b>x</b>")
    write_notebook(str(store), tmp_path / "a.ipynb")
    cells = json.loads((tmp_path / "a.ipynb").read_text())["cells"]
    markdown = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    assert "<" not in markdown
    assert "--select 'policy=$(touch evil) &lt;img" in markdown
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    along = next(node for node in ast.walk(ast.parse(code[-1])) if isinstance(node, ast.Assign))
    assert ast.literal_eval(along.value) == ("policy", axes["policy"][0])


def test_no_file_is_replaced_and_mistakes_are_one_sentence(tmp_path):
    store = make_store(tmp_path, {"load_scale": [1.0]})
    (tmp_path / "a.ipynb").write_text("mine")
    for path, sentence in (
        ("a.ipynb", "exists already"),
        ("a.txt", "ends with .ipynb"),
        ("no/a.ipynb", "cannot be written"),
    ):
        with pytest.raises(InputError, match=sentence):
            write_notebook(str(store), tmp_path / path)
    assert (tmp_path / "a.ipynb").read_text() == "mine"
