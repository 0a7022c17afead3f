"""The one door to a store: nothing of a store is read before its metadata has been checked.

A store may come from a stranger. Its root's ``zarr.json`` holds the metadata of all arrays; it is read once, checked,
and whatever reads the store afterwards gets this checked text, never a file that may say something else. So only codecs
and types are used that stores have (others can run code), no array is larger than its role allows, and no chunk takes
more memory than its array says.
"""

from __future__ import annotations

import json
import math
import re
import struct
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from faultsweep.sweeps.grid import MOST_CELLS, MOST_LABELS
from faultsweep.sweeps.outputs import MOST_WIDE
from faultsweep.sweeps.store.manifest import JOBS, MANIFEST, OVER_GRID, needed_files
from faultsweep.sweeps.values import LONGEST_LABEL
from google_crc32c import value as crc32c
from numcodecs.zstd import Zstd
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.core.metadata.v3 import ArrayV3Metadata
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from faultsweep.errors import InputError
from faultsweep.extras import require
from faultsweep.files import parse_toml

FORMATS = (1, 2)
"""The versions of the layout that can be read."""

CODECS = ("bytes", "vlen-utf8", "zstd", "crc32c")
"""Codecs of chunks; others are code that whoever made a store chooses."""
NUMBERS = {
    "bool": 1,
    **{f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)},
    **{"float32": 4, "float64": 8, "complex64": 8, "complex128": 16},
}
"""Bytes of a value of each type of numbers."""
_TIMES = ("numpy.datetime64", "numpy.timedelta64")
_TEXT = ("string", "variable_length_utf8")
_FIXED_TEXT = "fixed_length_utf32"

MOST_FILES = 1_000_000
MOST_JOB_ROWS = 100_000_000_000
MOST_JOBS = 100_000_000
"""Rows of per-job results of one run."""
MOST_CHUNK_BYTES = 1 << 30
_MOST_METADATA_BYTES = 1 << 28
_LONGEST_TEXT_BYTES = 4 * LONGEST_LABEL
_BAD_CHUNK = " is damaged, or made to fill the memory, and was not read; restore it from a copy"
_A_FILE = ": a file, not a store of a sweep; name a store, or a folder that is not there yet"
_MOST_INFLATED = 100
_ALWAYS_ALLOWED_BYTES = 100_000_000

_JSON_ATTRIBUTES: dict[str, Any] = {
    "axes": (list,),
    "configuration": (dict,),
    "formulas": (dict,),
    "metrics": (list,),
    "adding": (list,),
    "open_runs": (list,),
    "pins": (dict,),
    "provenance": (list, dict),
}
_TEXT_ATTRIBUTES = ("name", "title", "target", "spec", "licence", "citation", "acknowledgements")

_TABLES = ("fixed", "axes", "best", "better")
"""The tables of a spec that readers of a store look into."""

_ALWAYS = ("name", "title", "target", "model_version", "metrics", "pins", "spec", "configuration", "provenance")
"""Attributes that every store has that is written here."""


def parse_root(content: bytes, place: str) -> dict[str, Any]:
    """Return what the ``zarr.json`` of a store's root says, checked as a whole.

    Parameters
    ----------
    content : of the file.
    place : how errors name the store.

    Raises
    ------
    InputError
        It is no store of a sweep, it is damaged, it is of a format that cannot be read, or it asks for what no store
        has: another version of Zarr, other codecs or types, or arrays larger than their role allows.
    """
    root = _load(content, place)
    attributes = root.get("attributes") or {}
    if not isinstance(attributes, dict):
        raise InputError(f"{place}: is damaged: its attributes are no table")
    if root.get("zarr_format") != 3 or root.get("node_type") != "group":
        raise InputError(f"{place}: not a store of a sweep: not a group of Zarr 3")
    inner = root.get("consolidated_metadata")
    members = inner.get("metadata") if isinstance(inner, dict) else None
    if not isinstance(members, dict):
        raise InputError(f"{place}: Zarr data, but not a store of a sweep (it has no consolidated metadata)")
    if "faultsweep_format" not in attributes:
        raise InputError(f"{place}: a Zarr group, but not a store of a sweep (no attribute faultsweep_format)")
    found = attributes["faultsweep_format"]
    if found not in FORMATS or isinstance(found, bool):
        known = ", ".join(map(str, FORMATS))
        raise InputError(f"{place}: a store of format {found!r:.40}; this version of faultsweep reads format {known}")
    _check_attributes(attributes, place)
    readable: set[str] = set()
    for name, node in members.items():
        _check_node(name, node, place, readable)
    _check_sizes(members, attributes, place)
    _check_flags(members["status"], place)
    return root


