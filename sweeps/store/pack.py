"""Packing a store into one file that can be passed on, and unpacking one that a stranger may have made.

The archive is a plain zip of the store's files, uncompressed (chunks are compressed already), so that readers fetch
only the parts that they need from a web server. Beside the data it has README.txt and SHA256SUMS, and the root's
attributes ``licence``, ``citation`` and ``acknowledgements``. Packing the same store twice gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faultsweep.sweeps.built_in import TARGETS
from faultsweep.sweeps.logs import acknowledgements
from faultsweep.sweeps.runner.progress import format_bytes
from faultsweep.sweeps.store.manifest import COPIES, MANIFEST, SECOND, Damage, data_files, is_sealed, whole_manifest
from faultsweep.sweeps.store.opener import MOST_FILES, read_root
from faultsweep.sweeps.store.repair import Checked, refuse_damage
from faultsweep.sweeps.store.replay import check_at_rest
from faultsweep.sweeps.store.store import Store, check_format

from faultsweep import __version__
from faultsweep.arguments import PATH, TEXT, takes
from faultsweep.errors import InputError
from faultsweep.files import refuse_url, writing

README, SUMS = "README.txt", "SHA256SUMS"
MOST_INFLATED = 100
"""A store's files are compressed already: an archive that grows more than this is made to fill a disk."""
_ALWAYS_ALLOWED_BYTES = 100_000_000
_LONGEST_NAME = 1_000
_PIECE = 1 << 20
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError)  # the last of what zipfile cannot read
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Packed:
    """What ``pack`` made or ``unpack`` read.

    Attributes
    ----------
    path : of the archive, or of the unpacked store.
    files, size_bytes : of the store in it.
    sha256 : of the whole archive, to be stated where it is published.
    licence, citation, acknowledgements : what the archive says of itself, "" where it says nothing.
    checked : whether the archive has checksums of its files (they have been compared then).
    """

    path: Path
    files: int
    size_bytes: int
    sha256: str
    licence: str
    citation: str
    acknowledgements: str
    checked: bool = True


@takes(store=PATH, archive=PATH, licence=TEXT, citation=TEXT)
def pack(store: str | Path, archive: str | Path, *, licence: str | None = None, citation: str | None = None) -> Packed:
    """Write a store as one archive that ``xarray.open_zarr`` and ``open_results`` read by path or URL.

    Parameters
    ----------
    store : the store's folder.
    archive : the file to be made; its name ends with ``.zip``.
    licence : under which the results may be used, an SPDX name such as CC-BY-4.0; what the store says if not given.
    citation : how to cite them; made from the store's title if neither given nor in the store.

    Raises
    ------
    InputError
        There is no such store, a run is writing it, or the file exists already or cannot be written.
    """
    source, target = Path(store), Path(archive)
    if target.suffix != ".zip":
        raise InputError(f"{target}: the name of a packed store ends with .zip, such as {source.name}.zip")
    refuse_url(target)
    if target.exists():
        raise InputError(f"{target}: exists already; remove it, or name another file")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist; make it, or name another")
    root = _described(source, licence, citation)
    check_at_rest(Store(source, mode="r"))
    refuse_damage(source)
    partial = target.with_name(f"{target.name}.partial")
    try:
        with writing(target):
            files, size = _write(source, partial, root)
            check_at_rest(Store(source, mode="r"))
            refuse_damage(source)
            os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return _packed(target, files, size, file_sha256(target), root["attributes"])


def _described(store: Path, licence: str | None, citation: str | None) -> dict[str, Any]:
    """Return the root's metadata with licence, citation and acknowledgements, without the folders of this machine."""
    attributes = dict(check_format(store))
    for name, text in (("licence", licence), ("citation", citation)):
        if text is not None and not text.strip():
            raise InputError(f"{name}: is empty; leave it out, or say what it is")
    attributes["licence"] = licence or attributes.get("licence", "")
    attributes["citation"] = citation or attributes.get("citation") or _citation(attributes)
    attributes["acknowledgements"] = attributes.get("acknowledgements") or _acknowledgements(store, attributes)
    runs = json.loads(attributes["provenance"])
    attributes["open_runs"] = "[]"  # nothing of this machine's folders
    attributes.pop("submission", None)
    attributes["provenance"] = json.dumps([{k: v for k, v in run.items() if k != "folders"} for run in runs])
    return {**json.loads((store / "zarr.json").read_text("utf-8")), "attributes": attributes}


