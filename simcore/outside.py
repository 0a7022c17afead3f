"""Policies of the user's: FILE.py:NAME, or a name that a package brings, is a Python function of inputs of its role.

Compiled roles have a template, the loop around the function (``own.py`` in their folder). Both are written as one file
under the folder of compiled kernels, named by the hash of all that it means, and imported from there: so a process
after the first compiles nothing. The engine calls the loop by its address, once a pass. A file is executed only if
a run names it; its parameters are read from its text.
"""

from __future__ import annotations

import ast
import atexit
import gc
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from faultsweep.simcore import installed
from faultsweep.simcore.contract import OWN, OWN_POLICY, Condition, Named, Parameter, Policy, Run
from faultsweep.simcore.engine import own
from faultsweep.simcore.engine.jit import as_input_error, is_interpreted
from faultsweep.simcore.engine.machine_code import cache_dir, kernel_hash
from faultsweep.simcore.engine.state import MOST_OWN
from faultsweep.simcore.streams import coin_key

from faultsweep.errors import InputError, unknown_name

_SERVICES = "faultsweep.simcore.policies.placement.rules"
"""What loops call, and all that it reaches: the state above all."""
GROUP = "policies of yours"
"""The group of the parameters that files declare."""
_DRAWN = ("drawn", "stream", "places")
"""The inputs that are random."""
_DECLARED = {"default", "doc", "unit", "minimum", "maximum"}

Texts = Mapping[tuple[str, str], str]
"""The source of files, by the role and the value that names them: a package may bring two policies of one name."""
_NO_TEXTS: Texts = MappingProxyType({})
_texts: ContextVar[Texts] = ContextVar("texts", default=_NO_TEXTS)
"""The source of files that came with a task, or were read already, instead of being read here."""


@dataclass(frozen=True, eq=False)
class Shape:
    """How functions of a role look.

    Attributes
    ----------
    role : the parameter that names them, for messages.
    inputs : name -> the expression in the template that gives it, and its meaning.
    template : the body of the loop around ``_policy(ARGUMENTS)``, of s, a, b and c; "" where nothing is compiled.
    place : of the role in ``s.own_values`` and ``s.own_key``.
    head : what comes between the user's file and the template.
    value : the expression that gives a parameter of the function's own, by ``place`` and the parameter's number ``at``.
    compiled : compiles the loop.
    """

    role: str
    inputs: Mapping[str, tuple[str, str]]
    template: str = ""
    place: int = 0
    head: str = own.HEAD
    value: str = "s.own_values[{place}, {at}]"
    compiled: Callable[[Any], Any] = own.compile_loop


def own_policy(
    shape: Shape,
    *,
    begins: Callable[[Any, str], None] | None = None,
    facts: Mapping[str, Any] | None = None,
    consults: tuple[Named, ...] = (),
    **declared: Any,
) -> Policy:
    """Return the policy of a role that stands for the user's; ``begins`` is given the value that names it."""

    def begin(s: Any, run: Run) -> None:
        value = str(run[shape.role])
        for at, parameter in enumerate(declares(value, shape)):
            s.own_values[shape.place, at] = run[parameter.name]
        s.own_key[shape.place] = coin_key(run["seed"], run["replicate"], f"own {shape.role}")
        if begins is not None:
            begins(s, value)

    drawn = (("seed", takes(shape, *_DRAWN)),) if shape.inputs.keys() & set(_DRAWN) else ()
    return Policy(
        OWN,
        "",
        facts={"shape": shape, **(facts or {})},
        consults=(*drawn, *consults),
        **declared,
        declares=lambda run: declares(str(run[shape.role]), shape),
        begins=begin if shape.template else None,
    )


@contextmanager
def provided(texts: Texts) -> Iterator[None]:
    """Have the files of policies without reading them: where they were read, their texts travel to the workers."""
    before = _texts.set({**_texts.get(), **texts})
    try:
        yield
    finally:
        _texts.reset(before)


