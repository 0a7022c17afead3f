"""How this site's SLURM is used: one TOML file, overridden by flags.

The file is ``cluster.toml`` in the user's configuration folder, or what ``--site`` or FAULTSWEEP_SITE names.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Annotated, Any

import platformdirs
from faultsweep.cluster.times import parse_time
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from faultsweep.errors import InputError, unknown_name
from faultsweep.files import parse_toml, read_text

SITE_VARIABLE = "FAULTSWEEP_SITE"
_NAME = r"""^[^\s"'\\#]+$"""


class Site(BaseModel):
    """Settings of a batch job; None leaves a thing to SLURM."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    system: str | None = Field(
        None, min_length=1, description="Batch system: slurm, pbs, or a FILE.py of the site; by its commands if unset."
    )
    partition: str | None = Field(None, pattern=_NAME, description="Partition (queue), or several: debug,short.")
    account: str | None = Field(None, pattern=_NAME, description="Account that is charged.")
    qos: str | None = Field(None, pattern=_NAME, description="Quality of service.")
    time: str | None = Field(None, description="Walltime of one job; a sweep that needs more is requeued and resumes.")
    nodes: str = Field(
        "1", pattern=r"^[1-9]\d{0,8}(-[1-9]\d{0,8})?$", description="Nodes of a job: 4, or 1-4 for what is free."
    )
    workers_per_node: int | None = Field(
        None, ge=1, description="Worker processes per node; one for each core if unset."
    )
    memory_per_worker: str | None = Field(None, description="Memory of a worker, as 2GB; what plan computes if unset.")
    controller_memory: str | None = Field(
        None, description="Memory of scheduler and sweep, as 2GB; what plan computes from the grid if unset."
    )
    interface: str | None = Field(
        None, min_length=1, description="Network interface between the nodes, such as ib0 (ip -brief address)."
    )
    scratch: str | None = Field(None, min_length=1, description="Folder of every node for temporary files.")
    setup: tuple[str, ...] = Field((), description="Shell lines to run first, such as module load.")
    sbatch: tuple[Annotated[str, Field(pattern=r"^-")], ...] = Field(
        (), description="More options of sbatch, such as --constraint=skylake."
    )
    submit_options: tuple[Annotated[str, Field(pattern=r"^-")], ...] = Field(
        (), description="The same of another system's command, such as -l software=gcc of qsub."
    )
    python: str | None = Field(None, min_length=1, description="Python of the nodes; the one of submit if unset.")
    grace_s: int = Field(
        120, ge=5, le=65_535, description="Seconds before the walltime at which a job saves and is requeued."
    )
    max_jobs: int = Field(10, ge=1, description="With --elastic, and for run --cluster slurm: worker jobs at most.")
    max_restarts: int = Field(6, ge=0, description="Restarts in a row without any new result after which a job ends.")
    max_requeues: int | None = Field(
        None, ge=0, description="Times that a job puts itself back into the queue at most; no limit if unset."
    )
    dask_dashboard: bool = Field(
        False,
        description="Dask's own dashboard, on the loopback of the scheduler's node; status says how to reach it.",
    )


def site_file(named: Path | None = None) -> Path:
    """Return where the site's file is, or would be."""
    if named is not None:
        return named
    if os.environ.get(SITE_VARIABLE):
        return Path(os.environ[SITE_VARIABLE])
    return Path(platformdirs.user_config_dir("faultsweep")) / "cluster.toml"


def read_site(named: Path | None = None, **flags: Any) -> Site:
    """Return the site's settings with these flags (None: not given) over them.

    Raises
    ------
    InputError
        The file is missing though it was named, is no TOML, or has keys or values that are not valid: all of them.
    """
    path = site_file(named)
    values: dict[str, Any] = {}
    if path.is_file():
        values = parse_toml(read_text(path), path)
    elif named is not None or os.environ.get(SITE_VARIABLE):
        raise InputError(f"{path}: no such file; 'faultsweep cluster init' writes one")
    if isinstance(values.get("nodes"), int):
        values["nodes"] = str(values["nodes"])
    problems = _problems(values, str(path))
    given = {name: value for name, value in flags.items() if value not in (None, ())}
    if not problems:
        problems = _problems({**values, **given}, "")
    if problems:
        raise InputError("\n".join(problems))
    site = Site(**{**values, **given})
    if site.system is not None and site.system.endswith(".py"):  # beside the site's file
        site = site.model_copy(update={"system": str((path.parent / os.path.expanduser(site.system)).resolve())})
    _check_units(site, given, path)
    return site


def to_toml(site: Site) -> str:
    """Return the settings that are set as the text of a site's file."""
    values = site.model_dump(exclude_none=True, exclude_defaults=True)
    # JSON's texts, numbers and lists are TOML's, too
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def _problems(values: dict[str, Any], where: str) -> list[str]:
    try:
        Site(**values)
    except ValidationError as error:
        found = []
        for problem in error.errors():
            key = str(problem["loc"][0])
            place = f"{where}: {key}" if where else f"--{key.replace('_', '-')}"
            if problem["type"] == "extra_forbidden":
                found.append(str(unknown_name("key", key, Site.model_fields, where=where)))
            else:
                found.append(f"{place}: expected {_expected(key, problem)}, got {problem['input']!r:.80}")
        return found
    return []


_LISTS = {"setup": "module load gcc", "submit_options": "-l software=gcc"}


def _expected(key: str, problem: Any) -> str:
    """Return what is valid where pydantic found something else."""
    if key == "nodes":
        return "a number such as 4, or a range such as 1-4"
    if problem["type"] == "tuple_type":
        return f"""a list such as ["{_LISTS.get(key, "--constraint=skylake")}"]"""
    if problem["type"] == "string_type":
        return "text in quotes"
    if key in ("sbatch", "submit_options"):
        return "an option such as --constraint=skylake"
    if problem["type"] == "string_pattern_mismatch":
        return "a name without blanks or quotes"
    return re.sub("^(Input|String) should (be|have) |,.*$", "", str(problem["msg"]))


def _check_units(site: Site, given: dict[str, Any], path: Path) -> None:
    """Check times and sizes, which are text."""

    def place(key: str) -> str:
        return f"--{key.replace('_', '-')}" if key in given else f"{path}: {key}"

    if site.time is not None:
        parse_time(site.time, place("time"))
    for key in ("memory_per_worker", "controller_memory"):
        if getattr(site, key) is not None:
            parse_memory(getattr(site, key), place(key))


def parse_memory(text: str, where: str = "--memory-per-worker") -> int:
    """Return a size such as 2GB, 1.5 GiB or 800M in bytes (K, M, G, T are powers of 1000)."""
    match = re.fullmatch(r"(\d{1,18}(?:\.\d{1,18})?)\s*([KMGT]?)(i?)B?", text.strip(), flags=re.IGNORECASE)
    size = 0.0
    if match:
        size = float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2].upper() or " ")
    if size < 1e6:
        raise InputError(f"{where}: expected a size such as 2GB, got {text!r:.80}")
    return int(size)


def most_nodes(nodes: str) -> int:
    """Return the largest number of nodes of "4" or "1-4"."""
    return int(nodes.split("-")[-1])


def least_nodes(nodes: str) -> int:
    """Return the least number of nodes of "4" or "1-4"."""
    return int(nodes.split("-")[0])
