"""The manifest of a store: what every file of it has to be, so that a lost or changed one is seen.

Before a file is written or removed, a line is appended with its size and checksum, or with its absence: Zarr writes no
chunk that equals its fill value, and without a line nobody could tell that from a chunk that was lost. A line has a
checksum of its own, and its place in the file, so that lost lines are seen, too. What nothing else could restore is
kept twice: the manifest itself, the root's metadata, the coordinates and the status.

A kill may come between the line and the file. So a file is sound if it is what its last line says, or what an earlier
one says, but never older than what the status of its chunk, or the root, was written after.

When lines of before are most of it, the manifest is written anew with the last two lines of each file. Places go on
from where the earlier one ended, so that an older copy of a store is known by its end.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from zarr.core.buffer import Buffer
from zarr.storage import LocalStore, WrapperStore

JOBS = "jobs"
OVER_GRID = ("status", "wall_s", "error", "jobs_offset", "jobs_length")
"""Variables of the grid beside the metrics."""
FOLDER = "integrity"
MANIFEST, SECOND = f"{FOLDER}/manifest", f"{FOLDER}/manifest-copy"
COPIES = f"{FOLDER}/copies"
LABELS = "label_files"
_MOST_KEPT = 65_536
ROOT = "zarr.json"
ABSENT = "-"
_STATUS = f"status/{ROOT}"
_KEPT_LINES = 2
"""Lines of a file that stay: what it is now, and what it is if a kill came before that was written."""
_SHORT_BYTES = 65_536
"""A manifest that is shorter is left alone."""
_MOST_GROWTH = 2
"""A longer one is written anew when it is this many times as long as it has to be."""


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


def keep_labels(path: Path, metrics: Container[str]) -> str:
    """Return the files of all coordinates of a store as JSON text, the smallest first, as many as 64 KB hold.

    The root has them as its attribute ``LABELS``. It is written at every run, unlike the files and their copies, which
    have one age: what removes old files takes both.
    """
    kept_twice = (folder for folder in path.iterdir() if is_kept_twice(f"{folder.name}/c", metrics))
    arrays = [folder for folder in kept_twice if folder.name != "status"]
    chunks = [file for folder in arrays for file in folder.rglob("*") if file.is_file() and file.name != ROOT]
    kept: dict[str, str] = {}
    room = _MOST_KEPT
    for file in sorted(chunks, key=lambda file: (file.stat().st_size, file)):
        room -= file.stat().st_size
        if room >= 0:
            kept[file.relative_to(path).as_posix()] = base64.b64encode(file.read_bytes()).decode()
    return json.dumps(kept)


def kept_label(attributes: Mapping[str, Any], name: str) -> bytes:
    """Return the file of a coordinate that the root's attributes have; nothing if they have none."""
    try:
        kept = json.loads(attributes.get(LABELS, "{}"))
        return base64.b64decode(kept.get(name, ""), validate=True)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return b""


def make_line(place: int, name: str, content: bytes | memoryview | None) -> str:
    """Return the line of a file that begins at ``place`` of the manifest; ``content`` is None if it is removed."""
    size, digest = (0, ABSENT) if content is None else (len(content), digest_of(content))
    return _line_text(place, size, digest, name)


def _head(begin: int, lines: int) -> str:
    """Return the first line of a manifest that does not begin at 0; ``lines`` are those that it was written with."""
    return _line_text(begin, f"{lines:012d}", ABSENT, MANIFEST)


def _line_text(place: int, size: int | str, digest: str, name: str) -> str:
    text = f"{place} {size} {digest} {name}"
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


def note(path: Path, entries: Iterable[tuple[str, bytes | memoryview | None]], sync: bool = False) -> None:
    """Append lines to the manifest of the store at ``path``: name -> content, None for a file that is removed.

    A store without a manifest gets none.
    """
    if not (path / FOLDER).is_dir():
        return
    _finish_compacting(path)
    files = [os.open(path / name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644) for name in (MANIFEST, SECOND)]
    try:
        sizes = [os.fstat(file).st_size for file in files]
        end, text = manifest_size(path), ""
        for name, content in entries:
            text += make_line(end + len(text.encode()), name, content)
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
        _replace(path / each, content)


def manifest_size(path: Path) -> int:
    """Return the place where the manifest of a store ends."""
    ends = [0]
    for name in (MANIFEST, SECOND):
        try:
            with (path / name).open("rb") as file:
                ends.append(_begin(file) + os.fstat(file.fileno()).st_size)
        except OSError:
            continue
    return max(ends)


def _begin(file: BinaryIO) -> int:
    """Return the place where a manifest begins: 0 until it was written anew."""
    position = 0
    for line in file:
        entry = _read_line(line.removesuffix(b"\n"))
        if entry is not None:
            return entry[0] - position
        position += len(line)
    return 0


def compact(path: Path) -> bool:
    """Write the manifest anew, if most of it is lines of before; returns whether it was.

    A kill at any moment leaves the earlier one, or the new one, in each of the two places.
    """
    if not is_sealed(path):
        return False
    _finish_compacting(path)
    longest = max((path / name).stat().st_size for name in (MANIFEST, SECOND) if (path / name).is_file())
    if longest < _SHORT_BYTES:
        return False
    history, bad = read_lines(path)
    if bad:
        return False  # which is mended otherwise
    kept = [
        (place, size, digest, name)
        for name, lines in history.items()
        if lines[-1][2] != ABSENT
        for place, size, digest in lines[-_KEPT_LINES:]
    ]
    base = manifest_size(path)
    text = _head(base, len(kept))
    for _, size, digest, name in sorted(kept):
        text += _line_text(base + len(text.encode()), size, digest, name)
    if longest <= _MOST_GROWTH * len(text):
        return False
    for name in (MANIFEST, SECOND):
        _replace(path / name, text.encode())
    return True


