"""What a claim of a paper is: a text, a place, and parts that a store of results decides; read from ``PAPER.toml``.

A part names a quantity, and the region in which the claim holds::

    [[claim]]
    name = "sdsc-migration-gains"
    text = "SDSC, c = 1.0: Migration utilises 13 % more than FCFS"
    place = "figure 5-6"
    experiment = "krevat2003-fig-5-6"
    tolerance = "±3 points: read off bars"

    [[claim.part]]
    label = "Migration"
    metric = "utilisation"
    at = {workload = "SDSC", scheduler = "migration"}
    against = {scheduler = "fcfs"}
    as = "change"
    holds = {between = [0.10, 0.16]}
    partly = {above = 0.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from faultsweep.errors import InputError, unknown_name

FOLDER = Path(__file__).parent
KINDS = ("value", "change", "difference")
REDUCTIONS = ("highest", "lowest", "mean", "first", "last", "slope")


@dataclass(frozen=True)
class Region:
    """An interval of numbers, bounds included."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, low: float, high: float) -> bool:
        """Tell whether all numbers from ``low`` to ``high`` are in the region."""
        return self.low <= low and high <= self.high

    def meets(self, low: float, high: float) -> bool:
        """Tell whether some number from ``low`` to ``high`` is in the region."""
        return low <= self.high and self.low <= high


@dataclass(frozen=True)
class Part:
    """One number that a claim is about, and where it must lie.

    Attributes
    ----------
    label : what it is, in a few words.
    metric : the metric; ``per`` is another one that it is divided by.
    at : axis -> label, or labels over which ``reduce`` goes.
    against : the labels that the other side of a comparison has instead.
    kind : "value"; "change", (at − against) / against; "difference", at − against.
    reduce : axis -> one of ``REDUCTIONS``, over the labels of the axis, in every replicate. "slope" is the exponent of
        the axis: the slope of the logarithms.
    where : (axis, metric, value): the point of the axis at which the metric has this value, between two labels.
    jobs : a statistic of the jobs' column ``metric``, "mean" or "sd"; "" for a metric of the run. ``scale`` multiplies.
    holds : where the claim holds.
    partly : where it holds in part, a region around ``holds``; None for none.
    """

    label: str
    metric: str
    at: Mapping[str, Any]
    holds: Region
    per: str = ""
    against: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "value"
    reduce: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, str, float] | None = None
    jobs: str = ""
    scale: float = 1.0
    partly: Region | None = None


@dataclass(frozen=True)
class Claim:
    """A printed claim of a paper.

    Attributes
    ----------
    paper, name : together they are unique.
    text : what the paper says, shortened.
    place : where it says so.
    experiment : the shipped experiment that decides it; "" if it cannot be tested.
    tolerance : how far the numbers may be off, and why.
    parts : what is measured; none if it cannot be tested.
    untestable : why it cannot be tested; "" if it can.
    note : what else a reader should know of the row.
    """

    paper: str
    name: str
    text: str
    place: str
    experiment: str = ""
    tolerance: str = ""
    parts: tuple[Part, ...] = ()
    untestable: str = ""
    note: str = ""


@dataclass(frozen=True)
class Reading:
    """One way to read what a paper leaves open.

    Attributes
    ----------
    paper, name : together they are unique.
    text : what is taken.
    warrant : the words that allow it.
    fixed : parameters that the experiments hold at these values.
    at : axis -> the label that claims have there instead of their own.
    experiments : the experiments that it changes; empty for all of the paper.
    failure_log : name of the file whose failures they have; "" for none. It is not shipped.
    """

    paper: str
    name: str
    text: str
    warrant: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    at: Mapping[str, Any] = field(default_factory=dict)
    experiments: tuple[str, ...] = ()
    failure_log: str = ""

    def with_log(self, folder: Path | None) -> Reading:
        """Return the reading with the failures of its log, which is in a folder or below it.

        Raises
        ------
        InputError
            No folder is given, or the log is not there.
        """
        if not self.failure_log:
            return self
        found = sorted(folder.rglob(self.failure_log)) if folder is not None else []
        if not found:
            raise InputError(
                f"{self.paper}, reading {self.name}: {self.failure_log} is needed "
                f"(--failure-logs DIR: {'not given' if folder is None else f'it is not in {folder}'})"
            )
        return replace(self, fixed={**self.fixed, "failures": str(found[0])})

    def changes(self, claim: Claim) -> bool:
        """Tell whether a claim is judged by other results under this reading."""
        return bool(claim.parts) and claim.experiment in (self.experiments or (claim.experiment,))

    def applied(self, claim: Claim) -> Claim:
        """Return the claim at the labels of this reading."""
        parts = tuple(
            replace(part, at={axis: self.at.get(axis, label) for axis, label in part.at.items()})
            for part in claim.parts
        )
        return replace(claim, parts=parts)


def papers() -> list[str]:
    """Return the names of the papers that have claims, in the order of their years."""
    return sorted((path.stem for path in FOLDER.glob("*.toml")), key=lambda name: (name[-4:], name))


def read_claims(paper: str) -> list[Claim]:
    """Return the claims of a paper.

    Raises
    ------
    InputError
        No such paper, or its file says something that is no claim: the key and what would be valid.
    """
    if paper not in papers():
        raise unknown_name("paper", paper, papers())
    return parse_claims(paper, FOLDER / f"{paper}.toml")


