"""The lines of a failure log, and what the readers of all formats share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np
from faultsweep.simcore.model.failure_trace import LATEST_S
from numpy.typing import NDArray

from faultsweep.errors import InputError

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LARGEST = 2.0**53  # above it float64 no longer holds every whole number
MAX_NODES = 10_000_000


class Lines:
    """The numbered lines of a file; they are decoded as they are read (any byte decodes, in Latin-1)."""

    def __init__(self, path: Path, data: bytes) -> None:
        """Hold the uncompressed content of a file; ``path`` is for messages."""
        self.path = path
        self.data = data

    def texts(self) -> Iterator[str]:
        """Yield the lines without their ends, from line 1 on."""
        for line in self.data.split(b"\n"):
            yield line.removesuffix(b"\r").decode("latin-1")

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise the error for a line, counted from 1."""
        raise InputError(f"{self.path}:{line}: {problem}")

    def number(self, line: int, what: str, text: str, minimum: float = -np.inf) -> float:
        """Return the number that a field holds, or raise the error that names the line."""
        if not _NUMBER.fullmatch(text.strip()):
            self.fail(line, f"{what} is {quoted(text)}, not a number")
        value = float(text)
        if not abs(value) <= _LARGEST:
            self.fail(line, f"{what} is too large (above 2^53)")
        if value < minimum:
            self.fail(line, f"{what} is {text.strip()} (valid: {minimum:g} or more)")
        return value

    def time(self, line: int, what: str, text: str, minimum: float = -LATEST_S) -> float:
        """Return the time in seconds that a field holds, or raise the error that names the line."""
        value = self.number(line, what, text, minimum)
        if value > LATEST_S:
            self.fail(line, f"{what} is {text.strip()} (valid: {minimum:g} to {LATEST_S:g}, 2^42)")
        return value

    def node(self, line: int, what: str, text: str) -> int:
        """Return the node number that a field holds, or raise the error that names the line."""
        value = self.number(line, what, text, minimum=0)
        if value != int(value) or value >= MAX_NODES:
            self.fail(line, f"{what} is {text.strip()} (valid: whole numbers from 0 to {MAX_NODES - 1})")
        return int(value)

    def times(self, texts: Sequence[str], numbers: Sequence[int]) -> NDArray[np.float64]:
        """Return ISO 8601 times (without zone) as seconds since 1970, or raise the error that names the line."""
        try:
            stamps = np.array(texts, "datetime64[us]")
        except ValueError:
            for text, number in zip(texts, numbers, strict=True):
                try:
                    np.datetime64(text, "us")
                except ValueError:
                    self.fail(number, f"{quoted(text)} is not a time that exists")
            raise
        return stamps.astype(np.int64) / 1e6


def quoted(text: str) -> str:
    """Return a piece of a line for an error message."""
    shown = text.strip()[:40]
    return repr(shown + ("..." if len(text.strip()) > 40 else ""))
