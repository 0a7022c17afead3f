"""Runs the notebooks of docs/notebooks and keeps what they show: ``python docs/run_notebooks.py [NAME ...]``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "notebooks"


def execute(path: Path) -> Any:
    """Return a notebook with the outputs of a run of all its cells."""
    import nbclient
    import nbformat

    book = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(book, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in book["cells"]:
        cell["metadata"].pop("execution", None)  # times of day
    return book


def main(names: list[str]) -> None:
    """Run the notebooks of these names, or all."""
    import nbformat

    for path in sorted(FOLDER.glob("*.ipynb")):
        if not names or path.stem in names:
            nbformat.write(execute(path), path)


if __name__ == "__main__":
    main(sys.argv[1:])
