"""The spec of a sweep: what is fixed, what varies, and what is excluded; from a TOML file or from Python values.

A spec is science only: where it runs, with how many workers and into which store are flags of the run. Every problem of
a spec is reported at once, each in one sentence that names the file and the key.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from enum import Enum
from functools import partial
from graphlib import CycleError, TopologicalSorter
from importlib import resources
from pathlib import Path
from typing import Any

from faultsweep.sweeps import axes as axis_forms
from faultsweep.sweeps.axes import LEFT_OUT, Axis, label_values, one_type, plain, read_axis
from faultsweep.sweeps.best import FEWEST, Best, read_best
from faultsweep.sweeps.figure import Layout, read_figure
from faultsweep.sweeps.formulas import Formula, parse
from faultsweep.sweeps.grid import Grid
from faultsweep.sweeps.precision import FIRST_REPLICATES, Precision, read_precision
from faultsweep.sweeps.search import Search, read_search
from faultsweep.sweeps.target import REQUIRED, RESERVED, Output, Target, check_name, has_default

from faultsweep.errors import InputError, unknown_name
from faultsweep.files import parse_toml, read_text

KEYS = (
    *("name", "title", "target", "seed", "replicates", "fixed", "axes", "formulas", "exclude"),
    *("metrics", "keep_jobs", "figure", "precision", "best", "refine", "better"),
)
REPLICATE = "replicate"
_SHOWN = 20
_MOST_ANSWERS = 10_000
"""Of more different kinds of cells it is not asked which outputs are possible."""


@dataclass(frozen=True)
class Spec:
    """A checked sweep.

    Attributes
    ----------
    name, title : for files and figures.
    target : what is run.
    axes : one per dimension, the last one the replicates.
    fixed : every parameter that neither an axis nor a formula sets, with its value.
    formulas : parameter -> formula, in an order in which each can be evaluated.
    exclude : rules; a rule maps parameters or axes to the values it excludes together.
    outputs : the outputs that are stored.
    keep_jobs : whether per-job results are stored.
    precision : how precise means have to be, None where the number of replicates is given.
    best : what is to be selected, None if nothing is.
    searches : what is looked for along an axis, one search for each region.
    raw : the spec as it was written, for printing and for the store.
    where : the file that it was read from, "" if none.
    """

    name: str
    title: str
    target: Target
    axes: list[Axis]
    fixed: dict[str, Any]
    formulas: dict[str, Formula]
    exclude: list[dict[str, list[Any]]]
    outputs: tuple[Output, ...]
    keep_jobs: bool = False
    precision: Precision | None = None
    best: Best | None = None
    searches: Sequence[Search] = ()
    raw: dict[str, Any] = field(default_factory=dict)
    where: str = ""

    @property
    def adds_replicates(self) -> bool:
        """Tell whether a run adds replicates to those that it begins with."""
        return self.precision is not None or self.best is not None

    def refuse_search(self) -> None:
        """Raise InputError if the spec asks for a search, which a run of its axes as they are would not be."""
        if self.searches:
            name = self.where or self.name
            raise InputError(
                f"{name}: refine: a run does not search along {self.searches[0].along}; use 'faultsweep refine {name}',"
                " or leave this table out to run the labels of the axes"
            )

    def layout(self) -> Layout:
        """Return what the sweep's figure shows, or raise InputError if that needs to be said in its table."""
        return read_figure(self.raw.get("figure", {}), self.axes, self.outputs, experiments(), self.keep_jobs)

    def to_toml(self) -> str:
        """Return the spec as TOML text that reads back as the same sweep."""
        return write_toml(self.raw)


