"""How a compiled kernel gets the state of a run: as one pointer.

Numba passes a tuple of arrays to every function as seven words for each array. The state is passed as the address of a
table of the arrays' addresses and shapes instead: ``s.f`` in a kernel reads its array from that table. What the table
holds does not change while a kernel runs, and the compiler is told so; it keeps what it has read in registers. Measured
against a tuple: compiling takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from faultsweep.simcore.engine.jit import is_interpreted
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

FIELDS: dict[str, Any] = {
    "f": types.float64[::1],
    "i": types.int64[::1],
    "job_f": types.float64[:, ::1],
    "job_i": types.int64[:, ::1],
    "agenda": types.float64[:, ::1],
    "lists": types.int64[:, ::1],
    "failures": types.float64[:, ::1],
    "masks": types.uint64[:, ::1],
    "trace": types.float64[::1],
    "profile": types.float64[:, ::1],
    "profile_masks": types.uint64[:, ::1],
    "footprints": types.uint64[:, :, ::1],
    "boxes": types.int64[:, :, ::1],
    "shapes": types.int64[:, ::1],
}
"""The arrays of a state, in the order of the table."""

_WORD = ir.IntType(64)
_WORDS = 4  # of a row of the table: address, then up to three sides

# Numba's annotations do not know how types are defined.
_intrinsic: Any = intrinsic


class StateType(types.Type):
    """The type of ``s`` in compiled kernels; ``fields`` are its arrays, in the order of the table."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        """Name a state with these arrays."""
        self.fields = fields
        super().__init__(name)


@register_model(StateType)
class _StateModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _WORD.as_pointer())


@infer_getattr
class _StateAttributes(AttributeTemplate):
    key = StateType

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]  # Numba marks it NotImplemented
        return typ.fields.get(attr)


@lower_getattr_generic(StateType)
def _lower_field(context: Any, builder: Any, state: Any, table: Any, name: str) -> Any:
    """Read an array from the table."""
    kind = state.fields[name]
    row = _WORDS * list(state.fields).index(name)
    constant = builder.module.add_metadata([])

    array = context.make_array(kind)(context, builder)

    def read(at: int, form: Any = _WORD) -> Any:
        word = builder.load(builder.bitcast(cgutils.gep_inbounds(builder, table, row + at), form.as_pointer()))
        word.set_metadata("invariant.load", constant)
        return word

    width = kind.dtype.bitwidth // 8
    shape = [read(1 + axis) for axis in range(kind.ndim)]
    strides = [ir.Constant(_WORD, width)]
    for side in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], side))
    populate_array(
        array,
        data=read(0, array.data.type),
        shape=shape,
        strides=strides,
        itemsize=ir.Constant(_WORD, width),
        meminfo=None,
    )
    return array._getvalue()


def make_table(arrays: Sequence[NDArray[Any]], fields: dict[str, Any] = FIELDS) -> NDArray[np.int64]:
    """Return the table of the arrays of a state, which must stay alive as long as it: int64 (arrays * 4,)."""
    table = np.zeros((len(fields), _WORDS), np.int64)
    for row, array, (name, kind) in zip(table, arrays, fields.items(), strict=True):
        if (array.dtype.name, array.ndim) != (str(kind.dtype), kind.ndim) or not array.flags.c_contiguous:
            raise TypeError(f"the state's {name} is {array.dtype} with {array.ndim} axes, expected {kind}")
        row[0] = array.ctypes.data
        row[1 : 1 + array.ndim] = array.shape
    return table.reshape(-1)


def make_state_at(name: str, fields: dict[str, Any]) -> Any:
    """Return what gives an entry kernel the state of a table; the state itself where nothing is compiled."""
    if is_interpreted():
        return _itself
    state = StateType(name, fields)

    @_intrinsic
    def state_at(_typing: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, value=arguments[0]).data

        return state(table), generate

    return state_at


def _itself(state: Any) -> Any:
    return state


state_at = make_state_at("faultsweep.State", FIELDS)
"""In an entry kernel: the state of ``State.handle``."""
