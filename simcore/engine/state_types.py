"""The type of a state in compiled kernels, for Numba: what ``s.queued`` and ``s.job.size`` become (``handle.py``)."""

from __future__ import annotations

from typing import Any

from faultsweep.simcore.engine.compiler import begin as begin  # how kernels are compiled
from faultsweep.simcore.engine.layout import GIVEN, WORDS, Declared, Layout, Place
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import intrinsic, register_model
from numba.np.arrayobj import populate_array

_WORD = ir.IntType(64)

# Numba's annotations do not know how types are defined.
_intrinsic: Any = intrinsic


class StateType(types.Type):
    """The type of ``s`` or a part of it in compiled kernels.

    Attributes
    ----------
    layout : of the declared class.
    tables : the arrays of the whole state, in the order of the table.
    """

    def __init__(self, name: str, layout: Layout, tables: list[str]) -> None:
        """Name a declared class."""
        self.layout, self.tables = layout, tables
        super().__init__(name)

    def array(self, place: Place) -> Any:
        """Return the type of a row or of an array; kernels that write into what no run changes cannot be compiled."""
        dtype, axes = self.layout.tables[place.table]
        is_given = place.table.startswith(GIVEN)
        return types.Array(from_dtype(dtype), axes if place.row < 0 else 1, "C", readonly=is_given)


@register_model(StateType)
class _StateModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _WORD.as_pointer())


@infer_getattr
class _StateAttributes(AttributeTemplate):
    key = StateType

    def generic_resolve(self, typ: Any, attr: str) -> Any:  # type: ignore[override]  # Numba marks it NotImplemented
        if attr in typ.layout.parts:
            return StateType(f"{typ.name}.{attr}", typ.layout.parts[attr].layout, typ.tables)
        place = typ.layout.places.get(attr)
        if place is None:
            return None
        array = typ.array(place)
        return array.dtype if place.is_scalar else array


@lower_getattr_generic(StateType)
def _lower_field(context: Any, builder: Any, state: Any, table: Any, name: str) -> Any:
    """Read a scalar, or what an array is from the table; a part is the same table."""
    place = state.layout.places.get(name)
    if place is None:
        return table
    if place.is_scalar:
        return builder.load(_scalar_at(context, builder, state, table, place))
    return _array_at(context, builder, state, table, place)


@lower_setattr_generic(StateType)
def _lower_set(context: Any, builder: Any, signature: Any, arguments: Any, name: str) -> None:
    state = signature.args[0]
    place = state.layout.places.get(name)
    if place is None or not place.is_scalar:
        raise TypeError(f"{name} is an array: set its elements")
    builder.store(arguments[1], _scalar_at(context, builder, state, arguments[0], place))


def _word(builder: Any, table: Any, at: int, form: Any = _WORD) -> Any:
    """Read a word of the table; the compiler may take it for constant."""
    word = builder.load(builder.bitcast(cgutils.gep_inbounds(builder, table, at), form.as_pointer()))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _scalar_at(context: Any, builder: Any, state: Any, table: Any, place: Place) -> Any:
    form = context.get_value_type(state.array(place).dtype).as_pointer()
    data = _word(builder, table, WORDS * state.tables.index(place.table), form)
    return cgutils.gep_inbounds(builder, data, place.row)


def _array_at(context: Any, builder: Any, state: Any, table: Any, place: Place) -> Any:
    kind, first = state.array(place), WORDS * state.tables.index(place.table)
    axes = state.layout.tables[place.table][1]
    array = context.make_array(kind)(context, builder)
    data = _word(builder, table, first, array.data.type)
    shape = [_word(builder, table, first + 1 + axis) for axis in range(axes)]
    if place.row >= 0:
        data = builder.gep(data, [builder.mul(shape[1], ir.Constant(_WORD, place.row))], inbounds=True)
        shape = shape[1:]
    width = ir.Constant(_WORD, kind.dtype.bitwidth // 8)
    strides = [width]
    for side in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], side))
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=width, meminfo=None)
    return array._getvalue()


def state_from(declared: type[Declared]) -> Any:
    """Return what gives, within kernels, the state of a table, which is an array or a pointer."""
    state = StateType(f"faultsweep.{declared.__name__}", declared.layout, list(declared.layout.tables))

    @_intrinsic
    def of_table(_typing: Any, table: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            if isinstance(table, types.Array):
                return context.make_array(table)(context, builder, value=arguments[0]).data
            return builder.bitcast(arguments[0], _WORD.as_pointer())

        return state(table), generate

    return of_table


def make_address_of() -> Any:
    """Return what gives, within kernels, the address of the table of a state."""

    @_intrinsic
    def address_of(_typing: Any, s: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.ptrtoint(arguments[0], _WORD)

        return types.int64(s), generate

    return address_of
