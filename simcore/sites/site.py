"""A site as a file: classes of nodes, partitions, QOS, accounts, reservations, licences, and rules of the queue."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from faultsweep.errors import InputError
from faultsweep.files import parse_toml, read_text

FORMAT = "faultsweep site, 1"
_MOST_NODES, _MOST_CORES = 1_000_000, 100_000_000
"""Several times those of the largest machines of today."""
_MOST = 1 << 53
"""Whole numbers up to here are exact as floats."""
_MOST_GPUS, _MOST_MEMORY_MB = 1 << 20, 1 << 36
"""Of a node: with more, sums and products of them might not fit."""
_Whole = Annotated[int, Field(ge=-_MOST, le=_MOST)]
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Seconds = Annotated[float, Field(ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


_Made = TypeVar("_Made", bound=_Part)


class NodeClass(_Part):
    """Nodes that are alike. ``cores``, ``threads`` (of a core), ``gpus``, ``memory_mb`` and ``mtbf_h`` are those of one
    node."""

    name: str
    count: int = Field(ge=1, le=_MOST)
    hosts: str = ""
    cores: int = Field(ge=1, le=_MOST)
    threads: int = Field(default=1, ge=1, le=_MOST)
    gpus: int = Field(default=0, ge=0, le=_MOST_GPUS)
    gpu_type: str = ""
    memory_mb: int = Field(default=0, ge=0, le=_MOST_MEMORY_MB)
    features: list[str] = []
    weight: _Whole = 1
    mtbf_h: float | None = Field(default=None, gt=0, allow_inf_nan=True)


class Partition(_Part):
    """A partition or queue: nodes of each class in ``nodes``, times in seconds; None is no limit.

    ``max_run_jobs`` and ``max_run_cores`` are of its running jobs together, ``max_user_run_jobs`` and
    ``max_user_run_cores`` of those of each user.
    """

    name: str
    nodes: dict[str, int]
    default: bool = False
    up: bool = True
    exclusive: bool = False
    default_time_s: _Seconds | None = None
    max_time_s: _Seconds | None = None
    min_nodes: _Count = 0
    max_nodes: _Count | None = None
    priority_tier: _Whole = 1
    priority_factor: _Whole = 1
    qos: str = ""
    preempt_mode: str = ""
    grace_s: _Seconds = 0.0
    max_run_jobs: _Count | None = None
    max_run_cores: _Count | None = None
    max_user_run_jobs: _Count | None = None
    max_user_run_cores: _Count | None = None


class Qos(_Part):
    """A quality of service, with the limits of all its running or submitted jobs, and of those of each user or account;
    None is no limit."""

    name: str
    priority: _Whole = 0
    preempts: list[str] = []
    preempt_mode: str = ""
    grace_s: _Seconds = 0.0
    max_wall_s: _Seconds | None = None
    max_jobs: _Count | None = None
    max_cores: _Count | None = None
    max_jobs_user: _Count | None = None
    max_cores_user: _Count | None = None
    max_submit: _Count | None = None
    max_submit_user: _Count | None = None
    max_jobs_account: _Count | None = None
    max_cores_account: _Count | None = None
    max_submit_account: _Count | None = None
    usage_factor: float = Field(default=1.0, ge=0)


class Account(_Part):
    """An account, or a user in it, with its shares and its priority as an association; None is that of the one above.

    ``max_jobs`` and ``max_submit`` are for each user of the account, and of accounts below it that have none of their
    own; ``group_jobs``, ``group_cores`` and ``group_submit`` are for all its running or submitted jobs together, with
    those of the accounts below it.
    """

    account: str
    user: str = ""
    parent: str = ""
    shares: _Whole | None = None
    priority: _Count | None = None
    max_jobs: _Count | None = None
    group_jobs: _Count | None = None
    group_cores: _Count | None = None
    max_submit: _Count | None = None
    group_submit: _Count | None = None


class Reservation(_Part):
    """An advance reservation of nodes, in seconds since 1970 UTC, or on the clock of a log without a date.

    Its nodes are those of ``hosts``, or the first ones of each class as ``classes`` says, or the first ``nodes`` of the
    site (None: all); the first of the three that is given decides. ``maintenance`` lets no job run. Jobs of ``users``
    in ``accounts`` may ask for it; if one of the two is empty, of all users or accounts, if both are, of nobody; a name
    with - before it is left out.
    """

    name: str
    start_s: float
    end_s: float
    nodes: int | None = None
    classes: dict[str, int] = {}
    hosts: str = ""
    maintenance: bool = False
    users: list[str] = []
    accounts: list[str] = []


class Licence(_Part):
    """How many of a licence there are."""

    name: str
    total: _Count


class Priority(_Part):
    """How the queue is ordered: ``fifo`` or ``multifactor``, its weights and times."""

    kind: str = "fifo"
    weights: dict[str, float] = {}
    max_age_s: _Seconds | None = None
    half_life_s: _Seconds | None = None
    calc_period_s: _Seconds | None = None
    favour_small: bool = False
    fair_tree: bool = False


class Backfill(_Part):
    """Settings of the backfilling pass; None is the scheduler's default. ``top_jobs`` is backfill_depth of PBS."""

    kind: str = "backfill"
    interval_s: _Seconds | None = None
    window_s: _Seconds | None = None
    resolution_s: _Seconds | None = None
    max_job_test: _Count | None = None
    max_job_user: _Count | None = None
    default_queue_depth: _Count | None = None
    full_interval_s: _Seconds | None = None
    top_jobs: _Count | None = None


