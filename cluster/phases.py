"""What a batch job is doing: a small file beside its log, which the job keeps up to date for ``faultsweep status``.

The file has a fixed size and is overwritten in place, so that a job can also say that the disk is full.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from pathlib import Path
from typing import Any

from faultsweep.files import read_fields

PHASE = "phase.json"
QUEUED, REQUEUED = "queued", "requeued"
STARTING, STARTING_WORKERS, RUNNING, ENDING = "starting", "starting workers", "running", "ending"
RESTARTING, NO_SPACE = "restarting", "waiting for disk space"
SAVING, SAVING_BEFORE_WALLTIME = "saving", "saving before the walltime"
_SIZE = 1024
_TEXT = 400
FULL = (errno.ENOSPC, errno.EDQUOT)
"""Errors of a full disk, or of a quota that is used up."""
DISK_FULL = "the disk is full"
"""What the sentence of whoever ends for want of room has in it."""
ROOM = 1 << 20
_RESERVE, _RESERVE_BYTES = "reserve", 1 << 16


class PhaseFile:
    """Where one life of a job says in which phase it is."""

    def __init__(self, folder: Path, life: str) -> None:
        """Take the folder of a job, and what tells this life of it from others, such as ``17-0``."""
        self._path = folder / PHASE
        self._life = life
        self.phase = ""

    def enter(self, phase: str, text: str = "") -> None:
        """Say that a phase begins now; ``text`` says more. On a disk that is full this overwrites what is there."""
        if phase == self.phase:
            return
        self.phase = phase
        content = {"life": self._life, "phase": phase, "since": time.time(), "text": text[:_TEXT]}
        data = json.dumps(content).encode()[:_SIZE].ljust(_SIZE)
        with contextlib.suppress(OSError):
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(file, data, 0)
            finally:
                os.close(file)


def read_phase(folder: Path) -> dict[str, Any] | None:
    """Return what a job said last: ``life, phase, since`` (seconds since 1970) and ``text``; None if it said nothing.

    What is half written is nothing.
    """
    return read_fields(folder / PHASE, {"life": str, "phase": str, "since": (int, float), "text": str}) or None


def keep_reserve(folder: Path) -> None:
    """Take a little of the disk, for ``use_reserve``; on a full disk there is none until the next call."""
    path = folder / _RESERVE
    if path.exists():
        return
    try:
        path.write_bytes(os.urandom(_RESERVE_BYTES))  # which no file system compresses
    except OSError:
        path.unlink(missing_ok=True)


def use_reserve(folder: Path) -> None:
    """Give the reserve back to the disk, for what has to be written now: credentials, or how a job ended."""
    (folder / _RESERVE).unlink(missing_ok=True)


def says_full(words: str) -> bool:
    """Tell whether a process that ended with these words did so for want of room."""
    return any(text in words for text in (DISK_FULL, *map(os.strerror, FULL)))


def free_bytes(folder: Path) -> int:
    """Return the room of the file system of a folder; a quota may leave less."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def has_room(folder: Path) -> bool:
    """Tell whether a mebibyte can be written into a folder; an error other than a full disk does not count."""
    path = folder / f"room-{os.getpid()}.partial"
    try:
        with path.open("wb") as file:
            file.write(bytes(ROOM))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno not in FULL
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
    return True