def place_of(value: str, role: str) -> tuple[str, str]:
    """Return the file of a policy and the name of its function."""
    if re.fullmatch(OWN_POLICY, value):
        path, _, name = value.rpartition(":")
        return path, name
    file, name = installed.source(role, value)
    return str(file), name


def source_of(value: str, role: str) -> str:
    """Return the text of the file of a policy; nothing is executed."""
    if (role, value) in _texts.get():
        return _texts.get()[role, value]
    path = place_of(value, role)[0]
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{role}: {path} cannot be read ({getattr(error, 'strerror', None) or error})") from None


def declares(value: str, shape: Shape) -> tuple[Parameter, ...]:
    """Return the parameters that a file declares for a function; none if the file cannot be read here."""
    try:
        text = source_of(value, shape.role)
    except InputError:  # a run says it
        return ()
    return _declared(text, *place_of(value, shape.role), shape)


@lru_cache(maxsize=64)
def _declared(text: str, path: str, name: str, shape: Shape) -> tuple[Parameter, ...]:
    """Return the parameters in ``PARAMETERS`` of a text that the function takes; nothing is executed."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):  # its execution says it
        return ()
    tables = [line.value for line in body if isinstance(line, ast.Assign) and _names(line) == ["PARAMETERS"]]
    if not tables:
        return ()
    where = f"{shape.role}: {path}: PARAMETERS"
    try:
        table = ast.literal_eval(tables[-1])
    except ValueError:
        raise InputError(
            f"{where}: expected literal values alone, since it is read without executing the file"
        ) from None
    arguments = _arguments(text, name)
    if not isinstance(table, dict) or not all(isinstance(key, str) for key in table):
        raise InputError(f"{where}: expected a table of parameters by their names")
    found = tuple(_parameter(key, said, where) for key, said in table.items() if arguments is None or key in arguments)
    clash = next((each.name for each in found if each.name in shape.inputs), "")
    if clash or len(found) > MOST_OWN:
        what = f"{clash!r} is an input of the role" if clash else f"{len(found)} for one function (at most {MOST_OWN})"
        raise InputError(f"{where}: {what}; choose {'another name' if clash else 'fewer'}")
    return found


def _names(line: ast.Assign) -> list[str]:
    return [target.id for target in line.targets if isinstance(target, ast.Name)]


def _parameter(name: str, said: Any, where: str) -> Parameter:
    """Return a parameter as a file declares it, or raise InputError."""
    where = f"{where}: {name}"
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(f"{where}: expected a name of small letters, digits and underscores")
    if not isinstance(said, dict) or not {"default", "doc"} <= said.keys() <= _DECLARED:
        raise InputError(
            f"{where}: expected a table with default and doc, and with unit, minimum and maximum if need be"
        )
    default, bounds = said["default"], {key: said[key] for key in ("minimum", "maximum") if key in said}
    if not isinstance(default, bool | int | float):
        raise InputError(f"{where}: default: expected a number, true or false, got {default!r}")
    texts = (said["doc"], said.get("unit", ""))
    if not all(isinstance(text, str) for text in texts) or not said["doc"]:
        raise InputError(f"{where}: expected texts as doc and unit")
    if not all(type(bound) in (int, float) and bound == bound for bound in bounds.values()):
        raise InputError(f"{where}: expected numbers as minimum and maximum")
    found = Parameter(name, type(default), default, said["doc"], GROUP, unit=said.get("unit", ""), **bounds)
    if not isinstance(default, bool) and not found.minimum <= default <= found.maximum:
        raise InputError(f"{where}: the default {default!r} is outside {found.minimum:g} to {found.maximum:g}")
    return found


def takes(shape: Shape, *names: str) -> Condition:
    """Return the condition that the user's function takes one of some inputs; so too if that cannot be read here."""

    def condition(run: Run) -> bool:
        value = str(run[shape.role])
        try:
            found = _arguments(source_of(value, shape.role), place_of(value, shape.role)[1])
        except InputError:  # a run says it
            return True
        return found is None or not found.isdisjoint(names)

    return condition


