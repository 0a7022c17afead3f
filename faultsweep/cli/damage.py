"""Files of a store that cannot be read: what Zarr finds wrong with them, as one sentence."""

from __future__ import annotations

import json
import traceback


def describe_damage(error: BaseException) -> str:
    """Return what is said of the part of a store that Zarr could not read; "" for any other error."""
    if not isinstance(error, RuntimeError | json.JSONDecodeError):
        return ""
    place = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "zarr":
            here = frame.f_locals.get("store_path") or getattr(frame.f_locals.get("self"), "store_path", None)
            place = str(here).removeprefix("file://") if here is not None else place or "the store"
    if not place:
        return ""
    return (
        f"{place}: is damaged and cannot be read ({error}); restore it from a copy, or run the sweep into a new store"
    )