def _begins(path: Path) -> list[int]:
    """Return the places where the two manifests begin; a kill may have come between the two of them."""
    found = []
    for name in (MANIFEST, SECOND):
        try:
            with (path / name).open("rb") as file:
                found.append(_begin(file))
        except OSError:
            return [0, 0]
    return found


def _finish_compacting(path: Path) -> None:
    """Write the second manifest anew where a kill has left the first one alone to be so."""
    first, second = _begins(path)
    if first > second and second + (path / SECOND).stat().st_size == first:
        _replace(path / SECOND, (path / MANIFEST).read_bytes())


def _replace(path: Path, content: bytes) -> None:
    """Replace a file in one step."""
    fresh = path.with_name(f"{path.name}.partial")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(fresh, path)


def root_text(root: Mapping[str, Any], lines: int | None) -> bytes:
    """Return the root's metadata as its file has it; ``lines`` is the length of the manifest before it is written, None
    for a store without one."""
    attributes = {**root["attributes"]} | ({} if lines is None else {"manifest": lines})
    return json.dumps({**root, "attributes": attributes}).encode()


def whole_manifest(files: Iterable[tuple[str, bytes]], root: Mapping[str, Any], begin: int = 0) -> tuple[bytes, bytes]:
    """Return a manifest of these files with a line for each, and the root's metadata that goes with it.

    It begins where an earlier one has ended.
    """
    lines: list[str] = []
    end = begin + (len(_head(begin, 0)) if begin else 0)
    for name, content in files:
        lines.append(make_line(end, name, content))
        end += len(lines[-1].encode())
    content = root_text(root, end)
    for name in (f"{COPIES}/{ROOT}", ROOT):
        lines.append(make_line(end, name, content))
        end += len(lines[-1].encode())
    head = _head(begin, len(lines)) if begin else ""
    return "".join([head, *lines]).encode(), content


def data_files(path: Path) -> Iterator[str]:
    """Yield the names of all files of a store that a manifest lists, but for the root and its copy, in order."""
    for file in sorted(path.rglob("*")):
        name = file.relative_to(path).as_posix()
        if name not in (MANIFEST, SECOND, ROOT, f"{COPIES}/{ROOT}") and file.suffix != ".partial" and file.is_file():
            yield name


def write_files(path: Path, files: Mapping[str, bytes], metrics: Container[str]) -> None:
    """Write the files of a new store, those that are kept twice so; ``rewrite`` makes the manifest of them."""
    for name, content in files.items():
        twice = is_kept_twice(name, metrics) and name != ROOT
        for file in (path / name, path / COPIES / name)[: 1 + twice]:
            _write(file, content)
    (path / COPIES).mkdir(parents=True, exist_ok=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file that nobody reads yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def rewrite(path: Path, root: Mapping[str, Any] | None = None, without: Container[str] = ()) -> None:
    """Write a new manifest of the files that a store has, but those ``without``, and the root; the present one if not
    given."""
    root = json.loads((path / ROOT).read_bytes()) if root is None else root
    files = ((name, (path / name).read_bytes()) for name in data_files(path) if name not in without)
    text, content = whole_manifest(files, root, manifest_size(path))
    (path / COPIES).mkdir(parents=True, exist_ok=True)
    for name, data in ((MANIFEST, text), (SECOND, text), (f"{COPIES}/{ROOT}", content), (ROOT, content)):
        _replace(path / name, data)


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
    begin = max((min(here) for here in whole if here), default=0)  # of the one that was written anew last
    bad += [
        Damage(name, "damaged")
        for name, here in zip((MANIFEST, SECOND), whole, strict=True)
        if name not in known and not _is_whole(here, set(lines), begin)
    ]
    position, header = min(lines, default=0), (lines[min(lines)][2] if lines else "")
    if position and header != MANIFEST and not bad:
        bad.append(Damage(MANIFEST, "damaged"))
    found: dict[str, list[tuple[int, int, str]]] = {}
    for place in sorted(lines):
        if place != position and not bad:
            bad.append(Damage(MANIFEST, "damaged"))
        position = place + lengths[place]
        size, digest, name = lines[place]
        if name != MANIFEST:
            found.setdefault(name, []).append((place, size, digest))
    return found, bad


def _is_whole(here: set[int], known: set[int], begin: int) -> bool:
    """Tell whether one of the two manifests lacks nothing but what was left out when it, or the other, was rewritten.

    A kill may come when one of them is written anew, from the place ``begin`` on, and the other is not.
    """
    if not here:
        return not known
    is_behind = max(here) < begin
    return all(place < min(here) or (is_behind and place >= begin) for place in known - here)


def needed_files(content: bytes, end: int) -> set[str]:
    """Return the files that a manifest says are there: as of its part before ``end``, and still at its own end.

    What it was written anew with was there, too.
    """
    then: dict[str, str] = {}
    now: dict[str, str] = {}
    first = 0
    for line in content.split(b"\n"):
        entry = _read_line(line)
        if entry is not None:
            place, size, digest, name = entry
            if name == MANIFEST:
                first = size + 1
            now[name] = digest
            if place < end or first > 0:
                then[name] = digest
            first -= 1
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
    if ROOT not in seen:  # a store appears with it
        at[ROOT] = None
    arrays = _arrays(path) | {name.partition("/")[0] for name in history if name.endswith(f"/{ROOT}")}
    floors = _floors(history, at)
    for name in sorted(at):
        lines, matched = history.get(name, []), at[name]
        if not lines:
            if name.partition("/")[0] in arrays - {FOLDER}:
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
    if root is None and ROOT in history:  # it is lost: what was written before it has to be there all the same
        root = history[ROOT][-1][0]
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
