"""Values by their place in ascending order, without putting all of them in order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_FEW = 1_000
"""Up to so many values, a sort is faster."""
_CLASS_BITS = 11
"""There are at most 2 ** 11 classes, whose counts fit into the nearest cache."""
_BITS_OF_ONE = int(np.float64(1.0).view(np.int64))


def values_at(values: NDArray[np.float64], places: Sequence[int], largest: float) -> list[float]:
    """Return the values at some places, 0 for the least, of a row of finite numbers in ascending order.

    places: each less than the number of values. largest: the largest of them.
    """
    if len(values) <= _FEW:
        return np.sort(values)[np.asarray(places)].tolist()
    class_of = _classes(values, largest)
    ends = np.bincount(class_of).cumsum()
    found: list[float] = []
    members, first, last = values[:0], 0, -1
    for place, number in zip(places, ends.searchsorted(places, "right").tolist(), strict=True):
        if number != last:
            members, last = np.sort(values[class_of == number]), number
            first = int(ends[number]) - len(members)
        found.append(float(members[place - first]))
    return found


def _classes(values: NDArray[np.float64], largest: float) -> NDArray[np.int64]:
    """Return a class of each value, from 0 on, such that the values of a class are less than those of the next.

    The bits of a float from 1 on, read as a whole number, grow with it, about as its logarithm does: their highest
    ones are the class. So times from seconds to weeks are spread over the classes.
    """
    least = np.minimum.reduce(values)
    from_one = values - least
    from_one += 1.0
    class_of = from_one.view(np.int64)
    class_of -= _BITS_OF_ONE
    most = int((np.float64(largest) - least + 1.0).view(np.int64)) - _BITS_OF_ONE
    class_of >>= max(0, most.bit_length() - _CLASS_BITS)
    return class_of
