"""A failure log: a file whose failures are brought to the span of the jobs and to the nodes of the machine."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from faultsweep.simcore.contract import Config, Parameter, Policy, Run
from faultsweep.simcore.failure_logs.files import read_failures
from faultsweep.simcore.failure_logs.fitting import FAILURE_FITS, NODE_MAPS
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.policies.failures import NONE_WANTED
from faultsweep.simcore.policies.failures.fitted import fitted_source
from faultsweep.simcore.policies.failures.source import FailureSource, Span

from faultsweep.errors import InputError


def _is_drawn(run: Run) -> bool:
    """Tell whether times or places are drawn; the failures of a trace of our own are taken as they are by "auto"."""
    if run["num_failures"] >= 0 or run["failures_per_day"] >= 0:
        return True
    fit, nodes = run["failure_fit"], run["node_map"]
    if "auto" in (fit, nodes) and run.is_own_trace(run["failures"]):
        fit, nodes = ("exact" if fit == "auto" else fit), ("identity" if nodes == "auto" else nodes)
    return not (fit == "exact" and nodes in ("identity", "rank"))


def load_records(config: Config) -> FailureRecords:
    """Read the failure log of a configuration; a process reads a log once."""
    name = config["failures"]
    return _read(
        name, *version_of(name), config["failure_system"], config["failure_filter_s"], config["failure_columns"]
    )


def version_of(name: str) -> tuple[int, int]:
    """Return what tells a changed file from the one that was read."""
    path = Path(name)
    try:
        stat = path.stat()
    except (OSError, ValueError):
        if path.suffix or len(path.parts) > 1:
            raise InputError(f"failures: {name!r} cannot be read (no such file)") from None
        raise NoSourceError(name) from None
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _read(path: str, mtime_ns: int, size: int, system: int, filter_s: float, columns: str) -> FailureRecords:
    del mtime_ns, size
    return read_failures(path, system=system, filter_s=filter_s, columns=columns)


def log_source(config: Config, machine_nodes: int, span: Span) -> FailureSource:
    """Return the failures of a log, brought to a machine and a span of jobs."""
    return fitted_source(load_records(config), config, machine_nodes, span)


class NoSourceError(Exception):
    """The value of ``failures`` is neither a generator's name nor looks like a file's."""


POLICY = Policy(
    "log",
    "",
    parameters=(
        Parameter(
            "num_failures",
            int,
            -1,
            "Failures of a log in the span of the whole job log, in proportion if only a part is used; -1: not given.",
            "failures",
            minimum=-1,
        ),
        Parameter(
            "failures_per_day",
            float,
            -1.0,
            "Failures of a log per day, the other way to say num_failures; -1: not given.",
            "failures",
            minimum=-1,
            unit="1/d",
        ),
        Parameter(
            "failure_fit",
            str,
            "auto",
            "How a failure log is brought to the span of the jobs; auto: exact for a trace of our own, else scale.",
            "failures",
            choices=FAILURE_FITS,
        ),
        Parameter(
            "node_map",
            str,
            "auto",
            "How nodes of a failure log become the machine's; auto: identity if the machines agree, else permutation.",
            "failures",
            choices=NODE_MAPS,
        ),
        Parameter(
            "failure_system",
            int,
            0,
            "System of a LANL file, or platform of a Failure Trace Archive table; 0: the only one.",
            "failures",
            minimum=0,
        ),
        Parameter(
            "failure_filter_s",
            float,
            300.0,
            "Blue Gene/L RAS lines of a midplane at most this far apart are one failure.",
            "failures",
            minimum=0,
            unit="s",
        ),
        Parameter(
            "failure_columns",
            str,
            "",
            "What the columns of a table of failures mean, such as time=occurred,node=host,down=minutes:min.",
            "failures",
        ),
    ),
    uses=("down_time_s",),
    becomes=NONE_WANTED,
    facts={"source": log_source},
    consults=(("seed", _is_drawn),),
)
