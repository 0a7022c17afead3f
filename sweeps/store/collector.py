"""The one writer of a store: folds results into whole chunks, and copies them to cells that are the same simulation.

Only chunks with unsaved results, and a bounded number of others, are in memory. A chunk is final when every cell in it
has its result; it is then written once. While that takes long, what there is is written every few seconds.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from faultsweep.sweeps.grid import Cells
from faultsweep.sweeps.store.jobs import JobsWriter
from faultsweep.sweeps.store.opener import MOST_CHUNK_BYTES
from faultsweep.sweeps.store.statuses import (
    COPY_OF,
    EXCLUDED,
    FAILED,
    FAILURES,
    FINAL,
    NOT_REQUESTED,
    PENDING,
    SETTLED,
    STATUS_NAMES,
    WITH_RESULT,
)
from faultsweep.sweeps.store.store import Store
from faultsweep.sweeps.target import Output
from numpy.typing import NDArray

from faultsweep.errors import InputError

MOST_TEXT_BYTES = MOST_CHUNK_BYTES // 2
"""Of a chunk: half of what a reader takes, which leaves room for copies and for empty texts."""
CACHE_BYTES = 64_000_000
"""Memory of chunks that have nothing unsaved (they are read again as sources of copies)."""
SAVE_EVERY_S = 3.0
_SAVE_SHARE = 30
"""Unfinished chunks are written at most this many times their writing time apart."""


@dataclass
class Results:
    """Results of some cells; arrays over the cells, ``values`` of shape (cells, words of all outputs), ``texts`` of
    shape (cells, texts of all outputs), if any output is text."""

    cells: Cells
    status: NDArray[np.int8]
    wall_s: NDArray[np.float64]
    values: NDArray[np.float64]
    errors: Mapping[int, str] = field(default_factory=dict)
    jobs: NDArray[np.int64] | None = None
    texts: NDArray[np.object_] | None = None


@dataclass
class _Buffer(Results):
    """One chunk in memory: the results of its cells, as the store has them or will have them."""

    errors: dict[int, str] = field(default_factory=dict)
    dirty: bool = False
    dirty_errors: bool = False
    text_bytes: int = -1  # not counted yet

    @property
    def size(self) -> int:
        return int(self.values.nbytes) + 32 * len(self.cells)


class Collector:
    """Takes results in any order and keeps the store right.

    Attributes
    ----------
    status : of every cell as it will be in the store, shape (size,).
    listen : called with new results of simulated cells.
    not_added : errors of cells whose result was to get more, by cell; they keep the result that they have.
    """

    def __init__(
        self,
        store: Store,
        outputs: Sequence[Output],
        source: Cells,
        excluded: NDArray[np.bool_],
        again: NDArray[np.bool_] | None = None,
        check: Callable[[], None] = lambda: None,
        replacing: bool = False,
        mark: bool = True,
    ) -> None:
        """Prepare for a grid whose cell ``i`` takes the result of cell ``source[i]`` (-1: none is wanted).

        Cells in ``again`` count as pending, whatever the store has. ``check`` is called before every write; it raises
        if the store now belongs to another process. ``replacing`` says that results are replaced. Without
        ``mark``, cells that no run is wanted for keep their status.
        """
        self.store = store
        self.outputs = list(outputs)
        self.source = source
        self.check = check
        self._columns = np.cumsum([0, *(out.width for out in self.outputs)])
        self._texts = np.cumsum([0, *(out.texts for out in self.outputs)])
        self._buffers: OrderedDict[int, _Buffer] = OrderedDict()
        self._chunk_of = store.chunks.of_all()
        self.status = store.status().copy()
        self._kept = np.full_like(self.status, PENDING)  # the status of cells that have a result, until they have more
        if again is not None:
            self._kept[again] = np.where(np.isin(self.status, WITH_RESULT), self.status, PENDING)[again]
            self.status[again] = PENDING
        self.not_added: dict[int, str] = {}
        self.listen: Callable[[Results], None] = lambda results: None
        self._keep_jobs = store.keeps_jobs
        self.jobs = JobsWriter(store, apart=replacing) if self._keep_jobs else None
        self._last_save = time.monotonic()
        self._save_cost_s = 0.0
        if mark:
            self._mark_unwanted(excluded)
        self._link()

    def _mark_unwanted(self, excluded: NDArray[np.bool_]) -> None:
        """Give cells that no run is wanted for their status, and those that are wanted again theirs back."""
        unwanted = self.source < 0
        stored = self.store.status()
        want = stored.copy()
        want[~unwanted & np.isin(stored, (EXCLUDED, NOT_REQUESTED))] = PENDING
        idle = unwanted & np.isin(stored, (PENDING, EXCLUDED, NOT_REQUESTED))
        want[idle] = np.where(excluded[idle], EXCLUDED, NOT_REQUESTED)
        changed = np.flatnonzero(want != stored)
        for chunk in np.unique(self._chunk_of[changed]):
            buffer = self._load(int(chunk))
            buffer.status[:] = want[buffer.cells]
            buffer.dirty = True
        self.status[changed] = want[changed]
        self.flush()

    def _link(self) -> None:
        """Count for each chunk the unfinished cells that it waits for, and note which chunks wait for each cell."""
        number, chunk_of = self.store.chunks.num, self._chunk_of
        wanted = (self.source >= 0) & ~np.isin(self.status, SETTLED)
        copies = np.flatnonzero(wanted)
        copies = copies[self.source[copies] != copies]
        wanted[copies] = False
        self._own = wanted  # cells that only their own chunk waits for, unless they are among the others, too
        self._waiting = np.bincount(chunk_of[wanted], minlength=number)
        source, chunk = self.source[copies], chunk_of[copies]
        apart = ~(self._own[source] & (chunk_of[source] == chunk))
        pairs = np.sort(source[apart] * number + chunk[apart])  # np.unique would take a minute for 10^7 cells
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        waited, chunk = np.divmod(pairs, number)
        open_ = ~np.isin(self.status[waited], FINAL)
        self._waiting += np.bincount(chunk[open_], minlength=number)
        self._waited, self._waiting_chunk = waited[open_], chunk[open_]
        for ready in np.unique(chunk[~open_]):
            if self._waiting[ready] == 0:
                self._finish(int(ready))

    def _load(self, chunk: int) -> _Buffer:
        """Return a chunk's buffer, from memory or from the store."""
        if chunk in self._buffers:
            self._buffers.move_to_end(chunk)
            return self._buffers[chunk]
        cells = self.store.chunks.cells(chunk)
        status = self.store.read_block("status", chunk).copy()
        metrics = np.full((len(cells), int(self._columns[-1])), np.nan)
        wall = np.full(len(cells), np.nan)
        errors: dict[int, str] = {}
        jobs = np.stack([np.full(len(cells), -1), np.zeros(len(cells), np.int64)]) if self._keep_jobs else None
        texts = self.no_texts(len(cells))
        if np.isin(status, SETTLED).any():
            wall = self.store.read_block("wall_s", chunk).copy()
            for output, part, span in self._parts():
                block = self.store.read_block(output.name, chunk)
                if output.dtype != "text":
                    metrics[:, part] = output.encode(block)
                elif texts is not None:
                    texts[:, span] = block.reshape(len(cells), -1)
            failed = np.flatnonzero(np.isin(status, FAILURES))
            if len(failed):
                why = self.store.read_block("error", chunk)
                errors = {int(i): str(why[i]) for i in failed}
            if jobs is not None:
                jobs = np.stack([self.store.read_block(name, chunk) for name in ("jobs_offset", "jobs_length")])
        self._buffers[chunk] = _Buffer(cells, status, wall, metrics, errors, jobs, texts)
        self._evict()
        return self._buffers[chunk]

    def _parts(self) -> list[tuple[Output, slice, slice]]:
        """Return each output with its columns of words, and of texts."""
        ends = zip(self.outputs, self._columns[1:].tolist(), self._texts[1:].tolist(), strict=True)
        return [(out, slice(end - out.width, end), slice(last - out.texts, last)) for out, end, last in ends]

    def no_texts(self, number: int) -> NDArray[np.object_] | None:
        """Return the empty texts of so many runs, shape (runs, texts); None if no output is text."""
        width = int(self._texts[-1])
        return np.full((number, width), "", dtype=object) if width else None

    def table_of_texts(self, texts: Mapping[int, Sequence[str]], number: int) -> NDArray[np.object_] | None:
        """Return the texts of runs, given by their places, as ``Results`` has them."""
        table = self.no_texts(number)
        if table is not None:
            for place, row in texts.items():
                table[place] = row
        return table

    def _evict(self) -> None:
        """Forget the chunks used longest ago that have nothing unsaved (never the newest)."""
        total = sum(buffer.size for buffer in self._buffers.values())
        for chunk in list(self._buffers)[:-1]:
            if total <= CACHE_BYTES:
                return
            if not self._buffers[chunk].dirty:
                total -= self._buffers.pop(chunk).size

    def add(self, results: Results) -> None:
        """Take results of simulated cells; write the chunks that are final with them.

        A result that is there already (from a journal and from a worker, say) is passed over: it is the same. A failure
        replaces no result.
        """
        results = self._readable(self._new(results))
        self.listen(results)
        kept = self._kept[results.cells]
        lost = (results.status == FAILED) & (kept != PENDING)
        self._put(_part(results, np.flatnonzero(~lost)))
        self.status[results.cells] = np.where(lost, kept, results.status)
        self.not_added |= {int(results.cells[i]): results.errors.get(i, "") for i in np.flatnonzero(lost).tolist()}
        self._count_down(results.cells)

    def _readable(self, results: Results) -> Results:
        """Let runs fail whose texts would make a chunk larger than any reader of a store takes."""
        if results.texts is None:
            return results
        refused = {}
        for place, cell in enumerate(results.cells.tolist()):
            chunk = int(self._chunk_of[cell])
            buffer = self._load(chunk)
            if buffer.text_bytes < 0:
                buffer.text_bytes = _text_bytes(buffer.texts)
            size = _text_bytes(results.texts[place])
            if buffer.text_bytes + size > MOST_TEXT_BYTES:
                most = f"{MOST_TEXT_BYTES:,} bytes of text in all"
                refused[place] = f"no room for {size:,} bytes of text: {len(buffer.cells):,} cells share {most}"
            else:
                buffer.text_bytes += size
        if not refused:
            return results
        status, values, texts = results.status.copy(), results.values.copy(), results.texts.copy()
        status[list(refused)], values[list(refused)], texts[list(refused)] = FAILED, np.nan, ""
        return replace(results, status=status, values=values, texts=texts, errors={**results.errors, **refused})

    def _put(self, results: Results) -> None:
        """Lay results of simulated cells into the buffers of their chunks."""
        chunks = self._chunk_of[results.cells]
        for chunk in np.flatnonzero(np.bincount(chunks)):
            here = np.flatnonzero(chunks == chunk)
            buffer = self._load(int(chunk))
            places = self.store.chunks.places(int(chunk), results.cells[here])
            buffer.status[places] = results.status[here]
            buffer.wall_s[places] = results.wall_s[here]
            buffer.values[places] = results.values[here]
            if buffer.jobs is not None and results.jobs is not None:
                buffer.jobs[:, places] = results.jobs[:, here]
            if buffer.texts is not None and results.texts is not None:
                buffer.texts[places] = results.texts[here]
            if results.errors or buffer.errors:
                self._set_errors(buffer, places, [results.errors.get(int(i), "") for i in here])
            buffer.dirty = True

    def with_jobs(self, results: Results, parts: Iterable[Mapping[str, Any] | None]) -> Results:
        """Take the per-job results of each run, and return the results with their places.

        A run whose columns cannot stand beside those of the others fails.
        """
        places, refused = [], {}
        for number, part in enumerate(parts):
            try:
                places.append((-1, 0) if part is None or self.jobs is None else self.jobs.append(part))
            except InputError as error:
                places.append((-1, 0))
                refused[number] = str(error)
        jobs = np.array(places, dtype=np.int64).reshape(-1, 2).T
        status, values = results.status.copy(), results.values.copy()
        status[list(refused)], values[list(refused)] = FAILED, np.nan
        return replace(results, status=status, values=values, errors={**results.errors, **refused}, jobs=jobs)

    def _new(self, results: Results) -> Results:
        _, first = np.unique(results.cells, return_index=True)
        keep = first[~np.isin(self.status[results.cells[first]], FINAL)]
        return _part(results, keep)

    @staticmethod
    def _set_errors(buffer: _Buffer, places: NDArray[np.int64], texts: Sequence[str]) -> None:
        for place, text in zip(places.tolist(), texts, strict=True):
            if buffer.errors.get(place, "") != text:
                buffer.errors[place] = text
                buffer.dirty_errors = True

    def _count_down(self, cells: Cells) -> None:
        """Note that cells, each named once, are finished, and finish the chunks that waited for the last of them."""
        first = np.searchsorted(self._waited, cells, "left")
        counts = np.searchsorted(self._waited, cells, "right") - first
        places = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        own = cells[self._own[cells]]
        self._own[own] = False
        ended = np.bincount(self._chunk_of[own], minlength=len(self._waiting))
        ended += np.bincount(self._waiting_chunk[places], minlength=len(self._waiting))
        self._waiting -= ended
        for chunk in np.flatnonzero(ended):
            if self._waiting[chunk] == 0:
                self._finish(int(chunk))

    def _finish(self, chunk: int) -> None:
        """Fill the copies of a chunk whose sources all have results, and write it."""
        self._fill_copies(chunk)
        self._write(chunk)

    def _fill_copies(self, chunk: int) -> None:
        """Copy into a chunk every result that is there for a cell that is not its own source."""
        cells = self.store.chunks.cells(chunk)
        source = self.source[cells]
        places = np.flatnonzero((source >= 0) & (source != cells) & ~np.isin(self.status[cells], SETTLED))
        places = places[np.isin(self.status[source[places]], FINAL)]
        if not len(places):
            return
        from_chunk = self._chunk_of[source[places]]
        taken = []
        for other in np.unique(from_chunk):
            here = places[from_chunk == other]
            buffer = self._load(int(other))
            taken.append((here, self._take(buffer, self.store.chunks.places(int(other), source[here]))))
        buffer = self._load(chunk)
        for here, results in taken:
            buffer.status[here] = [COPY_OF[int(status)] for status in results.status]
            buffer.values[here] = results.values
            if buffer.jobs is not None and results.jobs is not None:
                buffer.jobs[:, here] = results.jobs
            if buffer.texts is not None and results.texts is not None:
                buffer.texts[here] = results.texts
            if results.errors or buffer.errors:
                self._set_errors(buffer, here, [results.errors.get(i, "") for i in range(len(here))])
            self.status[cells[here]] = buffer.status[here]
        buffer.dirty = True

    @staticmethod
    def _take(buffer: _Buffer, places: NDArray[np.int64]) -> Results:
        errors = {i: buffer.errors[p] for i, p in enumerate(places.tolist()) if p in buffer.errors}
        jobs = None if buffer.jobs is None else buffer.jobs[:, places]
        texts = None if buffer.texts is None else buffer.texts[places]
        return Results(
            buffer.cells[places],
            buffer.status[places],
            buffer.wall_s[places],
            buffer.values[places],
            errors,
            jobs,
            texts,
        )

    def _write(self, chunk: int) -> None:
        """Write a chunk: metrics, then errors, then what is ready to be read."""
        buffer = self._buffers.get(chunk)
        if buffer is None or not buffer.dirty:
            return
        self.check()
        start = time.monotonic()
        if self.jobs is not None:
            self.jobs.flush()
        without = ~np.isin(buffer.status, WITH_RESULT)
        for output, part, span in self._parts():
            if output.texts and buffer.texts is not None:
                strings = np.array(buffer.texts[:, span], dtype=np.dtypes.StringDType())
                block = strings.reshape(len(buffer.cells), *output.shape)
            else:
                block = output.decode(buffer.values[:, part])
            if output.dtype != "float64":
                block[without] = output.fill
            self.store.write_block(output.name, chunk, block)
        self.store.write_block("wall_s", chunk, buffer.wall_s)
        if buffer.dirty_errors:
            texts = np.full(len(buffer.cells), "", dtype=np.dtypes.StringDType())
            for place, text in buffer.errors.items():
                texts[place] = text
            self.store.write_block("error", chunk, texts)
        if buffer.jobs is not None:
            self.store.write_block("jobs_offset", chunk, buffer.jobs[0])
            self.store.write_block("jobs_length", chunk, buffer.jobs[1])
        self.store.write_block("status", chunk, buffer.status)
        buffer.dirty = buffer.dirty_errors = False
        self._save_cost_s = time.monotonic() - start
        self._evict()

    def save_sometimes(self) -> bool:
        """Write unfinished chunks now and then, so that a partial store can be looked at.

        Returns whether all results that were taken are written now.
        """
        dirty = sum(buffer.dirty for buffer in self._buffers.values())
        pause = max(SAVE_EVERY_S, _SAVE_SHARE * self._save_cost_s * dirty)
        if dirty and time.monotonic() - self._last_save > pause:
            self.flush()
            dirty = 0
        return not dirty

    def flush(self) -> None:
        """Write everything that is unsaved, with the copies that can be made."""
        for chunk in [chunk for chunk, buffer in self._buffers.items() if buffer.dirty]:
            self._fill_copies(chunk)
            self._write(chunk)
        self.store.compact()
        self._last_save = time.monotonic()

    def counts(self) -> dict[int, int]:
        """Return how many cells have each status."""
        numbers = np.bincount(self.status, minlength=len(STATUS_NAMES))
        return {status: int(number) for status, number in enumerate(numbers)}


def _text_bytes(texts: Iterable[Any] | None) -> int:
    """Return the bytes of texts as a chunk has them, each behind its length."""
    return sum(4 + len(text.encode()) for text in np.ravel(np.asarray(texts, dtype=object)) if text)


def _part(results: Results, keep: NDArray[np.int64]) -> Results:
    """Return the results at these places."""
    if len(keep) == len(results.cells):
        return results
    errors = {new: results.errors[old] for new, old in enumerate(keep.tolist()) if old in results.errors}
    jobs = None if results.jobs is None else results.jobs[:, keep]
    texts = None if results.texts is None else results.texts[keep]
    return Results(
        results.cells[keep], results.status[keep], results.wall_s[keep], results.values[keep], errors, jobs, texts
    )


def describe_counts(counts: Mapping[int, int], names: Sequence[str]) -> str:
    """Return the counts of statuses in words, those of zero left out."""
    return ", ".join(f"{counts[i]:,} {name.replace('_', ' ')}" for i, name in enumerate(names) if counts.get(i))
