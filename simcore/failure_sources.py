"""From a configuration to its failures."""

from __future__ import annotations

from functools import lru_cache

from faultsweep.simcore.contract import Config, Policy
from faultsweep.simcore.failure_logs.files import detect_format, known_content
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.policies.failures.log import NoSourceError, version_of
from faultsweep.simcore.policies.failures.source import FailureSource, Span

from faultsweep.errors import InputError, unknown_name


def source_for(config: Config, machine_nodes: int, span: Span) -> FailureSource | None:
    """Return the failures that a resolved configuration asks for; None if it asks for none.

    Parameters
    ----------
    config : resolved configuration; its group "failures", ``seed``, ``replicate`` and ``machine`` are used.
    machine_nodes : nodes of the machine.
    span : of the jobs.

    Raises
    ------
    InputError
        If a log cannot be read or does not fit, or parameters contradict each other.
    """
    make = _policy(config["failures"]).facts.get("source")
    if make is None:
        return None
    try:
        source: FailureSource = make(dict(config), machine_nodes, span)
    except NoSourceError:
        raise _unknown(config["failures"]) from None
    return source


def _policy(name: str) -> Policy:
    role = ROLES["failures"]
    return role.policies[name if name in role.policies else role.otherwise_of(name)]


def _unknown(name: str) -> InputError:
    built_in = (key for key, policy in ROLES["failures"].policies.items() if policy.doc and key != "given")
    return unknown_name("source of failures", name, (*built_in, "the path of a failure log"), where="failures")


def is_file(name: str) -> bool:
    """Tell whether ``failures`` names a file, and no generator."""
    return _policy(name).name == "log"


def file_hash(name: str) -> str:
    """Return the content hash of the file that ``failures`` names, "" where it names none; check that it is there.

    Raises
    ------
    InputError
        If it is neither a generator nor a file that can be read, of a known format.
    """
    if not is_file(name):
        return ""
    return _file_hash(name, *_version(name))


def _version(name: str) -> tuple[int, int]:
    try:
        return version_of(name)
    except NoSourceError:
        raise _unknown(name) from None


def is_own_trace(name: str) -> bool:
    """Tell whether ``failures`` names a file of our own format, which "auto" takes as it is: times, nodes and all."""
    try:
        return is_file(name) and _is_own_trace(name, *_version(name))
    except InputError:
        return False


@lru_cache(maxsize=64)
def _is_own_trace(path: str, mtime_ns: int, size: int) -> bool:
    del mtime_ns, size
    return detect_format(known_content(path)[0]) == "csv"


@lru_cache(maxsize=64)
def _file_hash(path: str, mtime_ns: int, size: int) -> str:
    del mtime_ns, size
    return known_content(path)[1]
