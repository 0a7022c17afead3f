"""Arithmetic on uint64 bit masks, the same compiled and interpreted.

Every operand is made uint64 explicitly: uint64 with int64 is an integer when compiled but a float in NumPy.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.jit import deferred, has_deposit, inlined, is_interpreted, kernel

ZERO = np.uint64(0)
ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


if is_interpreted():

    def popcount(mask: np.uint64) -> int:
        """Return the number of set bits of a uint64, as int64."""
        return np.int64(int(mask).bit_count())  # type: ignore[return-value]  # int when compiled

    def lowest_bit(mask: np.uint64) -> int:
        """Return the index of the lowest set bit of a nonzero uint64, as int64."""
        return np.int64((int(mask) & -int(mask)).bit_length() - 1)  # type: ignore[return-value]  # int when compiled

    def highest_bit(mask: np.uint64) -> int:
        """Return the index of the highest set bit of a nonzero uint64, as int64."""
        return np.int64(int(mask).bit_length() - 1)  # type: ignore[return-value]  # int when compiled

else:
    _count = deferred("make_bit_count", "ctpop")
    _trailing = deferred("make_bit_count", "cttz")
    _leading = deferred("make_bit_count", "ctlz")

    @inlined
    def popcount(mask: np.uint64) -> int:
        """Return the number of set bits of a uint64, as int64."""
        return _count(mask)

    @inlined
    def lowest_bit(mask: np.uint64) -> int:
        """Return the index of the lowest set bit of a nonzero uint64, as int64."""
        return _trailing(mask)

    @inlined
    def highest_bit(mask: np.uint64) -> int:
        """Return the index of the highest set bit of a nonzero uint64, as int64."""
        return 63 - _leading(mask)


@inlined
def low_bits(count: int) -> np.uint64:
    """Return the mask of the ``count`` lowest bits, 0 <= count <= 64."""
    if count >= 64:
        return _ALL
    return (ONE << np.uint64(count)) - ONE


@inlined
def lowest_by_one(mask: np.uint64, count: int) -> np.uint64:
    """Return the ``count`` lowest set bits of a mask, where the processor has no instruction for that."""
    rest = mask
    for _ in range(count):
        rest &= rest - ONE
    return mask ^ rest


if has_deposit():
    _deposit = deferred("make_deposit")

    @inlined
    def lowest_bits(mask: np.uint64, count: int) -> np.uint64:
        """Return the ``count`` lowest set bits of a mask."""
        return _deposit(low_bits(count), mask)

else:
    lowest_bits = lowest_by_one


@inlined
def rotate_down(mask: np.uint64, steps: int, width: int) -> np.uint64:
    """Rotate the low ``width`` bits of a mask down by ``steps``, 0 < steps < width: bit i + steps moves to bit i."""
    return ((mask >> np.uint64(steps)) | (mask << np.uint64(width - steps))) & low_bits(width)


@inlined
def ring_run(start: int, length: int, width: int) -> np.uint64:
    """Return the mask of ``length`` bits from ``start`` on, around a ring of ``width`` bits."""
    run = low_bits(length)
    if start == 0:
        return run
    if start + length <= width:
        return run << np.uint64(start)
    return ((run << np.uint64(start)) | (run >> np.uint64(width - start))) & low_bits(width)


@inlined
def run_starts(mask: np.uint64, length: int, width: int) -> np.uint64:
    """Return the mask of positions where ``length`` set bits begin on the ring; a full ring begins at 0 only."""
    if length == width:
        return ONE if mask == low_bits(width) else ZERO
    starts = mask
    have = 1
    while have < length and starts != ZERO:
        step = min(have, length - have)
        starts &= rotate_down(starts, step, width)
        have += step
    return starts


@kernel
def longest_run(mask: np.uint64, width: int) -> int:
    """Return the length of the longest run of set bits on a ring of ``width`` bits."""
    if mask == ZERO:
        return 0
    if mask == low_bits(width):
        return width
    length = 0
    while mask != ZERO:
        mask &= rotate_down(mask, 1, width)
        length += 1
    return length
