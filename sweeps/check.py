"""``faultsweep check``: what of a store is absent or damaged, and how it is mended."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from faultsweep.sweeps.built_in import TARGETS
from faultsweep.sweeps.rerun import stored_target
from faultsweep.sweeps.runner.progress import format_bytes, format_count
from faultsweep.sweeps.spec import read_spec
from faultsweep.sweeps.status import DAMAGED_CODE
from faultsweep.sweeps.store.lock import Lock
from faultsweep.sweeps.store.manifest import is_sealed
from faultsweep.sweeps.store.opener import stored_spec
from faultsweep.sweeps.store.pack import check_archive
from faultsweep.sweeps.store.repair import Checked, check, repair, seal
from faultsweep.sweeps.store.replay import check_at_rest
from faultsweep.sweeps.store.store import Store, run_folder
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError
from faultsweep.terminal import make_console, print_json

if TYPE_CHECKING:
    from rich.console import Console

_UNVERIFIABLE = 6


def seal_store(path: Path) -> list[str]:
    """Give a store of an earlier format, or one whose manifest is gone, a manifest and checksums.

    Returns sentences about files that may have been lost before.

    Raises
    ------
    InputError
        There is no such store, a run writes it, it has a manifest, or a chunk of it cannot be read.
    """
    if is_sealed(path):
        raise InputError(f"{path}: has a manifest already; faultsweep check compares it")
    store = Store(path, mode="r")
    check_at_rest(store)
    with _locked(path):
        Store(path).repair()
        return seal(path)


def repair_store(path: Path, logs: Path | None = None, workers: int | None = None, progress: bool = True) -> Checked:
    """Restore what is kept twice, run the damaged cells again, and return what is known then.

    Cells of a function of the user's own are only marked: no store holds a function.

    Raises
    ------
    InputError
        Something cannot be restored, a run writes the store, or its logs or the model have changed since.
    """
    with _locked(path):
        if not check(path).is_sound:
            repair(path)
    store = Store(path, mode="r")
    if check(path).cells and store.attributes["target"] in TARGETS:
        target = stored_target(store, None, logs)
        spec = read_spec(stored_spec(store.attributes), target, where=f"the spec in {path}")
        Sweep.of(spec).run(path, workers=workers, progress=progress, only_damaged=True, results=False)
    return check(path)


def _locked(path: Path) -> Lock:
    run_folder(path).mkdir(exist_ok=True)
    return Lock(run_folder(path) / "lock")


def print_check(
    path: Path, mend: bool, seal: bool, logs: Path | None, workers: int | None, as_json: bool = False
) -> int:
    """Check a store, mend or seal it first if that is asked for, and print what is found; returns the exit code."""
    path = path.resolve()
    console = make_console(highlight=False, soft_wrap=True, markup=False, stderr=as_json)
    if path.is_file():
        return _print_archive(path, mend or seal, console, as_json)
    for text in seal_store(path) if seal else ():
        console.print(text)
    found = check(path)
    if mend and found.verifiable and not found.is_sound:
        for text in found.sentences(path):
            console.print(text)
        found = repair_store(path, logs, workers, progress=not as_json)
    if as_json:
        print_json({**_as_json(found), "exit_code": _code(found)})
        return _code(found)
    for text in found.sentences(path) if found.verifiable else ():
        console.print(text)
    if not found.verifiable:
        console.print(f"{path}: of an earlier format, which has no checksums; faultsweep check --seal {path} adds them")
    elif found.is_sound:
        size = format_bytes(found.size_bytes)
        console.print(f"{path}: sound ({format_count(found.files, 'file')}, {size}, all compared)")
    elif not mend:
        console.print(f"mend it: faultsweep check --repair {path}, or run the sweep again")
    elif found.cells:
        console.print("run the script of the sweep again: it simulates them")
    return _code(found)


def _print_archive(path: Path, change: bool, console: Console, as_json: bool) -> int:
    if change:
        raise InputError(f"{path}: an archive, which is never changed; unpack it, and mend or seal the store")
    found = check_archive(path)
    if as_json:
        print_json({**_as_json(found), "exit_code": _code(found)})
        return _code(found)
    for text in found.sentences(path):
        console.print(text)
    if found.is_sound:
        size = format_bytes(found.size_bytes)
        console.print(f"{path}: sound ({format_count(found.files, 'file')}, {size}, all compared)")
    else:
        console.print("get the archive again, or pack the store again")
    return _code(found)


def _code(found: Checked) -> int:
    if not found.verifiable:
        return _UNVERIFIABLE
    return 0 if found.is_sound else DAMAGED_CODE


def _as_json(found: Checked) -> dict[str, Any]:
    return {
        "sound": found.verifiable and found.is_sound,
        "verifiable": found.verifiable,
        "damage": [{"name": one.name, "what": one.what} for one in found.damage],
        "older": found.older,
        "damaged_cells": found.cells,
        "files": found.files,
        "size_bytes": found.size_bytes,
    }