def _load(content: bytes, place: str) -> dict[str, Any]:
    try:
        root = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not a store of a sweep that can be read (zarr.json: {error!s:.80})") from None
    if not isinstance(root, dict):
        raise InputError(f"{place}: not a store of a sweep that can be read (zarr.json: no table)")
    return root


def _is_complete(attributes: Mapping[str, Any]) -> bool:
    """Tell whether a store must have all that its format describes; those of format 1 may be written by others."""
    return bool(attributes["faultsweep_format"] > 1)


def _check_attributes(attributes: Mapping[str, Any], place: str) -> None:
    for name in _ALWAYS:
        if name not in attributes and _is_complete(attributes):
            raise InputError(f"{place}: is damaged: it has no attribute {name}")
    for name, kinds in _JSON_ATTRIBUTES.items():
        try:
            value: Any = json.loads(attributes.get(name, "[]" if list in kinds else "{}"))
        except (ValueError, TypeError, RecursionError):
            value = None
        if not isinstance(value, kinds):
            raise InputError(f"{place}: is damaged: its attribute {name} is not what a store has there")
        if name == "metrics" and not all(isinstance(metric, str) for metric in value):
            raise InputError(f"{place}: is damaged: its attribute metrics is no list of names")
    for name in _TEXT_ATTRIBUTES:
        if not isinstance(attributes.get(name, ""), str):
            raise InputError(f"{place}: is damaged: its attribute {name} is no text")


