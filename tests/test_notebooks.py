"""The shipped notebooks run, and show what is kept in them."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
QUICK = "from-a-log-to-a-verdict"


def module(name):
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def shown(book):
    """What the cells show as text; pictures by their captions."""
    outputs = [output for cell in book["cells"] for output in cell.get("outputs", [])]
    return ["".join(output["data"]["text/plain"]) for output in outputs if "data" in output]


def test_there_is_one_for_each_paper_and_one_from_a_log_to_a_verdict():
    from faultsweep.analysis.figures import FIGURES

    papers = {name.partition("-")[0] for name in FIGURES} - {"demo"}
    assert {path.stem for path in BOOKS} == {*papers, QUICK}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_what_it_showed(path):
    book = json.loads(path.read_text("utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} == {"execute_result"}  # no error, no warning
    assert sum("image/svg+xml" in output["data"] for output in outputs) >= 1
    assert f"notebooks/{path.stem}.md" in (DOCS.parent / "mkdocs.yml").read_text("utf-8")


def run_again(path):
    pytest.importorskip("nbclient")
    assert shown(module("run_notebooks").execute(path)) == shown(json.loads(path.read_text("utf-8")))


def test_a_notebook_shows_the_same_again():
    run_again(DOCS / "notebooks" / f"{QUICK}.ipynb")


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in BOOKS if path.stem != QUICK], ids=lambda path: path.stem)
def test_every_notebook_shows_the_same_again(path):
    run_again(path)


def test_a_page_of_a_notebook_has_its_code_texts_and_pictures():
    pytest.importorskip("mkdocs")
    page = module("site_pages").notebook_page(DOCS / "notebooks" / "krevat2003.ipynb")
    assert page.startswith("# What a torus costs a scheduler: krevat2003")
    assert "```python\nsweep = fs.Sweep(" in page
    assert re.search(r'<img alt="[^"]*Mean bounded slowdown[^"]*" src="data:image/svg\+xml;base64,', page)
    assert re.search(r"```text\n +scheduler +mean", page)
