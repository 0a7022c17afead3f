"""Files of text that are read or written, and errors of the file system as one sentence."""

from __future__ import annotations

import csv
import html
import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultsweep.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FIRST_COLUMNS = ("job_id", "submit_s", "start_s", "finish_s", "size", "requested_size")


_DEEPEST = 50
"""Tables within each other."""
_NOT_CSV = (".gz", ".json", ".nc", ".parquet", ".zip")


def read_text(path: str | Path, where: str = "") -> str:
    """Return the text of a file in UTF-8, with or without the mark that Windows editors begin it with.

    Raises
    ------
    InputError
        If it cannot be read; ``where`` stands before the path.
    """
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where}{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


def parse_toml(text: str, path: str | Path) -> dict[str, Any]:
    """Return what a text in TOML holds.

    Raises
    ------
    InputError
        If it is no TOML, with line and column; ``path`` is what the message calls it.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from None
    except ValueError:
        raise InputError(f"{path}: not valid TOML: a number has thousands of digits") from None
    except RecursionError:
        found = None
    if found is None or _is_deep(found):
        raise InputError(f"{path}: not valid TOML: hundreds of lists or tables within each other")
    return found


def _is_deep(table: Mapping[str, Any]) -> bool:
    """Tell whether tables lie within each other that no reader of a file looks into: one key of many parts makes so
    many."""
    tables: list[Any] = [table]
    for _ in range(_DEEPEST):
        tables = [value for each in tables for value in each.values() if isinstance(value, dict)]
    return bool(tables)


def refuse_url(path: Path) -> None:
    """Raise InputError for an address, which as a path would be a folder of that name here."""
    if re.match(r"[A-Za-z][A-Za-z0-9]+(::[a-z0-9]+)*:/", str(path)):
        raise InputError(
            f"{path}: results are written to this machine; name a folder or a file here, and copy it there"
        )


def check_csv(paths: Iterable[str | Path]) -> None:
    """Raise InputError if the name of a CSV file says that it is in another format."""
    for path in map(Path, paths):
        if path.suffix in _NOT_CSV:
            raise InputError(f"{path}: is written as CSV; name it {path.stem}.csv")


def check_writable(paths: Iterable[str | Path], inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError, before anything is computed, if a file cannot be written, is read, or would be two outputs."""
    read = {Path(name).resolve() for name in inputs if Path(name).is_file()}
    taken: set[Path] = set()
    for path in map(Path, paths):
        folder = path.parent
        refuse_url(path)
        if not folder.is_dir():
            raise InputError(f"{path}: the folder {folder} does not exist; make it, or name another")
        if path.is_dir():
            raise InputError(f"{path}: is a folder, not a file; name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise InputError(
                f"{path}: cannot be written ({_why_not(folder)}); name a file in a folder where you may write"
            )
        if path.resolve() in read:
            raise InputError(f"{path}: is read by this command, so it is no place to write to; name another file")
        if path.resolve() in taken:
            raise InputError(f"{path}: two outputs would be this file; name a file for each")
        taken.add(path.resolve())


def _why_not(folder: Path) -> str:
    return "the file system is read-only" if os.statvfs(folder).f_flag & os.ST_RDONLY else "no permission"


def check_folder(path: Path) -> None:
    """Raise InputError, before anything is computed, if no file can be made in a folder that may have to be made."""
    refuse_url(path)
    place = next(place for place in (path, *path.absolute().parents) if place.exists() or place.is_symlink())
    if not place.is_dir():
        raise InputError(f"{path}: {place} is a file, not a folder; name another folder")
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"{path}: cannot be written ({_why_not(place)}); name a folder where you may write")


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Make an error of the file system, such as a full disk, an InputError that names what was to be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


_MOST_BYTES = 1 << 20


def read_fields(path: Path, kinds: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the fields of a small JSON file that one process leaves for others, None if there is no such file.

    ``kinds`` are the types of fields, as ``isinstance`` takes them; one that may be absent allows None. A file in which
    one is of another type, or a number beyond 64 bits, tells nothing, as one that is half written: it has no fields.
    """
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        return {}
    whole = isinstance(found, dict) and all(_fits(found.get(name), kind) for name, kind in kinds.items())
    return found if whole else {}


def _fits(value: Any, kind: Any) -> bool:
    return isinstance(value, kind) and not (isinstance(value, int | float) and not abs(value) < 2**63)


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


def write_jobs(jobs: Mapping[str, NDArray[Any]], path: str) -> None:
    """Write per-job results as CSV; what a job does not have is empty."""
    names = [*_FIRST_COLUMNS, *(name for name in jobs if name not in _FIRST_COLUMNS)]
    columns = [[_number(value) for value in jobs[name].tolist()] for name in names]
    write_csv(path, names, zip(*columns, strict=True))


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return "" if math.isnan(value) else f"{value:.17g}"


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], below: str = "") -> str:
    """Return a small table as HTML, all text escaped."""
    line = "<tr>{}</tr>".format
    body = "".join(line("".join(f"<td>{html.escape(str(cell))}</td>" for cell in row)) for row in rows)
    heads = line("".join(f"<th>{html.escape(cell)}</th>" for cell in head))
    after = f"<p>{html.escape(below)}</p>" if below else ""
    return f"<p><b>{html.escape(title)}</b></p><table><thead>{heads}</thead><tbody>{body}</tbody></table>{after}"
