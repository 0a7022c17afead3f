"""Finding what is absent or damaged in a store, and mending it: what is kept twice is restored, cells are run again."""

from __future__ import annotations

import json
import shutil
import struct
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.sweeps.store.jobs import GROUP, ROWS
from faultsweep.sweeps.store.manifest import (
    COPIES,
    FOLDER,
    MANIFEST,
    ROOT,
    SECOND,
    Damage,
    Verified,
    chunk_of,
    data_files,
    digest_of,
    is_kept_twice,
    is_sealed,
    kept_label,
    manifest_size,
    note,
    read_lines,
    remove,
    replace_file,
    rewrite,
    settle,
    verify,
)
from faultsweep.sweeps.store.opener import parse_root, read_root, stored_spec
from faultsweep.sweeps.store.statuses import DAMAGED, FAILURES, FINAL, PENDING, STATUS_NAMES, WITH_RESULT
from faultsweep.sweeps.store.store import FORMAT, STATE, Store, commit, other_names, remember, run_folder
from google_crc32c import value as crc32c
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec

from faultsweep.errors import InputError
from faultsweep.files import read_fields

QUICK_BYTES = 2_000_000_000
"""A store that is larger is verified by the sizes of its files where the user has not asked for more."""
_SHOWN = 10


@dataclass
class Checked:
    """What is known of the soundness of a store.

    Attributes
    ----------
    verifiable : whether it has a manifest; one of an earlier format has none.
    damage : files that are not what they have to be.
    older : whether a run beside it has left a later state of it than this one, as where a backup was put back.
    cells : number of cells whose results are damaged, and that a run simulates again.
    files, size_bytes : that were compared.
    whole : whether their content was read, not their sizes alone.
    """

    verifiable: bool = True
    damage: list[Damage] = field(default_factory=list)
    older: bool = False
    cells: int = 0
    files: int = 0
    size_bytes: int = 0
    whole: bool = True

    @property
    def is_sound(self) -> bool:
        """Tell whether nothing is absent, damaged or older than it should be."""
        return not self.damage and not self.cells

    def sentences(self, place: str | Path) -> list[str]:
        """Return in words what is wrong."""
        lines = [f"{damage.name}: {damage.what}" for damage in self.damage[:_SHOWN]]
        more = len(self.damage) - _SHOWN
        lines += [f"{more:,} more files are absent or damaged"] if more > 0 else []
        if self.cells:
            lines.append(f"{self.cells:,} cells have lost their results; a run simulates them again")
        if self.older:
            lines.append(
                f"{place} is older than what its last run has left, as where a backup was put back; what it lacks is"
                " simulated again"
            )
        return lines


def check(path: Path, quick: bool = False) -> Checked:
    """Compare a store with its manifest; ``quick`` reads no more than 2 GB of it.

    Raises
    ------
    InputError
        There is no store.
    """
    if not is_sealed(path):
        attributes = read_root(path)["attributes"]
        if attributes["faultsweep_format"] < FORMAT:
            return Checked(verifiable=False)
        return Checked(damage=[Damage(MANIFEST, "absent")])
    sizes = quick and sum((path / name).stat().st_size for name in data_files(path)) > QUICK_BYTES
    found = verify(path, sizes_only=sizes)
    cells = 0
    if not any(damage.name.startswith(("status/", ROOT)) for damage in found.damage):
        cells = int((Store(path, mode="r").status() == DAMAGED).sum())
    return Checked(True, found.damage, _is_older(path), cells, found.files, found.size_bytes, not sizes)


def _is_older(path: Path) -> bool:
    """Tell whether a run has left a later state of the store than the one that is there."""
    left = read_fields(run_folder(path) / STATE, {"root": str, "manifest": int})
    if not left:
        return False
    history, _ = read_lines(path)
    known = {digest for _, _, digest in history.get(ROOT, ())}
    return bool(left["root"] not in known and left["manifest"] > manifest_size(path))


