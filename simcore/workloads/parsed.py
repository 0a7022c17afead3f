"""Large job logs as they were parsed, kept in the user's cache by the hash of their content, so that they open at once.

Nothing in these files is executed: they are arrays of NumPy, read without pickle, with a checksum of their own. A file
that is not the user's own, or that is damaged, is not read; the log is parsed instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import zipfile
from pathlib import Path

import numpy as np
import platformdirs
from faultsweep.simcore.model.dependencies import PAIRS, Dependencies
from faultsweep.simcore.model.workload import LABELS, Label, Workload, check_workload

from faultsweep.errors import InputError

VERSION = 5
"""Raised when a log is read otherwise than before."""
LEAST_BYTES = 500_000
"""Files of logs that are smaller are parsed at once."""
_MOST_FILES = 20
_ARRAYS = ("job_id", "submit_s", "run_s", "requested_s", "size", "user")
_WHOLE = ("job_id", "size", "user")


def folder() -> Path:
    """Return where parsed logs are kept: for this user only."""
    base = os.environ.get("FAULTSWEEP_CACHE_DIR") or platformdirs.user_cache_dir("faultsweep")
    return Path(base) / "parsed"


def key_of(raw: bytes) -> str:
    """Return the name of a log's parsed form, from its file's content."""
    return f"{hashlib.sha256(raw).hexdigest()}-{VERSION}.npz"


def load(key: str, name: str) -> Workload | None:
    """Return a log that was parsed before, called ``name``; None if it was not, or cannot be believed."""
    path = folder() / key
    try:
        if not (_is_own(folder()) and _is_own(path)):
            return None
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            arrays = {each: file[each] for each in _ARRAYS}
            known = [name for name in LABELS if name in about]
            labels = {name: Label(file[f"label_{name}"], tuple(map(str, about[name]))) for name in known}
            pairs = [file[each] for each in PAIRS if each in file]
        kinds = {each: "int64" if each in _WHOLE else "float64" for each in _ARRAYS}
        if {each: array.dtype.name for each, array in arrays.items()} != kinds:
            return None
        workload = Workload(
            **arrays,
            name=name,
            nodes=int(about["nodes"]),
            procs_per_node=int(about["procs_per_node"]),
            header=tuple(map(str, about["header"])),
            dropped={str(reason): int(count) for reason, count in about["dropped"].items()},
            content_hash=str(about["content_hash"]),
            labels=labels,
            dependencies=Dependencies(*pairs) if pairs else None,
        )
        check_workload(workload)
        os.utime(path)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, InputError):
        return None
    return workload


def keep(key: str, workload: Workload) -> None:
    """Keep a parsed log for the next time; where that cannot be, it is parsed again."""
    about = {
        "nodes": workload.nodes,
        "procs_per_node": workload.procs_per_node,
        "header": list(workload.header),
        "dropped": dict(workload.dropped),
        "content_hash": workload.content_hash,
        **{name: list(label.names) for name, label in workload.labels.items()},
    }
    arrays = {each: getattr(workload, each) for each in _ARRAYS}
    arrays |= {f"label_{name}": label.codes for name, label in workload.labels.items()}
    if workload.dependencies is not None:
        arrays |= workload.dependencies.arrays()
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    with contextlib.suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        if not _is_own(folder()):
            return
        fresh = folder() / f"{key}.{os.getpid()}.partial"
        try:
            with open(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
                np.savez(file, about=text, **arrays)
            os.replace(fresh, folder() / key)
        finally:
            fresh.unlink(missing_ok=True)
        _forget_old()


def _is_own(path: Path) -> bool:
    """Tell whether a file or folder is this user's, and nobody else can write it."""
    about = path.lstat()
    return about.st_uid == os.getuid() and not about.st_mode & 0o022 and not stat.S_ISLNK(about.st_mode)


def _forget_old() -> None:
    """Remove the logs that were used longest ago, but for so many."""
    files = sorted(folder().glob("*.npz"), key=lambda file: file.stat().st_mtime)
    for file in files[:-_MOST_FILES]:
        file.unlink(missing_ok=True)
