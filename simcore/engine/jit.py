"""How kernels are declared. Numba compiles them when one is needed that has not been compiled before, and is imported
only then: it takes longer to import than most runs (``compiler.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, update_wrapper
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from faultsweep.simcore.engine import machine_code
from numpy.typing import NDArray

from faultsweep.errors import InputError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def is_interpreted() -> bool:
    """Tell whether the kernels run as plain Python."""
    return machine_code.is_set("DISABLE_JIT")


def _compiling(module: str = "compiler") -> Any:
    """Return a module that compiles, imported with Numba now."""
    return import_module(f"{__package__}.{module}")


def deferred(name: str, *arguments: Any, module: str = "compiler", function: Any = None) -> Any:
    """Return what a function of the compiler's makes of some arguments, as it is needed."""
    return Deferred(lambda: getattr(_compiling(module), name)(*arguments), function)


class Deferred:
    """What Numba is asked to make once something is compiled that names it: a kernel, or an operation of kernels."""

    def __init__(self, make: Callable[[], Any], function: Any = None) -> None:
        """Note how it is made, and of which function."""
        self._make = make
        if function is not None:
            update_wrapper(self, function)
            self.py_func = function

    @cached_property
    def made(self) -> Any:
        """What Numba has made."""
        return self._make()

    @cached_property
    def _numba_type_(self) -> Any:
        """What Numba asks of a value that it finds in a kernel."""
        return _compiling().type_of(self.made)

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self.made(*arguments)


def _decorated(function: Any, name: str, *arguments: Any) -> Any:
    return function if is_interpreted() else deferred(name, function, *arguments, function=function)


def kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that other kernels call, and only they.

    It has no wrapper for calls from Python, constants among its arguments do not make a version of their own, and it
    neither allocates nor counts references. Without the word about inlining Numba passes on that of the caller: what a
    kernel calls that is compiled into its callers, would be, too, and so on to the last (seen: one function of 117,000
    instructions, and two minutes to compile it).
    """
    return _decorated(function, "inner_kernel", False)


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a kernel into its callers: for small functions of inner loops, where passing the state would cost more
    than the work."""
    return _decorated(function, "inner_kernel", True)


def counted(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that a ``callback`` calls; it may make views of arrays, which count references."""
    return _decorated(function, "counted")


def entry_kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that Python calls: one of this package is cached on disk together with all that it calls."""
    return _decorated(function, "entry_kernel")


def event_loop(function: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
    """Compile a function of a pointer to int64 and a whole number, which gives one, with all that it calls.

    Called with an int64 array, it is given the address of that. What it is compiled to is kept in a file.
    """
    return function if is_interpreted() else _EventLoop(function)


class _EventLoop:
    def __init__(self, function: Callable[[Any, int], int]) -> None:
        self._function, self._lock = function, threading.Lock()
        self._run: Callable[[int, int], int] | None = None

    def __call__(self, table: NDArray[Any], number: int) -> int:
        run = self._run or self._load()
        return run(table.ctypes.data, number)

    def _load(self) -> Callable[[int, int], int]:
        with self._lock:
            if self._run is None:
                place = self._function.__module__, self._function.__name__
                code = machine_code.kept(*place)
                if code is None:
                    code = _compiling().machine_code_of(self._function)
                    machine_code.keep(*place, code)
                self._run = machine_code.load(code)
            return self._run


def callback(function: Callable[..., int]) -> Any:
    """Compile a function of (pointer to int64, int64, int64, int64) -> int64 for ``make_caller``, once per machine."""
    return _compiling().callback(function)


def score_callback(function: Callable[..., float], kinds: tuple[type, ...], cache: bool = True) -> Any:
    """Compile a function of numbers of some kinds and a pointer to float64, which gives a float64."""
    return _compiling().score_callback(function, kinds, cache)


@contextmanager
def as_input_error(what: str) -> Iterator[None]:
    """Make an error of Numba's, which cannot compile a function of a user's, an InputError that says why."""
    try:
        yield
    except Exception as error:  # those of Numba have a name only once it is imported; others are raised again
        if not isinstance(error, import_module("numba.core.errors").NumbaError):
            raise
        problem = " ".join(line.strip() for line in str(error).splitlines() if line.strip())[:300]
        raise InputError(f"{what} cannot be compiled ({problem})") from None


def has_deposit() -> bool:
    """Tell whether kernels are compiled for a processor that moves bits to those of a mask in one instruction."""
    return not is_interpreted() and machine_code.has_bmi2()
