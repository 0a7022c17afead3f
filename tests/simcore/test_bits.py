"""Arithmetic on bit masks, beside plain Python on the lists of their bits."""

import numpy as np
from faultsweep.simcore.engine import bits
from faultsweep.simcore.engine.jit import entry_kernel
from hypothesis import given
from hypothesis import strategies as st

masks = st.integers(0, 2**64 - 1)


@entry_kernel
def lowest(mask: np.uint64, count: int) -> np.uint64:
    """Call it as kernels do."""
    return bits.lowest_bits(mask, count)


@entry_kernel
def lowest_by_one(mask: np.uint64, count: int) -> np.uint64:
    """The same where the processor has no instruction for it."""
    return bits.lowest_by_one(mask, count)


@given(masks, st.integers(0, 64))
def test_the_lowest_bits_are_those_of_lowest_index(mask, count):
    count = min(count, mask.bit_count())
    expected = sum(1 << at for at in [at for at in range(64) if mask >> at & 1][:count])
    assert int(lowest(np.uint64(mask), count)) == expected
    assert int(lowest_by_one(np.uint64(mask), count)) == expected
