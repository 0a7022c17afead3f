"""What a sweep runs: the simulator by default, or any function of a Python user.

The engine (grid, store, runner) knows a target only by this interface: a table of parameters, a table of outputs, and
``run``. So everything that holds for the simulator (resume, copies, quarantine, pins) holds for a user's function.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import inspect
import math
import os
import typing
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np
from faultsweep.sweeps.outputs import (
    Output,
    check_encoding,
    check_name,
    check_units,
    infer_outputs,
    lay_out,
    named_parts,
    plain_value,
    read_output,
    scalar_coordinates,
)
from faultsweep.sweeps.values import exact_number, shown
from numpy.typing import NDArray

from faultsweep.arguments import LABEL, MAPPING, takes
from faultsweep.errors import InputError, unknown_name

Config = Mapping[str, Any]
REQUIRED = inspect.Parameter.empty
"""The default of a parameter that has none."""
OWN = object()
"""The default of an argument that is something else than a number, text or None: the function keeps it to itself."""

VARIABLES = ("status", "error", "wall_s")
"""Variables that every store has."""
RESERVED = frozenset({*VARIABLES, "jobs", "jobs_offset", "jobs_length", "integrity"})
"""No output and no axis may take these names: of variables, of per-job results, and of the folder of the manifest."""
_PACKAGE = "faultsweep"
_TEXTS = (str, bytes, bytearray, memoryview)
_JOB_TYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64"}


@dataclass(frozen=True)
class Outcome:
    """What one run gave: words in the order of the target's outputs (arrays laid flat), and ``truncated`` if cut.

    A word is the number of a float64 output; of other types see ``sweeps.outputs``. ``texts`` are the values of text.
    """

    values: Sequence[float] | NDArray[np.float64]
    truncated: bool = False
    jobs: Mapping[str, Any] | None = None
    texts: Sequence[str] = ()


class Foresight(NamedTuple):
    """A check of a configuration without a run: the parameters that decide it, and a function that returns the error
    that a run is known to end with, "" if none is."""

    decided_by: Sequence[str]
    check: Callable[[Config], str]


class Known(NamedTuple):
    """What an output is without a run: ``value``, or NaN where the output ``like`` is NaN."""

    value: float
    like: str = ""


class Target(ABC):
    """The thing that a sweep runs.

    Attributes
    ----------
    name : for the store's provenance.
    parameters : name -> an object with ``default`` (or REQUIRED), ``unit``, ``doc`` and ``check(value)``, such as
        ``simcore.contract.Parameter``.
    outputs : all that a run gives, in order.
    version : raised whenever a result changes; a store refuses another one.
    preparing : what the user is told when ``warm`` takes a while.
    compiled_by : the parameters by which configurations have a ``preparation`` of their own.
    assumed_by : the parameters that decide what a run assumes.
    measuring : the parameters that say what is measured, such as whose jobs: their values are not compared.
    main : names of outputs that stand first in a store.
    simulates : whether runs may use the simulator, so that workers should have it from the start.
    folders : where relative paths of files in a configuration start; the first that has the file counts.
    """

    folders: Sequence[Path] = ()
    preparing: str = "preparing the workers"
    compiled_by: Sequence[str] = ()
    measuring: Collection[str] = ()
    main: Sequence[str] = ()
    simulates: bool = True
    assumed_by: Sequence[str] = ()
    name: str
    parameters: Mapping[str, Any]
    outputs: tuple[Output, ...]
    version: str

    def preparing_note(self, configs: Sequence[Config]) -> str:
        """Return what the user is told when ``warm`` takes a while for one of these configurations."""
        return self.preparing

    def check(self, name: str, value: Any) -> Any:
        """Return ``value`` as parameter ``name`` takes it, or raise InputError."""
        if name not in self.parameters:
            raise unknown_name("parameter", name, self.parameters)
        return self.parameters[name].check(value)

    def plain_name(self, parameter: str, value: Any) -> Any:
        """Return a text as the parameter has it, "easy" as "backfill"; all else as it is."""
        if not isinstance(value, str) or parameter not in self.parameters:
            return value
        try:
            return self.check(parameter, value)
        except InputError:
            return value

    def expect(self, values: Mapping[str, Iterable[Any]]) -> None:  # noqa: B027 - few have such
        """Know the parameters, too, that come with the values of others: of a sweep, by name, before they are checked.

        Raises
        ------
        InputError
            If they cannot be read, or clash.
        """

    def derivable(self) -> frozenset[str]:
        """Return the names of the outputs that ``from_jobs`` gives."""
        return frozenset()

    def from_jobs(self, jobs: Mapping[str, Any]) -> Mapping[str, float]:
        """Return what can be computed of a run that is over from its per-job results."""
        return {}

    def inert(self, config: Config) -> frozenset[str]:
        """Return the parameters that do nothing in a configuration; it may be a mapping that notes what is read."""
        return frozenset()

    def impossible(self, config: Config) -> Mapping[str, Known]:
        """Return the outputs that such a configuration has nothing to say of, and what a run would give for
        each; it may be a mapping that notes what is read."""
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

    def assumptions(self, config: Config, said: Container[str]) -> dict[str, str]:
        """Return what a run assumes because its input does not say it, and was not said yet: a sentence by what it is
        about."""
        return {}

    def worker_bytes(self, values: Mapping[str, Sequence[Any]]) -> int:
        """Return the memory that a worker process takes for these values of parameters, about; 0 if it is not known."""
        return 0

    def processor(self) -> str:
        """Return what this process' compiled code depends on; warming is done once per value."""
        return ""

    def preparation(self, config: Config) -> Hashable:
        """Return what ``warm`` gets a process ready for: it is called once per value, before the first such run."""
        return None

    def warm(self, config: Config) -> None:
        """Do what the first run of a process would do beside its work (import, compile): no time limit holds here."""
        return

    @abstractmethod
    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Run one full configuration; the outcome has the values of all outputs."""


def has_default(parameter: Any) -> bool:
    """Tell whether a parameter has a default that stands in a configuration."""
    return parameter.default is not REQUIRED and parameter.default is not OWN


def _is_inert(argument: Argument, config: Config) -> bool:
    """Return the answer of a user's rule."""
    try:
        answer = argument.inert(config)
    except Exception as error:  # whatever a user's rule raises
        raise InputError(
            f"inert: the rule of {argument.name!r} raises {type(error).__name__}: {error}"
            " (an argument without a default is None in the configuration where it does nothing)"
        ) from error
    if not isinstance(answer, bool | np.bool_):
        raise InputError(f"inert: the rule of {argument.name!r} gives {answer!r}; expected True or False")
    return bool(answer)


