"""Importing modules without Python's search for garbage: among what is imported it would look again and again, and
find none."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Let Python look for no garbage meanwhile, and then take what is there for old, which is looked through rarely.

    Not for what is done often: Python would look through nothing that is old any more.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # what is frozen already stays so
            gc.freeze()
            gc.unfreeze()
        gc.enable()
