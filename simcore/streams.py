"""Random streams that depend on (seed, replicate, purpose) alone, and rounding that makes them the same everywhere."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")

_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def stream(seed: int, replicate: int, purpose: str) -> np.random.Generator:
    """Return the generator for one purpose of one replicate under one seed.

    Streams of different purposes are independent, and what one purpose draws never moves another: runs that are
    compared see the same jobs and the same failures. Draw with ``random`` and invert the distribution function rather
    than by NumPy's other methods, whose rejection loops turn a last bit of ``log`` into a different stream.
    """
    return np.random.Generator(np.random.PCG64(_shared_sequence(seed, replicate, purpose)))


def stream_that_spawns(seed: int, replicate: int, purpose: str) -> np.random.Generator:
    """Return the same generator for a user's code, which may spawn others from it: a sequence counts what it spawned,
    so no other generator has this one."""
    return np.random.Generator(np.random.PCG64(_sequence(seed, replicate, purpose)))


def _sequence(seed: int, replicate: int, purpose: str) -> np.random.SeedSequence:
    words = np.frombuffer(hashlib.blake2b(purpose.encode(), digest_size=16).digest(), "<u4")
    return np.random.SeedSequence(seed, spawn_key=(replicate, *words.tolist()))


_shared_sequence = lru_cache(_sequence)


class Kept(Generic[Item]):
    """The items of an endless iterator that can be begun anew, the first of which are made once for all who ask."""

    def __init__(self, begin: Callable[[], Iterator[Item]], most: int) -> None:
        """Keep up to ``most`` items, which nobody may change."""
        self._begin, self._most = begin, most
        self._rest, self._kept = begin(), list[Item]()
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Item]:
        """Yield the items from the first on."""
        for at in range(self._most):
            if at == len(self._kept):
                self._keep(at)
            yield self._kept[at]
        yield from islice(self._begin(), self._most, None)

    def _keep(self, at: int) -> None:
        """Make the item at a place, the first that is not kept, unless another thread has made it."""
        with self._lock:
            if at < len(self._kept):
                return
            try:
                self._kept.append(next(self._rest))
            except BaseException:  # such as Ctrl-C, which may have lost the item
                self._rest = islice(self._begin(), len(self._kept), None)
                raise


@overload
def round_ms(times_s: float) -> float: ...
@overload
def round_ms(times_s: NDArray[np.float64]) -> NDArray[np.float64]: ...
def round_ms(times_s: float | NDArray[np.float64]) -> float | NDArray[np.float64]:
    """Round generated times to 1 ms: log, exp and pow differ in the last bit between processor types.

    The difference would otherwise grow into another order of events, so results would depend on the host.
    """
    return np.rint(times_s * 1000.0) / 1000.0


def coin_key(seed: int, replicate: int, purpose: str = "predictor") -> int:
    """Return the key of the coins of one replicate under one seed: 62 bits of SHA-256 of "seed/replicate/purpose"."""
    digest = hashlib.sha256(f"{seed}/{replicate}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 2


def coins(key: int, node: Any, job: Any, restarts: Any) -> NDArray[np.float64]:
    """Return the coins in [0, 1) of nodes, jobs (index in the workload) and restarts, which broadcast.

    A counter-based generator: for each of the three numbers n in turn, h = mix(h xor n), from h = key on, with the
    multiplier and the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) as mix; the highest 53 bits count.
    """
    h = np.asarray(key, np.uint64)
    with np.errstate(over="ignore"):  # modulo 2^64
        for part in (node, job, restarts):
            h = (h ^ np.asarray(part).astype(np.uint64)) * _MULTIPLIERS[0]
            h = (h ^ (h >> _SHIFTS[0])) * _MULTIPLIERS[1]
            h = (h ^ (h >> _SHIFTS[1])) * _MULTIPLIERS[2]
            h = h ^ (h >> _SHIFTS[2])
    return np.asarray((h >> np.uint64(11)) * 2.0**-53)
