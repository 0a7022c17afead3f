"""Journals: what a process has finished, appended result by result, so that no kill loses any.

A file is a header and records, each with its length and checksum; what follows a torn record is ignored. One process
writes a file, and then the next one (``SEGMENT_BYTES``), so that those whose results the store has can be removed while
the run goes on. A little room is reserved ahead of what is written, so that a result is not lost because the disk is
full when its run ends. A record is written by one system call as soon as its run ends (``kill -9`` cannot take it
back), and the file is synced once per task (a power cut could).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.store.statuses import FAILED
from numpy.typing import NDArray

MAGIC = b"FSJ1"
DIED = 100
"""The status of a record that says that a worker died at this configuration; no status of a store. It has no result."""
SEGMENT_BYTES = 2**19
"""A journal of this size, or more, is followed by another one."""
RESERVE_BYTES = 2**14
"""Room on the disk that a journal has ahead of its end; a quarter of it is always there."""
_KEEP_SIZE = 1  # a flag of fallocate(2)
_FRAME = struct.Struct("<II")
_FIXED = 40
"""Bytes of a record before its values: key (16), wall time, status, length and offset of per-job results."""
_PIECE = 65_536


def _dtype(width: int) -> np.dtype:
    return np.dtype(
        [
            ("key", "<u8", 2),
            ("wall_s", "<f8"),
            ("status", "<u4"),
            ("jobs", "<u4"),
            ("at", "<u8"),
            ("values", "<f8", width),
        ]
    )


def jobs_beside(journal: Path) -> Path:
    """Return the file beside a journal that has the per-job results of its records."""
    return journal.with_suffix(".jobs")


def journal_texts(texts: Sequence[str]) -> str:
    """Return the texts that a run gave as the note of its record."""
    return json.dumps(list(texts)) if texts else ""


def _reserve(file: int, start: int, length: int) -> bool:
    """Reserve room behind the end of a file; returns False if the disk is full, True also where it cannot be done."""
    if not hasattr(_C, "fallocate"):  # macOS
        return True
    done = _C.fallocate(file, _KEEP_SIZE, ctypes.c_int64(start), ctypes.c_int64(length))
    return done == 0 or ctypes.get_errno() not in (errno.ENOSPC, errno.EDQUOT)


_C = ctypes.CDLL(None, use_errno=True)


class _Appended:
    """A new file that is only ever appended to, whole pieces at a time.

    Attributes
    ----------
    size : bytes so far.
    is_full : whether the disk had no room for another reserve.
    """

    def __init__(self, path: Path, reserves: bool = True) -> None:
        self._path = path
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o644)
        self._reserves = reserves
        self._reserved = 0
        self.size = 0
        self.is_full = False
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Reserve room again when three quarters of it are used."""
        if self._reserves and self._reserved - self.size < RESERVE_BYTES // 4:
            self.is_full = not _reserve(self._file, self.size, RESERVE_BYTES)
            self._reserved = self._reserved if self.is_full else self.size + RESERVE_BYTES

    def append(self, data: bytes) -> int:
        """Append a piece; returns where it begins."""
        written = os.write(self._file, data)
        if written < len(data):
            os.ftruncate(self._file, self.size)  # a full disk; a torn record would hide all that follow it
            raise OSError(errno.ENOSPC, "No space left on device", str(self._path))
        self.size += written
        self._look_ahead()
        return self.size - written

    def sync(self) -> None:
        getattr(os, "fdatasync", os.fsync)(self._file)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, self.size)  # gives back what is reserved
        os.close(self._file)


class JournalWriter:
    """Appends results to one file that no other process writes, and per-job results to one beside it.

    Attributes
    ----------
    path, outputs : its file, and the names of the values of every record.
    records : how many have been written.
    """

    def __init__(self, path: Path, outputs: Sequence[str]) -> None:
        """Create the file; ``outputs`` name the values of every record, in order."""
        self.path = path
        self.outputs = tuple(outputs)
        self.records = 0
        header = json.dumps({"outputs": list(outputs)}).encode()
        self._head = struct.Struct("<QQdIIQ")
        self._values = struct.Struct(f"<{len(outputs)}d")
        self._records = _Appended(path)
        self._jobs: _Appended | None = None
        try:
            self._records.append(MAGIC + _FRAME.pack(len(header), zlib.crc32(header)) + header)
        except OSError:
            self._records.close()
            path.unlink(missing_ok=True)
            raise

    def keep(self, jobs: bytes) -> tuple[int, int]:
        """Append the per-job results of a run whose record follows; returns their place, for that."""
        if self._jobs is None:
            self._jobs = _Appended(jobs_beside(self.path), reserves=False)
        return self._jobs.append(jobs), len(jobs)

    def write(
        self,
        key: tuple[int, int],
        status: int,
        wall_s: float,
        values: Sequence[float] | NDArray[np.float64],
        note: str = "",
        jobs: tuple[int, int] = (0, 0),
    ) -> None:
        """Append one result; ``jobs`` is the place (offset, length) that ``keep`` gave, if there are any.

        ``note`` is the error of a run that failed, or ``journal_texts`` of another one.
        """
        words = values.astype("<f8").tobytes() if isinstance(values, np.ndarray) else self._values.pack(*values)
        head = self._head.pack(key[0], key[1], wall_s, status, jobs[1], jobs[0])
        content = b"".join((head, words, note.encode()))
        self._records.append(_FRAME.pack(len(content), zlib.crc32(content)) + content)
        self.records += 1

    @property
    def size(self) -> int:
        """Return the bytes of the files."""
        return self._records.size + (self._jobs.size if self._jobs is not None else 0)

    @property
    def is_full(self) -> bool:
        """Tell whether the disk has no room for more than a few results."""
        return self._records.is_full

    def sync(self) -> None:
        """Wait until all that was written is on the disk, what records point at first."""
        for file in filter(None, (self._jobs, self._records)):
            file.sync()

    def close(self) -> None:
        """Close the files."""
        for file in filter(None, (self._jobs, self._records)):
            file.close()


