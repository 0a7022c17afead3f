"""Policies of the user's: FILE.py:NAME names a Python function of any of the inputs of its role.

Compiled roles have a template, the loop around the function (``own.py`` in their folder). Both are written as one file
under the folder of compiled kernels, named by the hash of all that it means, and imported from there: so a process
after the first compiles nothing. The engine calls the loop by its address, once a pass. A file is executed only if
a run names it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from faultsweep.simcore.engine import own
from faultsweep.simcore.engine.jit import cache_dir, is_interpreted
from faultsweep.simcore.engine.meaning import meaning_of
from numba.core.errors import NumbaError

from faultsweep.errors import InputError, unknown_name

_SERVICES = "faultsweep.simcore.policies.placement.rules"
"""What loops call, and all that it reaches: the state above all."""
_TEXTS: dict[str, str] = {}
"""The source of files that came with a task instead of being read here, by the value that names them."""


@dataclass(frozen=True)
class Shape:
    """How functions of a role look.

    Attributes
    ----------
    role : the parameter that names them, for messages.
    inputs : name -> the expression in the template that gives it, and its meaning.
    template : the body of the loop around ``_policy(ARGUMENTS)``, of s, a, b and c; "" where nothing is compiled.
    """

    role: str
    inputs: Mapping[str, tuple[str, str]]
    template: str = ""


def provide(value: str, text: str) -> None:
    """Have a policy's file without reading it: where it was read, its text travels to the workers."""
    _TEXTS[value] = text


def source_of(value: str, role: str) -> str:
    """Return the text of the file of a policy; nothing is executed."""
    if value in _TEXTS:
        return _TEXTS[value]
    path = Path(value.rpartition(":")[0])
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{role}: {path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


def function_of(value: str, shape: Shape) -> Callable[..., Any]:
    """Return the Python function that a value names; its file is executed."""
    return _function(value, source_of(value, shape.role), shape.role, tuple(shape.inputs))


@lru_cache(maxsize=64)
def _function(value: str, text: str, role: str, inputs: tuple[str, ...]) -> Callable[..., Any]:
    path, _, name = value.rpartition(":")
    module = _import(f"policy_{hashlib.sha256(text.encode()).hexdigest()[:16]}", text, path, role)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, found in vars(module).items() if inspect.isfunction(found)]
        raise unknown_name(f"function in {path}", name, functions, where=role)
    for argument in inspect.signature(function).parameters:
        if argument not in inputs:
            raise unknown_name(f"argument of {name}", argument, inputs, where=role)
    return function


def address_of(value: str, shape: Shape) -> int:
    """Return where the compiled loop around a policy is; it stays in memory.

    Raises
    ------
    InputError
        If the file cannot be read or fails, has no such function, or it cannot be compiled.
    """
    return _address(value, source_of(value, shape.role), shape.role, _Hashed(shape))


class _Hashed:
    """A shape as a key: there is one for each role."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hashed) and other.shape is self.shape

    def __hash__(self) -> int:
        return id(self.shape)


@lru_cache(maxsize=64)
def _address(value: str, text: str, role: str, hashed: _Hashed) -> int:
    shape, (path, _, name) = hashed.shape, value.rpartition(":")
    wanted = inspect.signature(_function(value, text, role, tuple(shape.inputs))).parameters
    arguments = ", ".join(shape.inputs[argument][0] for argument in wanted)
    loop = own.HEAD.format(name=name) + shape.template.replace("ARGUMENTS", arguments)
    meant = "\n".join(
        (text, loop, meaning_of("faultsweep.simcore.engine.own"), meaning_of(_SERVICES), str(is_interpreted()))
    )
    module = _import(f"own_{hashlib.sha256(meant.encode()).hexdigest()[:16]}", f"{text}\n{loop}", path, role)
    if is_interpreted():
        return own.keep(module._loop)
    try:
        compiled = own.compile_loop(module._loop)
    except NumbaError as error:
        problem = " ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]
        raise InputError(f"{role}: {name} cannot be compiled ({problem})") from None
    return own.keep(compiled)


def _import(stem: str, text: str, path: str, role: str) -> ModuleType:
    """Write a file where compiled code can be kept beside it, and import it from there."""
    if stem in sys.modules:
        return sys.modules[stem]
    file = cache_dir() / "own" / f"{stem}.py"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}")
            part.write_text(text, encoding="utf-8")
            os.replace(part, file)
        spec = importlib.util.spec_from_file_location(stem, file)
        module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]  # the file is there
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except Exception as error:  # whatever the user's file raises
        raise InputError(f"{role}: {path} cannot be executed ({type(error).__name__}: {error})") from None
    sys.modules[stem] = module
    return module
