"""A hash of what code does: of a module and all that it imports from this package, without what only people read.

Comments, docstrings and blank lines do not count, nor does any module that is not reached. What counts are the
instructions, names and constants of the byte code, which Python has on the disk already.
"""

from __future__ import annotations

import dis
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from faultsweep.simcore import policies

_PACKAGE = __name__.partition(".")[0]
_CATALOGUE = f"{policies.__name__}.catalogue"
WITH_KERNELS = ("checkpointing", "node_choice", "preemption", "queue_order", "scheduling")
"""The roles whose policies the engine calls by hooks: their names decide the numbers of policies, too."""
_HAS_DOCSTRING = 0x4000000  # a flag of code objects from Python 3.14 on
_OPTIMISED = 0x1  # of functions; not of modules and bodies of classes
_LOAD_CONST, _STORE_NAME = dis.opmap["LOAD_CONST"], dis.opmap["STORE_NAME"]
_LOAD_SMALL_INT = dis.opmap.get("LOAD_SMALL_INT", -1)  # from Python 3.14 on: such a number is no constant
_HEAD = 40
_OF_PEOPLE = {"__doc__", "__firstlineno__"}  # names that the body of a module or class sets and no kernel reads


@lru_cache
def meaning_of(module: str) -> str:
    """Return the hash of a module of this package and of all that it imports from it when it is loaded itself."""
    digest = hashlib.sha256()
    for name in sorted(_reached(module)):
        digest.update(f"\n{name}\n{_code_hash(name)}".encode())
    return digest.hexdigest()


def _reached(module: str) -> set[str]:
    """Return a module and the modules of this package that it imports, directly or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(name)
    return found


@cache
def _find(module: str) -> tuple[CodeType | None, tuple[str, ...]]:
    """Return the byte code of a module and, of a package, its folders."""
    spec = importlib.util.find_spec(module)
    loader: Any = None if spec is None else spec.loader
    code = loader.get_code(module) if hasattr(loader, "get_code") else None
    return code, tuple(spec.submodule_search_locations or ()) if spec is not None else ()


@cache
def _code_hash(module: str) -> str:
    code = _find(module)[0]
    return hashlib.sha256(repr(None if code is None else meaning(code)).encode()).hexdigest()


def _imports(module: str) -> Iterator[str]:
    """Yield the modules of this package that the body of a module imports; functions that import do so for others."""
    code = _find(module)[0]
    names = () if code is None else code.co_names
    if module == _CATALOGUE:  # it imports what it finds
        for role in WITH_KERNELS:
            yield f"{policies.__name__}.{role}"
            for folder in _find(f"{policies.__name__}.{role}")[1]:
                yield from (f"{policies.__name__}.{role}.{name}" for name in sorted(_modules_in(folder)))
    for name in names:
        if name.startswith(f"{_PACKAGE}."):
            yield name
            for folder in _find(name)[1]:  # from a package, modules are imported by their last names
                yield from (f"{name}.{last}" for last in names if last in _modules_in(folder))


@cache
def _modules_in(folder: str) -> frozenset[str]:
    stems = {path.stem for path in Path(folder).glob("*.py")} - {"__init__"}
    return frozenset(filter(str.isidentifier, stems))  # others are no modules, such as an editor's locks


def meaning(code: CodeType) -> tuple[Any, ...]:
    """Return what a code object does: two that differ in comments, docstrings and lines alone are equal."""
    constants = [_constant(value) for value in code.co_consts]
    for place in _unread(code):
        constants[place] = ("unread",)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    flags = code.co_flags & ~_HAS_DOCSTRING
    units = _without_lines(code)
    return code.co_name, code.co_argcount, code.co_kwonlyargcount, flags, units, names, tuple(constants)


def _constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return meaning(value)
    if isinstance(value, frozenset):
        return "frozenset", sorted(map(repr, value))
    return value


def _unread(code: CodeType) -> Iterator[int]:
    """Yield the places of constants that are docstrings or lines."""
    if code.co_flags & _OPTIMISED:
        reserved = sys.version_info < (3, 14) or code.co_flags & _HAS_DOCSTRING
        if (
            reserved
            and not code.co_name.startswith("<")
            and code.co_consts
            and not isinstance(code.co_consts[0], CodeType)
        ):
            yield 0
        return
    yield from (code.co_code[at + 1] for at in _sets_for_people(code, _LOAD_CONST))


def _without_lines(code: CodeType) -> bytes:
    """Return the byte code without the numbers of lines that are arguments of its operations."""
    units = bytearray(code.co_code)
    for at in () if code.co_flags & _OPTIMISED else _sets_for_people(code, _LOAD_SMALL_INT):
        units[at + 1] = 0
    return bytes(units)


def _sets_for_people(code: CodeType, load: int) -> Iterator[int]:
    """Yield where the body of a module or class loads, by this operation, what it sets for people alone."""
    units = code.co_code[:_HEAD]  # two bytes each, operation and argument
    for at in range(0, len(units) - 3, 2):
        sets = (units[at], units[at + 2]) == (load, _STORE_NAME) and units[at + 3] < len(code.co_names)
        if sets and code.co_names[units[at + 3]] in _OF_PEOPLE:
            yield at
