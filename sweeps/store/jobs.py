"""Per-job results, on demand: one append-only table in the store's group ``jobs``, with an index in the grid.

The rows of a run stand together; ``jobs_offset`` and ``jobs_length`` of its cell say where. Copies point at the same
rows. Rows are visible before the cell's status is; what a killed process appended without one is never pointed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from faultsweep.sweeps.store.manifest import remove
from faultsweep.sweeps.store.statuses import WITH_RESULT
from faultsweep.sweeps.store.store import Store, compressors, raw_group
from faultsweep.sweeps.target import Target
from numcodecs.zstd import Zstd
from numpy.typing import NDArray

from faultsweep.errors import InputError

GROUP = "jobs"
ROWS = 65_536
"""Rows of a chunk of the table."""


def compressed_size(jobs: Mapping[str, Any]) -> int:
    """Return about how many bytes per-job arrays take in a store."""
    return sum(len(Zstd(level=0).encode(np.ascontiguousarray(values))) for values in jobs.values())


def read_jobs(store: Store, offset: int, length: int) -> dict[str, NDArray[Any]]:
    """Return the per-job results of one run."""
    group: Any = store.group[GROUP]
    return {name: np.asarray(array[offset : offset + length]) for name, array in group.arrays()}


def derive(store: Store, target: Target, names: Sequence[str]) -> None:
    """Compute metrics of finished runs from their per-job results, where they have none yet."""
    for chunk in range(store.chunks.num):
        offset, length = (store.read_block(name, chunk) for name in ("jobs_offset", "jobs_length"))
        blocks = {name: store.read_block(name, chunk).copy() for name in names}
        lacking = np.logical_or.reduce([np.isnan(block) for block in blocks.values()])
        cells = np.flatnonzero(lacking & np.isin(store.read_block("status", chunk), WITH_RESULT) & (length > 0))
        known: dict[int, Mapping[str, float]] = {}  # copies share the rows of their source
        for cell in cells.tolist():
            start = int(offset[cell])
            if start not in known:
                known[start] = target.from_jobs(read_jobs(store, start, int(length[cell])))
            for name, block in blocks.items():
                block[cell] = known[start][name]
        for name, block in blocks.items():
            if len(cells):
                store.write_block(name, chunk, block)


class JobsWriter:
    """Appends per-job results to the group ``jobs`` of a store."""

    def __init__(self, store: Store, apart: bool = False) -> None:
        """Continue behind the rows that are there; ``apart`` from them in a chunk of its own, if they are replaced."""
        self.store = store
        self._group = raw_group(store.path, store.metrics).require_group(GROUP)
        self._arrays: dict[str, Any] = dict(self._group.arrays())
        self._rows = max((array.shape[0] for array in self._arrays.values()), default=0)
        if apart:
            self._rows = -(-self._rows // ROWS) * ROWS
        self._dtypes = {name: np.dtype(array.dtype) for name, array in self._arrays.items()}
        self._waiting: list[tuple[int, dict[str, NDArray[Any]]]] = []
        self._waiting_rows = 0

    def append(self, jobs: Mapping[str, Any]) -> tuple[int, int]:
        """Take the per-job arrays of one run; returns their first row and their number.

        A column that only other runs have (machines differ in what they say of a job) has no value in its rows.
        """
        arrays = {name: np.asarray(values) for name, values in jobs.items()}
        lengths = {len(values) for values in arrays.values()}
        if len(lengths) != 1:
            raise InputError(f"per-job results need columns that are equally long, got {_described(arrays)}")
        for name, values in arrays.items():
            known = self._dtypes.get(name, values.dtype)
            if values.dtype.kind != known.kind:  # also where it could be cast: which run comes first must not matter
                raise InputError(
                    f"per-job results: {name} is {values.dtype} in one run and {known} in another; let it be one type"
                )
        self._dtypes = {**{name: values.dtype for name, values in arrays.items()}, **self._dtypes}
        length = lengths.pop()
        offset = self._rows + self._waiting_rows
        self._waiting.append((length, arrays))
        self._waiting_rows += length
        return offset, length

    def flush(self) -> None:
        """Write what waits, and make it visible."""
        if not self._waiting:
            return
        start, stop = self._rows, self._rows + self._waiting_rows
        for name, dtype in self._dtypes.items():
            absent = _absent(dtype)
            if name not in self._arrays:
                self._arrays[name] = self._group.create_array(
                    name,
                    shape=(start,),
                    chunks=(ROWS,),
                    dtype=dtype,
                    dimension_names=("job",),
                    fill_value=absent,
                    compressors=compressors(),
                )
            self._arrays[name].resize((stop,))
            parts = [arrays.get(name, np.full(length, absent, dtype)) for length, arrays in self._waiting]
            self._arrays[name][start:stop] = np.concatenate(parts).astype(dtype)
        self._rows, self._waiting, self._waiting_rows = stop, [], 0
        self.store.commit()


def _absent(dtype: Any) -> Any:
    """Return what stands in a column where a run has none: NaN, -1 for whole numbers, the zero of other types."""
    return {"f": np.nan, "i": -1}.get(dtype.kind, np.zeros((), dtype).item())


def _described(arrays: Mapping[str, NDArray[Any]]) -> str:
    return ", ".join(f"{name} ({len(values)})" for name, values in sorted(arrays.items())) or "no column"


def drop_unused(store: Store) -> None:
    """Remove the chunks of per-job results that no cell points at, because those results have been replaced."""
    if GROUP not in store.group:
        return
    offset, length = (np.asarray(store.arrays[name][...]).ravel() for name in ("jobs_offset", "jobs_length"))
    starts, ends = offset[length > 0] // ROWS, (offset + length - 1)[length > 0] // ROWS + 1
    group: Any = store.group[GROUP]
    for name, array in group.arrays():
        chunks = -(-array.shape[0] // ROWS)
        steps = np.bincount(starts, minlength=chunks + 1) - np.bincount(ends, minlength=chunks + 1)
        for chunk in np.flatnonzero(np.cumsum(steps)[:chunks] == 0):
            remove(store.path, f"{GROUP}/{name}/{array.metadata.encode_chunk_key((int(chunk),))}")
