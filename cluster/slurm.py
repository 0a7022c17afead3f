"""SLURM's commands, asked in Python; what they refuse becomes a sentence that names the option to change."""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from faultsweep.errors import InputError, UnreachableError, unknown_name

_TIMEOUT_S = 60
_NO_ANSWER = (
    *("Unable to contact slurm controller", "Could not establish a configuration", "Socket timed out"),
    *("Zero Bytes were transmitted", "Connection refused", "Connection reset"),
    "Unexpected message received",  # of scontrol requeue
)
"""What SLURM's commands say when its controller is down, is being restarted, or has too much to do."""
_SHORT_OPTIONS = {
    **{"A": "account", "J": "job-name", "e": "error", "o": "output", "p": "partition", "t": "time"},
    **{"M": "clusters", "V": "version", "W": "wait", "a": "array", "h": "help"},
}
_NOT_HERE = {
    "array": "since one job does the whole sweep",
    "clusters": "since 'squeue' and 'scancel' would not find the job",
    "error": "since 'faultsweep logs' would not find what the job writes",
    "help": "since nothing would be submitted",
    "job-name": "since jobs are known by their names here",
    "output": "since 'faultsweep logs' would not find what the job writes",
    "parsable": "since it is there already",
    "signal": "since grace_s says when a job saves",
    "test-only": "since nothing would be submitted; --dry-run tests a job",
    "usage": "since nothing would be submitted",
    "version": "since nothing would be submitted",
    "wait": "since nobody waits for the job",
    "wrap": "since the job has a script",
}
"""Options of ``sbatch`` that do not go with the jobs here, and why."""
_OVER = (
    *("CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED"),
    "PREEMPTED",  # where the site cancels such jobs; one that it requeues is PENDING
)
_REASONS = {
    "Resources": "waiting for free nodes",
    "Priority": "jobs with a higher priority are first",
    "BeginTime": "it has just been requeued and starts again shortly",
    "PartitionTimeLimit": "the partition does not allow so long a --time",
    "PartitionNodeLimit": "the partition does not have, or allow, so many --nodes",
    "PartitionDown": "the partition is down",
    "PartitionInactive": "the partition is inactive",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "JobLaunchFailure": "SLURM could not start it on the node",
    "JobHeldUser": "held by you: scontrol release",
    "JobHeldAdmin": "held by the administrators of the cluster",
    "QOSMaxCpuPerUserLimit": "you have as many processors in use as your quality of service allows",
    "AssocGrpCpuLimit": "your account has as many processors in use as it may",
    "AssocMaxJobsLimit": "you have as many jobs running as you may",
}


class SlurmError(InputError):
    """SLURM refused something, or did not answer."""


class SlurmUnreachableError(SlurmError, UnreachableError):
    """SLURM did not answer; it may have done what it was asked."""