def _citation(attributes: Mapping[str, Any]) -> str:
    runs = json.loads(attributes["provenance"])
    year = f" ({runs[-1]['time'][:4]})" if runs and "time" in runs[-1] else ""
    version = runs[-1].get("versions", {}).get("faultsweep", __version__) if runs else __version__
    title = attributes.get("title") or attributes["name"]
    return f"{title}{year}. Results of a parameter sweep, data set, made with faultsweep {version}."


def _acknowledgements(path: Path, attributes: Mapping[str, Any]) -> str:
    if attributes["target"] not in TARGETS:
        return ""
    store = Store(path, mode="r")
    fixed = store.text("configuration")
    values = {"log": [fixed["log"]] if "log" in fixed else [], "failures": [fixed.get("failures", "none")]}
    for name in values:
        if name in store.arrays:
            values[name] = list(dict.fromkeys(store.column(name)))
    folders = [folder for run in store.text("provenance") for folder in run.get("folders", ())]
    return " ".join(acknowledgements(values["log"], values["failures"], [*folders, path.resolve().parent, Path.cwd()]))


def _write(store: Path, archive: Path, root: Mapping[str, Any]) -> tuple[int, int]:
    """Write the archive; returns the number and size of the store's files."""
    sums, size = [], 0
    # the store is a folder of the user's own; links in it are followed, and become files
    names = [name for name in data_files(store) if name not in (README, SUMS)]
    names.sort(key=lambda name: (name.endswith("zarr.json"), name))
    manifest, content = whole_manifest(((name, (store / name).read_bytes()) for name in sorted(names)), root)
    last = {MANIFEST: manifest, SECOND: manifest, f"{COPIES}/zarr.json": content, "zarr.json": content}
    if not is_sealed(store):
        last = {"zarr.json": json.dumps(root, indent=1).encode()}
    last[README] = _readme(root["attributes"]).encode()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as out:
        for name in (*names, *last):
            text = last.get(name) or (store / name).read_bytes()
            sums.append((_sha256(text), name))
            size += len(text) if name != README else 0
            out.writestr(_entry(name), text)
        out.writestr(_entry(SUMS), "".join(f"{digest}  {name}\n" for digest, name in sorted(sums, key=lambda s: s[1])))
    return len(sums) - 1, size


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.external_attr = 0o644 << 16
    return entry


def _readme(attributes: Mapping[str, Any]) -> str:
    name = f"{attributes['name']}.zarr.zip"
    licence = attributes["licence"] or "none is stated; ask whoever gave you this file"
    thanks = attributes["acknowledgements"] or "none"
    return (
        f"{attributes.get('title') or attributes['name']}\n\n"
        f"Results of a parameter sweep: a Zarr 3 group in a zip archive. To open it:\n\n"
        f'    import xarray\n    results = xarray.open_zarr("zip::file:///path/to/{name}")\n\n'
        f"or, with faultsweep, faultsweep.open_results({name!r}) (a path or a URL).\n\n"
        f"Licence: {licence}\nTo cite: {attributes['citation']}\nAcknowledgements: {thanks}\n\n"
        f"{SUMS} has the checksums of all files: sha256sum -c {SUMS}\n"
    )


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _packed(
    path: Path, files: int, size_bytes: int, sha256: str, attributes: Mapping[str, Any], checked: bool = True
) -> Packed:
    says = {name: str(attributes.get(name, "")) for name in ("licence", "citation", "acknowledgements")}
    return Packed(path=path, files=files, size_bytes=size_bytes, sha256=sha256, checked=checked, **says)


