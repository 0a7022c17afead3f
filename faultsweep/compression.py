"""Files that may be compressed by gzip or xz, which their content tells: for logs of jobs and of failures."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from faultsweep.errors import InputError

OPENERS: dict[str, Callable[..., Any]] = {"gz": gzip.open, "xz": lzma.open}
"""What opens a file of a kind, for reading and for writing."""

_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ": "xz"}
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def read_content(path: Path, on_damage: Callable[[], None] | None = None, *, enough: float = math.inf) -> bytes:
    """Return the uncompressed content of a file, or of a compressed one at least ``enough`` bytes.

    Where compressed data is damaged or cut short, ``on_damage`` is called and what can be read is returned; without it
    that is an InputError, which names the line that the content reaches to. So is a file that cannot be read.
    """
    try:
        if path.is_char_device():  # /dev/urandom has no end
            raise InputError(f"{path}: is a device, not a file")
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    kind = next((kind for magic, kind in _MAGIC.items() if raw.startswith(magic)), "")
    if not kind:
        return raw
    chunks: list[bytes] = []
    size = 0
    try:
        with OPENERS[kind](io.BytesIO(raw), "rb") as stream:
            # not read, which gives nothing of a piece that is damaged further on
            while size < enough and (chunk := stream.read1(1 << 16)):
                chunks.append(chunk)
                size += len(chunk)
    except _DAMAGE as error:
        if on_damage is None:
            line = sum(chunk.count(b"\n") for chunk in chunks) + 1
            raise InputError(
                f"{path}:{line}: the {kind} data is damaged or cut short here ({error}); fetch the file again"
            ) from None
        on_damage()
    return b"".join(chunks)