def call(*command: str, text: str | None = None, timeout_s: float | None = None) -> str:
    """Run a command of SLURM and return what it prints; it is given ``timeout_s`` seconds (None: a minute) to answer.

    Raises
    ------
    SlurmUnreachableError
        SLURM does not answer.
    SlurmError
        The command is not there, or SLURM refuses.
    """
    timeout_s = timeout_s or _TIMEOUT_S
    if shutil.which(command[0]) is None:
        raise SlurmError(f"{command[0]} was not found: this is no machine of a SLURM cluster (or not its login node)")
    try:
        done = subprocess.run(  # noqa: S603 - a list, no shell
            command, input=text, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise SlurmUnreachableError(f"{command[0]} has not answered for {timeout_s:g} s; try again later") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        if any(sign in said for sign in _NO_ANSWER):
            raise SlurmUnreachableError(f"{command[0]}: SLURM's controller does not answer; try again later ({said})")
        raise SlurmError(f"{command[0]}: {said}")
    return done.stdout


@dataclass(frozen=True)
class Partition:
    """A partition as ``sinfo`` has it; ``most_s`` is None where there is no limit, ``nodes`` counts those there are.

    Of nodes of different kinds, which ``is_mixed`` tells, ``cpus``, ``cores`` and ``memory_mb`` are the least.
    """

    name: str
    default: bool
    up: bool
    most_s: float | None
    nodes: int
    cpus: int
    memory_mb: int
    cores: int
    is_mixed: bool = False


def partitions() -> dict[str, Partition]:
    """Return the partitions of this cluster."""
    found: dict[str, Partition] = {}
    for line in call("sinfo", "-h", "-e", "-o", "%P|%a|%l|%D|%c|%m|%Z").splitlines():
        name, state, limit, nodes, *sizes = line.strip().split("|")
        cpus, memory, threads = (int(re.sub(r"\D", "", size) or 0) for size in sizes)
        most = None if limit == "infinite" else parse_time(limit)
        plain, cores = name.rstrip("*"), max(1, cpus // max(1, threads))
        one = Partition(plain, name.endswith("*"), state == "up", most, int(nodes), max(1, cpus), memory, cores)
        found[plain] = _both(found[plain], one) if plain in found else one
    return found


def _both(one: Partition, other: Partition) -> Partition:
    """Return a partition of two kinds of nodes."""
    least = {name: min(getattr(one, name), getattr(other, name)) for name in ("cpus", "memory_mb", "cores")}
    mixed = one.is_mixed or one.cores != other.cores
    return replace(one, nodes=one.nodes + other.nodes, is_mixed=mixed, **least)


@dataclass(frozen=True)
class Node:
    """What a job has of a node: cores, and memory in MiB (0: not known)."""

    name: str
    cores: int
    memory_mb: int


def nodes_of_job() -> list[Node]:
    """Return the nodes of the job that this process belongs to, with what the job has of each.

    Raises
    ------
    SlurmError
        SLURM does not answer, or this is no job.
    """
    names = call("scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")).split()
    if not names:
        raise SlurmError("scontrol: this is no job")
    facts = {}
    for line in call("sinfo", "-hN", "-n", ",".join(names), "-o", "%N|%c|%Z|%m").splitlines():
        name, *sizes = line.strip().split("|")
        facts[name] = [int(size) for size in sizes]
    given = int(os.environ.get("SLURM_MEM_PER_NODE", "0"))
    counts_cores = os.environ.get("SLURM_THREADS_PER_CORE") == "1"  # as --hint=nomultithread sets it
    nodes = []
    for name, allocated in zip(names, _repeated(os.environ.get("SLURM_JOB_CPUS_PER_NODE", "")), strict=False):
        cpus, threads, memory = facts.get(name, [allocated, 1, 0])
        cores = min(allocated, cpus // threads) if counts_cores else min(allocated, cpus) // threads
        nodes.append(Node(name, max(1, cores), given or memory))
    return nodes


def _repeated(text: str) -> list[int]:
    """Return the numbers of "4(x2),8": 4, 4, 8."""
    parts = (re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part) for part in text.split(","))
    return [int(part[1]) for part in parts if part for _ in range(int(part[2] or 1))]


def has_nodes_out_of_service(partition: str) -> bool:
    """Tell whether some nodes of a partition are down, drained or reserved for now."""
    return bool(call("sinfo", "-h", "-p", partition, "-t", "down,drain,fail,maint,unk,reserved", "-o", "%D").strip())


def parse_time(text: str, where: str = "--time") -> float:
    """Return a time as SLURM writes it, in seconds: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, UNLIMITED."""
    if text.strip().upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    match = re.fullmatch(r"(?:(\d+)-(\d+)(?::(\d+))?(?::(\d+))?)|(\d+)(?::(\d+))?(?::(\d+))?", text.strip())
    if not match:
        raise InputError(f"{where}: expected minutes, HH:MM:SS or D-HH:MM:SS, got {text!r}")
    days, hours, minutes, seconds, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1] is not None:
        total = 86_400 * days + 3600 * hours + 60 * minutes + seconds
    elif match[7] is not None:
        total = 3600 * first + 60 * second + third
    else:
        total = 60 * first + second
    if total <= 0:
        raise InputError(f"{where}: expected more than 0, got {text!r}")
    return float(total)


def describe_refusal(text: str, account: str | None, partition: str | None, qos: str | None) -> str:
    """Return what ``sbatch`` refused as a sentence that names the option."""
    where = f" in the partition {partition!r}" if partition else ""
    if "nvalid account" in text:
        if account is None:
            return f"--account: SLURM wants one{where} ('sacctmgr show associations user=$USER' lists yours)"
        return (
            f"--account: SLURM does not accept {account!r}{where} ('sacctmgr show associations user=$USER' lists yours)"
        )
    if "nvalid qos" in text:
        return f"--qos: SLURM does not accept {qos!r}{where}"
    if "partition" in text and "nvalid" in text:
        return str(unknown_name("partition", partition or "", list(partitions()), where="--partition"))
    if "time limit" in text.lower() or "--time" in text:
        return f"--time: SLURM does not accept it{where}: {text}"
    if "node configuration" in text or "Memory specification" in text or "node count" in text:
        return f"--nodes, --workers-per-node or --memory-per-worker is more than there is{where}: {text}"
    return text


