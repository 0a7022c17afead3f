"""What a sweep runs: the simulator by default, or any function of a Python user.

The engine (grid, store, runner) knows a target only by this interface: a table of parameters, a table of outputs, and
``run``. So everything that holds for the simulator (resume, copies, quarantine, pins) holds for a user's function.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.errors import InputError, unknown_name

Config = Mapping[str, Any]
REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""

VARIABLES = ("status", "error", "wall_s")
"""Variables that every store has."""
RESERVED = frozenset({*VARIABLES, "jobs", "jobs_offset", "jobs_length"})
"""No output and no axis may take these names: of variables, and of what stands for per-job results."""


@dataclass(frozen=True)
class Output:
    """One result of a run: a number, or a vector along a dimension of its own (``dim`` and its ``labels``).

    A ``measured`` one, such as a duration, differs from run to run.
    """

    name: str
    unit: str = ""
    doc: str = ""
    dim: str = ""
    labels: tuple[Any, ...] = ()
    measured: bool = False

    @property
    def width(self) -> int:
        """Return how many numbers the output is."""
        return len(self.labels) if self.dim else 1


@dataclass(frozen=True)
class Outcome:
    """What one run gave: numbers in the order of the target's outputs (vectors laid flat), and ``truncated`` if cut."""

    values: Sequence[float]
    truncated: bool = False
    jobs: Mapping[str, Any] | None = None


class Foresight(NamedTuple):
    """A check of a configuration without a run: the parameters that decide it, and a function that returns the error
    that a run is known to end with, "" if none is."""

    decided_by: Sequence[str]
    check: Callable[[Config], str]


