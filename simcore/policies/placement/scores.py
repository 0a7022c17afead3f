"""A user's placement score: a Python function, compiled, that says how bad a free box is for a job.

The function takes any of INPUTS by name and returns a number; the box with the lowest score wins, of equal ones the
first in the search order. With the attribute ``monotone = True`` it promises that its score never rises with
``mfp_after``, all else equal; boxes that cannot win are then passed over. It is compiled apart from the engine, which
calls it by its address: no other kernel is compiled for it, and runs without one are not touched.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from faultsweep.simcore.contract import OWN_POLICY, Policy
from faultsweep.simcore.engine.jit import numba_config
from faultsweep.simcore.engine.state import MONOTONE, NEEDS_MFP, NEEDS_PLACE, NEEDS_PREDICTION, SCORED
from faultsweep.simcore.policies.prediction import has_no_confidence, is_blind
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from faultsweep.errors import InputError, unknown_name

INPUTS: dict[str, tuple[Any, str]] = {
    "mfp_after": (types.int64, "nodes of the maximal free partition with the job in the box"),
    "mfp_before": (types.int64, "nodes of the maximal free partition now"),
    "requested": (types.int64, "nodes that the job asked for"),
    "size": (types.int64, "nodes of the box: after rounding and growth"),
    "reported": (types.int64, "nodes of the box that the predictor reports"),
    "risk": (types.float64, "predicted probability that the box fails, of these nodes and the accuracy a"),
    "a": (types.int64, "side of the box along x"),
    "b": (types.int64, "side of the box along y"),
    "c": (types.int64, "side of the box along z"),
    "x": (types.int64, "base of the box along x"),
    "y": (types.int64, "base of the box along y"),
    "z": (types.int64, "base of the box along z"),
    "look_ahead_s": (types.float64, "remaining estimate of the job, which is the predictor's window, s"),
    "now_s": (types.float64, "time of the decision, s"),
}
"""What a score may ask for: type and meaning, in the order of the compiled call."""

# Numba's annotations do not know all options of its compilers.
_njit: Any = numba.njit
_cfunc: Any = numba.cfunc
_intrinsic: Any = intrinsic
_KINDS = tuple(kind for kind, _ in INPUTS.values())
_NEEDS = {
    **{"mfp_after": NEEDS_MFP, "reported": NEEDS_PREDICTION, "risk": NEEDS_PREDICTION},
    **dict.fromkeys("xyz", NEEDS_PLACE),
}
_interpreted: dict[int, Callable[..., float]] = {}


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
    needs = MONOTONE if monotone and "mfp_after" in wanted else 0
    for argument in wanted:
        needs |= _NEEDS.get(argument, 0)
    if numba_config.DISABLE_JIT:
        caller = _caller(function, wanted)
        _interpreted[id(caller)] = caller
        return Score(name, id(caller), needs, caller)
    try:
        inner = _njit(error_model="numpy", nogil=True)(function)
        compiled = _cfunc(types.float64(*_KINDS), error_model="numpy")(_caller(inner, wanted))
    except NumbaError as error:
        problem = " ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]
        raise InputError(f"placement: the score {name!r} cannot be compiled ({problem})") from None
    return Score(name, int(compiled.address), needs, compiled)


def _caller(function: Callable[..., Any], wanted: list[str]) -> Callable[..., float]:
    """Return a function of all INPUTS that passes on those that are wanted."""
    namespace: dict[str, Any] = {"function": function}
    # Numba compiles no function of *arguments; all names in this text have been checked to be among INPUTS.
    exec(f"def caller({', '.join(INPUTS)}): return float(function({', '.join(wanted)}))", namespace)  # noqa: S102
    caller: Callable[..., float] = namespace["caller"]
    return caller


def is_score(placement: str) -> bool:
    """Tell whether the value of the parameter names a score of the user's, not a built-in rule."""
    return re.fullmatch(OWN_POLICY, placement) is not None


def source_hash(text: str) -> str:
    """Return the content hash of the source of a score."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def read_source(name: str) -> str:
    """Return the text of the Python file of a score named FILE.py:FUNCTION."""
    path = name.rpartition(":")[0]
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"placement: {path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


@lru_cache(maxsize=64)
def score_of_source(name: str, text: str) -> Score:
    """Compile the score FILE.py:FUNCTION from the text of the file, which is executed.

    Raises
    ------
    InputError
        If the text is no Python, fails, or has no such function; and what ``make_score`` raises.
    """
    path, _, function = name.rpartition(":")
    namespace: dict[str, Any] = {"__name__": Path(path).stem, "__file__": path}
    try:
        exec(compile(text, path, "exec"), namespace)  # noqa: S102 - the user's own file, as importing it would
    except Exception as error:  # whatever the user's file raises
        raise InputError(f"placement: {path} cannot be executed ({type(error).__name__}: {error})") from None
    if not callable(namespace.get(function)):
        functions = [key for key, value in namespace.items() if inspect.isfunction(value)]
        raise unknown_name(f"function in {path}", function, functions, where="placement")
    return make_score(namespace[function], name)


def score_for(placement: Any) -> Score | None:
    """Return the compiled score that ``placement`` gives or names as FILE.py:FUNCTION; None for a built-in rule."""
    if isinstance(placement, Score):
        return placement
    if isinstance(placement, str):
        return score_of_source(placement, read_source(placement)) if is_score(placement) else None
    return make_score(placement)


def _call_interpreted(address: int, *values: Any) -> float:
    """Call a score by its number where nothing is compiled."""
    return _interpreted[int(address)](*values)


@_intrinsic
def _call_compiled(  # type: ignore[no-untyped-def]  # one argument per input: Numba's intrinsics have no others
    typing, address, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13
):
    """Call the compiled function at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.DoubleType(), [context.get_value_type(each) for each in _KINDS])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])

    return types.float64(types.int64, *_KINDS), generate


call_score: Any = _call_interpreted if numba_config.DISABLE_JIT else _call_compiled
"""Call the score at an address with all INPUTS in their order."""


POLICY = Policy(
    "score",
    "",
    uses=(
        ("accuracy", lambda run: not is_blind(run)),
        ("partition_failure", lambda run: not (is_blind(run) or has_no_confidence(run))),
    ),
    consults=("prediction",),
    facts={"search": SCORED},
)
