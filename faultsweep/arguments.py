"""Arguments of another type than a function takes: each is refused by one sentence, before anything is done with it."""

from __future__ import annotations

import errno
import functools
import inspect
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from faultsweep.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])
_LONGEST = 60
"""Characters of a wrong argument that a sentence shows."""


class Kind(NamedTuple):
    """What an argument is: in words that follow "expected"; ``read`` returns it as it is used, or raises an error."""

    words: str
    read: Callable[[Any], Any]


def _kind(words: str, holds: Callable[[Any], bool]) -> Kind:
    """Return the kind of an argument that is used as it is."""

    def read(value: Any) -> Any:
        if not holds(value):
            raise TypeError
        return value

    return Kind(words, read)


def instance(kind: type | UnionType, words: str) -> Kind:
    """Return the kind of an argument that is an object of a class, or of one of several."""
    return _kind(words, lambda value: isinstance(value, kind))


def _read_path(value: Any) -> str | Path:
    text = os.fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise TypeError
    if "://" not in text:
        _check_length(text)
    return value if isinstance(value, str | Path) else Path(text)


def _check_length(path: str) -> None:
    """Raise InputError for a path that no file can have: it, or a name in it, is longer than the file system allows."""
    try:
        os.lstat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{shown(path)} is no path here ({error.strerror})") from None


def _read_paths(value: Any) -> list[str | Path]:
    if isinstance(value, str | bytes | PathLike):
        raise TypeError
    return [_read_path(each) for each in value]


def _read_names(value: Any) -> tuple[str, ...]:
    names = tuple(value)  # what gives its names once can be read again then
    if isinstance(value, str) or not all(isinstance(name, str) for name in names):
        raise TypeError
    return names


def _read_truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_ | int) and getattr(value, "ndim", 1) != 0:
        raise TypeError
    if bool(value) != value:  # as 0 and 1 are
        raise TypeError
    return bool(value)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | bytes) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0


def _read_number(value: Any) -> Any:
    if not isinstance(value, Real | np.number) or isinstance(value, bool):
        raise TypeError
    float(value)  # which has no room for hundreds of digits
    return value


TEXT = instance(str, "a text")
PATH = Kind("a path", _read_path)
PATHS = Kind("a list of paths", _read_paths)
NAMES = Kind("a list of names", _read_names)
LABEL = _kind("one label", _is_label)
TRUTH = Kind("True or False", _read_truth)
NUMBER = Kind("a number", _read_number)
WHOLE = _kind("a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool))
MAPPING = instance(Mapping, "a mapping")
LABELS = instance(Mapping | str, "labels, as a mapping or a text")


def takes(**kinds: Kind) -> Callable[[Function], Function]:
    """Let a function raise InputError for an argument that is not of its kind; None is one where it is the default."""

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        names = tuple(parameters)
        optional = {name for name in kinds if parameters[name].default is None}

        def read(name: str, value: Any) -> Any:
            if name not in kinds or (value is None and name in optional):
                return value
            try:
                return kinds[name].read(value)
            except InputError as error:
                raise InputError(f"{name}: {error}") from None
            except Exception:  # whatever a strange object raises as it is looked at
                raise InputError(f"{name}: expected {kinds[name].words}, got {shown(value)}") from None

        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            placed = [read(*each) for each in zip(names, arguments, strict=False)]
            return function(*placed, *arguments[len(names) :], **{name: read(name, named[name]) for name in named})

        return checked  # type: ignore[return-value]  # it is called as the function is

    return decorate


def shown(value: Any) -> str:
    """Return a value as a sentence shows it: short, on one line."""
    try:
        text = " ".join(reprlib.repr(value).split())
    except Exception:  # such as an integer that Python does not write
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
