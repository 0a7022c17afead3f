"""A user's placement score: a Python function, compiled, that says how bad a free box is for a job.

The function takes any of INPUTS by name and returns a number; the box with the lowest score wins, of equal ones the
first in the search order. With the attribute ``monotone = True`` it promises that its score never rises with
``mfp_after``, all else equal; boxes that cannot win are then passed over. It is compiled apart from the engine, which
calls it by its address: no other kernel is compiled for it, and runs without one are not touched.
"""

from __future__ import annotations

import ctypes
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from faultsweep.simcore import installed
from faultsweep.simcore.contract import OWN_POLICY
from faultsweep.simcore.engine import own
from faultsweep.simcore.engine.jit import as_input_error, counted, deferred, is_interpreted, score_callback
from faultsweep.simcore.engine.state import MONOTONE, MOST_OWN, NEEDS_MFP, NEEDS_PLACE, NEEDS_PREDICTION, SCORED, State
from faultsweep.simcore.outside import Shape, address_of, arguments_of, function_of, own_policy, takes
from faultsweep.simcore.policies.prediction import has_no_confidence, is_blind

from faultsweep.errors import InputError, unknown_name

INPUTS: dict[str, tuple[Any, str]] = {
    "mfp_after": (int, "nodes of the maximal free partition with the job in the box"),
    "mfp_before": (int, "nodes of the maximal free partition now"),
    "requested": (int, "nodes that the job asked for"),
    "size": (int, "nodes of the box: after rounding and growth"),
    "reported": (int, "nodes of the box that the predictor reports"),
    "risk": (float, "predicted probability that the box fails, of these nodes and the accuracy a"),
    "a": (int, "side of the box along x"),
    "b": (int, "side of the box along y"),
    "c": (int, "side of the box along z"),
    "x": (int, "base of the box along x"),
    "y": (int, "base of the box along y"),
    "z": (int, "base of the box along z"),
    "look_ahead_s": (float, "remaining estimate of the job, which is the predictor's window, s"),
    "now_s": (float, "time of the decision, s"),
}
"""What a score may ask for: type and meaning, in the order of the compiled call."""

_KINDS = tuple(kind for kind, _ in INPUTS.values())
_NEEDS = {
    **{"mfp_after": NEEDS_MFP, "reported": NEEDS_PREDICTION, "risk": NEEDS_PREDICTION},
    **dict.fromkeys("xyz", NEEDS_PLACE),
}
_HEAD = f"""

from numba import njit as _njit
from faultsweep.simcore.policies.placement.scores import values_at as _values_at

_policy = {{name}} if hasattr({{name}}, "py_func") else _njit(error_model="numpy", nogil=True)({{name}})


def _loop({", ".join(INPUTS)}, _data):
    _values = _values_at(_data)
"""


@dataclass(frozen=True)
class Score:
    """A compiled score.

    Attributes
    ----------
    name : of the function, as configurations name it.
    address : of the compiled function.
    needs : the inputs that it takes and that cost something, and what it promises: NEEDS_MFP + NEEDS_PREDICTION +
        NEEDS_PLACE + MONOTONE.
    compiled : what keeps the compiled function alive.
    """

    name: str
    address: int
    needs: int
    compiled: Any


def make_score(function: Callable[..., Any], name: str = "") -> Score:
    """Compile a placement score.

    Parameters
    ----------
    function : a Python function (or one that Numba has compiled) of any of INPUTS, by name; it returns a number and
        does what Numba compiles: arithmetic, conditions, ``math``. ``function.monotone = True`` promises that the score
        never rises with ``mfp_after``.
    name : what configurations call it; the function's own name if not given.

    Raises
    ------
    InputError
        If it asks for something else, or cannot be compiled.
    """
    if not callable(function):
        raise InputError(f"placement: expected a rule or a function, got {function!r:.60}")
    plain = getattr(function, "py_func", function)
    return _make_score(plain, name, bool(getattr(function, "monotone", getattr(plain, "monotone", False))))