@takes(archive=PATH, store=PATH, sha256=TEXT)
def unpack(archive: str | Path, store: str | Path, *, sha256: str = "") -> Packed:
    """Unpack an archive into a store, after checking that it can do no harm and is what it says it is.

    Parameters
    ----------
    archive : a file that ``pack`` made, or a zip of a store's files.
    store : the folder to be made.
    sha256 : of the archive, as its publisher states it; compared if given.

    Raises
    ------
    InputError
        It is no such archive, it is damaged or not the one that is meant, it would write outside its folder or fill
        the disk, or the folder exists already.
    """
    source, target = Path(archive), Path(store)
    if target.exists() or target.is_symlink():
        raise InputError(f"{target}: exists already; name a folder that is not there yet")
    if not target.parent.is_dir():
        raise InputError(f"{target}: the folder {target.parent} does not exist; make it, or name another")
    digest = _check_archive(source, sha256)
    draft = target.with_name(f"{target.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        with zipfile.ZipFile(source) as opened:
            entries = _checked_entries(opened, source)
            _check_room(entries, source, target.parent)
            sums = _extract(opened, entries, draft, source)
        checked = _check_sums(draft, sums, source)
        try:
            _check_metadata(draft)
        except InputError as error:
            raise InputError(str(error).replace(str(draft), str(source), 1)) from None
        os.rename(draft, target)
    except _UNREADABLE as error:
        raise InputError(f"{source}: a damaged archive ({error})") from None
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    sizes = [entry.file_size for entry in entries if entry.filename not in (README, SUMS)]
    return _packed(target, len(sizes), sum(sizes), digest, check_format(target), checked)


def _check_archive(path: Path, sha256: str) -> str:
    if re.match(r"\w+:/", str(path)):
        raise InputError(f"{path}: a URL; download the file first, or open it where it is: open_results(URL)")
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, not an archive' if path.is_dir() else 'no such file'}")
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: not a zip archive")
    digest = file_sha256(path)
    if sha256 and digest != sha256.lower().removeprefix("sha256:"):
        raise InputError(f"{path}: not the expected archive: its SHA-256 is {digest}, expected {sha256}")
    return digest


def _checked_entries(archive: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """Return the files of an archive; raise InputError if any of them is not a plain file below its folder."""
    entries = [entry for entry in archive.infolist() if not entry.filename.endswith("/")]
    if len(entries) > MOST_FILES:
        raise InputError(f"{path}: has {len(entries):,} files; a store has at most {MOST_FILES:,}")
    seen: set[str] = set()
    for entry in archive.infolist():
        why = _objection(entry)
        if not why and entry.filename.casefold() in seen:
            why = "stands in it twice"
        if why:
            raise InputError(f"{path}: refused, because {entry.filename[:100]!r} {why}; nothing was written")
        seen.add(entry.filename.casefold())
    if "zarr.json" not in seen:
        raise InputError(f"{path}: not a packed store (it has no zarr.json at its top)")
    return entries


def _objection(entry: zipfile.ZipInfo) -> str:
    """Return why an entry must not be unpacked, "" if it may."""
    name = entry.orig_filename
    parts = name.removesuffix("/").split("/")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if len(name) > _LONGEST_NAME or not name.isprintable() or "\\" in name:
        return "has a name that no file of a store has"
    if any(part in ("", ".", "..") for part in parts):
        return "would be written outside the store"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is a link or a device, not a file"
    if entry.flag_bits & 1:
        return "is encrypted"
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in a way that stores are not"
    return ""


def _check_room(entries: list[zipfile.ZipInfo], path: Path, folder: Path) -> None:
    size, packed = sum(entry.file_size for entry in entries), path.stat().st_size
    says = f"{path}: refused, because its {format_bytes(packed)} would unpack to {format_bytes(size)}"
    if size > max(_ALWAYS_ALLOWED_BYTES, MOST_INFLATED * packed):
        raise InputError(f"{says}, more than {MOST_INFLATED} times as much, which no store does; nothing was written")
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(f"{says}, and {folder} has {format_bytes(free)} left; nothing was written")


def _extract(archive: zipfile.ZipFile, entries: list[zipfile.ZipInfo], draft: Path, path: Path) -> dict[str, str]:
    """Write the files, never more of one than the archive declares; returns each name's checksum."""
    sums = {}
    for entry in entries:
        place = draft.joinpath(*entry.filename.split("/"))
        place.parent.mkdir(parents=True, exist_ok=True)
        digest, written = hashlib.sha256(), 0
        with archive.open(entry) as source, place.open("xb") as out:
            while piece := source.read(_PIECE):
                written += len(piece)
                if written > entry.file_size:
                    raise InputError(f"{path}: refused, because {entry.filename!r} is larger than the archive says")
                digest.update(piece)
                out.write(piece)
        sums[entry.filename] = digest.hexdigest()
    return sums


def _check_sums(draft: Path, sums: Mapping[str, str], path: Path) -> bool:
    """Compare the files with the checksums in the archive; returns whether it has any."""
    if SUMS not in sums:
        return False
    listed = _listed((draft / SUMS).read_bytes())
    found = {name: digest for name, digest in sums.items() if name != SUMS}
    wrong = sorted(name for name in listed.keys() | found.keys() if listed.get(name) != found.get(name))
    if wrong:
        raise InputError(f"{path}: {len(wrong)} files do not match {SUMS}, such as {wrong[0]!r}; get the archive again")
    for name in (README, SUMS):
        (draft / name).unlink(missing_ok=True)
    return True


def _listed(content: bytes) -> dict[str, str]:
    """Return what SHA256SUMS says of each file."""
    lines = (line.partition("  ") for line in content.decode("utf-8", errors="replace").splitlines())
    return {name: digest for digest, _, name in lines}


def check_archive(archive: str | Path) -> Checked:
    """Compare the files of an archive with its checksums; nothing is written.

    Raises
    ------
    InputError
        It is no archive of a store, or so damaged that its files cannot be listed.
    """
    path = Path(archive)
    _check_archive(path, "")
    try:
        with zipfile.ZipFile(path) as opened:
            entries = _checked_entries(opened, path)
            found = {entry.filename: _sum_of(opened, entry) for entry in entries}
            listed = _listed(opened.read(SUMS)) if found.get(SUMS) else dict(found)
    except (*_UNREADABLE, OSError) as error:
        raise InputError(f"{path}: a damaged archive ({error})") from None
    if SUMS in found:  # which is not in itself
        listed[SUMS] = found[SUMS]
    damage = [
        Damage(name, "damaged" if name in found else "absent")
        for name in sorted(listed.keys() | found.keys())
        if not found.get(name) or found[name] != listed.get(name)
    ]
    return Checked(damage=damage, files=len(entries), size_bytes=sum(entry.file_size for entry in entries))


def _sum_of(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> str:
    """Return the SHA-256 of a file of an archive, "" if it cannot be read."""
    try:
        with archive.open(entry) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it has readinto
    except (*_UNREADABLE, OSError):
        return ""


def _check_metadata(draft: Path) -> None:
    """Refuse what the root says of arrays that no store has, and metadata of arrays that say something else."""
    members = read_root(draft)["consolidated_metadata"]["metadata"]
    for file in draft.rglob("*"):
        name = file.relative_to(draft).as_posix()
        root = name in ("zarr.json", f"{COPIES}/zarr.json")
        if file.name.startswith(".z") or (file.name == "zarr.json" and not root and not _agrees(file, name, members)):
            raise InputError(f"{draft}: refused, because {name} does not match zarr.json")


def _agrees(file: Path, name: str, members: Mapping[str, Any]) -> bool:
    try:
        return bool(json.loads(file.read_bytes()) == members.get(name.removesuffix("/zarr.json")))
    except (ValueError, RecursionError):
        return False
