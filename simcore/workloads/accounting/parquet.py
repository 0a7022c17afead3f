"""The extended workload as a Parquet file: one row a job, the columns of ``records.COLUMNS``, missing values as null.

The metadata of the schema has a key ``faultsweep`` with JSON: the format and its version, name, kind of the dump, zone,
nodes, header lines, report and content hash. Times are seconds since 1970 UTC.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from faultsweep.simcore.workloads.accounting.records import COLUMNS, JobRecords, Report, Text
from faultsweep.simcore.workloads.accounting.source import Dump, Options, Source, drop_empty

from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import writing

if TYPE_CHECKING:
    import pyarrow

FORMAT = "faultsweep jobs, 1"
_KEY = b"faultsweep"
_MARK = b'"format": "faultsweep jobs'


def is_ours(data: bytes) -> bool:
    """Return whether the content of a Parquet file is an extended workload of ours."""
    return data.startswith(b"PAR1") and _MARK in data


def matches(head: bytes) -> bool:
    """Return whether a file is an extended workload of ours; ``head`` is the whole content."""
    return is_ours(head)


def _pyarrow() -> Any:
    require("a Parquet file", "pyarrow")
    import pyarrow.parquet

    return pyarrow


def read_table(path: Path, data: bytes) -> Any:
    """Return a Parquet file as a table of pyarrow."""
    arrow = _pyarrow()
    try:
        table = arrow.parquet.read_table(io.BytesIO(data))
        table.validate(full=True)  # such as text that is none
        tuple(table.column_names)
        return table
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0][:100]})") from None


def write_parquet(jobs: JobRecords, path: str | Path) -> None:
    """Write the extended workload; the same jobs give the same bytes with the same version of pyarrow."""
    arrow = _pyarrow()
    about = {
        "format": FORMAT,
        "name": jobs.name,
        "kind": jobs.kind,
        "timezone": jobs.timezone,
        "nodes": jobs.nodes,
        "header": list(jobs.header),
        "report": {
            name: dict(value) if isinstance(value, Counter) else value for name, value in vars(jobs.report).items()
        },
        "content_hash": jobs.content_hash,
    }
    columns = {name: _to_arrow(arrow, COLUMNS[name].kind, column) for name, column in jobs.columns.items()}
    table = arrow.table(columns).replace_schema_metadata({_KEY: json.dumps(about, sort_keys=True)})
    with writing(path):
        arrow.parquet.write_table(table, path, compression="zstd")


def _to_arrow(arrow: Any, kind: str, column: Any) -> Any:
    if isinstance(column, Text):
        codes = arrow.array(column.codes, mask=column.codes < 0)
        return arrow.DictionaryArray.from_arrays(codes, arrow.array(column.names, arrow.string()))
    missing = np.isnan(column)
    if kind == "whole":
        return arrow.array(np.where(missing, 0, column).astype(np.int64), mask=missing)
    return arrow.array(column, mask=missing)


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read an extended workload that ``write_parquet`` has written."""
    if len(sources) > 1:
        raise InputError(f"{sources[1].path}: only one extended workload can be read at a time")
    source = sources[0]
    table = read_table(source.path, source.data)
    about = _about(source, table)
    dump.columns = drop_empty(
        {name: _from_arrow(source, table, name) for name in COLUMNS if name in table.column_names}
    )
    submit = dump.columns.get("submit_s")
    if submit is None or np.isnan(submit).any() or (np.diff(submit) < 0).any():
        raise InputError(f"{source.path}: submit_s is missing or not in order (valid: as written by logs import)")
    dump.nodes, dump.header = about["nodes"], tuple(about["header"])
    dump.zone = str(about.get("timezone") or "")
    report = about["report"]
    dump.report = Report(
        report["rows"], *(Counter(report[name]) for name in ("left_out", "joined", "added", "guessed"))
    )


def _about(source: Source, table: pyarrow.Table) -> dict[str, Any]:
    try:
        about = json.loads((table.schema.metadata or {})[_KEY])
        nodes, header, report = about["nodes"], about["header"], about["report"]
        right = about["format"] == FORMAT and isinstance(nodes, int) and isinstance(header, list)
        right = right and isinstance(report["rows"], int)
        right = right and all(isinstance(report[name], dict) for name in ("left_out", "joined", "added", "guessed"))
    except (KeyError, ValueError, TypeError):
        right = False
    if not right:
        raise InputError(f"{source.path}: not an extended workload of this version (valid: {FORMAT})")
    return about


def _from_arrow(source: Source, table: Any, name: str) -> Any:
    arrow = _pyarrow()
    column = table.column(name).combine_chunks()
    try:
        if COLUMNS[name].kind != "text":
            return column.cast(arrow.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
        if not arrow.types.is_dictionary(column.type):
            column = column.cast(arrow.string()).dictionary_encode()
        codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
        names = tuple(column.dictionary.cast(arrow.string()).to_pylist())
    except (arrow.ArrowException, ValueError, TypeError) as error:
        raise InputError(f"{source.path}: the column {name} has the wrong type ({str(error)[:60]})") from None
    return Text(codes, names)