def read_readings(paper: str) -> list[Reading]:
    """Return the readings of a paper besides the shipped one; InputError as ``read_claims``."""
    if paper not in papers():
        raise unknown_name("paper", paper, papers())
    return parse_readings(paper, FOLDER / f"{paper}.toml")


def parse_readings(paper: str, path: Path) -> list[Reading]:
    """Return the readings of a file."""
    from faultsweep.sweeps.spec import load_toml

    found = [
        _reading(paper, raw, f"{path.name}: reading {number}")
        for number, raw in enumerate(_tables(path, load_toml, "reading"))
    ]
    _check_names([reading.name for reading in found], path)
    return found


def parse_claims(paper: str, path: Path) -> list[Claim]:
    """Return the claims of a file."""
    from faultsweep.sweeps.spec import load_toml

    found = [
        _claim(paper, raw, f"{path.name}: claim {number}")
        for number, raw in enumerate(_tables(path, load_toml, "claim"))
    ]
    _check_names([claim.name for claim in found], path)
    return found


def _check_names(names: Sequence[str], path: Path) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{path.name}: {name}: two have this name")


def _tables(path: Path, load: Any, key: str) -> list[Mapping[str, Any]]:
    raw = load(path)
    _check_keys(raw, {"claim", "reading"}, path.name)
    return list(raw.get(key, []))


def _reading(paper: str, raw: Mapping[str, Any], where: str) -> Reading:
    _check_keys(raw, {"name", "text", "warrant", "fixed", "at", "experiments", "failure_log"}, where)
    for key in ("name", "text", "warrant"):
        if not raw.get(key):
            raise InputError(f"{where}: {key} is missing")
    if not (raw.get("fixed") or raw.get("at") or raw.get("failure_log")):
        raise InputError(f"{where}: a reading has parameters in fixed, labels in at or a failure_log")
    texts = {key: str(raw[key]) for key in ("name", "text", "warrant", "failure_log") if key in raw}
    return Reading(
        paper, **texts, fixed=raw.get("fixed", {}), at=raw.get("at", {}), experiments=tuple(raw.get("experiments", ()))
    )


def _claim(paper: str, raw: Mapping[str, Any], where: str) -> Claim:
    texts = {"name", "text", "place", "experiment", "tolerance", "untestable", "note"}
    _check_keys(raw, texts | {"part"}, where)
    where = f"{where} ({raw.get('name', 'without a name')})"
    for key in ("name", "text", "place"):
        if not raw.get(key):
            raise InputError(f"{where}: {key} is missing")
    parts = tuple(_part(part, f"{where}, part {number}") for number, part in enumerate(raw.get("part", [])))
    if bool(parts) == bool(raw.get("untestable")):
        raise InputError(f"{where}: a claim has either parts or a reason why it is untestable")
    if parts and not (raw.get("experiment") and raw.get("tolerance")):
        raise InputError(f"{where}: experiment or tolerance is missing")
    return Claim(paper, parts=parts, **{key: str(raw[key]) for key in texts if key in raw})


def _part(raw: Mapping[str, Any], where: str) -> Part:
    keys = {"label", "metric", "per", "at", "against", "as", "reduce", "where", "jobs", "scale", "holds", "partly"}
    _check_keys(raw, keys, where)
    for key in ("label", "metric", "holds"):
        if key not in raw:
            raise InputError(f"{where}: {key} is missing")
    kind = raw.get("as", "value")
    if kind not in KINDS:
        raise unknown_name("kind", kind, KINDS, where=where)
    if (kind == "value") == bool(raw.get("against")):
        raise InputError(f"{where}: a change or a difference has labels in against, and a value has none")
    for how in raw.get("reduce", {}).values():
        if how not in REDUCTIONS:
            raise unknown_name("reduction", how, REDUCTIONS, where=where)
    point = raw.get("where")
    if point is not None:
        _check_keys(point, {"axis", "metric", "is"}, where)
    partly = _region(raw["partly"], where) if "partly" in raw else None
    return Part(
        label=str(raw["label"]),
        metric=str(raw["metric"]),
        at=raw.get("at", {}),
        holds=_region(raw["holds"], where),
        per=str(raw.get("per", "")),
        against=raw.get("against", {}),
        kind=kind,
        reduce=raw.get("reduce", {}),
        where=None if point is None else (str(point["axis"]), str(point["metric"]), float(point["is"])),
        jobs=str(raw.get("jobs", "")),
        scale=float(raw.get("scale", 1.0)),
        partly=partly,
    )


def _region(raw: Mapping[str, Any], where: str) -> Region:
    _check_keys(raw, {"between", "above", "below"}, where)
    try:
        low, high = raw.get("between", (raw.get("above", -math.inf), raw.get("below", math.inf)))
        region = Region(float(low), float(high))
    except (TypeError, ValueError):
        raise InputError(f"{where}: a region is between = [LOW, HIGH], above = LOW or below = HIGH") from None
    if not region.low < region.high:
        raise InputError(f"{where}: the region from {region.low:g} to {region.high:g} is empty")
    return region


def _check_keys(raw: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in raw:
        if key not in known:
            raise unknown_name("key", key, sorted(known), where=where)
