"""How a compiled kernel gets the state of a run: as one pointer.

Numba passes a tuple of arrays to every function as seven words for each array. The state is passed as the address of a
table of the arrays' addresses and shapes instead: ``s.queued`` in a kernel is an element of an array that is found in
that table, ``s.job.size`` a row of one. What the table holds does not change while a kernel runs, and the compiler is
told so; it keeps what it has read in registers. Measured against a tuple: compiling takes a third of the time.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from faultsweep.simcore.engine.jit import deferred, is_interpreted
from faultsweep.simcore.engine.layout import Declared, Words, words_of
from numpy.typing import NDArray


def make_table(state: Declared) -> NDArray[np.int64]:
    """Return the table of the arrays of a state, which must stay alive as long as it: int64 (arrays * 4,)."""
    table = [state.words.get(name) or _find(state, name) for name in state.layout.tables]
    return np.array(list(chain.from_iterable(table)), np.int64)


def _find(state: Declared, name: str) -> Words:
    """Return the words of an array that was not made with the state; raise TypeError if it is not as declared."""
    array, (dtype, axes), rows = state.arrays[name], state.layout.tables[name], state.layout.rows_of_tables[name]
    if (array.dtype, array.ndim) != (dtype, axes) or not array.flags.c_contiguous:
        raise TypeError(f"the state's {name} is {array.dtype} with {array.ndim} axes, expected {dtype} with {axes}")
    if rows and len(array) != rows:
        raise TypeError(f"the state's {name} has {len(array)} rows, expected {rows}")
    return words_of(array.ctypes.data, array.shape)


def make_state_at(declared: type[Declared]) -> Any:
    """Return what gives, within kernels, the state of a table; where nothing is compiled, a state is its own table."""
    return _itself if is_interpreted() else deferred("state_from", declared, module="state_types")


def _itself(state: Any) -> Any:
    return state