@lru_cache(maxsize=64)
def _arguments(text: str, name: str) -> frozenset[str] | None:
    """Return the arguments of a function of a text; None if it is not defined there as one."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    taken = [line.args for line in body if isinstance(line, ast.FunctionDef) and line.name == name]
    return frozenset(each.arg for each in (*taken[-1].args, *taken[-1].kwonlyargs)) if taken else None


def function_of(value: str, shape: Shape) -> Callable[..., Any]:
    """Return the Python function that a value names; its file is executed."""
    text = source_of(value, shape.role)
    return _function(text, *place_of(value, shape.role), shape)


def arguments_of(value: str, shape: Shape) -> tuple[str, ...]:
    """Return the names of the inputs and parameters that a function takes; its file is executed."""
    return tuple(inspect.signature(function_of(value, shape)).parameters)


@lru_cache(maxsize=64)
def _function(text: str, path: str, name: str, shape: Shape) -> Callable[..., Any]:
    module = _import(f"policy_{hashlib.sha256(text.encode()).hexdigest()[:16]}", text, path, shape.role)
    function = getattr(module, name, None)
    if not callable(function):
        functions = [key for key, found in vars(module).items() if inspect.isfunction(found)]
        raise unknown_name(f"function in {path}", name, functions, where=shape.role)
    valid = (*shape.inputs, *(each.name for each in _declared(text, path, name, shape)))
    for argument in inspect.signature(function).parameters:
        if argument not in valid:
            raise unknown_name(f"argument of {name}", argument, valid, where=shape.role)
    return function


def address_of(value: str, shape: Shape) -> int:
    """Return where the compiled loop around a policy is; it stays in memory.

    Raises
    ------
    InputError
        If the file cannot be read or fails, has no such function, or it cannot be compiled.
    """
    text = source_of(value, shape.role)
    return _address(text, *place_of(value, shape.role), shape)


@lru_cache(maxsize=64)
def _address(text: str, path: str, name: str, shape: Shape) -> int:
    given = {argument: expression for argument, (expression, _) in shape.inputs.items()}
    for at, parameter in enumerate(_declared(text, path, name, shape)):
        value = shape.value.format(place=shape.place, at=at)
        given[parameter.name] = {int: f"int({value})", bool: f"{value} != 0.0"}.get(parameter.kind, value)
    wanted = inspect.signature(_function(text, path, name, shape)).parameters
    loop = shape.head.format(name=name) + shape.template.replace("ARGUMENTS", ", ".join(given[each] for each in wanted))
    meant = "\n".join((text, loop, kernel_hash("faultsweep.simcore.engine.own", _SERVICES), str(is_interpreted())))
    module = _import(f"own_{hashlib.sha256(meant.encode()).hexdigest()[:16]}", f"{text}\n{loop}", path, shape.role)
    if is_interpreted():
        return own.keep(module._loop)
    with as_input_error(f"{shape.role}: {name}"):
        return own.keep(shape.compiled(module._loop))


def failing(role: str, where: str, error: Exception) -> InputError:
    """Return the sentence for a function that raises an error in a run."""
    return InputError(f"{role}: the function fails {where} ({type(error).__name__}: {error})")


def _import(stem: str, text: str, path: str, role: str) -> ModuleType:
    """Write a file where compiled code can be kept beside it, and import it from there."""
    if stem in sys.modules:
        return sys.modules[stem]
    atexit.unregister(gc.freeze)  # of the command line: Python is to find what the user's objects still have to write
    file = cache_dir() / "own" / f"{stem}.py"
    try:
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}")
            part.write_text(text, encoding="utf-8")
            os.replace(part, file)
        loader = SourceFileLoader(stem, str(file))
        spec = ModuleSpec(stem, loader, origin=str(file))
        spec.has_location = True
        module = module_from_spec(spec)
        loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        raise InputError(f"{role}: {path} cannot be executed ({type(error).__name__}: {error})") from None
    sys.modules[stem] = module
    return module