class Site(_Part):
    """A machine and its rules, as ``site.toml`` holds it."""

    format: str = FORMAT
    name: str = "site"
    scheduler: str = ""
    nodes: list[NodeClass] = Field(min_length=1)
    partitions: list[Partition] = []
    qos: list[Qos] = []
    accounts: list[Account] = []
    reservations: list[Reservation] = []
    licences: list[Licence] = []
    priority: Priority = Priority()
    backfill: Backfill = Backfill()
    preempt_by: Literal["", "qos", "partition"] = ""
    preempt_mode: str = ""
    preempt_exempt_s: _Seconds = 0.0
    preempt_wait_s: _Seconds | None = None
    not_represented: list[str] = []

    @model_validator(mode="after")
    def _names_agree(self) -> Site:
        if self.format != FORMAT:
            raise ValueError(f"format is {self.format!r:.60} (valid: {FORMAT!r})")
        if self.num_nodes > _MOST_NODES or self.num_cores > _MOST_CORES:
            raise ValueError(
                f"{self.num_nodes:,} nodes with {self.num_cores:,} cores are too many (valid: up to {_MOST_NODES:,} "
                f"nodes and {_MOST_CORES:,} cores)"
            )
        counts = {of_class.name: of_class.count for of_class in self.nodes}
        if len(counts) < len(self.nodes):
            raise ValueError("two classes of nodes have the same name")
        for partition in self.partitions:
            for name, count in partition.nodes.items():
                if name not in counts:
                    raise ValueError(f"partition {partition.name} has nodes of {name!r}, which is no class of nodes")
                if not 0 < count <= counts[name]:
                    raise ValueError(f"partition {partition.name} has {count} nodes of {name}, of {counts[name]}")
        _check_reservations(self.reservations, counts)
        _check_preempts(self.qos)
        return self

    @property
    def num_nodes(self) -> int:
        """All nodes."""
        return sum(of_class.count for of_class in self.nodes)

    @property
    def num_cores(self) -> int:
        """All cores."""
        return sum(of_class.count * of_class.cores for of_class in self.nodes)


def _check_reservations(windows: list[Reservation], counts: dict[str, int]) -> None:
    """Raise ValueError for times, sizes or names that reservations cannot have; ``counts`` are nodes of each class."""
    places: dict[str, int] = {}
    for place, window in enumerate(windows):
        # Jobs ask for a reservation by its name, so that of two with one name nobody could tell which is meant.
        if window.name and places.setdefault(window.name, place) != place:
            first = places[window.name]
            raise ValueError(
                f"reservations.{first} and reservations.{place} have the same name {window.name!r} (valid: another "
                "name for each, since jobs ask for a reservation by its name)"
            )
        if window.end_s <= window.start_s:
            raise ValueError(f"reservation {window.name} ends at {window.end_s:g} s, not after its start")
        for name, count in window.classes.items():
            if not 0 < count <= counts.get(name, 0):
                raise ValueError(f"reservation {window.name} has {count} nodes of {name!r}, of {counts.get(name, 0)}")
        most = sum(counts.values())
        decides = not window.hosts and not window.classes
        if decides and window.nodes is not None and not 1 <= window.nodes <= most:
            raise ValueError(
                f"reservations.{place}.nodes is {window.nodes} in reservation {window.name} (valid: 1 to {most}, the "
                "nodes of the site; for all of them leave nodes away)"
            )


def _check_preempts(qos: list[Qos]) -> None:
    """Raise ValueError for a QOS that preempts one which the file does not have."""
    names = [one.name for one in qos]
    for place, one in enumerate(qos):
        for other in one.preempts:
            if other not in names:
                raise ValueError(
                    f"qos.{place}.preempts names {other!r}, which is no QOS of the file (valid: {', '.join(names)})"
                )


def read_site(path: str | Path) -> Site:
    """Read a site file.

    Raises
    ------
    InputError
        If it cannot be read, or a value is not valid; the message names file and key.
    """
    return site_of_text(read_text(path), str(path))


def site_of_text(text: str, path: str) -> Site:
    """Return the site that a TOML text describes; ``path`` is what messages call it."""
    try:
        return Site.model_validate(parse_toml(text, path))
    except ValidationError as error:
        raise InputError(f"{path}: {_sentence(error)}") from None


def made(kind: type[_Made], what: str, **values: Any) -> _Made:
    """Return a site or a part of one; raise InputError, which names ``what`` it is, for a value that is not valid."""
    try:
        return kind(**values)
    except ValidationError as error:
        raise InputError(f"{what}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    """Return what is wrong first: the key, what would be valid, and the value if it is short."""
    first = error.errors()[0]
    key, value = ".".join(map(str, first["loc"])), first["input"]
    given = f", not {value}" if isinstance(value, int | float) else ""
    return f"{f'{key}: ' if key else ''}{first['msg'].removeprefix('Value error, ')}{given}"


def site_text(site: Site) -> str:
    """Return a site as TOML; what has its default is left away."""
    content = {"format": FORMAT} | site.model_dump(exclude_defaults=True)
    plain = [key for key, value in content.items() if not isinstance(value, (dict, list))]
    lines = [f"{key} = {_value(content.pop(key))}" for key in plain]
    missing = content.pop("not_represented", None)
    if missing:
        lines += ["not_represented = [", *(f"    {_value(line)}," for line in missing), "]"]
    for key, value in content.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *_pairs(value)]
        else:
            for item in value:
                lines += ["", f"[[{key}]]", *_pairs(item)]
    return "\n".join(lines) + "\n"


def _pairs(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if value is not None:
            yield f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in escaped) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