def refuse_options(options: Sequence[str]) -> None:
    """Raise InputError for options of ``sbatch`` that do not go with jobs that are submitted and looked after here."""
    for option in options:
        try:
            words = shlex.split(option)
        except ValueError:
            raise InputError(f"--sbatch, or sbatch in the site's file: a quote is not closed in {option!r}") from None
        for word in words:
            name = word.removeprefix("--").partition("=")[0]  # which may be shortened, as for sbatch itself
            if word.startswith("--"):
                reason = next((text for known, text in _NOT_HERE.items() if name and known.startswith(name)), None)
            else:
                reason = _NOT_HERE.get(_SHORT_OPTIONS.get(word[1:2], "")) if word.startswith("-") else None
            if reason:
                raise InputError(f"--sbatch, or sbatch in the site's file: {word!r} cannot be used, {reason}")


def submit(script: str, *, test: bool = False, options: Sequence[str] = ()) -> str:
    """Submit a batch script; returns the job's number, or "" for a test, which submits nothing."""
    with without_overrides(script):
        return _sbatch(script, test, options)


def _sbatch(script: str, test: bool, options: Sequence[str]) -> str:
    if test:
        call("sbatch", "--test-only", *options, text=script)
        return ""
    return call("sbatch", "--parsable", *options, text=script).strip().split(";")[0]


@contextmanager
def without_overrides(script: str) -> Iterator[None]:
    """Take the variables out of the environment that ``sbatch`` would let come before options of the script."""
    given = re.findall(r"^#SBATCH (?:--([a-z-]+)|-([A-Za-z]))", script, flags=re.MULTILINE)
    options = [long or _SHORT_OPTIONS.get(short, short) for long, short in given]
    others = {"time": "TIMELIMIT", "mem": "MEM_PER_NODE", "requeue": "NO_REQUEUE"}
    names = {f"SBATCH_{others.get(name, name.upper().replace('-', '_'))}" for name in options}
    taken = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(taken)


def name_of(job: str) -> str:
    """Return the name that a job has, which options of the user or of the site may have changed; "" if not known."""
    try:
        return call("squeue", "-h", "-t", "all", "-j", job, "-o", "%j").strip("\n")
    except SlurmError:
        return ""


FORGOTTEN: dict[str, Any] = {
    **dict.fromkeys(("state", "reason", "nodes", "walltime_left", "start", "elapsed"), ""),
    "num_nodes": 0,
}
"""What ``job_state`` says of a job that SLURM does not know."""


def job_state(job: str, name: str = "", timeout_s: float | None = None) -> dict[str, Any]:
    """Return what is known of a job: state, reason, nodes, walltime left, start; the state is "" if SLURM forgot it.

    Numbers begin anew on another cluster, and after a reset: with ``name``, a job of another name is not the one meant.
    """
    try:
        out = call("squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%r|%N|%D|%L|%S|%M|%j", timeout_s=timeout_s)
    except SlurmError as error:
        if "Invalid job id" in str(error):
            out = ""
        else:
            raise
    line = out.strip().splitlines()
    if not line:
        return _from_accounting(job, name, timeout_s)
    state, reason, nodes, number, left, start, used, found = line[0].split("|", 7)
    if name and found != name:
        return dict(FORGOTTEN)
    return {
        "state": state,
        "reason": "" if reason == "None" else reason,
        "nodes": nodes,
        "num_nodes": int(number),
        "walltime_left": "" if left in ("UNLIMITED", "INVALID") else left,
        "start": "" if start == "N/A" else start,
        "elapsed": used,
    }


def _from_accounting(job: str, name: str, timeout_s: float | None) -> dict[str, Any]:
    """Return the state of a job that is over from the accounting, where there is one."""
    try:
        out = call("sacct", "-nXP", "-j", job, "-o", "State,NodeList,Elapsed,JobName", timeout_s=timeout_s)
    except SlurmError:
        out = ""
    line = out.strip().splitlines()
    if not line:
        return dict(FORGOTTEN)
    state, nodes, used, found = line[-1].split("|", 3)
    if name and found != name:
        return dict(FORGOTTEN)
    return {**FORGOTTEN, "state": state.split()[0], "nodes": nodes, "elapsed": used}


def is_over(state: str) -> bool:
    """Tell whether a job in this state will do nothing more; one that SLURM forgot will not, either."""
    return not state or state in _OVER


def explain(reason: str) -> str:
    """Return the reason that a job waits for, in words."""
    if "DRAINED" in reason:  # SLURM has a sentence of its own for this one
        reason = "ReqNodeNotAvail"
    plain = reason.split(",")[0].strip("()")
    return f"{_REASONS[plain]} ({plain})" if plain in _REASONS else plain


def cancel(job: str) -> None:
    """Cancel a job; one that is over already is no error."""
    try:
        call("scancel", job)
    except SlurmError as error:
        if "Invalid job id" not in str(error):
            raise