def experiments() -> dict[str, Path]:
    """Return the shipped specs: name -> file."""
    folder = Path(str(resources.files("faultsweep.sweeps.experiments")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_spec(spec_or_name: str | Path) -> Path:
    """Return the file of a spec given as a path or as the name of a shipped experiment."""
    path = Path(spec_or_name)
    if path.is_file():
        return path
    shipped = experiments()
    if str(spec_or_name) in shipped:
        return shipped[str(spec_or_name)]
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a spec file, or one of 'faultsweep list experiments'")
    if path.suffix == ".toml" or len(path.parts) > 1:
        raise InputError(f"{path}: no such spec file")
    raise unknown_name("experiment or spec file", str(spec_or_name), shipped)


def load_toml(path: Path) -> dict[str, Any]:
    """Return the raw content of a TOML file, or raise InputError with file, line and column."""
    return parse_toml(read_text(path), path)


def load_spec(path: Path) -> dict[str, Any]:
    """Return the raw content of a spec's file. Without a name in it, the sweep has that of the file, and ``-`` for what
    a name cannot have."""
    return {"name": re.sub(r"[^\w.+-]+", "-", path.stem), **load_toml(path)}


def read_spec(raw: Mapping[str, Any], target: Target, where: str = "") -> Spec:
    """Check a raw spec completely and return it.

    Raises
    ------
    InputError
        All problems, one sentence a line, each starting with ``where`` (the file) and the key.
    """
    return _Reader(plain(raw), target, where).read()


def _texts(raw: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return all texts that a raw spec has under each key of what is fixed and of the axes, at any depth."""
    found: dict[str, list[str]] = {}
    waiting = [(key, raw.get(key)) for key in ("fixed", "axes")]
    while waiting:
        key, node = waiting.pop()
        if isinstance(node, dict):
            waiting += node.items()
        elif isinstance(node, list):
            waiting += ((key, each) for each in node)
        elif isinstance(node, str):
            found.setdefault(key, []).append(node)
    return found


class _Reader:
    """Checks a raw spec part by part, collecting problems instead of stopping at the first."""

    def __init__(self, raw: dict[str, Any], target: Target, where: str) -> None:
        self.raw = raw
        self.target = target
        self.where = where
        self.problems: list[str] = []
        self.setters: dict[str, str] = {}
        self.unread = False  # whether an axis could not be read: nobody knows what it would have set

    def problem(self, key: str, text: object) -> None:
        place = "".join(f"{part}: " for part in (self.where, key) if part)
        self.problems.extend(f"{place}{line}" for line in str(text).splitlines())

    def attempt(self, key: str, action: Callable[[], Any], default: Any = None) -> Any:
        try:
            return action()
        except InputError as error:
            self.problem(key, error)
            return default

    def read(self) -> Spec:
        for key in self.raw:
            if key not in KEYS:
                self.problem("", unknown_name("key", key, KEYS))
        name = self.plain("name", str, "sweep")
        if not re.fullmatch(r"[\w.+-]+", name):
            self.problem("name", f"expected letters, digits and . _ + - only, got {name!r}")
        title = self.plain("title", str, "")
        keep_jobs = self.plain("keep_jobs", bool, False)
        self.attempt("", lambda: self.target.expect(_texts(self.raw)))
        fixed = self.read_fixed()
        written = self.table("axes")
        axes = [axis for key, rows in written.items() if (axis := self.read_one_axis(key, rows))]
        self.unread = len(axes) < len(written)
        axes.append(self.read_replicates())
        formulas = self.read_formulas()
        before = len(self.problems)
        outputs = self.read_metrics()
        drawable = not self.unread and len(self.problems) == before
        fixed = self.complete(fixed)
        axes = [self.fill_axis(axis, fixed) for axis in axes]
        exclude = self.read_exclude(axes, formulas)
        self.check_names(axes, formulas)
        outputs = self.possible(outputs, fixed, axes, formulas, exclude)
        if (table := self.table("figure")) and drawable:
            self.attempt("figure", lambda: read_figure(table, axes, outputs, experiments(), keep_jobs))
        precision = None
        if "precision" in self.raw and not self.problems:
            read = partial(read_precision, self.raw["precision"], outputs, len(axes[-1]))
            precision = self.attempt("precision", read)
        best = None
        if "best" in self.raw and not self.problems:
            best = self.attempt("best", partial(read_best, self.raw["best"], axes, outputs, self.target.measuring))
        searches: list[Search] = []
        if "refine" in self.raw and not self.problems:
            searches = self.attempt(
                "", partial(read_search, self.raw["refine"], axes, outputs, self.target.plain_name), []
            )
        if precision is not None and best is not None:
            self.problem("best", "replicates are added for a precision or for a selection; leave one out")
        self.precheck(axes, fixed)
        if self.problems:
            raise InputError("\n".join(dict.fromkeys(self.problems)))
        fixed = {key: value for key, value in fixed.items() if key not in self.setters or self.setters[key] == "fixed"}
        return Spec(
            name,
            title,
            self.target,
            axes,
            fixed,
            formulas,
            exclude,
            outputs,
            keep_jobs,
            precision,
            best,
            searches,
            self.raw,
            self.where,
        )

    def plain(self, key: str, kind: type, default: Any) -> Any:
        value = self.raw.get(key, default)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            wanted = {str: "text", bool: "true or false", int: "a whole number"}[kind]
            self.problem(key, f"expected {wanted}, got {value!r}")
            return default
        return value

    def table(self, key: str) -> dict[str, Any]:
        value = self.raw.get(key, {})
        if not isinstance(value, dict):
            self.problem(key, f"expected a table, got {value!r}")
            return {}
        return value

    def claim(self, parameter: str, by: str) -> None:
        """Note who sets a parameter; two are a problem."""
        if parameter in self.setters:
            self.problem(by, f"parameter {parameter!r} is already set by {self.setters[parameter]}")
        self.setters.setdefault(parameter, by)

    def value(self, parameter: str, value: Any) -> Any:
        """Return a checked value; infinity only where the parameter's default is infinite."""
        value = self.target.check(parameter, value)
        if isinstance(value, float) and not math.isfinite(value):
            default = self.target.parameters[parameter].default
            if not (isinstance(default, float) and math.isinf(default)):
                raise InputError(f"{parameter}: {value!r} is not a finite number")
        return value

    def read_fixed(self) -> dict[str, Any]:
        fixed = {}
        for key, value in self.table("fixed").items():
            self.claim(key, "fixed")
            fixed[key] = self.attempt("fixed", partial(self.value, key, value))
        if "seed" in self.raw:
            seed = self.plain("seed", int, 0)
            if "seed" in self.target.parameters:
                self.claim("seed", "fixed")
                fixed["seed"] = self.attempt("", lambda: self.value("seed", seed))
        return fixed

    def read_one_axis(self, name: str, raw: Any) -> Axis | None:
        key = f"axes.{name}"
        self.attempt(key, lambda: check_name(name))
        axis = self.attempt(key, lambda: read_axis(name, raw))
        if name in RESERVED or name == REPLICATE or name in {out.name for out in self.target.outputs}:
            hint = "; set replicates = N instead" if name == REPLICATE else "; choose another name"
            self.problem(key, f"the name {name!r} is taken in every store{hint}")
            return None
        if axis is None:
            return None
        columns = {}
        for parameter, values in axis.columns.items():
            self.claim(parameter, key)
            # by type, too, because true is equal to 1
            check = {(type(value), value): None for value in values if value is not LEFT_OUT}
            for kind, value in check:
                check[kind, value] = self.attempt(key, partial(self.value, parameter, value), LEFT_OUT)
            columns[parameter] = [value if value is LEFT_OUT else check[type(value), value] for value in values]
        return Axis(name, axis.labels, columns)

    def read_replicates(self) -> Axis:
        count = self.plain("replicates", int, FIRST_REPLICATES if "precision" in self.raw else 1)
        if not 1 <= count <= axis_forms.LONGEST_AXIS:
            self.problem("replicates", f"expected 1 to {axis_forms.LONGEST_AXIS:,}, got {count:,}")
            count = 1
        if "best" in self.raw:
            count = max(FEWEST, count)
        takes = REPLICATE in self.target.parameters
        if takes:
            self.claim(REPLICATE, "replicates")
        elif count > 1:
            self.problem(
                "replicates", f"{self.target.name} takes no parameter 'replicate', so replicates would be equal"
            )
        numbers = list(range(count))
        return Axis(REPLICATE, numbers, {REPLICATE: numbers} if takes else {})

    def read_formulas(self) -> dict[str, Formula]:
        formulas = {}
        for parameter, text in self.table("formulas").items():
            key = f"formulas.{parameter}"
            if parameter not in self.target.parameters:
                self.problem(key, unknown_name("parameter", parameter, self.target.parameters))
                continue
            self.claim(parameter, key)
            formula = self.attempt(key, partial(parse, text))
            if formula is not None:
                for name in formula.names:
                    if name not in self.target.parameters:
                        self.problem(key, unknown_name("parameter", name, self.target.parameters))
                formulas[parameter] = formula
        try:
            order = TopologicalSorter({name: formula.names for name, formula in formulas.items()}).static_order()
            return {name: formulas[name] for name in order if name in formulas}
        except CycleError as error:
            self.problem("formulas", f"formulas go in a circle: {' -> '.join(error.args[1])}")
            return {}

    def read_metrics(self) -> tuple[Output, ...]:
        known = {out.name: out for out in self.target.outputs}
        if not known and "metrics" not in self.raw:  # they are read off the first cell
            return ()
        names = self.raw.get("metrics", list(known))
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            self.problem("metrics", f"expected a list of metrics, got {names!r}")
            return ()
        for name in names:
            if name not in known:
                self.problem("metrics", unknown_name("metric", name, known))
        better = self.read_better(known)
        return tuple(
            replace(known[name], better=better.get(name, known[name].better))
            for name in dict.fromkeys(names)
            if name in known
        )

    def read_better(self, known: Mapping[str, Output]) -> dict[str, str]:
        """Return which of two values of a metric is better, "higher" or "lower", where the spec says so."""
        found = {}
        for name, word in self.table("better").items():
            if name not in known:
                self.problem("better", unknown_name("metric", name, known))
            elif word not in ("higher", "lower"):
                self.problem(f"better.{name}", f"expected higher or lower, got {word!r}")
            else:
                found[name] = word
        return found

    def possible(
        self,
        outputs: tuple[Output, ...],
        fixed: dict[str, Any],
        axes: Sequence[Axis],
        formulas: Mapping[str, Formula],
        exclude: Sequence[Mapping[str, Sequence[Any]]],
    ) -> tuple[Output, ...]:
        """Return the outputs that some cell can have, those that matter first; all where a figure may draw any."""
        drawn = "figure" in self.raw or str(self.raw.get("name")) in experiments()
        if "metrics" in self.raw or drawn or self.problems or type(self.target).impossible is Target.impossible:
            return outputs
        try:
            boxes = Grid(self.target, axes, fixed, formulas, exclude).alike(self.target.impossible)
        except InputError:  # whoever lays out the grid says it
            return outputs
        never = {out.name for out in outputs}
        for number, (_, found) in enumerate(boxes):
            never &= set(found) if number < _MOST_ANSWERS else set()
            if not never:
                break
        named = repr([self.raw.get(key) for key in ("precision", "best", "refine", "better")])
        kept = [out for out in outputs if out.name not in never or out.name in named]
        return tuple(sorted(kept, key=lambda out: self.place(out.name)))

    def place(self, name: str) -> int:
        """Return where an output stands among those that matter; behind them if it is none of them."""
        main = list(self.target.main)
        return main.index(name) if name in main else len(main)

    def complete(self, fixed: dict[str, Any]) -> dict[str, Any]:
        """Return ``fixed`` with the default of every parameter that the spec does not name."""
        missing = [
            name for name, p in self.target.parameters.items() if p.default is REQUIRED and name not in self.setters
        ]
        if missing and not self.unread:
            self.problem("", f"no value for {', '.join(missing)}: set it in fixed, axes or formulas")
        defaults = {name: p.default for name, p in self.target.parameters.items() if has_default(p)}
        return {**defaults, **fixed}

    def fill_axis(self, axis: Axis, fixed: Mapping[str, Any]) -> Axis:
        """Give every row every parameter of its axis, columns one type, and the labels of a parameter its values."""
        key = f"axes.{axis.name}"
        columns = {}
        for parameter, values in axis.columns.items():
            if any(value is LEFT_OUT for value in values) and parameter not in fixed and not self.problems:
                self.problem(key, f"{parameter}: a row without a value, and there is no default")
            filled = [fixed.get(parameter) if value is LEFT_OUT else value for value in values]
            if None in filled and self.problems:  # a value that was refused
                columns[parameter] = filled
                continue
            columns[parameter] = self.attempt(key, partial(one_type, parameter, filled), filled)
        labels = self.attempt(key, lambda: one_type("label", axis.labels), axis.labels)
        if axis.name in columns and not self.problems:
            values = label_values(columns[axis.name])
            named = isinstance(self.raw.get("axes"), dict) and self.is_named(axis, values)
            if not named and len(set(values)) < len(set(axis.labels)):
                self.problem(key, f"two of {', '.join(map(str, axis.labels))} are names of one value; leave one out")
            elif named or len(set(values)) < len(values):
                self.problem(
                    key, f"labels differ from the values of the parameter {axis.name!r}; give the axis another name"
                )
            labels = values
        return Axis(axis.name, labels, columns)

    def is_named(self, axis: Axis, values: list[Any]) -> bool:
        """Tell whether an axis of its parameter's name has labels of its own; another name of a value is none."""
        return [self.target.plain_name(axis.name, label) for label in axis.labels] != values

    def check_names(self, axes: Iterable[Axis], formulas: Mapping[str, Formula]) -> None:
        """See that no two coordinates of the store have one name."""
        dims = {dim.name for out in self.target.outputs for dim in out.along}
        taken = RESERVED | {out.name for out in self.target.outputs}
        varied = [(f"axes.{axis.name}", name) for axis in axes for name in axis.columns if name != axis.name]
        for key, name in (*varied, *((f"formulas.{name}", name) for name in formulas)):
            if name in taken | dims:
                self.problem(key, f"the parameter {name!r} has the name of a result; rename one of them")
        if REPLICATE in taken:  # an axis of every sweep; those of a spec are checked where they are read
            self.problem("outputs", f"the name {REPLICATE!r} is taken in every store; name the result otherwise")
        for axis in axes:
            by = self.setters.get(axis.name)
            if by is not None and axis.name not in axis.columns:
                text = f"the name is that of a parameter that {by} sets; choose another name"
                self.problem(f"axes.{axis.name}", text)
            if axis.name in dims:
                self.problem(f"axes.{axis.name}", "the name is that of a metric's dimension; choose another name")

    def read_exclude(self, axes: list[Axis], formulas: Mapping[str, Formula]) -> list[dict[str, list[Any]]]:
        rules = self.raw.get("exclude", [])
        if not isinstance(rules, list):
            self.problem("exclude", f"expected [[exclude]] tables, got {rules!r}")
            return []
        values: dict[str, list[Any] | None] = dict.fromkeys(formulas)
        for axis in axes:
            values.update({axis.name: axis.labels, **axis.columns})
        checked = []
        for number, rule in enumerate(rules, 1):
            key = f"exclude {number}"
            if not isinstance(rule, dict) or not rule:
                self.problem(key, f"expected a table of parameters and the values to exclude, got {rule!r}")
                continue
            checked.append({name: self.exclude_values(key, name, wanted, values) for name, wanted in rule.items()})
        return checked

    def exclude_values(self, key: str, name: str, wanted: Any, values: Mapping[str, list[Any] | None]) -> list[Any]:
        listed = [self.target.plain_name(name, value) for value in (wanted if isinstance(wanted, list) else [wanted])]
        if name not in values:
            self.problem(key, unknown_name("axis or varied parameter", name, values))
            return listed
        found = values[name]
        valid = None if found is None else list(dict.fromkeys(found))  # a default stands for each that is wrong
        if not listed:
            self.problem(key, f"{name}: an empty list excludes nothing; name at least one value")
        for value in listed:
            if valid is not None and not is_among(value, valid):
                shown = ", ".join(_toml(known) for known in valid[:_SHOWN]) + (", ..." if len(valid) > _SHOWN else "")
                self.problem(key, f"unknown value of {name} {value!r} (valid: {shown})")
        return listed

    def precheck(self, axes: Iterable[Axis], fixed: Mapping[str, Any]) -> None:
        values = {name: [value] for name, value in fixed.items() if self.setters.get(name, "fixed") == "fixed"}
        for axis in axes:
            values.update({name: list(dict.fromkeys(column)) for name, column in axis.columns.items()})
        if self.problems:  # what could be read is checked all the same; a default may not be what was meant
            known = {name: [value for value in column if value is not None] for name, column in values.items()}
            values = {name: column for name, column in known.items() if name in self.setters}
        for text in self.target.precheck(values):
            self.problem("", text)


def is_among(value: Any, values: Iterable[Any]) -> bool:
    """Tell whether a value is one of these; true is not 1."""
    return any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in values)


def write_toml(raw: Mapping[str, Any]) -> str:
    """Return a raw spec as TOML: plain keys, then a section per table, then the exclude rules."""
    lines = _toml_pairs({key: value for key, value in raw.items() if not _is_section(key, value)})
    for key, value in raw.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_toml_key(key)}]", *_toml_pairs(value)]
    for rule in raw.get("exclude", []):
        lines += ["", "[[exclude]]", *_toml_pairs(rule)]
    return "\n".join(lines) + "\n"


def _is_section(key: str, value: Any) -> bool:
    return isinstance(value, Mapping) or key == "exclude"


def _toml_pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_toml_key(key)} = {_toml(value)}" for key, value in table.items()]


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Return a value as TOML writes it; what TOML does not have (None, a duration, an enum) as text."""
    if isinstance(value, Enum):
        return _toml(value.name)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, timedelta):
        return _toml(str(value).lower())
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{" + ", ".join(_toml_pairs(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml(part) for part in value) + "]"
    return repr(value)
