"""Every command, spec and program in the documents is run, in the order of the page, in a folder of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from faultsweep.sweeps.spec import experiments, load_toml

import faultsweep
from faultsweep import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[re.Match]:
    return list(BLOCK.finditer(page.read_text(encoding="utf-8")))


def as_a_process(words: list[str]) -> str:
    """Run a command or a program as its reader does, and return what it prints."""
    command = [sys.executable, *(["-P", "-m"] if words[0] == "faultsweep" else []), *words]
    # Where the environment names a source tree for the package, commands of the page use it, too.
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def in_this_process(words: list[str]) -> str:
    """Do as ``as_a_process`` without starting Python, importing all and starting workers every time."""
    before, sys.argv = sys.argv, list(words)
    code, printed = None, io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            if words[0] == "faultsweep":
                cli.main()
            else:
                runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = before
    assert not code, f"{shlex.join(words)} ends with {code}"
    return printed.getvalue()


def assert_printed(shown: str, printed: str, where: str) -> None:
    """Hold what a page shows against what was printed; a line of three dots stands for any lines."""
    lines = ["(.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + "\n" for line in shown.splitlines()]
    found = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    assert re.search(f"^{''.join(lines)}", found, re.M), f"{where} shows\n{shown}\nbut this is printed:\n{found}"


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
@pytest.mark.sampled(5)
def test_everything_on_a_page_runs(page, tmp_path, monkeypatch, request):
    """The commands of the first page as processes, with workers of their own; the others on the tests' workers.

    A block of ``text`` is what the block before it prints.
    """
    run = as_a_process if page.stem == "README" else in_this_process
    if run is in_this_process:
        request.getfixturevalue("on_client")
    monkeypatch.chdir(tmp_path)
    printed = ""
    for number, block in enumerate(blocks(page)):
        language, text = block["language"], block["text"]
        if block["file"]:
            (tmp_path / block["file"]).write_text(text)
        elif language == "text":
            assert_printed(text, printed, page.name)
        elif language == "sh":
            printed = ""
            for line in text.splitlines():
                words = shlex.split(line, comments=True)
                if words:
                    assert words[0] == "faultsweep", f"{page.name}: only commands of faultsweep are run, not {line!r}"
                    printed += run(words)
        elif language == "python":
            program = tmp_path / f"program{number}.py"
            program.write_text(text)
            printed = run([str(program)])
        else:
            pytest.fail(f"{page.name}: nobody runs a block of {language}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    """Return the anchors that the site gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.encode("ascii", "ignore").decode()) for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading.strip().lower()) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_headings_lead_to_one(page):
    links = re.findall(r"\]\(([^)#\s]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    ours = [(page.parent / target if target else page, anchor) for target, anchor in links if ":" not in target]
    assert [(target.name, anchor) for target, anchor in ours if anchor not in anchors(target)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_targets_that_are_named_exist(page):
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert set(re.findall(r"(?:`|^    )make ([a-z-]+)", text, flags=re.M)) <= targets
    named = set(re.findall(r"faultsweep (?:figure|plan|run) ([\w-]+)(?=[\s`])", text)) - {"SPEC", "NAME"}
    shipped = set(experiments()) | {name.split("-")[0] for name in experiments()}
    assert {name for name in named if not name.endswith("toml")} - {"first", "torus", "small"} <= shipped


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_says_first_what_it_is_for(page):
    title, _, begin = page.read_text("utf-8").partition("\n")
    assert title.startswith("# ")
    assert re.match(r"\n[A-Z*`][^|]{40,}?[.:]", begin), f"{page.name} begins with {begin[:60]!r}"


def test_the_site_has_four_parts_and_every_page():
    text = (ROOT / "mkdocs.yml").read_text()
    nav = text[text.index("nav:") :]
    assert re.findall(r"^  - ([\w ]+):$", nav, re.M) == ["Tutorial", "How to", "Reference", "Explanation"]
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert re.search(rf": {page.name}$", nav, re.M), f"{page.name} is not in the navigation of mkdocs.yml"
        assert page.name == "index.md" or f"]({page.name})" in index, f"docs/index.md does not lead to {page.name}"


def load_from_docs(name: str):
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_site_shows_the_name_of_a_file_to_save():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tutorial.md"))
    text = load_from_docs("site_pages").on_page_markdown((ROOT / "docs" / "tutorial.md").read_text("utf-8"), page)
    assert '```toml title="torus.toml"\ntitle = ' in text
    assert "<!-- file" not in text


def test_the_page_of_python_has_every_public_name():
    module = load_from_docs("site_pages")
    listed = {name.rpartition(".")[2] for _, names in module.PYTHON.values() for name in names}
    assert set(faultsweep.__all__) - {"__version__"} <= listed


def test_the_gallery_has_every_figure_with_its_command():
    module = load_from_docs("site_pages")
    text = module.gallery()
    assert {name for name in experiments() if f"`faultsweep figure {name}`" in text} == set(experiments())
    assert text.count("<img alt=") >= len(list((ROOT / "docs" / "notebooks").glob("*.ipynb")))
    shown = {
        str(path.relative_to(ROOT)) for folder in ("docs", "benchmarks") for path in (ROOT / folder).rglob("*.png")
    }
    assert shown == set(module.PICTURES)
    known = set(re.findall(r"^\| `faultsweep (\w+)", (ROOT / "docs" / "command-line.md").read_text("utf-8"), re.M))
    assert {command.split()[1] for command in module.OTHERS.values()} <= known | {"logs", "failures", "site"}


def test_every_page_says_first_whom_it_is_for():
    pages = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md")}
    del pages["reproduction"]  # made by a command; begins with what its claims are
    assert len(pages) > 20
    assert [name for name, text in pages.items() if not text.split("\n\n")[1].startswith("For whoever ")] == []


@pytest.mark.parametrize("name", experiments())
def test_every_shipped_spec_has_a_title(name):
    assert load_toml(experiments()[name])["title"]


def test_the_picture_of_the_readme_is_small():
    assert (ROOT / "docs" / "demo.png").stat().st_size < 300_000
    assert os.path.getsize(ROOT / "docs" / "demo.png") > 10_000


def test_docstrings_are_lists_on_the_page_of_the_python_interface():
    module = load_from_docs("api_docstrings")
    text = (
        "Do it.\n\nAt once.\n\nParameters\n----------\na, b : numbers: two of them,\n    or none.\nc : text.\n\n"
        "Returns\n-------\nThe sum.\n\nRaises\n------\nInputError\n    It cannot be."
    )
    assert module.to_markdown(text) == (
        "Do it.\n\nAt once.\n\n**Parameters**\n\n- `a`, `b`: numbers: two of them,\n    or none.\n- `c`: text.\n\n"
        "**Returns**\n\nThe sum.\n\n**Raises**\n\n- `InputError`:\n    It cannot be."
    )
    assert module.to_markdown("No sections -----\n\nhere.") == "No sections -----\n\nhere."