def refuse_damage(path: Path) -> None:
    """Raise InputError if a store is damaged, or cells of it have lost their results."""
    found = check(path)
    if not found.is_sound:
        why = "; ".join(found.sentences(path)[:3])
        raise InputError(f"{path}: is damaged ({why}); mend it first: faultsweep check --repair {path}")


@dataclass
class Mended:
    """What ``repair`` has done.

    Attributes
    ----------
    restored : files that were written again from their copies, or removed because they were no part of the store.
    lost : files whose cells have to be run again.
    cells : number of these cells.
    """

    restored: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    cells: int = 0


def repair(path: Path) -> Mended:
    """Restore what is kept twice, and mark the cells that have lost results; whoever calls this has the lock.

    Raises
    ------
    InputError
        The manifest is gone, or something is damaged in both places where it is kept.
    """
    if not is_sealed(path):
        raise InputError(
            f"{path}: has lost its manifest, so missing files cannot be found; restore {FOLDER}/ from a copy, or accept"
            f" the store as it is: faultsweep check --seal {path}"
        )
    done = Mended()
    found = verify(path)
    top = path.resolve()
    for name in (damage.name for damage in found.damage):
        if not (path / name).parent.resolve().is_relative_to(top):
            raise InputError(f"{path}: {name!r:.100} is outside the store, behind a link; put the folder itself there")
    if _restore_root(path, found, done):
        found = verify(path)
    _restore_copies(path, found, done)
    settle(path, verify(path).behind)  # else the lines that follow would make them files of an earlier time
    store = Store(path)
    store.repair()
    lost = [damage.name for damage in verify(path).damage if damage.name not in (MANIFEST, SECOND)]
    gone = [name for name in lost if not _is_computed(store, name)]
    if gone:
        raise InputError(
            f"{path}: {gone[0]} and its copy are damaged, and it cannot be computed again; restore the store from a "
            "backup"
        )
    done.lost = lost
    _forget(store, lost)
    if any(damage.name in (MANIFEST, SECOND) for damage in verify(path).damage):
        rewrite(path)
        done.restored.append(MANIFEST)
    done.cells = int((Store(path, mode="r").status() == DAMAGED).sum())
    settle(path, verify(path).behind)
    remember(path)
    return done


def _restore_root(path: Path, found: Verified, done: Mended) -> bool:
    """Write the root again if it is not the last one; returns whether it was."""
    if ROOT not in {damage.name for damage in found.damage}:
        return False
    history, _ = read_lines(path)
    for name in (f"{COPIES}/{ROOT}", ROOT):
        try:
            content = (path / name).read_bytes()
            parse_root(content, str(path))
        except (OSError, InputError):
            continue
        if name == f"{COPIES}/{ROOT}" and digest_of(content) not in [digest for *_, digest in history.get(name, ())]:
            continue
        replace_file(path, ROOT, content)
        done.restored.append(ROOT)
        return True
    raise InputError(f"{path}: zarr.json and its copy are both damaged; restore the store from a backup")


def _restore_copies(path: Path, found: Verified, done: Mended) -> None:
    """Write again what is sound in one of two places; remove what is no part of the store."""
    root = read_root(path)
    members = root["consolidated_metadata"]["metadata"]
    metrics = json.loads(root["attributes"]["metrics"])
    _restore_labels(path, found, done, root["attributes"])
    for name, what in ((damage.name, damage.what) for damage in found.damage):
        array = name.removesuffix(f"/{ROOT}")
        if what == "not in the manifest":
            (path / name).unlink(missing_ok=True)
        elif name.startswith(f"{COPIES}/"):
            original = name.removeprefix(f"{COPIES}/")
            if original not in found.sound:
                continue
            _write_again(path, name, path / original)
        elif name.endswith(f"/{ROOT}") and array in members:
            replace_file(path, name, json.dumps(members[array], indent=1).encode())
        elif is_kept_twice(name, metrics) and f"{COPIES}/{name}" in found.sound:
            _write_again(path, name, path / COPIES / name)
        else:
            continue
        done.restored.append(name)


