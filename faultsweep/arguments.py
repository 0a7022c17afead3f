"""Arguments of another type than a function takes: each is refused by one sentence, before anything is done with it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from os import PathLike
from types import UnionType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from faultsweep.errors import InputError

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(NamedTuple):
    """What an argument is: in words that follow "expected", and whether a value is one."""

    words: str
    holds: Callable[[Any], bool]


def _is_names(value: Any) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
        return False
    return isinstance(value, Iterator) or all(isinstance(each, str) for each in value)  # that gives each name once


def _is_paths(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str | PathLike) for each in value)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | bytes) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) == 0


def _is_number(value: Any) -> bool:
    return isinstance(value, Real | np.number) and not isinstance(value, bool)


TEXT = Kind("a text", lambda value: isinstance(value, str))
PATH = Kind("a path", lambda value: isinstance(value, str | PathLike))
PATHS = Kind("a list of paths", _is_paths)
NAMES = Kind("a list of names", _is_names)
LABEL = Kind("one label", _is_label)
TRUTH = Kind("True or False", lambda value: isinstance(value, bool | np.bool_))
NUMBER = Kind("a number", _is_number)
MAPPING = Kind("a mapping", lambda value: isinstance(value, Mapping))
LABELS = Kind("labels, as a mapping or a text", lambda value: isinstance(value, Mapping | str))


def instance(kind: type | UnionType, words: str) -> Kind:
    """Return the kind of an argument that is an object of a class, or of one of several."""
    return Kind(words, lambda value: isinstance(value, kind))


def takes(**kinds: Kind) -> Callable[[Function], Function]:
    """Let a function raise InputError for an argument that is not of its kind; None is one where it is the default."""

    def decorate(function: Function) -> Function:
        parameters = inspect.signature(function).parameters
        names = tuple(parameters)
        optional = {name for name in kinds if parameters[name].default is None}

        @functools.wraps(function)
        def checked(*arguments: Any, **named: Any) -> Any:
            for name, value in (*zip(names, arguments, strict=False), *named.items()):
                if name in kinds and not kinds[name].holds(value) and not (value is None and name in optional):
                    got = " ".join(repr(value).split())
                    raise InputError(f"{name}: expected {kinds[name].words}, got {got:.60}")
            return function(*arguments, **named)

        return checked  # type: ignore[return-value]

    return decorate
