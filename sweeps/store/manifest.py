"""The manifest of a store: what every file of it has to be, so that a lost or changed one is seen.

Before a file is written or removed, a line is appended with its size and checksum, or with its absence: Zarr writes no
chunk that equals its fill value, and without a line nobody could tell that from a chunk that was lost. A line has a
checksum of its own, and its place in the file, so that lost lines are seen, too. What nothing else could restore is
kept twice: the manifest itself, the root's metadata, the coordinates and the status.

A kill may come between the line and the file. So a file is sound if it is what its last line says, or what an earlier
one says, but never older than what the status of its chunk, or the root, was written after.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zarr.core.buffer import Buffer
from zarr.storage import LocalStore, WrapperStore

JOBS = "jobs"
OVER_GRID = ("status", "wall_s", "error", "jobs_offset", "jobs_length")
"""Variables of the grid beside the metrics."""
FOLDER = "integrity"
MANIFEST, SECOND = f"{FOLDER}/manifest", f"{FOLDER}/manifest-copy"
COPIES = f"{FOLDER}/copies"
ROOT = "zarr.json"
ABSENT = "-"
_STATUS = f"status/{ROOT}"


def digest_of(content: bytes | memoryview) -> str:
    """Return the checksum of a file's content, of 128 bits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def is_sealed(path: Path) -> bool:
    """Tell whether a store has a manifest."""
    return (path / MANIFEST).is_file() or (path / SECOND).is_file()


def is_kept_twice(name: str, metrics: Container[str]) -> bool:
    """Tell whether a file is kept twice: the root, and chunks of the status and of coordinates."""
    array, _, rest = name.partition("/")
    if name == ROOT or (array == "status" and rest.startswith("c")):
        return True
    own = array in OVER_GRID or array in (JOBS, FOLDER) or array in metrics
    return not own and bool(rest) and rest != ROOT


def make_line(place: int, name: str, content: bytes | memoryview | None) -> str:
    """Return the line of a file that begins at ``place`` of the manifest; ``content`` is None if it is removed."""
    size, digest = (0, ABSENT) if content is None else (len(content), digest_of(content))
    text = f"{place} {size} {digest} {name}"
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def note(path: Path, entries: Iterable[tuple[str, bytes | memoryview | None]], sync: bool = False) -> None:
    """Append lines to the manifest of the store at ``path``: name -> content, None for a file that is removed.

    A store without a manifest gets none.
    """
    if not (path / FOLDER).is_dir():
        return
    files = [os.open(path / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) for name in (MANIFEST, SECOND)]
    try:
        sizes = [os.fstat(file).st_size for file in files]
        text = ""
        for name, content in entries:
            text += make_line(max(sizes) + len(text.encode()), name, content)
        data = text.encode()
        for file, size in zip(files, sizes, strict=True):
            if os.write(file, data) < len(data):
                os.ftruncate(file, size)  # a full disk
                raise OSError(28, "No space left on device", str(path / MANIFEST))
            if sync:
                os.fsync(file)
    finally:
        for file in files:
            os.close(file)


class RecordingStore(WrapperStore[LocalStore]):
    """A folder whose files are written and removed with a line in the manifest, those that need it twice."""

    def __init__(self, store: LocalStore, metrics: Container[str] = ()) -> None:
        """Take the folder; ``metrics`` are arrays that can be computed again."""
        super().__init__(store)
        self.metrics = metrics
        self._path = Path(store.root)

    def _with_store(self, store: LocalStore) -> RecordingStore:
        return RecordingStore(store, self.metrics)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file."""
        content = value.to_bytes()
        if is_kept_twice(key, self.metrics) and key != ROOT:
            note(self._path, [(f"{COPIES}/{key}", content)])
            if is_sealed(self._path):
                await self._store.set(f"{COPIES}/{key}", value)
        note(self._path, [(key, content)])
        await self._store.set(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write a file that is not there."""
        if not await self._store.exists(key):
            await self.set(key, value)

    async def delete(self, key: str) -> None:
        """Remove a file."""
        for name in (f"{COPIES}/{key}", key):
            if (self._path / name).is_file():
                note(self._path, [(name, None)])
                await self._store.delete(name)

    async def delete_dir(self, prefix: str) -> None:
        """Remove a folder."""
        remove(self._path, prefix)