def _restore_labels(path: Path, found: Verified, done: Mended, attributes: Mapping[str, Any]) -> None:
    """Write the files of coordinates again that are lost in both places, as the root has them."""
    history, _ = read_lines(path)
    for name in sorted({damage.name.removeprefix(f"{COPIES}/") for damage in found.damage} - found.sound):
        content = kept_label(attributes, name)
        is_last = [digest_of(content)] == [digest for *_, digest in history.get(name, ())[-1:]]
        if is_last and f"{COPIES}/{name}" not in found.sound:
            replace_file(path, name, content)
            done.restored.append(name)
            found.sound.add(name)  # its copy follows from it


def _write_again(path: Path, name: str, source: Path) -> None:
    if source.is_file():
        replace_file(path, name, source.read_bytes())
    else:
        remove(path, name)


def _is_computed(store: Store, name: str) -> bool:
    """Tell whether a run can compute what a file has: all but coordinates."""
    array = name.partition("/")[0]
    return array in (*store.metrics, "status", "wall_s", "error", "jobs_offset", "jobs_length", GROUP, FOLDER)


def _forget(store: Store, lost: Sequence[str]) -> None:
    """Mark the cells whose results stood in these files, and leave chunks without results in their place."""
    chunks: dict[int, set[str]] = {}
    rows: set[int] = set()
    for name in lost:
        array, dims = name.partition("/")[0], len(store.dims)
        if array == GROUP:
            rows.add(chunk_of(name)[-1])
        elif array != FOLDER:
            place = chunk_of(name)[:dims]
            inside = all(i < n for i, n in zip(place, store.chunks.counts, strict=True))
            if inside:
                chunks.setdefault(int(np.ravel_multi_index(place, store.chunks.counts)), set()).add(array)
    pointing = _pointing(store, rows, chunks)
    for chunk in sorted({*chunks, *pointing}):
        arrays = chunks.get(chunk, set())
        status = _status_of(store, chunk, arrays)
        again = pointing.get(chunk, np.zeros(len(status), dtype=bool))
        if arrays & {*store.metrics, "jobs_offset", "jobs_length"}:
            again = again | np.isin(status, WITH_RESULT)
        if "wall_s" in arrays:
            again = again | np.isin(status, FINAL)
        if "error" in arrays:
            again = again | np.isin(status, FAILURES)
        status[again] = DAMAGED
        store.write_block("status", chunk, status)  # first: nobody is to read what follows
        for array in sorted(arrays - {"status"}):
            region = store.chunks.region(chunk)
            store.arrays[array][region] = store.arrays[array].fill_value
    for name in lost:
        # a chunk that is empty now has no file, and nothing was removed that would say so
        if name.partition("/")[0] in (GROUP, FOLDER) or not (store.path / name).is_file():
            note(store.path, [(name, None)])
            (store.path / name).unlink(missing_ok=True)


def _pointing(store: Store, rows: set[int], chunks: dict[int, set[str]]) -> dict[int, NDArray[np.bool_]]:
    """Return, by chunk, the cells whose per-job results stand in damaged chunks of the table."""
    found: dict[int, NDArray[np.bool_]] = {}
    for chunk in range(store.chunks.num if rows else 0):
        if chunks.get(chunk, set()) & {"jobs_offset", "jobs_length", "status"}:
            continue  # all cells of such a chunk are run again
        offset, length = (store.read_block(name, chunk) for name in ("jobs_offset", "jobs_length"))
        touched = np.zeros(len(offset), dtype=bool)
        for row in rows:
            touched |= (length > 0) & (offset < (row + 1) * ROWS) & (offset + length > row * ROWS)
        touched &= np.isin(store.read_block("status", chunk), WITH_RESULT)
        if touched.any():
            found[chunk] = touched
    return found