class Target(ABC):
    """The thing that a sweep runs.

    Attributes
    ----------
    name : for the store's provenance.
    parameters : name -> an object with ``default`` (or REQUIRED), ``unit``, ``doc``, ``check(value)`` and
        ``inert(config)``, such as ``simcore.parameters.Parameter``.
    outputs : all that a run gives, in order.
    version : raised whenever a result changes; a store refuses another one.
    preparing : what the user is told when ``warm`` takes a while.
    folders : where relative paths of files in a configuration start; the first that has the file counts.
    """

    folders: Sequence[Path] = ()
    preparing: str = "preparing the workers"
    name: str
    parameters: Mapping[str, Any]
    outputs: tuple[Output, ...]
    version: str

    def check(self, name: str, value: Any) -> Any:
        """Return ``value`` as parameter ``name`` takes it, or raise InputError."""
        if name not in self.parameters:
            raise unknown_name("parameter", name, self.parameters)
        return self.parameters[name].check(value)

    def derivable(self) -> frozenset[str]:
        """Return the names of the outputs that ``from_jobs`` gives."""
        return frozenset()

    def from_jobs(self, jobs: Mapping[str, Any]) -> Mapping[str, float]:
        """Return what can be computed of a run that is over from its per-job results."""
        return {}

    def precheck(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return problems of parameter values (all distinct ones of the sweep) that only the target can see."""
        return []

    def pins(self, values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """Return the content hashes of everything outside the configuration that decides a result."""
        return {}

    def absent(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return the names of files that runs need and that are not on this machine."""
        return []

    def foresights(self) -> Sequence[Foresight]:
        """Return checks for errors that runs are known to end with."""
        return ()

    def processor(self) -> str:
        """Return what this process' compiled code depends on; warming is done once per value."""
        return ""

    def warm(self, config: Config) -> None:
        """Do, once and before work is spread, what the first run of a process would do (compile)."""
        return

    @abstractmethod
    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Run one full configuration; the outcome has the values of all outputs."""


def scalar(value: Any) -> Any:
    """Return a NumPy scalar as the Python value it is; other values as they are."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


@dataclass(frozen=True)
class Argument:
    """One argument of a user's function, as a parameter: any number, text or boolean."""

    name: str
    default: Any = REQUIRED
    unit: str = ""
    doc: str = ""
    inert: Callable[[Config], bool] = field(default=lambda config: False)

    def check(self, value: Any) -> Any:
        """Return the value if it is a number, text, true or false."""
        value = scalar(value)
        if not isinstance(value, bool | int | float | str):
            raise InputError(f"{self.name}: expected a number, text, true or false, got {value!r}")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{self.name}: {value!r} is not a finite number")
        return value


class FunctionTarget(Target):
    """A user's function of keyword arguments that returns a mapping, a number or a sequence of numbers."""

    def __init__(
        self,
        function: Callable[..., Any],
        outputs: Iterable[str | Output] | Mapping[str, str],
        inert: Mapping[str, Callable[[Config], bool]] | None = None,
        version: str = "",
    ) -> None:
        """Read the function's signature; ``outputs`` are names, Outputs, or a mapping of names to units."""
        if not callable(function):
            raise InputError(f"function: expected a function, got {function!r}")
        self.function = function
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.outputs = _read_outputs(outputs)
        self.parameters, self._open = _read_arguments(function, dict(inert or {}))
        self.version = version

    def check(self, name: str, value: Any) -> Any:
        """Return ``value`` if the function can take it; a function with ``**kwargs`` takes every name."""
        if self._open and name not in self.parameters:
            self.parameters = {**self.parameters, name: Argument(name)}
        return super().check(name, value)

    def pins(self, values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """Return the hash of the function: a store refuses to mix the results of two versions of it."""
        return {f"function {self.name}": function_hash(self.function)}

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Call the function, and lay what it returns out in the order of the outputs; "jobs" are per-job arrays."""
        result = self.function(**config)
        jobs = None
        if keep_jobs:
            if not isinstance(result, Mapping) or not isinstance(result.get("jobs"), Mapping):
                raise ValueError('keep_jobs: the function\'s result lacks "jobs", a mapping of arrays')
            jobs = result["jobs"]
        return Outcome(_lay_out(result, self.outputs), jobs=jobs)


def _read_outputs(outputs: Iterable[str | Output] | Mapping[str, str]) -> tuple[Output, ...]:
    if isinstance(outputs, str):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        outputs = [Output(name, unit) for name, unit in outputs.items()]
    read = tuple(out if isinstance(out, Output) else Output(str(out)) for out in outputs)
    names = [out.name for out in read]
    if not names or len(set(names)) < len(names) or set(names) & RESERVED:
        raise InputError(
            f"outputs: expected one or more different names, none of {', '.join(sorted(RESERVED))}, got {names}"
        )
    labels: dict[str, tuple[Any, ...]] = {}
    for out in read:
        for name in filter(None, (out.name, out.dim)):
            check_name(name, "outputs: ")
        if out.dim and labels.setdefault(out.dim, out.labels) != out.labels:
            raise InputError(f"outputs: {out.name}: other labels along {out.dim} than another output has")
    return read


def check_name(name: str, where: str = "") -> None:
    """Raise InputError unless a name can be that of an array, which is a folder of a store."""
    if not re.fullmatch(r"(?!__)\w[\w +-]*", name):
        raise InputError(f"{where}{name!r} cannot be a name in a store; use letters, digits, spaces, _ + -")


def _read_arguments(function: Callable[..., Any], inert: dict[str, Any]) -> tuple[dict[str, Argument], bool]:
    kinds = inspect.Parameter
    arguments: dict[str, Argument] = {}
    takes_any = False
    for name, argument in inspect.signature(function).parameters.items():
        if argument.kind in (kinds.POSITIONAL_ONLY, kinds.VAR_POSITIONAL):
            raise InputError(f"function: argument {name!r} cannot be given by name; a sweep gives all of them by name")
        if argument.kind == kinds.VAR_KEYWORD:
            takes_any = True
        else:
            rule = inert.pop(name, None)
            arguments[name] = Argument(name, argument.default, **({"inert": rule} if rule else {}))
    for name in inert:
        raise unknown_name("argument", name, arguments, where="inert")
    return arguments, takes_any


def _lay_out(result: Any, outputs: tuple[Output, ...]) -> list[float]:
    """Return a function's result as numbers in the order of the outputs (units of work: one run)."""
    if isinstance(result, Mapping):
        missing = [out.name for out in outputs if out.name not in result]
        if missing:
            raise ValueError(f"the function's result lacks {', '.join(missing)}")
        parts = [result[out.name] for out in outputs]
    elif len(outputs) == 1:
        parts = [result]
    else:
        parts = list(result)
        if len(parts) != len(outputs):
            raise ValueError(f"the function gave {len(parts)} values for {len(outputs)} outputs")
    flat: list[float] = []
    for out, part in zip(outputs, parts, strict=True):
        if not out.dim:
            flat.append(float(part))
            continue
        vector = [float(value) for value in part]
        if len(vector) != out.width:
            raise ValueError(f"{out.name} has {len(vector)} values, but {out.width} labels along {out.dim}")
        flat.extend(vector)
    return flat


def function_hash(function: Callable[..., Any]) -> str:
    """Return "sha256:..." of what can be seen of a function: its source, its defaults, and the values that it encloses.

    Where there is no source its compiled code stands for it, and a callable object is its class with its attributes.
    What the function calls, or reads from its module, is not seen: that is what ``Sweep(version=...)`` is for.
    """
    inner = inspect.unwrap(function)
    code = getattr(inner, "__code__", None)
    try:
        content = inspect.getsource(inner if code or inspect.isclass(inner) else type(inner))
    except (OSError, TypeError):
        content = _describe_code(code) if code else f"{type(inner).__module__}.{type(inner).__qualname__}"
    enclosed = {**getattr(inner, "__dict__", {})} if not code else {}
    if code and getattr(inner, "__closure__", None):
        cells = zip(code.co_freevars, inner.__closure__, strict=True)
        enclosed = {name: cell.cell_contents for name, cell in cells}
    for name in sorted(enclosed):
        content += f"\n{name} = {_describe_value(enclosed[name])}"
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def _describe_value(value: Any) -> str:
    """Return a text that is the same in every process, or only the type of what has none."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, Mapping):
        return str(sorted((str(key), _describe_value(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return str([_describe_value(each) for each in value])
    plain = value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic)
    return repr(value) if plain else f"{type(value).__module__}.{type(value).__qualname__}"


def _describe_code(code: CodeType) -> str:
    """Return the code and constants as text without addresses or line numbers, nested functions included."""
    constants = [_describe_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"