def follow(journal: JournalWriter, path: Path) -> JournalWriter:
    """Close a journal that is long, and return the one that follows it; the same one if the disk has no room for it."""
    if journal.size < SEGMENT_BYTES:
        return journal
    try:
        following = JournalWriter(path, journal.outputs)
    except OSError:
        return journal  # which has room ahead
    journal.close()
    return following


@dataclass(frozen=True)
class Records:
    """Some results of one journal; arrays over the records."""

    outputs: tuple[str, ...]
    keys: NDArray[np.uint64]
    status: NDArray[np.int8]
    wall_s: NDArray[np.float64]
    values: NDArray[np.float64]
    errors: dict[int, str]
    jobs: NDArray[np.uint64]
    texts: dict[int, list[str]]


def read_journal(path: Path) -> Iterator[Records]:
    """Yield the sound records of a journal, up to 65,536 at a time: all that stand before the first damaged one."""
    data = path.read_bytes()
    outputs, position = _read_header(data)
    for offsets, ends in _pieces(data, position, outputs):
        yield _decode(data, offsets, ends, outputs)


class JournalTail:
    """Reads a journal while it is written: each time the records that have come since.

    Attributes
    ----------
    bytes_read : by the last call of ``read``.
    """

    def __init__(self, path: Path) -> None:
        """Begin with the first record of a file."""
        self._path = path
        self._position = 0
        self._outputs: tuple[str, ...] = ()
        self.bytes_read = 0

    def read(self) -> list[Records]:
        """Return the new records; none of a journal that has been removed, or whose header is not whole yet."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                data = file.read()
        except FileNotFoundError:
            data = b""
        self.bytes_read = len(data)
        start = 0
        if self._position == 0:
            self._outputs, start = _read_header(data)
        found = []
        for offsets, ends in _pieces(data, start, self._outputs):
            found.append(_decode(data, offsets, ends, self._outputs))
            start = ends[-1]
        self._position += start
        return found


def _read_header(data: bytes) -> tuple[tuple[str, ...], int]:
    """Return the outputs of a journal, and where its records begin; 0 if its header is not sound."""
    head = len(MAGIC) + _FRAME.size
    if len(data) < head or data[: len(MAGIC)] != MAGIC:
        return (), 0
    length, checksum = _FRAME.unpack_from(data, len(MAGIC))
    header = data[head : head + length]
    if len(header) < length or zlib.crc32(header) != checksum:
        return (), 0
    return tuple(json.loads(header)["outputs"]), head + length


def _pieces(data: bytes, position: int, outputs: tuple[str, ...]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield where sound records start and end, up to 65,536 at a time."""
    if not outputs:
        return
    frames = _frames(data, position, _FIXED + 8 * len(outputs))
    while piece := list(islice(frames, _PIECE)):
        yield [start for start, _ in piece], [end for _, end in piece]


def _frames(data: bytes, position: int, least: int) -> Iterator[tuple[int, int]]:
    """Yield where sound records start and end."""
    view = memoryview(data)
    unpack, crc32, frame = _FRAME.unpack_from, zlib.crc32, _FRAME.size
    total = len(data)
    while position + frame <= total:
        length, checksum = unpack(data, position)
        start = position + frame
        position = start + length
        if length < least or position > total or crc32(view[start:position]) != checksum:
            return
        yield start, position


def _decode(data: bytes, offsets: list[int], ends: list[int], outputs: tuple[str, ...]) -> Records:
    kind = _dtype(len(outputs))
    bytes_ = np.frombuffer(data, dtype=np.uint8)
    places = np.array(offsets)
    rows = bytes_[places[:, None] + np.arange(kind.itemsize)].view(kind)[:, 0]
    long = np.flatnonzero(np.array(ends) - places > kind.itemsize)
    notes = {int(i): data[offsets[i] + kind.itemsize : ends[i]].decode(errors="replace") for i in long}
    failed = rows["status"] == FAILED
    errors = {i: note for i, note in notes.items() if failed[i]}
    texts = {i: json.loads(note) for i, note in notes.items() if not failed[i]}
    jobs = np.stack([rows["at"], rows["jobs"].astype(np.uint64)])
    return Records(
        outputs,
        rows["key"].T.copy(),
        rows["status"].astype(np.int8),
        rows["wall_s"],
        rows["values"],
        errors,
        jobs,
        texts,
    )


def pack_jobs(jobs: Mapping[str, Any]) -> bytes:
    """Return per-job arrays, all of one length, as bytes."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {f"_{name}": np.asarray(values) for name, values in jobs.items()}  # "file" is taken
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpack_jobs(path: Path, offset: int, length: int) -> dict[str, NDArray[Any]]:
    """Return the arrays that ``pack_jobs`` gave, from their place in a file."""
    with path.open("rb") as file:
        file.seek(offset)
        with np.load(io.BytesIO(file.read(length))) as arrays:
            return {name[1:]: values for name, values in arrays.items()}