def _status_of(store: Store, chunk: int, lost: set[str]) -> NDArray[np.int8]:
    """Return the status of the cells of a chunk; where that is lost, damaged for cells that have any result."""
    if "status" not in lost:
        return store.read_block("status", chunk).copy()
    status = np.full(len(store.chunks.cells(chunk)), PENDING, dtype=np.int8)
    for name in (*store.metrics, "wall_s"):
        if name not in lost:
            values = store.read_block(name, chunk).reshape(len(status), -1)
            empty = np.isnan(values) if values.dtype.kind in "fc" else values == store.arrays[name].fill_value
            status[~empty.all(1)] = DAMAGED
    if "error" not in lost:
        status[store.read_block("error", chunk) != ""] = DAMAGED
    return status


def seal(path: Path) -> list[str]:
    """Give a store of an earlier format, or one that has lost it, a manifest and checksums; its results stay.

    Returns sentences about what may have been lost before: of an earlier format nothing tells, and its results may be
    of a model that no run gives any more, so that nothing is run again for a chunk that may be empty.

    Readers see the old store or the sealed one: new chunks have other names until the root is replaced.

    Each chunk is decoded first, and has exactly the size that its array says: damage is not sealed. Zarr writes no
    empty chunk, so nothing but the manifest tells whether one is lost: of a store that has lost its manifest, the cells
    of absent chunks are run again.

    Raises
    ------
    InputError
        A chunk is damaged, or labels are lost; it names the file.
    """
    root = read_root(path)
    members = root["consolidated_metadata"]["metadata"]
    absent = _perhaps_lost(path)
    doubts = []
    if root["attributes"]["faultsweep_format"] < FORMAT:
        doubts, absent = _doubts(Store(path, mode="r"), absent), []
    _prove(path, [name for name, node in members.items() if node["node_type"] == "array"])
    store = Store(path, mode="r")
    status = members["status"]["attributes"]
    status |= {"flag_values": list(range(len(STATUS_NAMES))), "flag_meanings": " ".join(STATUS_NAMES)}
    shutil.rmtree(path / FOLDER, ignore_errors=True)
    old: list[Path] = []
    for name, node in members.items():
        if node["node_type"] == "array":
            old += _with_checksums(path, name, node)
            (path / name / ROOT).write_text(json.dumps(node, indent=1))
    root["attributes"]["faultsweep_format"] = FORMAT
    for name in list(data_files(path)):
        if is_kept_twice(name, store.metrics) and path / name not in old:
            (path / COPIES / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path / name, path / COPIES / name)
    rewrite(path, root, {file.relative_to(path).as_posix() for file in old})
    for file in old:
        file.unlink(missing_ok=True)
    commit(path, {})  # the root takes the labels
    if absent:
        _forget(Store(path), absent)
    remember(path)
    return doubts


def _doubts(store: Store, absent: Sequence[str]) -> list[str]:
    """Return sentences about absent chunks of metrics whose cells have results, and of parameters."""
    status = store.status()
    cells = store.chunks.of_all()
    doubts = []
    for name in absent:
        array = name.partition("/")[0]
        what = (str(store.arrays[array].fill_value) if array in store.arrays else "") or "empty"
        if array in store.metrics:
            chunk = np.ravel_multi_index(chunk_of(name)[: len(store.dims)], store.chunks.counts)
            number = int(np.isin(status[cells == chunk], WITH_RESULT).sum())
            if number:
                doubts.append(f"{name}: is absent; the results of {number:,} cells are all {what}, or were lost")
        elif not _is_computed(store, name):
            doubts.append(f"{name}: is absent; its values are all {what}, or were lost")
    more = len(doubts) - _SHOWN
    return doubts[:_SHOWN] + ([f"{more:,} more files are absent"] if more > 0 else [])