def remove(path: Path, prefix: str) -> None:
    """Remove a file, or all files in a folder of a store, and their copies."""
    for top in (path / COPIES / prefix, path / prefix):
        files = [top] if top.is_file() else sorted(file for file in top.rglob("*") if file.is_file())
        note(path, [(file.relative_to(path).as_posix(), None) for file in files])
        for file in files:
            file.unlink(missing_ok=True)


def replace_file(path: Path, name: str, content: bytes) -> None:
    """Replace a file of a store in one step, with its line; the root is written twice."""
    names = [f"{COPIES}/{name}", name] if name == ROOT and (path / FOLDER).is_dir() else [name]
    for each in names:
        note(path, [(each, content)], sync=name == ROOT)
        fresh = path / f"{each}.partial"
        fresh.parent.mkdir(parents=True, exist_ok=True)
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path / each)


def manifest_size(path: Path) -> int:
    """Return how long the manifest of a store is."""
    return max((path / name).stat().st_size if (path / name).is_file() else 0 for name in (MANIFEST, SECOND))


def root_text(root: Mapping[str, Any], lines: int) -> bytes:
    """Return the root's metadata as its file has it; ``lines`` is the length of the manifest before it is written."""
    attributes = {**root["attributes"], "manifest": lines}
    return json.dumps({**root, "attributes": attributes}, indent=1).encode()


def whole_manifest(files: Iterable[tuple[str, bytes]], root: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return a manifest of these files with a line for each, and the root's metadata that goes with it."""
    text = ""
    for name, content in files:
        text += make_line(len(text.encode()), name, content)
    content = root_text(root, len(text.encode()))
    for name in (f"{COPIES}/{ROOT}", ROOT):
        text += make_line(len(text.encode()), name, content)
    return text.encode(), content


def data_files(path: Path) -> Iterator[str]:
    """Yield the names of all files of a store that a manifest lists, but for the root and its copy, in order."""
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if name not in (MANIFEST, SECOND, ROOT, f"{COPIES}/{ROOT}") and file.suffix != ".partial" and file.is_file():
            yield name


def rewrite(path: Path, root: Mapping[str, Any] | None = None, without: Container[str] = ()) -> None:
    """Write a new manifest of the files that a store has, but those ``without``, and the root; the present one if not
    given."""
    root = json.loads((path / ROOT).read_bytes()) if root is None else root
    files = ((name, (path / name).read_bytes()) for name in data_files(path) if name not in without)
    text, content = whole_manifest(files, root)
    (path / COPIES).mkdir(parents=True, exist_ok=True)
    for name, data in ((MANIFEST, text), (SECOND, text), (f"{COPIES}/{ROOT}", content), (ROOT, content)):
        fresh = path / f"{name}.partial"
        with fresh.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path / name)


@dataclass(frozen=True)
class Damage:
    """A file of a store that is not what it has to be.

    Attributes
    ----------
    name : of the file, below the store.
    what : "absent", "damaged", "of an earlier time", or "not in the manifest".
    """

    name: str
    what: str


@dataclass
class Verified:
    """What ``verify`` finds.

    Attributes
    ----------
    damage : files that are not what they have to be; empty for a sound store.
    files, size_bytes : that were read.
    behind : files that are what an earlier line of the manifest says, since a kill came before they were written.
    sound : files whose content is proved.
    """

    damage: list[Damage] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    behind: list[str] = field(default_factory=list)
    sound: set[str] = field(default_factory=set)