def describe_version(version: str, target: Target) -> str:
    """Return what is said of a store whose results are of another version than those of a target."""
    had, has = (f"version {text}" if text else "no version" for text in (version, target.version))
    return f"the store has results of {had} of {target.name}, which now has {has}"


def describe_lost(names: Sequence[str], target: Target) -> str:
    """Return what is said of metrics of a store that are not among the outputs of a target."""
    own = isinstance(target, FunctionTarget)  # what a function gives is known by its run only
    advice = "; let outputs name all that it gives, and metrics those that are wanted"
    what = f"the outputs of {target.name} do not name{advice}" if own else f"{target.name} does not give"
    return f"the store has {', '.join(names)}, which {what}"


@dataclass(frozen=True)
class Argument:
    """One argument of a user's function, as a parameter: any number, text or boolean."""

    name: str
    default: Any = REQUIRED
    unit: str = ""
    doc: str = ""
    inert: Callable[[Config], bool] = field(default=lambda config: False)

    @property
    def has_default(self) -> bool:
        """Tell whether a configuration has the argument's default where nothing else is said."""
        return has_default(self)

    def check(self, value: Any) -> Any:
        """Return the value if it is a number, text, true or false."""
        value = plain_value(value)
        if self.has_default and (value is self.default or value == self.default):
            return value
        if not isinstance(value, bool | int | float | str | date | timedelta | None):
            raise InputError(f"{self.name}: expected a number, text, a time, true, false or None, got {value!r}")
        if isinstance(value, datetime) and value.tzinfo is not None:
            raise InputError(f"{self.name}: {value} has a time zone; give times in UTC, without one")
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{self.name}: {value!r} is not a finite number")
        return value


