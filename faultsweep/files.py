"""Files that are written: tables as CSV, and errors of the file system as one sentence."""

from __future__ import annotations

import csv
import html
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faultsweep.errors import InputError


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Make an error of the file system, such as a full disk, an InputError that names what was to be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def write_csv(path: str | Path, header: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as CSV.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with writing(path), open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], below: str = "") -> str:
    """Return a small table as HTML, all text escaped."""
    line = "<tr>{}</tr>".format
    body = "".join(line("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)) for row in rows)
    heads = line("".join(f"<th>{html.escape(cell)}</th>" for cell in head))
    after = f"<p>{html.escape(below)}</p>" if below else ""
    return f"<p><b>{html.escape(title)}</b></p><table><thead>{heads}</thead><tbody>{body}</tbody></table>{after}"