def _read_line(line: bytes) -> tuple[int, int, str, str] | None:
    """Return the place, size, digest and name of a line; None if it is damaged, or names no file below the store."""
    checksum, _, text = line.partition(b" ")
    if checksum != f"{zlib.crc32(text):08x}".encode():
        return None
    found = re.fullmatch(rb"(\d{1,18}) (\d{1,18}) ([0-9a-f]{32}|-) (.+)", text, re.DOTALL)
    try:
        name = found[4].decode() if found else ""
    except UnicodeDecodeError:
        return None
    plain = name.isprintable() and "\\" not in name and not any(part in ("", ".", "..") for part in name.split("/"))
    return (int(found[1]), int(found[2]), found[3].decode(), name) if found and plain else None


def read_lines(path: Path) -> tuple[dict[str, list[tuple[int, int, str]]], list[Damage]]:
    """Return what the manifest says of each file: (place, size, digest) in order, and what of it is damaged."""
    lines: dict[int, tuple[int, str, str]] = {}
    lengths: dict[int, int] = {}
    whole: list[set[int]] = []
    bad: list[Damage] = []
    for name in (MANIFEST, SECOND):
        try:
            content = (path / name).read_bytes()
        except OSError:
            whole.append(set())
            bad.append(Damage(name, "absent"))
            continue
        here, sound = set(), True
        for line in content.split(b"\n")[:-1] if content.endswith(b"\n") else content.split(b"\n"):
            entry = _read_line(line)
            if entry is None:
                sound = False
                continue
            place = entry[0]
            lines[place] = entry[1:]
            lengths[place] = len(line) + 1
            here.add(place)
        whole.append(here)
        if not sound:
            bad.append(Damage(name, "damaged"))
    known = {damage.name for damage in bad}
    bad += [
        Damage(name, "damaged")
        for name, here in zip((MANIFEST, SECOND), whole, strict=True)
        if name not in known and len(here) < len(lines)
    ]
    position = 0
    for place in sorted(lines):
        if place != position and not bad:
            bad.append(Damage(MANIFEST, "damaged"))
        position = place + lengths[place]
    found: dict[str, list[tuple[int, int, str]]] = {}
    for place in sorted(lines):
        size, digest, name = lines[place]
        found.setdefault(name, []).append((place, size, digest))
    return found, bad


def needed_files(content: bytes, end: int) -> set[str]:
    """Return the files that a manifest says are there: as of its first ``end`` bytes, and still at its own end."""
    then: dict[str, str] = {}
    now: dict[str, str] = {}
    for line in content.split(b"\n"):
        entry = _read_line(line)
        if entry is not None:
            place, _, digest, name = entry
            now[name] = digest
            if place < end:
                then[name] = digest
    return {name for name, digest in then.items() if digest != ABSENT and now[name] != ABSENT}


def verify(path: Path, sizes_only: bool = False) -> Verified:
    """Compare all files of a store with its manifest; a run may be writing it meanwhile.

    ``sizes_only`` reads no chunks: a file that has another size than it should have is seen.
    """
    found = Verified()
    began = manifest_size(path)
    names = list(data_files(path))
    first = [ROOT, f"{COPIES}/{ROOT}", *(name for name in names if name.startswith("status/"))]
    seen: dict[str, tuple[int, str]] = {}
    # what is written last is read first, the manifest at the end: then nothing seems older than it is
    for name in dict.fromkeys([*first, *names]):
        try:
            seen[name] = _look(path / name, sizes_only and not name.endswith(ROOT))
        except OSError:
            continue
        found.files += 1
        found.size_bytes += seen[name][0]
    history, found.damage = read_lines(path)
    if not history:
        found.damage = [Damage(MANIFEST, "absent" if not is_sealed(path) else "damaged")]
        return found
    at = {name: _matched(history.get(name, []), seen.get(name), sizes_only) for name in {*history, *seen}}
    floors = _floors(history, at)
    for name in sorted(at):
        lines, matched = history.get(name, []), at[name]
        if not lines:
            if name.partition("/")[0] in _arrays(path):
                found.damage.append(Damage(name, "not in the manifest"))
            continue
        if matched is None:
            found.damage.append(Damage(name, "damaged" if name in seen else "absent"))
        elif matched < floors.get(name, -1):
            found.damage.append(Damage(name, "of an earlier time" if name in seen else "absent"))
        else:
            found.sound.add(name)
            if matched != lines[-1][0]:
                found.behind.append(name)
    _check_root(path, history, at, found)
    # a run that writes meanwhile: what it has written since is not what was read
    moved = {name for name, lines in history.items() if lines[-1][0] >= began}
    found.damage = [one for one in found.damage if one.name not in moved and not (moved and one.name == MANIFEST)]
    found.behind = [name for name in found.behind if name not in moved]
    return found