class FunctionTarget(Target):
    """A user's function of keyword arguments that returns a mapping, a number or a sequence of numbers.

    Without ``outputs``, they are inferred from the result of the first cell; then ``inferred`` is true, and there are
    no outputs before.
    """

    @takes(inert=MAPPING, version=LABEL)
    def __init__(
        self,
        function: Callable[..., Any],
        outputs: Iterable[str | Output] | Mapping[str, str] | None = None,
        inert: Mapping[str, Callable[[Config], bool]] | None = None,
        version: str = "",
    ) -> None:
        """Read the function's signature; ``outputs`` are names, Outputs, or a mapping of names to units."""
        if not callable(function):
            raise InputError(f"function: expected a function, got {function!r}")
        self.function = function
        self.simulates = _names_package(function)
        named = function.func if isinstance(function, functools.partial) else function
        self.name = getattr(named, "__qualname__", type(named).__name__)
        self.inferred = outputs is None
        self.outputs = () if outputs is None else _read_outputs(outputs)
        self.parameters, self._open = _read_arguments(function, dict(inert or {}))
        self._enums = _read_enums(function)
        self._by_place = _read_positional(function)
        self.version = str(version)

    def check(self, name: str, value: Any) -> Any:
        """Return ``value`` if the function can take it; a function with ``**kwargs`` takes every name."""
        if self._open and name not in self.parameters:
            self.parameters = {**self.parameters, name: Argument(name)}
        if isinstance(value, Enum):
            self._enums = {**self._enums, name: type(value)}
            value = value.name
        if name in self._enums and value is not None and value not in self._enums[name].__members__:
            raise unknown_name(f"value of {name}", str(value), self._enums[name].__members__)
        return super().check(name, value)

    def inert(self, config: Config) -> frozenset[str]:
        """Return the arguments without effect, by their rules; one at its default can make another one inert."""
        neutral: dict[str, Any] = {}
        known = ChainMap(neutral, config)  # type: ignore[arg-type]  # it is only read
        while True:
            new = {name for name in config if name not in neutral and _is_inert(self.parameters[name], known)}
            if not new:
                return frozenset(neutral)
            for name in new:
                parameter = self.parameters[name]
                neutral[name] = parameter.default if has_default(parameter) else None

    def pins(self, values: Mapping[str, Sequence[Any]]) -> dict[str, str]:
        """Return the hash of the function: a store refuses to mix the results of two versions of it."""
        return {f"function {self.name}": function_hash(self.function)}

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Call the function, and lay what it returns out in the order of the outputs; "jobs" are per-job arrays."""
        result = self.call(config)
        jobs = None
        if keep_jobs:
            if not isinstance(result, Mapping) or not hasattr(result.get("jobs"), "keys"):
                raise InputError('keep_jobs: the function\'s result lacks "jobs", a mapping of arrays')
            jobs = _read_jobs(result["jobs"])
        words, texts = self.lay_out(result)
        return Outcome(words, jobs=jobs, texts=texts)

    def call(self, config: Config) -> Any:
        """Call the function; the values of enums, which a store has by name, are what they were."""
        if not self._enums and not self._by_place:
            return self.function(**config)
        enums = {name: kind[config[name]] for name, kind in self._enums.items() if config.get(name) is not None}
        named = {**config, **enums}
        by_place = [named.pop(name, default) for name, default in self._by_place]
        return self.function(*by_place, **named)

    def lay_out(self, result: Any) -> tuple[Sequence[float] | NDArray[np.float64], list[str]]:
        """Return what the function gave as words and texts, in the order of the outputs."""
        parts = self._parts(result)
        for out, part in zip(self.outputs if self.inferred else (), parts, strict=False):
            check_units(out, part)
        if all(out.is_plain for out in self.outputs) and not any(hasattr(part, "coords") for part in parts):
            return _lay_out(parts, self.outputs), []  # runs may take microseconds
        return lay_out(parts, self.outputs)

    def _parts(self, result: Any) -> list[Any]:
        """Return what the function gave for each output."""
        if not self.inferred:
            return _declared_parts(result, self.outputs)
        parts = named_parts(result, self.default_name)
        known = [out.name for out in self.outputs]
        if not set(known) <= set(parts):
            more = scalar_coordinates(parts)
            parts |= {name: more[name] for name in known if name in more}
        other = [name for name in parts if name not in known and name != "jobs"]
        if other or not set(known) <= set(parts):
            raise InputError(
                f"the function gave {', '.join(map(str, parts))} here, and {', '.join(known)} in the first cell; name"
                " all that it may give in outputs"
            )
        return [parts[name] for name in known]

    @property
    def default_name(self) -> str:
        """Return the name of a result that has none of its own."""
        return self.name if self.name.isidentifier() else "result"

    def infer(self, result: Any) -> tuple[Output, ...]:
        """Return the outputs that a result shows."""
        return _read_outputs(infer_outputs(result, self.default_name, RESERVED | set(self.parameters)))

    def with_outputs(self, outputs: Sequence[Output]) -> FunctionTarget:
        """Return the same target with these outputs."""
        made = copy.copy(self)
        made.outputs = tuple(outputs)
        return made


def _read_jobs(jobs: Any) -> dict[str, NDArray[Any]]:
    """Return per-job results as columns that a store can hold, of one type each, whatever run they are from."""
    columns: dict[str, NDArray[Any]] = {}
    names = list(jobs.keys())  # of a DataFrame, too
    for name in names:
        values = np.asarray(jobs[name])
        if not isinstance(name, str):
            raise InputError(f"jobs: expected names of columns, got {name!r}")
        check_name(name, "jobs: ")
        if values.ndim != 1 or values.dtype.kind not in _JOB_TYPES:
            raise InputError(f"jobs: {name}: expected one number, true or false per job, got {shown(jobs[name])}")
        columns[name] = values.astype(_JOB_TYPES[values.dtype.kind])
        if values.dtype.kind == "u" and len(values) and values.max() > np.iinfo(np.int64).max:
            raise InputError(f"jobs: {name}: whole numbers have at most 63 bits, got {values.max()}")
    if len({len(values) for values in columns.values()}) != 1:
        lengths = ", ".join(f"{name} ({len(values)})" for name, values in columns.items()) or "none"
        raise InputError(f"jobs: expected one or more columns that are equally long, got {lengths}")
    return columns


def _read_outputs(outputs: Iterable[str | Output] | Mapping[str, str]) -> tuple[Output, ...]:
    if isinstance(outputs, str):
        outputs = [outputs]
    if isinstance(outputs, Mapping):
        outputs = [Output(name, unit) for name, unit in outputs.items()]
    if isinstance(outputs, Output):
        outputs = [outputs]
    if not isinstance(outputs, Iterable) or getattr(outputs, "ndim", 1) == 0:
        raise InputError(f"outputs: expected names, or a mapping of names to units, got {outputs!r}")
    read = tuple(read_output(out if isinstance(out, Output) else Output(out)) for out in outputs)
    names = [out.name for out in read]
    for out in read:
        for dim in out.along:
            if dim.name in RESERVED:
                raise InputError(
                    f"outputs: {out.name}: {dim.name!r} is taken in every store; name its dimension otherwise"
                )
    if not names or len(set(names)) < len(names) or set(names) & RESERVED:
        raise InputError(
            f"outputs: expected one or more different names, none of {', '.join(sorted(RESERVED))}, got {names}"
        )
    dims: dict[str, Any] = {}
    for out in read:
        check_name(out.name, "outputs: ")
        check_encoding(out)
        for dim in out.along:
            if dim.name in names:
                raise InputError(f"outputs: {out.name}: {dim.name!r} is an output; give its dimension another name")
            if dims.setdefault(dim.name, dim) != dim:
                raise InputError(f"outputs: {out.name}: other labels along {dim.name} than another output has")
    return read


def _read_arguments(function: Callable[..., Any], inert: dict[str, Any]) -> tuple[dict[str, Argument], bool]:
    kinds = inspect.Parameter
    arguments: dict[str, Argument] = {}
    takes_any = False
    if isinstance(function, np.ufunc):  # its options exclude each other, and a sweep passes all arguments
        raise InputError(f"function: wrap {function!r}, such as lambda x: numpy.{function.__name__}(x)")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise InputError(
            f"function: {function!r} does not say which arguments it has; wrap it, such as lambda x: f(x)"
        ) from None
    for name, argument in signature.parameters.items():
        if argument.kind == kinds.VAR_POSITIONAL:
            if len(signature.parameters) == 1:
                raise InputError(
                    f"function: its arguments *{name} have no names, which a sweep needs; wrap it, such as"
                    f" lambda x, y: {getattr(function, '__name__', 'f')}(x, y)"
                )
        elif argument.kind == kinds.VAR_KEYWORD:
            takes_any = True
        else:
            rule = inert.pop(name, None)
            if rule is not None and not callable(rule):
                raise InputError(f"inert: {name}: expected a function of the configuration, got {rule!r}")
            arguments[name] = Argument(name, _read_default(argument.default), **({"inert": rule} if rule else {}))
    for name in inert:
        raise unknown_name("argument", name, arguments, where="inert")
    return arguments, takes_any


def _read_positional(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """Return the arguments that a function takes by their place only, with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.default) for each in parameters if each.kind == inspect.Parameter.POSITIONAL_ONLY]


