"""Calling loops around policies of the user's, which are compiled apart from the engine, by their address."""

from __future__ import annotations

from typing import Any

from faultsweep.simcore.engine.jit import callback, deferred, inlined, is_interpreted
from faultsweep.simcore.engine.state import State

HEAD = """

import numpy as _np
from numba import njit as _njit
from faultsweep.simcore.engine.state import state_at as _state_at
from faultsweep.simcore.policies.node_choice.nodes import can_take as _can_take
from faultsweep.simcore.policies.node_choice.nodes import num_nodes as _num_nodes
from faultsweep.simcore.policies.placement.rules import coin as _coin

_policy = {name} if hasattr({name}, "py_func") else _njit(error_model="numpy", nogil=True)({name})


def _loop(table, a, b, c):
    s = _state_at(table)
"""
"""What comes between the user's file and the body of the loop."""

_kept: dict[int, Any] = {}


def keep(loop: Any) -> int:
    """Return the address of a compiled loop, or the number of an interpreted one; it stays in memory."""
    address = id(loop) if is_interpreted() else int(loop.address)
    _kept[address] = loop
    return address


def kept(address: int) -> Any:
    """Return an interpreted loop by its number."""
    return _kept[int(address)]


def compile_loop(loop: Any) -> Any:
    """Compile a loop, or load it from the cache."""
    return callback(loop)


if is_interpreted():

    def call_own(address: int, s: State, a: int, b: int, c: int) -> int:
        """Call a loop."""
        return int(_kept[int(address)](s, a, b, c))

else:
    _call = deferred("make_caller")
    _address_of = deferred("make_address_of", module="state_types")

    @inlined
    def call_own(address: int, s: State, a: int, b: int, c: int) -> int:
        """Call the loop at an address with the state and three whole numbers; it returns one."""
        return _call(address, _address_of(s), a, b, c)
