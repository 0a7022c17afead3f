"""Random streams that depend on (seed, replicate, purpose) alone, and rounding that makes them the same everywhere."""

from __future__ import annotations

import hashlib
from typing import overload

import numpy as np
from numpy.typing import NDArray


def stream(seed: int, replicate: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose of one replicate under one seed.

    Streams of different purposes are independent, and what one purpose draws never moves another: runs that are
    compared see the same jobs and the same failures. Draw with ``random`` and invert the distribution function rather
    than by NumPy's other methods, whose rejection loops turn a last bit of ``log`` into a different stream.
    """
    words = np.frombuffer(hashlib.blake2b(purpose.encode(), digest_size=16).digest(), "<u4")
    sequence = np.random.SeedSequence(seed, spawn_key=(replicate, *words.tolist()))
    return np.random.Generator(np.random.PCG64(sequence))


@overload
def round_ms(times_s: float) -> float: ...
@overload
def round_ms(times_s: NDArray[np.float64]) -> NDArray[np.float64]: ...
def round_ms(times_s: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Round generated times to 1 ms: log, exp and pow differ in the last bit between processor types.

    The difference would otherwise grow into another order of events, so results would depend on the host.
    """
    return np.rint(times_s * 1000.0) / 1000.0