def _read_enums(function: Callable[..., Any]) -> dict[str, type[Enum]]:
    """Return the arguments that are members of an enum, by their annotation or default."""
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # annotations may name what is not there
        hints = {}
    enums = {name: hint for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Enum)}
    enums.pop("return", None)
    for name, argument in inspect.signature(function).parameters.items():
        if isinstance(argument.default, Enum):
            enums.setdefault(name, type(argument.default))
    return enums


def _read_default(default: Any) -> Any:
    """Return a default as a configuration has it: numbers, text, times and None as they are, of an enum its name."""
    if isinstance(default, Enum):
        return default.name
    try:
        value = plain_value(default)
    except InputError:
        return OWN
    is_plain = value is None or isinstance(value, bool | int | float | str | date | timedelta)
    return value if value is REQUIRED or (is_plain and value == value) else OWN


def _declared_parts(result: Any, outputs: tuple[Output, ...]) -> list[Any]:
    """Return what a function's result has for each output, by name or by order."""
    if isinstance(result, Mapping) or hasattr(result, "keys"):  # a pandas Series, too, goes by its names
        given = set(result.keys())
        missing = [out.name for out in outputs if out.name not in given]
        if missing:
            raise InputError(f"the function's result lacks {', '.join(missing)}")
        return [result[out.name] for out in outputs]
    if len(outputs) == 1:
        return [result]
    if not _is_sequence(result):
        names = ", ".join(out.name for out in outputs)
        raise InputError(f"the function gave {shown(result)}; expected a mapping of {names}, or so many numbers")
    parts = list(result)
    if len(parts) != len(outputs):
        raise InputError(f"the function gave {len(parts)} values for {len(outputs)} outputs")
    return parts


