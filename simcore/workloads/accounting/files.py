"""Reading accounting dumps of every known format, recognised by content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads.accounting import cobalt, lsf, parquet, pbs, sacct, sacct_json, swf, table
from faultsweep.simcore.workloads.accounting.records import JobRecords, to_workload
from faultsweep.simcore.workloads.accounting.source import Dump, Options, Source
from faultsweep.simcore.workloads.swf import read_swf

from faultsweep.compression import read_content
from faultsweep.errors import InputError, unknown_name

_HEAD = 1 << 16


class Format(NamedTuple):
    """A format of accounting records: what it is, whether a file begins like one, and its reader."""

    description: str
    matches: Callable[[bytes], bool]
    read: Callable[[Sequence[Source], Options, Dump], None]


FORMATS: dict[str, Format] = {
    "jobs": Format("the extended workload as Parquet", parquet.matches, parquet.read),
    "sacct": Format("sacct --parsable2 of SLURM", sacct.matches, sacct.read),
    "sacct-json": Format("sacct --json of SLURM", sacct_json.matches, sacct_json.read),
    "pbs": Format("accounting files of PBS and Torque", pbs.matches, pbs.read),
    "cobalt": Format("accounting files of Cobalt", cobalt.matches, cobalt.read),
    "lsf": Format("lsb.acct of LSF", lsf.matches, lsf.read),
    "swf": Format("Standard Workload Format, 18 fields or more", swf.matches, swf.read),
    "table": Format("CSV or Parquet by a mapping of columns", table.matches, table.read),
}
"""The formats by name; each is a module with ``matches`` and ``read``."""


def read_records(
    paths: Sequence[str | Path],
    kind: str = "",
    *,
    timezone: str = "",
    on_error: str = "raise",
    columns: Mapping[str, str] | None = None,
    nodes_rule: str = "",
) -> JobRecords:
    """Read accounting dumps, plain or compressed by gzip or xz.

    Parameters
    ----------
    paths : files of one machine, in order of time; what is in several of them counts once.
    kind : a name of FORMATS; recognised by content if empty.
    timezone : zone of local times in the dump, such as Europe/Berlin; UTC if empty.
    on_error : "raise" stops at the first malformed row, "skip" leaves such rows out and counts them.
    columns : for tables, the column of each field (``{"submit_s": "time_submit"}``), or ``{"": NAME}`` of a shipped
        mapping.
    nodes_rule : for logs in the Standard Workload Format, how nodes are counted.

    Raises
    ------
    InputError
        If a file cannot be read or has a malformed row; the message names file and line.
    """
    if on_error not in ("raise", "skip"):
        raise unknown_name("on_error", on_error, ("raise", "skip"))
    if not paths:
        raise InputError("no file of an accounting dump is given")
    sources = [_source(Path(path)) for path in paths]
    kind = kind or detect(sources[0])
    if kind == "sacct" and sacct_json.matches(sources[0].data[:_HEAD]):
        kind = "sacct-json"
    if kind not in FORMATS:
        raise unknown_name("format", kind, FORMATS)
    options = Options(timezone, on_error == "skip", dict(columns or {}), nodes_rule)
    dump = Dump()
    FORMATS[kind].read(sources, options, dump)
    return JobRecords(
        columns=dump.columns,
        name=_name(sources[0].path),
        kind=kind,
        timezone=(timezone or "UTC") if dump.local_times else dump.zone,
        nodes=dump.nodes,
        header=dump.header,
        report=dump.report,
        content_hash=_hash(sources, options),
    )


def read_jobs(path: str | Path, *, on_error: str = "raise", timezone: str = "") -> Workload:
    """Return the jobs of a log in the Standard Workload Format or of an accounting dump, which its content tells.

    A dump's sizes are nodes; its times that name no zone are read in ``timezone``, UTC if empty.
    """
    head = read_content(Path(path), on_damage=lambda: None, enough=_HEAD)[:_HEAD]
    if head.startswith(b"PAR1"):  # what it is stands at its end
        head = read_content(Path(path), on_damage=lambda: None)
    kind = next((name for name, known in FORMATS.items() if known.matches(head)), "swf")
    if kind == "swf" and not swf.has_more_fields(head):
        return read_swf(path, on_error=on_error)
    return to_workload(read_records([path], kind, timezone=timezone, on_error=on_error))


def _source(path: Path) -> Source:
    data = read_content(path)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # what PowerShell writes into a file
        raise InputError(f"{path}: text in UTF-16 (valid: UTF-8, as iconv -f UTF-16 -t UTF-8 writes it)")
    return Source(path, data)


def detect(source: Source) -> str:
    """Return the name of the format of a file by its beginning, or raise InputError."""
    head = source.data[:_HEAD]
    for kind, known in FORMATS.items():
        if known.matches(source.data if head.startswith(b"PAR1") else head):
            return kind
    known_formats = "; ".join(f"{kind}: {known.description}" for kind, known in FORMATS.items())
    what = "an empty file" if not head.strip() else "not an accounting dump of a known format"
    raise InputError(f"{source.path}: {what} (known: {known_formats})")


def _hash(sources: Sequence[Source], options: Options) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.data).digest())
    chosen = [options.timezone, options.skip, sorted(options.columns.items()), options.nodes_rule]
    digest.update(json.dumps(chosen).encode())
    return "sha256:" + digest.hexdigest()


def _name(path: Path) -> str:
    name = path.name
    for suffix in (".gz", ".xz", ".psv", ".csv", ".txt", ".log", ".json", ".swf", ".parquet"):
        name = name.removesuffix(suffix)
    return name or path.name