def _perhaps_lost(path: Path) -> list[str]:
    """Return the absent chunks of what a run can compute; InputError names a coordinate that may be lost.

    Of a store of an earlier format those of parameters, too: one that is 0 everywhere has no file.
    """
    store = Store(path, mode="r")
    asked = stored_spec(store.attributes).get("axes", {})
    is_old = store.attributes["faultsweep_format"] < FORMAT
    tables = [f"{GROUP}/{table.parent.name}" for table in sorted(path.glob(f"{GROUP}/*/{ROOT}"))]
    lost = []
    for name in (*sorted(store.group.array_keys()), *tables):
        array: Any = store.group[name]
        keys = [array.metadata.encode_chunk_key(place) for place in np.ndindex(*array.cdata_shape)]
        absent = [f"{name}/{key}" for key in keys if not (path / name / key).is_file()]
        if _is_computed(store, name) or (is_old and name not in store.dims):
            lost += absent
        elif absent and not (name in store.dims and _are_labels(array[...].tolist(), asked.get(name))):
            kept = {key: kept_label(store.attributes, key) for key in absent}
            if all(kept.values()):
                for key, content in kept.items():
                    replace_file(path, key, content)
                continue
            raise InputError(f"{path / absent[0]}: is absent; restore it from a copy, then seal the store")
    return lost


def _are_labels(found: list[Any], asked: Any) -> bool:
    """Tell whether labels can be those of an axis: none twice, and with those of the last run among them."""
    return len(set(found)) == len(found) and not (isinstance(asked, list) and any(one not in found for one in asked))


def _with_checksums(path: Path, name: str, node: dict[str, Any]) -> list[Path]:
    """Write the chunks of an array again with checksums, by other names; returns the old ones."""
    names = [codec["name"] for codec in node["codecs"]]
    if "crc32c" in names:
        return []
    files = [file for file in sorted((path / name).rglob("*")) if file.is_file() and chunk_of(_below(path, file, name))]
    was_default = node["chunk_key_encoding"]["name"] == "default"
    files = [file for file in files if (file.relative_to(path / name).parts[0] == "c") == was_default]
    node["codecs"] = [*node["codecs"], {"name": "crc32c"}]
    node["chunk_key_encoding"] = other_names(node)
    for file in files:
        content = file.read_bytes()
        place = chunk_of(_below(path, file, name))
        fresh = path / name / (".".join(map(str, place)) if was_default else "/".join(["c", *map(str, place)]))
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_bytes(content + struct.pack("<I", crc32c(content)))
    return files


def _below(path: Path, file: Path, name: str) -> str:
    return f"x/{file.relative_to(path / name).as_posix()}"


def _prove(path: Path, names: Iterable[str]) -> None:
    """Decode every chunk of a store that has no manifest, and compare its size; InputError names a damaged file."""
    store = Store(path, mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays: dict[str, Any] = {name: store.group[name] for name in names}
        for name, array in arrays.items():
            for place in np.ndindex(*array.cdata_shape):
                key = f"{name}/{array.metadata.encode_chunk_key(place)}"
                try:
                    block = np.asarray(array.blocks[place])
                    if block.dtype.kind not in "OT" or not (path / key).is_file():
                        continue
                    if not _ends_with_its_texts((path / key).read_bytes(), array.metadata.codecs):
                        raise ValueError("its texts end before it does")
                except (ValueError, RuntimeError, EOFError, InputError) as error:
                    raise InputError(
                        f"{path / key}: is damaged ({error}); restore it from a copy, then seal the store"
                    ) from None


def _ends_with_its_texts(data: bytes, codecs: Sequence[Any]) -> bool:
    """Tell whether a chunk of text has its texts, each behind its length, and nothing else."""
    kinds = [type(codec) for codec in codecs]
    data = data[:-4] if Crc32cCodec in kinds else data
    data = bytes(Zstd().decode(data)) if ZstdCodec in kinds else data
    (count,), end = struct.unpack_from("<I", data), 4
    for _ in range(count):
        end += 4 + int(struct.unpack_from("<I", data, end)[0])
    return end == len(data)