def _lay_out(parts: Sequence[Any], outputs: tuple[Output, ...]) -> list[float]:
    """Return the results of one run as numbers in the order of the outputs, all of them plain."""
    flat: list[float] = []
    for out, part in zip(outputs, parts, strict=True):
        if not out.dim:
            flat.append(_as_number(out.name, part))
            continue
        if not _is_sequence(part):
            raise InputError(f"{out.name}: expected {out.width} numbers along {out.dim}, got {shown(part)}")
        vector = [_as_number(out.name, value) for value in part]
        if len(vector) != out.width:
            raise InputError(f"{out.name} has {len(vector)} values, but {out.width} labels along {out.dim}")
        flat.extend(vector)
    return flat


def _as_number(name: str, value: Any) -> float:
    if type(value) is float:  # thirty of them per run, and runs of microseconds
        return value
    try:
        if isinstance(value, float | int) or (not isinstance(value, _TEXTS) and _is_real(value)):
            return exact_number(name, value)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name}: expected a number, got {shown(value)}")


def _is_real(value: Any) -> bool:
    """Tell whether a value is no text, time or complex number of NumPy, which ``float`` would take, too."""
    array = np.asanyarray(value)
    if array.dtype == object:  # of a number of another library, itself
        return not isinstance(array.item(), _TEXTS)
    return array.dtype.kind in "biuf" and not np.ma.is_masked(array)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (*_TEXTS, set, frozenset, Mapping))


def function_hash(function: Callable[..., Any]) -> str:
    """Return "sha256:..." of what can be seen of a function: its source, its defaults, and the values that it encloses.

    Where there is no source its compiled code stands for it, a callable object is its class with its attributes, a
    method has those of its object, a ``functools.partial`` its function's hash with the arguments that it gives, and a
    function that was decorated that of the decorator's, too (where this has used ``functools.wraps``).
    What the function calls, or reads from its module, is not seen: that is what ``Sweep(version=...)`` is for.
    """
    if isinstance(function, functools.partial):
        content = _describe_value((function_hash(function.func), function.args, function.keywords))
    else:
        content = _describe_function(function)
        if hasattr(function, "__wrapped__"):
            content += f"\naround {function_hash(function.__wrapped__)}"
    return "sha256:" + hashlib.sha256(content.encode()).hexdigest()