@lru_cache(maxsize=64)
def _make_score(function: Callable[..., Any], name: str, monotone: bool) -> Score:
    name = name or getattr(function, "__name__", "score")
    try:
        wanted = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise InputError(f"placement: expected a rule or a function, got {function!r}") from None
    for argument in wanted:
        if argument not in INPUTS:
            raise unknown_name(f"argument of the placement score {name!r}", argument, INPUTS, where="placement")
    needs = _needs(wanted, monotone)
    if is_interpreted():
        return Score(name, own.keep(_caller(function, wanted)), needs, None)
    with as_input_error(f"placement: the score {name!r}"):
        compiled = score_callback(_caller(counted(function), wanted), _KINDS, cache=False)
    return Score(name, own.keep(compiled), needs, compiled)


def _needs(wanted: Iterable[str], monotone: bool) -> int:
    """Return what a score takes that costs something, and what it promises."""
    needs = MONOTONE if monotone and "mfp_after" in wanted else 0
    for argument in wanted:
        needs |= _NEEDS.get(argument, 0)
    return needs


def _compile(caller: Callable[..., float]) -> Any:
    return score_callback(caller, _KINDS)


def _caller(function: Callable[..., Any], wanted: list[str]) -> Callable[..., float]:
    """Return a function of all INPUTS that passes on those that are wanted."""
    namespace: dict[str, Any] = {"function": function}
    # Numba compiles no function of *arguments
    text = f"def caller({', '.join(INPUTS)}, _data): return float(function({', '.join(wanted)}))"
    exec(text, namespace)  # noqa: S102 - all names in the text have been checked to be among INPUTS
    caller: Callable[..., float] = namespace["caller"]
    return caller


def score_for(placement: Any) -> Score | None:
    """Return the compiled score that ``placement`` gives or names as FILE.py:FUNCTION; None for a built-in rule."""
    if isinstance(placement, Score):
        return placement
    if not isinstance(placement, str):
        return make_score(placement)
    if not (re.fullmatch(OWN_POLICY, placement) or placement in installed.names("placement")):
        return None
    function = function_of(placement, SHAPE)
    needs = _needs(arguments_of(placement, SHAPE), bool(getattr(function, "monotone", False)))
    return Score(placement, address_of(placement, SHAPE), needs, None)


def _call_interpreted(address: int, values: tuple[float, ...], data: int) -> float:
    """Call a score by its number where nothing is compiled."""
    return float(own.kept(address)(*values, data))


def _begin(s: State, _value: str) -> None:
    s.own_score_values = s.own_values[SHAPE.place].ctypes.data


if is_interpreted():
    call_score: Any = _call_interpreted

    def values_at(data: int) -> Any:
        """Return the parameters of a score."""
        return np.ctypeslib.as_array(ctypes.cast(int(data), ctypes.POINTER(ctypes.c_double)), (MOST_OWN,))

else:
    call_score = deferred("make_score_caller", _KINDS)
    """Call the score at an address with all INPUTS in their order, and the address of its parameters."""
    _array_at = deferred("array_of_pointers")

    @counted
    def values_at(data: int) -> Any:
        """Return the parameters of a score."""
        return _array_at(data, MOST_OWN)


SHAPE = Shape(
    "placement",
    {name: (name, doc) for name, (_, doc) in INPUTS.items()},
    "    return float(_policy(ARGUMENTS))\n",
    place=4,
    head=_HEAD,
    value="_values[{at}]",
    compiled=_compile,
)


POLICY = own_policy(
    SHAPE,
    uses=(
        ("accuracy", lambda run: not is_blind(run)),
        ("partition_failure", lambda run: not (is_blind(run) or has_no_confidence(run))),
    ),
    consults=(("prediction", takes(SHAPE, "reported", "risk")),),
    facts={"search": SCORED},
    begins=_begin,
)
