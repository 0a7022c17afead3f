"""The types of arrays that users give."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_dtype(values: Any, dtype: type[np.int64 | np.float64]) -> Any:
    """Return an array of numbers as one of whole numbers or of floats, if it can be one; all else as it is.

    Tables have numbers of fewer bits, whose sums would overflow or be rounded, and of unsigned numbers none is below 0.
    """
    if not isinstance(values, np.ndarray) or values.dtype == dtype or values.dtype.kind not in "iuf":
        return values
    if dtype is np.int64 and (values.dtype.kind == "f" or (values.size and int(values.max()) > np.iinfo(dtype).max)):
        return values
    return values.astype(dtype)