def _describe_function(function: Callable[..., Any]) -> str:
    """Return what can be seen of a function, or callable object, alone: without what it is wrapped around."""
    code = getattr(function, "__code__", None)
    try:
        # of the code: that of a function would be that of the one that it is wrapped around
        whole = inspect.getsource(
            _with_source(function) or code or (function if inspect.isclass(function) else type(function))
        )
        content = _body(function) if code and code.co_name == "<lambda>" else whole
    except (OSError, TypeError):
        content = _describe_code(code) if code else f"{type(function).__module__}.{type(function).__qualname__}"
    enclosed = {} if code else {k: value for k, value in _attributes(function).items() if not k.startswith("__")}
    closure = getattr(function, "__closure__", None)
    if code and closure:
        enclosed = {name: cell.cell_contents for name, cell in zip(code.co_freevars, closure, strict=True)}
    owner = getattr(function, "__self__", None)
    if code and not inspect.isclass(owner):
        enclosed |= {f"self.{name}": value for name, value in _attributes(owner).items()}
    shows_defaults = inspect.isfunction(function) or inspect.ismethod(function) or not hasattr(function, "__wrapped__")
    if code and shows_defaults:  # those that are numbers or text stand in the configuration
        own = inspect.signature(function, follow_wrapped=False).parameters.values()
        enclosed |= {f"{a.name} by default": a.default for a in own if _read_default(a.default) is OWN}
    return content + "".join(f"\n{name} = {_describe_value(enclosed[name])}" for name in sorted(enclosed))


def _with_source(function: Any) -> FunctionType | None:
    """Return a function of the same code that is wrapped around nothing, if the source is in a file.

    ``inspect`` finds the source of the code alone, too, but looks at the files of all modules first. Where there is no
    such file, it takes that of a function from its module, which may be another one.
    """
    if type(function) not in (FunctionType, MethodType) or not os.path.isfile(function.__code__.co_filename):
        return None
    return FunctionType(function.__code__, function.__globals__, closure=function.__closure__)


def _names_package(function: Any) -> bool:
    """Tell whether a function itself names this package or something of it; True of what has no code to look at."""
    if isinstance(function, functools.partial):
        return _names_package(function.func)
    if type(function) not in (FunctionType, MethodType):
        return True
    names = list(_names(function.__code__))
    values = [function.__globals__.get(name) for name in names] + list(_enclosed(function))
    if _PACKAGE in names or any(_package(value) == _PACKAGE for value in values):
        return True
    return "__wrapped__" in function.__dict__ and _names_package(function.__wrapped__)


def _enclosed(function: Any) -> Iterator[Any]:
    """Yield the values that a function encloses, but for those that are yet to be given."""
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            yield cell.cell_contents


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function, and those in it, look up or import."""
    yield from (name.partition(".")[0] for name in code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _package(value: Any) -> str:
    """Return the name of the package that a module, class or function is of, or the class of another object."""
    if not isinstance(value, ModuleType | FunctionType | type):
        value = type(value)
    name = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return str(name).partition(".")[0]


def _attributes(owner: Any) -> dict[str, Any]:
    return dict(getattr(owner, "__dict__", {}))


def _body(function: Any) -> str:
    """Return the source of what a lambda computes; ``getsource`` ends where its first line does, or goes beyond it."""
    lines, _ = inspect.findsource(function)
    spans = [span for span in function.__code__.co_positions() if None not in span and span[2] != span[3]]
    if not spans:  # python -X no_debug_ranges
        return inspect.getsource(function)
    first, last = min((line, start) for line, _, start, _ in spans), max((line, end) for _, line, _, end in spans)
    text = [line.encode() for line in lines[first[0] - 1 : last[0]]]  # columns count bytes
    text[-1] = text[-1][: last[1]]
    return f"{', '.join(inspect.signature(function).parameters)}: " + b"".join(text)[first[1] :].decode()


def _describe_value(value: Any) -> str:
    """Return a text that is the same in every process, or only the type of what has none."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, Mapping):
        return str(sorted((str(key), _describe_value(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return str([_describe_value(each) for each in value])
    if isinstance(value, set | frozenset):  # whose order differs from process to process
        return f"set {sorted(_describe_value(each) for each in value)}"
    plain = value is None or isinstance(
        value, bool | int | float | complex | str | bytes | bytearray | range | slice | np.generic
    )
    return repr(value) if plain else f"{type(value).__module__}.{type(value).__qualname__}"


def _describe_code(code: CodeType) -> str:
    """Return the code and constants as text without addresses or line numbers, nested functions included."""
    constants = [
        _describe_code(c) if isinstance(c, CodeType) else _describe_value(c) if isinstance(c, frozenset) else repr(c)
        for c in code.co_consts
    ]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {constants}"