def _look(file: Path, sizes_only: bool) -> tuple[int, str]:
    if sizes_only:
        return file.stat().st_size, ""
    content = file.read_bytes()
    return len(content), digest_of(content)


def _matched(lines: list[tuple[int, int, str]], seen: tuple[int, str] | None, sizes_only: bool) -> int | None:
    """Return the place of the last line that says what is there; -1 if nothing is and none was; None if none says."""
    for place, size, digest in reversed(lines):
        if seen is None:
            if digest == ABSENT:
                return place
        elif size == seen[0] and digest != ABSENT and (digest == seen[1] or (sizes_only and not seen[1])):
            return place
    return -1 if seen is None else None


def _floors(history: Mapping[str, list[tuple[int, int, str]]], at: Mapping[str, int | None]) -> dict[str, int]:
    """Return for each file the place of the line that it must not be older than."""
    floors: dict[str, int] = {}
    root = at.get(ROOT)
    status = {chunk_of(name): place for name, place in at.items() if name.startswith("status/") and name != _STATUS}
    dims = max(map(len, status), default=0)
    for name, lines in history.items():
        array = name.partition("/")[0]
        limits = [] if root is None else [root]
        if array not in ("status", FOLDER, JOBS) and not name.endswith(ROOT):
            limits += [place for place in [status.get(chunk_of(name)[:dims])] if place is not None]
        before = [place for place, _, _ in lines if any(place < limit for limit in limits)]
        floors[name] = max(before, default=-1)
    return floors


def chunk_of(name: str) -> tuple[int, ...]:
    """Return the numbers of a chunk along the dimensions of its array, from the name of its file."""
    return tuple(int(number) for number in re.findall(r"(?<=[/.])\d+(?=[/.]|$)", "/" + name.partition("/")[2]))


def _arrays(path: Path) -> set[str]:
    return {file.parent.name for file in path.glob("*/zarr.json")}


def _check_root(path: Path, history: Mapping[str, Any], at: Mapping[str, int | None], found: Verified) -> None:
    """Add what is wrong with the root as a whole: it is not the last one, or the manifest has lost its end."""
    known = {damage.name for damage in found.damage}
    if ROOT in known or at.get(ROOT) is None:
        return
    last = max(lines[-1][0] for lines in history.values())
    own = history[ROOT][-1][0]
    if at[ROOT] != own and own != last:
        found.damage.append(Damage(ROOT, "of an earlier time"))
    try:
        anchor = json.loads((path / ROOT).read_bytes())["attributes"]["manifest"]
    except (OSError, ValueError, KeyError):
        return
    if anchor > own and MANIFEST not in known:
        found.damage.append(Damage(MANIFEST, "of an earlier time"))


def settle(path: Path, behind: Iterable[str]) -> None:
    """Note what files are that a kill has left behind the manifest."""
    note(path, [(name, (path / name).read_bytes() if (path / name).is_file() else None) for name in sorted(behind)])
