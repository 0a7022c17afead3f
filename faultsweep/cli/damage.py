"""Files of a store that cannot be read: what Zarr finds wrong with them, as one sentence."""

from __future__ import annotations

import json
import traceback

_FILES = {"fsspec", "zipfile", "aiohttp"}
"""What reads files of archives and URLs for Zarr; each of them has errors of its own."""


def describe_damage(error: BaseException) -> str:
    """Return what is said of the part of a store that Zarr could not read; "" for any other error."""
    place, passed = "", set()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        passed.add(package)
        if package == "zarr":
            here = frame.f_locals.get("store_path") or getattr(frame.f_locals.get("self"), "store_path", None)
            place = str(here).removeprefix("file://") if here is not None else place or "the store"
    by_store = isinstance(error, RuntimeError | json.JSONDecodeError) or passed & _FILES
    if not place or not by_store:
        return ""
    return (
        f"{place}: is damaged and cannot be read ({error}); restore it from a copy, or run the sweep into a new store"
    )
