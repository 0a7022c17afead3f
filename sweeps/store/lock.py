"""One writer per store: a lock file made with O_EXCL, with a heartbeat, that recognises a dead owner.

No clock is compared with another: the owner's heartbeat is a counter, and a stranger decides that it stands still by
his own monotonic clock. On one host the process number together with its start (and the boot) tells at once.
``flock`` would mislead on NFS.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from faultsweep.cluster.batch_systems import SYSTEM_VARIABLE, own_job

from faultsweep.errors import InputError
from faultsweep.files import read_fields

BEAT_S = 5.0
"""Time between heartbeats."""
DEAD_AFTER_BEATS = 6
"""A lock of another host whose counter stands still for this many beats is taken over."""
_OWNER = {
    **{"host": str, "pid": int, "started": str, "boot": str, "token": str, "beats": int},
    **{"batch_job": (str, type(None)), "batch_system": (str, type(None))},
}


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return when a process started, in a form that no change of the clock alters; "" if there is no such process."""
    try:
        # the 22nd field counts ticks since the boot; the name in brackets before it may hold anything
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        pass
    if Path("/proc/self/stat").exists():
        return ""
    import psutil

    try:
        return str(psutil.Process(pid).create_time())
    except psutil.Error:
        return ""


class Lock:
    """The right to write one store. Use as a context manager; ``check`` raises if it was lost."""

    def __init__(self, path: Path, wait_s: float = BEAT_S * DEAD_AFTER_BEATS, beat_s: float = BEAT_S) -> None:
        """Prepare a lock at ``path``; nothing is taken before ``acquire``."""
        self.path = path
        self.wait_s = wait_s
        self.beat_s = beat_s
        self.token = uuid.uuid4().hex
        self.lost = False
        self._beats = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def _content(self) -> str:
        owner = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "started": _started(os.getpid()),
            "boot": _boot(),
            "batch_job": own_job(),
            "batch_system": os.environ.get(SYSTEM_VARIABLE, ""),
            "token": self.token,
            "beats": self._beats,
        }
        return json.dumps(owner)

    def acquire(self) -> Lock:
        """Take the lock, over a dead owner if need be.

        Raises
        ------
        InputError
            A living process has it; says which, and where.
        """
        while True:
            try:
                self._create()
                break
            except FileExistsError:
                seen = self._read()
                if seen is not None and not self._is_dead(seen):
                    raise InputError(_describe(self.path, self._read() or seen)) from None
                self._remove(seen)
        self._thread = threading.Thread(target=self._beat, name="store lock", daemon=True)
        self._thread.start()
        return self

    def _create(self) -> None:
        descriptor = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(self._content())
        except OSError:
            self.path.unlink(missing_ok=True)
            raise

    def _read(self) -> dict[str, Any] | None:
        """Return the owner; {} for a file that holds none (its writer died, or the disk was full), None for no file."""
        return read_fields(self.path, _OWNER)

    def _is_dead(self, seen: dict[str, Any]) -> bool:
        if seen.get("host") == socket.gethostname():
            if seen.get("boot") != _boot():
                return True
            return _started(seen["pid"]) != seen.get("started")
        end = time.monotonic() + self.wait_s
        while time.monotonic() < end:
            time.sleep(min(0.2, self.wait_s / 10))
            now = self._read()
            if now is None:
                return True
            if now != seen:
                return False
        return True

    def is_stale(self) -> bool:
        """Tell whether nobody has this lock: there is no file, or its owner is dead (which may take a while to see)."""
        seen = self._read()
        return seen is None or self._is_dead(seen)

    def describe_owner(self) -> str:
        """Return the sentence that names the owner."""
        return _describe(self.path, self._read() or {})

    def _remove(self, seen: dict[str, Any] | None) -> None:
        """Remove a dead owner's file; a guard file keeps others from removing the file of whoever comes next."""
        guard = self.path.with_name(f"{self.path.name}.takeover")
        try:
            os.close(os.open(guard, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            end = time.monotonic() + self.wait_s
            while guard.exists() and time.monotonic() < end:
                time.sleep(0.01)
            if time.monotonic() >= end:
                guard.unlink(missing_ok=True)  # whoever was taking over has died
            return
        try:
            if seen is not None and self._read() == seen:
                self.path.unlink(missing_ok=True)
        finally:
            guard.unlink(missing_ok=True)

    def _beat(self) -> None:
        while not self._stop.wait(self.beat_s):
            owner = self._read()
            if owner is None or owner.get("token", self.token) != self.token:
                self.lost = True
                return
            self._beats += 1
            fresh = self.path.with_name(f"{self.path.name}.beat")
            try:
                fresh.write_text(self._content())
                os.replace(fresh, self.path)
            except OSError:
                continue  # a full disk: the next beat may succeed, and on this host the process number counts

    def check(self) -> None:
        """Raise InputError if another process has taken the lock, thinking this one dead (it was frozen, say)."""
        owner = self._read()
        if self.lost or owner is None or owner.get("token", self.token) != self.token:
            self.lost = True
            raise InputError(f"{self.path}: another process has taken the store over; this run stops, nothing is lost")

    def release(self) -> None:
        """Stop the heartbeat and remove the file if it is still this process' own."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self.beat_s + self.wait_s)  # a file system may hold a beat for ever
        owner = self._read()
        if owner is not None and owner.get("token") == self.token:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Lock:
        """Take the lock."""
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        """Give the lock back."""
        self.release()


def owner_of(path: Path) -> dict[str, Any] | None:
    """Return who has a lock, None if nobody or a process of this host that is dead."""
    owner = Lock(path)._read()
    if not owner or (owner.get("host") == socket.gethostname() and _started(owner["pid"]) != owner.get("started")):
        return None
    return owner


def say_owner(owner: dict[str, Any]) -> str:
    """Return in words which process has a lock."""
    job = f" (batch job {owner['batch_job']})" if owner.get("batch_job") else ""
    return f"process {owner.get('pid')} on {owner.get('host')}{job}"


def _describe(path: Path, owner: dict[str, Any]) -> str:
    return f"{path}: {say_owner(owner)} is running this sweep; wait for it, stop it, or give another store"
