"""The store of a sweep: one Zarr v3 group that ``xarray.open_zarr`` reads without this package.

The rules that keep a store sound under kills, full disks and readers at any moment (each was measured):

- a store appears whole, by a rename; arrays are made by zarr, not through dask or a broadcast;
- an array's chunk is written whole, by one process, to a temporary file that is renamed; metrics first, ``status``
  last;
- the root's ``zarr.json`` holds the consolidated metadata: replacing it is the one step that makes a grown grid
  visible, after all arrays have been resized and all labels written;
- axes grow at their ends only; an array of labels that gets longer ones is written anew beside the old one.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import zarr
from faultsweep.sweeps.axes import Axis
from faultsweep.sweeps.grid import Cells, Grid
from faultsweep.sweeps.outputs import Output, from_json, stored_output, udunits
from faultsweep.sweeps.store.labels import from_array, to_array, without_kinds
from faultsweep.sweeps.store.manifest import (
    FOLDER,
    LABELS,
    ROOT,
    RecordingStore,
    compact,
    digest_of,
    keep_labels,
    manifest_size,
    remove,
    replace_file,
    rewrite,
    root_text,
    write_files,
)
from faultsweep.sweeps.store.opener import JOBS, CheckedStore, open_folder, parse_root, read_root
from faultsweep.sweeps.store.statuses import FAILURES, PENDING, STATUS_NAMES
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.storage import LocalStore, MemoryStore

from faultsweep.errors import InputError

FORMAT = 2
"""The version of this layout; a test keeps a store of every released one."""

CHUNK_CELLS = 16_384
"""Cells of a chunk, about: 1,024 gives 16 times the files and is 10 times slower to open."""

_RUN = ".run"
STATE = "state.json"
"""File beside a store that says how far it was."""
LABEL_CHUNK = 16_384
_CHUNK_WORDS = 4_000_000
"""Words of a chunk of the widest metric, at most (32 MB): large arrays make chunks of few cells."""


def chunk_shape(shape: Sequence[int], outputs: Sequence[Output] = ()) -> tuple[int, ...]:
    """Return chunk lengths with at most 16,384 cells in all, balanced: a slice along any two axes touches few chunks.

    A small grid gets lengths beyond its own, so that growing it does not end in thousands of small files. Of
    ``outputs`` that are large arrays a chunk has fewer cells.
    """
    widest = max((max(out.width, out.texts) for out in outputs), default=1)
    most = max(1, min(CHUNK_CELLS, _CHUNK_WORDS // max(1, widest)))
    lengths = list(shape)
    while math.prod(lengths) > most:
        longest = max(range(len(lengths)), key=lambda dim: lengths[dim])
        lengths[longest] = (lengths[longest] + 1) // 2
    while math.prod(lengths) * 2 <= most:
        shortest = min(range(len(lengths)), key=lambda dim: lengths[dim])
        lengths[shortest] *= 2
    return tuple(lengths)


@dataclass(frozen=True)
class Chunks:
    """How a grid of ``shape`` is cut into chunks of ``lengths``; chunks are numbered in C order."""

    shape: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of chunks along each axis."""
        return tuple(-(-n // length) for n, length in zip(self.shape, self.lengths, strict=True))

    @property
    def num(self) -> int:
        """Return the number of chunks."""
        return math.prod(self.counts)

    def of_all(self) -> NDArray[np.int32]:
        """Return the chunk of every cell, shape (size,)."""
        parts = [np.arange(n) // length for n, length in zip(self.shape, self.lengths, strict=True)]
        strides = [math.prod(self.counts[dim + 1 :]) for dim in range(len(self.shape))]
        out = np.zeros(self.shape, dtype=np.int32)
        for dim, (part, stride) in enumerate(zip(parts, strides, strict=True)):
            out += (part * stride).astype(np.int32).reshape([-1 if d == dim else 1 for d in range(len(self.shape))])
        return out.ravel()

    def region(self, chunk: int) -> tuple[slice, ...]:
        """Return the slices of the grid that a chunk holds."""
        at = np.unravel_index(chunk, self.counts)
        return tuple(
            slice(int(i) * length, min((int(i) + 1) * length, n))
            for i, length, n in zip(at, self.lengths, self.shape, strict=True)
        )

    def cells(self, chunk: int) -> Cells:
        """Return the flat cells of a chunk in C order."""
        rows = np.ix_(*(np.arange(part.start, part.stop) for part in self.region(chunk)))
        return np.ravel_multi_index(np.broadcast_arrays(*rows), self.shape).ravel()

    def places(self, chunk: int, cells: Cells) -> NDArray[np.int64]:
        """Return where cells of a chunk stand in the order of ``cells(chunk)``."""
        region = self.region(chunk)
        rows = np.unravel_index(cells, self.shape)
        local = [row - part.start for row, part in zip(rows, region, strict=True)]
        return np.ravel_multi_index(local, [part.stop - part.start for part in region])


def run_folder(path: Path) -> Path:
    """Return the folder beside a store that holds its lock, journals and log file."""
    return path.with_name(f"{path.name}{_RUN}")


def store_of(folder: Path) -> Path:
    """Return the store that a run's folder is beside."""
    return folder.with_name(folder.name.removesuffix(_RUN))


class Store:
    """A store opened for the engine; readers need xarray only."""

    def __init__(self, path: Path, mode: Literal["r", "r+"] = "r+") -> None:
        """Open the store at ``path`` and check that this version knows its format."""
        self.path = path
        self._mode = mode
        self._open()

    def _open(self) -> None:
        checked = open_folder(self.path)
        self.root = checked.root
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            metrics = self.metrics
            if self._mode != "r":
                checked = CheckedStore(RecordingStore(LocalStore(self.path), metrics), checked.root, str(self.path))
            self.group = zarr.open_group(checked, mode=self._mode, zarr_format=3, use_consolidated=True)
        self.arrays: dict[str, Any] = dict(self.group.arrays())
        status = self.arrays["status"]
        self.chunks = Chunks(status.shape, status.chunks)
        self.dims: list[str] = list(status.metadata.dimension_names)

    @property
    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the root."""
        return dict(self.root["attributes"])

    def reopen(self) -> None:
        """Read the store anew, after its files have been written otherwise."""
        self._open()

    def text(self, key: str) -> Any:
        """Return an attribute that is JSON text, decoded."""
        return from_json(self.attributes[key])

    @property
    def metrics(self) -> list[str]:
        """Return the names of the metric variables."""
        return list(self.text("metrics"))

    @property
    def adding(self) -> list[str]:
        """Return the metrics that were added and that not all cells have yet."""
        return list(self.text("adding"))

    @property
    def recomputing(self) -> str:
        """Return how far the recomputation of all results is: "" (none), "begun", or "on" (old ones are forgotten)."""
        return str(self.attributes.get("recomputing", ""))

    @property
    def open_runs(self) -> list[dict[str, Any]]:
        """Return the runs whose journals may have results that the store lacks, see ``replay.open_run``."""
        return list(json.loads(self.attributes.get("open_runs", "[]")))

    def forget(self, cells: NDArray[np.bool_]) -> None:
        """Make these cells pending, without an error; shape (size,)."""
        status = self.status()
        if np.isin(status[cells], FAILURES).any():
            errors = self.arrays["error"][...]
            errors[cells.reshape(errors.shape)] = ""
            self.arrays["error"][...] = errors  # before the status, so that a kill leaves no text at a pending cell
        status[cells] = PENDING
        self.arrays["status"][...] = status.reshape(self.chunks.shape)

    @property
    def formulas(self) -> list[str]:
        """Return the parameters that formulas gave."""
        return [name for name, array in self.arrays.items() if "formula" in array.attrs]

    def axes(self) -> list[Axis]:
        """Return the axis tables, from the coordinates."""
        axes = []
        for table in self.text("axes"):
            columns = {name: self.column(name) for name in table["parameters"]}
            axes.append(Axis(table["name"], self.column(table["name"], as_label=True), columns))
        return axes

    def column(self, name: str, as_label: bool = False) -> Any:
        """Return a coordinate as Python values of the type that it was written from."""
        array = self.arrays[name]
        return from_array(array[...], array.attrs, as_label)

    def output(self, name: str) -> Output:
        """Return the output that a metric holds."""
        array = self.arrays[name]
        dims = list(array.metadata.dimension_names)[len(self.dims) :]
        labelled = [dim for dim in dims if dim in self.arrays]
        about = {dim: without_kinds(self.arrays[dim].attrs) for dim in labelled}
        return stored_output(name, array, dims, {dim: self.column(dim) for dim in labelled}, about)

    def absent(self, name: str) -> NDArray[np.bool_]:
        """Return which cells have no value of a metric, over the grid; all of them where its type cannot tell."""
        array, grid = self.arrays[name], self.chunks.shape
        output = self.output(name)
        if output.dtype in ("int64", "bool"):
            return np.ones(grid, dtype=bool)
        values = np.asarray(array[...])
        gone = np.isnan(values) if output.dtype in ("float64", "complex") else values == output.fill
        return np.asarray(gone.reshape((*grid, -1)).all(-1))

    def status(self) -> NDArray[np.int8]:
        """Return the status of every cell, shape (size,)."""
        return np.asarray(self.arrays["status"][...]).ravel()

    def read_block(self, name: str, chunk: int) -> NDArray[Any]:
        """Return one variable's values in a chunk, laid flat over its cells."""
        region = self.chunks.region(chunk)
        block = np.asarray(self.arrays[name][region])
        return block.reshape(math.prod(part.stop - part.start for part in region), *block.shape[len(region) :])

    def write_block(self, name: str, chunk: int, values: NDArray[Any]) -> None:
        """Write one variable's whole chunk."""
        region = self.chunks.region(chunk)
        shape = tuple(part.stop - part.start for part in region)
        self.arrays[name][region] = values.reshape(shape + values.shape[1:])

    @property
    def keeps_jobs(self) -> bool:
        """Tell whether per-job results are stored."""
        return "jobs_offset" in self.arrays

    def grow(self, axes: Sequence[Axis], grid: Grid, outputs: Sequence[Output], keep_jobs: bool = False) -> None:
        """Append the new rows of ``axes``, new outputs, per-job results; nothing is visible before the last step."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr's, of types whose definition in Zarr 3 may yet change
            self._grow(axes, grid, outputs, keep_jobs)
        known = dict.fromkeys((*self.metrics, *(out.name for out in outputs)))
        self.commit(metrics=json.dumps(list(known)), adding=json.dumps([*self.adding, *(out.name for out in outputs)]))

    def _grow(self, axes: Sequence[Axis], grid: Grid, outputs: Sequence[Output], keep_jobs: bool) -> None:
        lengths = dict(zip(self.dims, (len(axis) for axis in axes), strict=True))
        raw = self._raw()
        for name, array in raw.arrays():
            names = array.metadata.dimension_names
            shape = tuple(lengths.get(dim, n) for dim, n in zip(names, array.shape, strict=True))
            if shape != array.shape:
                array.resize(shape)
            self.arrays[name] = array
        if keep_jobs:
            _create_job_index(raw, self.dims, tuple(lengths.values()), self.chunks.lengths)
        new = [output for output in outputs if output.name not in self.arrays]
        _create_metrics(raw, new, self.dims, tuple(lengths.values()), self.chunks.lengths)
        for name, values, dims, extra in _coordinates(axes, grid):
            if not set(dims) <= set(lengths) or name not in self.arrays:
                continue
            if self.arrays[name].dtype != values.dtype:
                _change_type(self.path, f"{name}/zarr.json", values.dtype, extra)
                self.arrays[name] = self._raw()[name]
            # what a configuration takes its values for may change with them: no reader of the grid needs it
            self.arrays[name].attrs.put({**without_kinds(self.arrays[name].attrs), **extra})
            self.arrays[name][...] = values

    def drop(self, names: Sequence[str]) -> None:
        """Remove variables over the grid; a kill at any moment leaves them, or what ``repair`` removes."""
        if not names:
            return
        for name in names:
            remove(self.path, f"{name}/zarr.json")
        metrics, adding = ([name for name in known if name not in names] for known in (self.metrics, self.adding))
        self.commit(metrics=json.dumps(metrics), adding=json.dumps(adding))
        for name in names:
            remove(self.path, name)
            shutil.rmtree(self.path / name, ignore_errors=True)

    def _raw(self) -> Any:
        """Return the group by its own metadata, which a killed growth may have left ahead of the consolidated."""
        return raw_group(self.path, self.metrics)

    def repair(self) -> None:
        """Undo what a killed process left: arrays made, changed or removed but not yet visible so, temporary files."""
        visible = json.loads((self.path / "zarr.json").read_text())["consolidated_metadata"]["metadata"]
        for name, file in _members(self.path).items():
            if name not in visible:
                remove(self.path, name)
                shutil.rmtree(file.parent, ignore_errors=True)
        for name, metadata in visible.items():
            file = self.path / name / "zarr.json"
            if not _says(file, metadata):
                replace_file(self.path, f"{name}/zarr.json", json.dumps(metadata, indent=1).encode())
        sweep_partials(self.path)

    def commit(self, **attributes: Any) -> None:
        """Make the present arrays and these attributes visible, in one step."""
        before, self.root = self.root, commit(self.path, attributes)
        if self.root["consolidated_metadata"] != before["consolidated_metadata"]:
            self._open()

    def compact(self) -> None:
        """Shorten the manifest where most of it is of before; all that was written has to be whole."""
        if compact(self.path):
            self.commit()

    def size_bytes(self) -> int:
        """Return the size of all files of the store."""
        return sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file())


def create(
    path: Path,
    grid: Grid,
    outputs: Sequence[Output],
    attributes: Mapping[str, Any],
    keep_jobs: bool = False,
) -> Store:
    """Make a store with every cell pending; it appears at ``path`` whole or not at all."""
    if not __debug__:  # Zarr does in assertions what it needs
        raise InputError(f"{path}: Zarr cannot make a store without assertions; run without -O and PYTHONOPTIMIZE")
    dims = [axis.name for axis in grid.axes]
    lengths = chunk_shape(grid.shape, outputs)
    files: dict[str, Buffer] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(MemoryStore(files), mode="a", zarr_format=3)
        for name, values, along, extra in _coordinates(grid.axes, grid):
            _create_coordinate(group, name, values, along, extra)
        _create_metrics(group, outputs, dims, grid.shape, lengths)
        _create_variables(group, dims, grid.shape, lengths, keep_jobs)
    draft = run_folder(path) / "new.zarr"
    shutil.rmtree(draft, ignore_errors=True)
    try:
        draft.mkdir(parents=True)
    except FileExistsError:  # what could not be removed must not become part of the store
        raise InputError(
            f"{draft}: a leftover of an earlier run that cannot be removed; remove it, then run again"
        ) from None
    write_files(draft, {name: file.to_bytes() for name, file in files.items()}, [output.name for output in outputs])
    root = _root(draft, {"faultsweep_format": FORMAT, **attributes})
    parse_root(root_text(root, 0), str(path))  # what no reader would take must not become visible
    rewrite(draft, root)
    os.rename(draft, path)
    return Store(path)


def _coordinates(
    axes: Sequence[Axis], grid: Grid
) -> Iterator[tuple[str, NDArray[Any], tuple[str, ...], dict[str, Any]]]:
    """Yield name, values, dimensions and attributes of every coordinate: labels, parameters, formulas."""
    for axis in axes:
        named = {axis.name: axis.labels, **{name: values for name, values in axis.columns.items() if name != axis.name}}
        for name, values in named.items():
            parameter = grid.target.parameters.get(name) if name in axis.columns else None
            array, kind = to_array(values)
            if name in axis.columns:  # whose values the labels may only name
                _, kind = to_array(axis.columns[name])
            yield name, array, (axis.name,), _describe(parameter, kind)
    for name in grid.formulas:
        if name in grid.dims_of:
            dims = tuple(grid.axes[dim].name for dim in grid.dims_of[name])
            table = grid.values(name)
            array, kind = to_array(table.ravel().tolist())
            extra = {**_describe(grid.target.parameters[name], kind), "formula": grid.formulas[name].text}
            yield name, array.reshape(table.shape), dims, extra


def _describe(parameter: Any, kind: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a coordinate: name and units, and ``kind``, which says how its values are read."""
    attributes: dict[str, Any] = {}
    if parameter is not None and parameter.doc:
        attributes["long_name"] = parameter.doc
    if parameter is not None and parameter.unit:
        attributes["units"] = udunits(parameter.unit)
    return {**attributes, **kind}


def _create_coordinate(
    group: Any, name: str, values: NDArray[Any], dims: tuple[str, ...], extra: dict[str, Any]
) -> None:
    array = group.create_array(
        name,
        shape=values.shape,
        chunks=(LABEL_CHUNK,) if values.ndim == 1 else chunk_shape(values.shape),
        dtype=values.dtype,
        fill_value="" if values.dtype.kind == "U" else values.dtype.type(0),
        compressors=compressors(),
        dimension_names=dims,
        attributes=extra,
    )
    array[...] = values


def _create_metrics(
    group: Any, outputs: Sequence[Output], dims: Sequence[str], shape: tuple[int, ...], lengths: tuple[int, ...]
) -> None:
    """Create the arrays of metrics; what zarr knows of one serves all that differ in name and attributes alone."""
    first: dict[Any, Any] = {}
    others = {}
    for output in outputs:
        along = tuple((dim.name, dim.labels is None) for dim in output.along)
        kind = along, output.shape, output.stored, repr(output.fill)
        if kind in first:
            others[output.name] = replace(first[kind].metadata, attributes=output.attributes())
        else:
            first[kind] = _create_metric(group, output, dims, shape, lengths)
    for _ in zarr.create_hierarchy(store=group.store, nodes=others):
        pass  # each is made as it is asked for


def _create_metric(
    group: Any, output: Output, dims: Sequence[str], shape: tuple[int, ...], lengths: tuple[int, ...]
) -> Any:
    for dim in output.along:
        if dim.labels is not None and dim.name not in group:
            values, kind = to_array(dim.labels)
            _create_coordinate(group, dim.name, values, (dim.name,), {**without_kinds(output.about(dim.name)), **kind})
    return group.create_array(
        output.name,
        shape=shape + output.shape,
        chunks=lengths + output.shape,
        dtype=output.stored,
        fill_value=output.fill,
        dimension_names=(*dims, *(dim.name for dim in output.along)),
        compressors=compressors(),
        attributes=output.attributes(),
    )


def _create_variables(
    group: Any, dims: Sequence[str], shape: tuple[int, ...], lengths: tuple[int, ...], keep_jobs: bool
) -> None:
    flags = {"flag_values": list(range(len(STATUS_NAMES))), "flag_meanings": " ".join(STATUS_NAMES)}
    variables: list[tuple[str, str, Any, dict[str, Any]]] = [
        ("status", "int8", 0, {"long_name": "Status of the cell", **flags}),
        ("wall_s", "float64", np.nan, {"long_name": "Wall time of the run", "units": "s"}),
        ("error", "string", "", {"long_name": "Why the run failed"}),
    ]
    for name, dtype, fill, attributes in variables:
        group.create_array(
            name,
            shape=shape,
            chunks=lengths,
            dtype=dtype,
            fill_value=fill,
            compressors=compressors(),
            dimension_names=dims,
            attributes=attributes,
        )
    if keep_jobs:
        _create_job_index(group, dims, shape, lengths)


def _create_job_index(group: Any, dims: Sequence[str], shape: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    texts = {
        "jobs_offset": (-1, "First row of the run in the group 'jobs'"),
        "jobs_length": (0, "Rows of the run in it"),
    }
    for name, (fill, text) in texts.items():
        if name in group:
            continue
        group.create_array(
            name,
            shape=shape,
            chunks=lengths,
            dtype="int64",
            fill_value=fill,
            compressors=compressors(),
            dimension_names=dims,
            attributes={"long_name": text},
        )


def commit(path: Path, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Write the root's metadata with the metadata of all arrays consolidated in it: one file, replaced in one step.

    Returns what it says.
    """
    root = _root(path, attributes)
    text = root_text(root, manifest_size(path) if (path / FOLDER).is_dir() else None)
    written = parse_root(text, str(path))  # what no reader would take must not become visible
    replace_file(path, ROOT, text)
    remember(path)
    return written


def _root(path: Path, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the root's metadata with these attributes, and with the metadata of all arrays consolidated in it."""
    root: dict[str, Any] = json.loads((path / ROOT).read_bytes())
    root["attributes"] = {**root.get("attributes", {}), **attributes}
    members = {name: json.loads(file.read_bytes()) for name, file in _members(path).items()}
    root["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": members}
    if (path / FOLDER).is_dir():
        root["attributes"][LABELS] = keep_labels(path, json.loads(root["attributes"].get("metrics", "[]")))
    return root


def _members(path: Path) -> dict[str, Path]:
    """Return the metadata files of the arrays and groups in a store, by their names."""
    files = sorted([*path.glob("*/zarr.json"), *path.glob(f"{JOBS}/*/zarr.json")])
    return {file.parent.relative_to(path).as_posix(): file for file in files}


def _says(file: Path, metadata: Mapping[str, Any]) -> bool:
    """Tell whether the metadata of an array is this."""
    try:
        return bool(json.loads(file.read_bytes()) == metadata)
    except (OSError, ValueError):
        return False


def raw_group(path: Path, metrics: Sequence[str]) -> Any:
    """Return the group by its own metadata, which a growth may have ahead of the consolidated one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = RecordingStore(LocalStore(path), metrics)
        return zarr.open_group(store, mode="r+", zarr_format=3, use_consolidated=False)


def compressors() -> Any:
    """Return how chunks are compressed, with a checksum behind each that every reader of Zarr compares."""
    return ZstdCodec(level=0), Crc32cCodec()


def remember(path: Path) -> None:
    """Write beside a store how far it is, so that an older copy of it that is put in its place is known."""
    folder = run_folder(path)
    if folder.is_dir() and (path / FOLDER).is_dir():
        fresh = folder / f"{STATE}.partial"
        root = digest_of((path / "zarr.json").read_bytes())
        fresh.write_text(json.dumps({"manifest": manifest_size(path), "root": root}))
        os.replace(fresh, folder / STATE)


def other_names(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the chunks of an array are named so that none has a name that it has now."""
    if metadata["chunk_key_encoding"]["name"] == "default":
        return {"name": "v2", "configuration": {"separator": "."}}
    return {"name": "default", "configuration": {"separator": "/"}}


def _change_type(path: Path, name: str, dtype: np.dtype, attributes: Mapping[str, Any]) -> None:
    """Make a coordinate one of another type (floats, longer text), by the file of its metadata; its values follow.

    Its chunks get other names than they have, so that those which present readers know stay as they are.
    """
    metadata = json.loads((path / name).read_text())
    shape, chunks = metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fresh = zarr.create_array({}, shape=shape, chunks=chunks, dtype=dtype, compressors=compressors(), zarr_format=3)
    made = json.loads(fresh.metadata.to_buffer_dict(default_buffer_prototype())["zarr.json"].to_bytes())
    metadata |= {name: made[name] for name in ("data_type", "fill_value", "codecs")}
    metadata["chunk_key_encoding"] = other_names(metadata)
    metadata["attributes"] = {**metadata.get("attributes", {}), **attributes}
    replace_file(path, name, json.dumps(metadata, indent=1).encode())


def check_format(path: Path) -> dict[str, Any]:
    """Return the attributes of the store at ``path``; InputError if there is none that can be read."""
    return dict(read_root(path)["attributes"])


def sweep_partials(path: Path) -> None:
    """Remove the temporary files that killed writers left."""
    for file in path.rglob("*.partial"):
        file.unlink(missing_ok=True)
