"""SLURM's commands, asked in Python; what they refuse becomes a sentence that names the option to change.

The functions without an underscore that the package's docstring lists are its side of the contract.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from faultsweep.cluster.batch_systems import common
from faultsweep.cluster.batch_systems.common import (
    FORGOTTEN,
    Asked,
    BatchSystemError,
    NoAnswerError,
    Node,
    Partition,
)
from faultsweep.cluster.site import Site, parse_memory
from faultsweep.cluster.times import parse_time

from faultsweep.errors import InputError, unknown_name

TITLE = "SLURM"
JOB_VARIABLE = "SLURM_JOB_ID"
OPTIONS = "sbatch"
LOOK, END = "squeue --me", "scancel"
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


def call(*command: str, text: str | None = None, timeout_s: float | None = None) -> str:
    """Run a command of SLURM and return what it prints; see ``common.call``."""
    return common.call(TITLE, command, _NO_ANSWER, text, timeout_s)


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


def nodes_of_job() -> list[Node]:
    """Return the nodes of the job that this process belongs to, with what the job has of each.

    Raises
    ------
    BatchSystemError
        SLURM does not answer, or this is no job.
    """
    names = call("scontrol", "show", "hostnames", os.environ.get("SLURM_JOB_NODELIST", "")).split()
    if not names:
        raise BatchSystemError("scontrol: this is no job")
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


def describe_refusal(text: str, site: Site) -> str:
    """Return what ``sbatch`` refused as a sentence that names the option."""
    account, partition, qos = site.account, site.partition, site.qos
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


def check_options(site: Site) -> None:
    """Raise InputError for settings that this system cannot heed."""
    refuse_options(site.sbatch)


def directives(asked: Asked) -> list[str]:
    """Return the lines at the head of a job's script, the log's among them."""
    if re.search(r'["\\\n\r]', str(asked.folder)):
        place = str(asked.folder)
        raise InputError(f"{place!r}: SLURM takes no double quote, backslash or line break in the path of a job's log")
    site, workers = asked.site, asked.workers
    options = {
        "job-name": asked.name,
        "output": f'"{str(asked.folder).replace("%", "%%")}/job-%j.log"',
        "open-mode": "append",
        "signal": f"B:USR1@{site.grace_s}",
        "partition": site.partition,
        "account": site.account,
        "qos": site.qos,
        "time": site.time,
        "nodes": site.nodes if workers else 1,
        "ntasks-per-node": 1,
        "cpus-per-task": workers or 1,
        "mem": "0" if asked.whole else None if asked.memory_mb is None else f"{asked.memory_mb}M",
    }
    lines = [f"#SBATCH --{key}={value}" for key, value in options.items() if value is not None]
    named = {option.lstrip("-").partition("=")[0] for option in site.sbatch}
    if asked.whole:  # without a hint: with it, the numbers that SLURM tells of different nodes are wrong (22.05)
        lines.append("#SBATCH --exclusive")
    elif asked.cores and not named & {"hint", "threads-per-core", "ntasks-per-core", "B"}:
        lines.append("#SBATCH --hint=nomultithread")
    return [*lines, "#SBATCH --requeue", *(f"#SBATCH {option}" for option in site.sbatch)]


def test(script: str, names: Sequence[str]) -> None:
    """Raise BatchSystemError if SLURM would not take a script in any of the partitions of these names."""
    try:
        submit(script, test=True)
    except NoAnswerError:
        raise
    except BatchSystemError as error:
        # a test also fails where the job could only start when nodes are back; sbatch lets such a job wait
        if "node configuration" not in str(error) or not any(map(has_nodes_out_of_service, names)):
            raise


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
    except BatchSystemError:
        return ""


def job_state(job: str, name: str = "", timeout_s: float | None = None) -> dict[str, Any]:
    """Return what is known of a job: state, reason, nodes, walltime left, start; the state is "" if SLURM forgot it.

    Numbers begin anew on another cluster, and after a reset: with ``name``, a job of another name is not the one meant.
    """
    try:
        out = call("squeue", "-h", "-t", "all", "-j", job, "-o", "%T|%r|%N|%D|%L|%S|%M|%j", timeout_s=timeout_s)
    except BatchSystemError as error:
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
    except BatchSystemError:
        out = ""
    line = out.strip().splitlines()
    if not line:
        return dict(FORGOTTEN)
    state, nodes, used, found = line[-1].split("|", 3)
    if name and found != name:
        return dict(FORGOTTEN)
    return {**FORGOTTEN, "state": state.split()[0], "nodes": nodes, "elapsed": used}


def explain(reason: str) -> str:
    """Return the reason that a job waits for, in words."""
    if "DRAINED" in reason:  # SLURM has a sentence of its own for this one
        reason = "ReqNodeNotAvail"
    plain = reason.split(",")[0].strip("()")
    return f"{_REASONS[plain]} ({plain})" if plain in _REASONS else plain


def seconds_left() -> float | None:
    """Return None: SLURM sends SIGUSR1 before the walltime by itself."""
    return None


def on_each_node(command: Sequence[str], folder: Path, workers: int | None) -> list[str]:
    """Return the command that runs another one on every node of the job.

    One task per node; --overlap, since scheduler and sweep run on the first one; the processor affinity of
    a task would be that of one processor; the step goes on when a task dies (--kill-on-bad-exit=0). It has the
    environment that the job's script has made, also where the job was submitted with --export=NONE.
    """
    srun = ["srun", "--overlap", "--ntasks-per-node=1", f"--nodes={os.environ.get('SLURM_JOB_NUM_NODES', '1')}"]
    srun += ["--cpu-bind=none", "--kill-on-bad-exit=0", "--no-kill", "--label", "--export=ALL"]
    if workers is None:
        os.environ.pop("SLURM_CPUS_PER_TASK", None)  # a step without it has all that the job has of each node
    else:
        srun.append(f"--cpus-per-task={workers}")
    return [*srun, *command]


def restarts() -> int | None:
    """Return how often this job was put back into the queue."""
    return int(os.environ.get("SLURM_RESTART_COUNT", "0"))


def requeue(job: str, folder: Path) -> str:
    """Put a job back into the queue; returns its number, which stays."""
    call("scontrol", "requeue", job)
    return job


def worker_cluster(site: Site, name: str) -> tuple[str, dict[str, Any]]:
    """Return the class of dask-jobqueue for worker jobs, and its options beside those that all systems have.

    What the site does not set is left to SLURM (dask-jobqueue sets --mem).
    """
    skipped = ["--mem="] if site.memory_per_worker is None else []
    qos = [f"--qos={site.qos}"] if site.qos else []
    memory = parse_memory(site.memory_per_worker or "1GB")
    return "SLURMCluster", {
        "walltime": site.time,
        "job_mem": f"{math.ceil(memory / 2**20) + common.NANNY_MIB}M",
        "job_directives_skip": skipped,
        "job_extra_directives": [*qos, *site.sbatch],
    }


def jobs_named(name: str) -> set[str]:
    """Return the numbers of the user's jobs of a name that are in the queue, or run."""
    return set(call("squeue", "-h", "-n", name, "-o", "%i").split())


def cancel_named(name: str) -> None:
    """Cancel the user's jobs of a name, those that wait as well."""
    with contextlib.suppress(BatchSystemError):
        call("scancel", "--user", str(os.getuid()), "--name", name)


def cancel(job: str) -> None:
    """Cancel a job; one that is over already is no error."""
    try:
        call("scancel", job)
    except BatchSystemError as error:
        if "Invalid job id" not in str(error):
            raise