def stored_spec(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec that the attributes of a store keep, as TOML has it; empty if they keep none.

    Raises
    ------
    InputError
        If it is damaged.
    """
    found = parse_toml(str(attributes.get("spec", "")), "the attribute spec of the store")
    for name in _TABLES:
        if not isinstance(found.get(name, {}), dict):
            raise InputError(f"the attribute spec of the store is damaged: {name} is no table")
    return found


def _check_node(name: str, node: Any, place: str, readable: set[str]) -> None:
    """Raise InputError unless a member is a group or an array of Zarr 3 with codecs and a type that stores have.

    ``readable`` are the texts of arrays that Zarr can read; this one is added.
    """
    parts = name.split("/")
    plain = name.isprintable() and "\\" not in name and not any(part in ("", ".", "..") for part in parts)
    if not plain or len(parts) > 1 + (parts[0] == JOBS) or parts[0] == "zarr.json":
        raise InputError(f"{place}: refused, because {name!r:.100} is no name of a part of a store")
    if not isinstance(node, dict) or node.get("zarr_format") != 3:
        raise _refused(place, name, "is not of Zarr 3")
    if not isinstance(node.get("attributes", {}), dict):
        raise _refused(place, name, "has attributes that are no table")
    if node.get("node_type") == "group" and name == JOBS:
        return
    if node.get("node_type") != "array":
        raise _refused(place, name, "is no array")
    _value_bytes(name, node, place)
    codecs = node.get("codecs")
    names = [codec.get("name") for codec in codecs if isinstance(codec, dict)] if isinstance(codecs, list) else []
    for codec in names:
        if codec not in CODECS:
            raise _refused(place, name, f"is coded by {codec!r:.100}; stores have {', '.join(CODECS)}")
    first = "vlen-utf8" if node["data_type"] in _TEXT else "bytes"
    rest = names[1:]
    if names[:1] != [first] or len(names) != len(codecs or ()) or rest not in ([], ["zstd"], ["crc32c"], [*CODECS[2:]]):
        raise _refused(place, name, f"is coded by {names!r:.100}; stores have {first}, zstd, crc32c")
    if node.get("storage_transformers"):
        raise _refused(place, name, "has storage transformers")
    _check_layout(name, node, place)
    try:
        text = json.dumps({**node, "attributes": {}})  # most metrics are alike but for their attributes
        if text not in readable:
            ArrayV3Metadata.from_dict(dict(node))  # codecs and types are known by now: none of them runs code
            readable.add(text)
    except Exception as error:  # Zarr has errors of many types for what it cannot read
        raise _refused(place, name, f"cannot be read ({error!s:.100})") from None


def _refused(place: str, name: str, why: str) -> InputError:
    return InputError(f"{place}: refused, because {name!r:.100} {why}")


def _value_bytes(name: str, node: Mapping[str, Any], place: str) -> int:
    """Return the bytes of one value of an array in memory; of text of any length those of its place."""
    kind = node.get("data_type")
    if isinstance(kind, str):
        if kind in NUMBERS:
            return NUMBERS[kind]
        if kind in _TEXT:
            return 16
    elif isinstance(kind, dict):
        settings = kind.get("configuration")
        length: Any = settings.get("length_bytes") if isinstance(settings, dict) else None
        if kind.get("name") in _TIMES:
            return 8
        if kind.get("name") == _FIXED_TEXT and _is_count(length) and 0 < length <= _LONGEST_TEXT_BYTES:
            return length
    raise _refused(place, name, f"has the type {kind!r:.100}, which no store has")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_layout(name: str, node: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless shape, chunks and dimensions are whole, and chunks are neither too large nor too many."""
    shape, grid = node.get("shape"), node.get("chunk_grid")
    dims: Any = node.get("dimension_names")
    settings = grid.get("configuration") if isinstance(grid, dict) and grid.get("name") == "regular" else None
    chunks = settings.get("chunk_shape") if isinstance(settings, dict) else None
    for numbers, least in ((shape, 0), (chunks, 1)):
        if not isinstance(numbers, list) or not all(_is_count(n) and n >= least for n in numbers):
            raise _refused(place, name, f"has the shape {shape!r:.100} in chunks of {chunks!r:.100}")
    assert isinstance(shape, list) and isinstance(chunks, list)  # noqa: S101, PT018 - as has just been checked
    named = isinstance(dims, list) and all(isinstance(dim, str) for dim in dims) and len(set(dims)) == len(shape)
    if not named or len(chunks) != len(shape) or len(dims) != len(shape):
        raise _refused(place, name, f"has the dimensions {dims!r:.100}, the shape {shape} and chunks of {chunks}")
    encoding = node.get("chunk_key_encoding")
    key = encoding.get("name") if isinstance(encoding, dict) else None
    if key not in ("default", "v2"):
        raise _refused(place, name, f"names its chunks by {encoding!r:.100}")
    if math.prod(chunks) * _value_bytes(name, node, place) > MOST_CHUNK_BYTES:
        raise _refused(place, name, f"has chunks of {chunks}; stores have chunks of at most 1 GiB")
    if math.prod(-(-n // chunk) for n, chunk in zip(shape, chunks, strict=True)) > MOST_FILES:
        raise _refused(place, name, f"has the shape {shape} in chunks of {chunks}: too many files")


def _check_flags(status: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless the attributes of the status say which number has which meaning."""
    attributes = status.get("attributes", {})
    values, meanings = attributes.get("flag_values"), attributes.get("flag_meanings")
    numbers = isinstance(values, list) and all(_is_count(value) and value < 128 for value in values)
    if not numbers or not isinstance(meanings, str) or not len(meanings.split()) == len(values) == len(set(values)):
        raise InputError(f"{place}: is damaged: its status does not say which number has which meaning")


def _check_sizes(members: Mapping[str, Any], attributes: Mapping[str, Any], place: str) -> None:
    """Raise InputError unless the size of each array is what its role allows."""
    status = members.get("status")
    if status is None or status["node_type"] != "array" or status["data_type"] != "int8":
        raise InputError(f"{place}: not a store of a sweep (it has no variable status)")
    for name in ("wall_s", "error"):
        if name not in members and _is_complete(attributes):
            raise InputError(f"{place}: is damaged: it has no variable {name}")
    grid, shape = status["dimension_names"], status["shape"]
    if math.prod(shape) > MOST_CELLS:
        raise _refused(place, "status", f"has the shape {shape}; a grid has at most {MOST_CELLS:,} cells")
    lengths = dict(zip(grid, shape, strict=True))
    metrics = json.loads(attributes.get("metrics", "[]"))
    for name, node in members.items():
        dims, sizes = node.get("dimension_names"), node.get("shape")
        if name.startswith(f"{JOBS}/"):
            if len(sizes) != 1 or sizes[0] > MOST_JOB_ROWS:
                raise _refused(place, name, f"has the shape {sizes}; per-job results are a table")
        elif name == JOBS:
            continue
        elif name in OVER_GRID or name in metrics:
            inner = sizes[len(grid) :]
            if dims[: len(grid)] != grid or sizes[: len(grid)] != shape or (inner and name in OVER_GRID):
                raise _refused(place, name, f"has the shape {sizes}, the grid {shape}")
            if math.prod(inner) > MOST_WIDE or math.prod(sizes) > MOST_CELLS * 100:
                raise _refused(place, name, f"has the shape {sizes}; a metric has at most {MOST_WIDE:,} values a cell")
            for dim, length in zip(dims[len(grid) :], inner, strict=True):
                if lengths.setdefault(dim, length) != length:
                    raise _refused(place, name, f"has {length} values along {dim}, others have {lengths[dim]}")
    for name, node in members.items():
        if name not in OVER_GRID and name not in metrics and name.partition("/")[0] != JOBS:
            _check_coordinate(name, node, lengths, place)


def _check_coordinate(name: str, node: Mapping[str, Any], lengths: Mapping[str, int], place: str) -> None:
    sizes = dict(zip(node["dimension_names"], node["shape"], strict=True))
    for dim, length in sizes.items():
        if lengths.get(dim, length if length <= MOST_WIDE else None) != length:
            raise _refused(place, name, f"has {length:,} values along {dim}, the grid {lengths.get(dim, 'none')}")
        if len(sizes) == 1 and length > MOST_LABELS:
            raise _refused(place, name, f"has {length:,} labels; an axis has at most {MOST_LABELS:,}")


class CheckedStore(WrapperStore[ZarrStore]):
    """A Zarr store whose metadata is what ``parse_root`` has checked, and whose chunks are no larger than they say.

    Attributes
    ----------
    root : the metadata of the root, as ``parse_root`` returns it.
    """

    def __init__(self, store: ZarrStore, root: Mapping[str, Any], place: str) -> None:
        """Take the store that has the chunks, and its checked root."""
        super().__init__(store)
        self.root = root
        self._place = place
        members = root["consolidated_metadata"]["metadata"]
        self._metadata = {"zarr.json": dict(root), **{f"{name}/zarr.json": node for name, node in members.items()}}
        self._files: set[str] | None = None
        self._arrays = {name: node for name, node in members.items() if node["node_type"] == "array"}

    def _with_store(self, store: ZarrStore) -> CheckedStore:
        return CheckedStore(store, self.root, self._place)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Buffer | None:
        """Return a file; the metadata as it was checked, a chunk if it is no larger than its array says."""
        if key.rpartition("/")[2].startswith((".z", "zarr.json")):
            node = self._metadata.get(key)
            return None if node is None else prototype.buffer.from_bytes(json.dumps(node).encode())
        found = await self._store.get(key, prototype, byte_range)
        name = "/".join(key.split("/")[: 1 + key.startswith(f"{JOBS}/")])
        if name not in self._arrays:
            return found
        if found is None and self.read_only and key in await self._needed(prototype):
            raise InputError(f"{self._place}: {key} is absent; faultsweep check {self._place} says what is damaged")
        if found is not None and byte_range is None:
            self._check_chunk(name, key, found.to_bytes())
        return found

    async def _needed(self, prototype: Any) -> set[str]:
        """Return the files that have to be there, read once: a chunk that equals its fill value need not be."""
        if self._files is None:
            end = self.root["attributes"].get("manifest")
            content = await self._store.get(MANIFEST, prototype) if isinstance(end, int) else None
            self._files = set() if content is None else needed_files(content.to_bytes(), end)
        return self._files

    async def exists(self, key: str) -> bool:
        """Tell whether there is a file."""
        if key.rpartition("/")[2].startswith((".z", "zarr.json")):
            return key in self._metadata
        return await self._store.exists(key)

    def _check_chunk(self, name: str, key: str, data: bytes) -> None:
        """Raise InputError, which names it, if a chunk is damaged, or would take more memory than its array says."""
        node = self._arrays[name]
        codecs = [codec["name"] for codec in node["codecs"]]
        count = math.prod(node["chunk_grid"]["configuration"]["chunk_shape"])
        text = codecs[0] == "vlen-utf8"
        most = MOST_CHUNK_BYTES if text else count * _value_bytes(name, node, self._place)
        if "crc32c" in codecs:
            if crc32c(data[:-4]) != int.from_bytes(data[-4:], "little"):
                raise InputError(f"{self._place}: {key} is damaged; faultsweep check {self._place} says what else is")
            data = data[:-4]
        if "zstd" in codecs:
            size = zstd_size(data)
            if size is None or size > most or (size != most and not text):
                raise InputError(f"{self._place}: {key}{_BAD_CHUNK}")
            if text or "crc32c" not in codecs:
                data = _decompress(data, f"{self._place}: {key}")
        elif not text and len(data) != most:
            raise InputError(f"{self._place}: {key}{_BAD_CHUNK}")
        if text and (len(data) < 4 or struct.unpack_from("<I", data)[0] != count):
            raise InputError(f"{self._place}: {key}{_BAD_CHUNK}")


def _decompress(data: bytes, place: str) -> bytes:
    try:
        return bytes(Zstd().decode(data))
    except RuntimeError as error:
        raise InputError(f"{place} is damaged ({error})") from None


def zstd_size(data: bytes) -> int | None:
    """Return how many bytes a Zstandard frame says that it holds; None if it does not say, or is none (RFC 8878)."""
    if len(data) < 5 or data[:4] != b"\x28\xb5\x2f\xfd":
        return None
    kind, single, dictionary = data[4] >> 6, data[4] >> 5 & 1, data[4] & 3
    if not kind and not single:
        return None
    start, width = 5 + (not single) + (0, 1, 2, 4)[dictionary], (1, 2, 4, 8)[kind]
    field = data[start : start + width]
    return int.from_bytes(field, "little") + (256 if kind == 1 else 0) if len(field) == width else None


def open_checked(place: str | Path) -> CheckedStore:
    """Open a store for reading: a folder, a packed store, or the URL of either.

    Raises
    ------
    InputError
        There is none, it cannot be reached, or ``parse_root`` refuses it.
    """
    text = str(place)
    url = "://" in text
    if not url and not Path(text).exists():
        raise InputError(f"{text}: no such store")
    if not url and Path(text).is_file() and not zipfile.is_zipfile(text):
        raise InputError(f"{text}{_A_FILE}")
    if not url and Path(text).is_dir():
        return open_folder(Path(text))
    if re.search(r"(^|::)s3a?://", text):
        require("a store on S3", "s3fs")
    # a web server that cannot send a part of a file has to send an archive whole: simplecache fetches it once
    address = text if url else f"file://{Path(text).resolve()}"
    packed = not url or text.endswith(".zip")
    why: Exception | None = None
    for way in [f"zip::{address}", f"zip::simplecache::{address}"] if packed else [address]:
        try:
            return _open_way(way, text)
        except InputError:
            raise
        except Exception as error:  # fsspec, its file systems and zipfile each have errors of their own
            why = error
    first = re.sub(r"\s+", " ", str(why) or type(why).__name__)
    raise InputError(f"{text}: not a store of a sweep that can be read ({first[:200]})")


def open_folder(path: Path, read_only: bool = True) -> CheckedStore:
    """Open a store that is a folder."""
    return CheckedStore(LocalStore(path, read_only=read_only), read_root(path), str(path))


def read_root(path: Path) -> dict[str, Any]:
    """Return the checked metadata of a store that is a folder."""
    file = path / "zarr.json"
    try:
        if file.stat().st_size > _MOST_METADATA_BYTES:
            raise InputError(f"{path}: refused, because its zarr.json has more than 256 MB")
        content = file.read_bytes()
    except NotADirectoryError:
        raise InputError(f"{path}{_A_FILE}") from None
    except FileNotFoundError:
        what = "a folder that is not a store of a sweep (it has no zarr.json)" if path.is_dir() else "no such store"
        raise InputError(f"{path}: {what}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the store ({error})") from None
    return parse_root(content, str(path))


def _open_way(way: str, place: str) -> CheckedStore:
    """Open a store by a URL of fsspec."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about file systems that are not asynchronous
        store = FsspecStore.from_url(way, read_only=True)
    archive = getattr(getattr(store.fs, "sync_fs", store.fs), "zip", None)
    if archive is not None:
        _check_archive(archive.infolist(), place)
    content = sync(store.get("zarr.json", default_buffer_prototype()))
    if content is None:
        raise InputError(f"{place}: not a store of a sweep (it has no zarr.json)")
    return CheckedStore(store, parse_root(content.to_bytes(), place), place)


def _check_archive(entries: Sequence[zipfile.ZipInfo], place: str) -> None:
    """Raise InputError if an archive holds far more than its size."""
    packed, whole = (sum(getattr(entry, part) for entry in entries) for part in ("compress_size", "file_size"))
    largest = max((entry.file_size for entry in entries), default=0)
    if whole > max(_ALWAYS_ALLOWED_BYTES, _MOST_INFLATED * packed) or largest > MOST_CHUNK_BYTES:
        raise InputError(
            f"{place}: refused, because its {packed:,} bytes would unpack to {whole:,}, which no store does"
        )
