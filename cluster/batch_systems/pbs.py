"""PBS's commands, asked in Python. Written from the manuals of OpenPBS; not tried on a real one yet.

PBS differs from SLURM in what a job has to do itself: it sends no signal before the walltime, so the job looks at its
clock; users may not put a job back into the queue, so it submits its script again, to start when it has ended; and
``pbsdsh`` starts processes with hardly any environment, so they get that of the job from a file.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import math
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from faultsweep.cluster.batch_systems import common
from faultsweep.cluster.batch_systems.common import FORGOTTEN, Asked, BatchSystemError, Node, Partition
from faultsweep.cluster.site import Site, parse_memory
from faultsweep.cluster.times import parse_time

from faultsweep.errors import InputError, unknown_name

TITLE = "PBS"
JOB_VARIABLE = "PBS_JOBID"
OPTIONS = "submit_options"
LOOK, END = "qstat -u $USER", "qdel"
_NO_ANSWER = ("cannot connect to server", "Connection refused", "Communication failure", "End of File", "timed out")
_GONE = ("Unknown Job", "Job has finished", "Unknown Job Id")
_STATES = {
    **dict.fromkeys("QHWT", "PENDING"),
    **dict.fromkeys("RE", "RUNNING"),
    **dict.fromkeys("SU", "SUSPENDED"),
}
_KILLED = (143, 265, 271)
"""Exit statuses of a job that qdel ended: by itself after SIGTERM, and by SIGKILL or SIGTERM (256 and more)."""
_WALLTIME = -29
_NOT_HERE = {"N": "jobs are known by their names here", "o": "'faultsweep logs' would not find what the job writes"}
_NOT_HERE |= {"e": _NOT_HERE["o"], "J": "one job does the whole sweep", "I": "nobody sits at the job"}


def call(*command: str, text: str | None = None, timeout_s: float | None = None) -> str:
    """Run a command of PBS and return what it prints; see ``common.call``."""
    return common.call(TITLE, command, _NO_ANSWER, text, timeout_s)


def partitions() -> dict[str, Partition]:
    """Return the queues that run jobs; all of them are taken to have all nodes."""
    queues = json.loads(call("qstat", "-Q", "-f", "-F", "json")).get("Queue", {})
    (server,) = json.loads(call("qstat", "-B", "-f", "-F", "json"))["Server"].values()
    nodes = json.loads(call("pbsnodes", "-a", "-F", "json")).get("nodes", {}).values()
    given = [node.get("resources_available", {}) for node in nodes]
    cpus = [int(node["ncpus"]) for node in given if "ncpus" in node] or [1]
    memory = [_bytes(node["mem"]) // 2**20 for node in given if "mem" in node] or [0]
    found = {}
    for name, queue in queues.items():
        if queue.get("queue_type") == "Execution":
            most = queue.get("resources_max", {}).get("walltime")
            up = queue.get("enabled") == queue.get("started") == "True"
            most_s = None if most is None else parse_time(most)
            sizes = (len(given), min(cpus), min(memory), min(cpus), len(set(cpus)) > 1)
            found[name] = Partition(name, name == server.get("default_queue"), up, most_s, *sizes)
    return found


def check_options(site: Site) -> None:
    """Raise InputError for settings that PBS cannot heed."""
    if site.qos is not None:
        raise InputError("--qos: PBS has none; leave it out")
    if "-" in site.nodes:
        raise InputError(f"--nodes: PBS takes a number, not the range {site.nodes}")
    if site.partition is not None and "," in site.partition:
        raise InputError(f"--partition: PBS takes one queue, not {site.partition}")
    if site.sbatch:
        raise InputError("sbatch: these are options for SLURM; put options of qsub into submit_options")
    for option in site.submit_options:
        reason = _NOT_HERE.get(option[1:2])
        if reason:
            raise InputError(f"submit_options: {option!r} cannot be used, since {reason}")


def directives(asked: Asked) -> list[str]:
    """Return the lines at the head of a job's script; from the last of them on it writes into its own log."""
    if re.search(r"[\s,:'\"\\]", str(asked.folder)):
        raise InputError(f"{str(asked.folder)!r}: PBS takes no blank, comma, colon or quote in the path of a job's log")
    site = asked.site
    chunk = [f"{site.nodes if asked.workers else 1}:ncpus={asked.workers or 1}:mpiprocs=1"]
    chunk += [f"mem={asked.memory_mb}mb"] if asked.memory_mb is not None else []
    lines = [f"#PBS -N {asked.name}", "#PBS -j oe", f"#PBS -o {asked.folder}/job-early.log"]
    lines += [f"#PBS -q {site.partition}"] if site.partition else []
    lines += [f"#PBS -A {site.account}"] if site.account else []
    seconds = math.inf if site.time is None else parse_time(site.time)
    lines += [f"#PBS -l walltime={_clock(seconds)}"] if math.isfinite(seconds) else []
    lines += [f"#PBS -l select={':'.join(chunk)}", f"#PBS -l place=scatter{':excl' if asked.whole else ''}"]
    lines.append("#PBS -r y")
    lines += [f"#PBS {option}" for option in site.submit_options]
    return [*lines, "", f'exec >> {asked.folder}/"job-$PBS_JOBID.log" 2>&1']


def test(script: str, names: Sequence[str]) -> None:
    """Do nothing: PBS has no test of a job. What it would refuse, it refuses when the job is submitted."""


def submit(script: str, *, options: Sequence[str] = ()) -> str:
    """Submit a batch script; returns the job's number."""
    return call("qsub", *options, text=script).strip()


def describe_refusal(text: str, site: Site) -> str:
    """Return what ``qsub`` refused as a sentence that names the option."""
    if "Unknown queue" in text:
        return str(unknown_name("queue", site.partition or "", list(partitions()), where="--partition"))
    if "nvalid account" in text or "account" in text.lower():
        return f"--account: PBS does not accept {site.account!r}"
    if "walltime" in text or "exceeds queue" in text:
        return f"--time, --nodes, --workers-per-node or --memory-per-worker is more than the queue allows: {text}"
    return text


def name_of(job: str) -> str:
    """Return the name that a job has; "" if it is not known."""
    with contextlib.suppress(BatchSystemError):
        return str(_job(job).get("Job_Name", ""))
    return ""


def _job(job: str, timeout_s: float | None = None) -> dict[str, Any]:
    """Return what PBS knows of a job, nothing if it knows none of that number."""
    try:
        jobs = json.loads(call("qstat", "-x", "-f", "-F", "json", job, timeout_s=timeout_s)).get("Jobs", {})
    except BatchSystemError as error:
        if any(sign in str(error) for sign in _GONE):
            return {}
        raise
    return dict(next(iter(jobs.values()), {}))


def job_state(job: str, name: str = "", timeout_s: float | None = None) -> dict[str, Any]:
    """Return what is known of a job, in SLURM's words; one of another name is not the one that is meant."""
    found = _job(job, timeout_s)
    if not found or (name and found.get("Job_Name") != name):
        return dict(FORGOTTEN)
    hosts = sorted({part.partition("/")[0] for part in found.get("exec_host", "").split("+") if part})
    used = found.get("resources_used", {}).get("walltime", "")
    asked = found.get("Resource_List", {}).get("walltime", "")
    state = _STATES.get(found["job_state"], _ending(found))
    left = _clock(max(0.0, _seconds(asked) - _seconds(used))) if asked and state == "RUNNING" else ""
    return {
        "state": state,
        "reason": found.get("comment", "") if state == "PENDING" else "",
        "nodes": ",".join(hosts),
        "num_nodes": len(hosts),
        "walltime_left": left,
        "start": str(found.get("estimated", {}).get("start_time", "")),
        "elapsed": used,
    }


def _ending(found: dict[str, Any]) -> str:
    status = int(found.get("Exit_status", 0))
    if status == 0:
        # a job that was deleted before it started has none
        return "COMPLETED" if "Exit_status" in found else "CANCELLED"
    return "CANCELLED" if status in _KILLED else "TIMEOUT" if status == _WALLTIME else "FAILED"


def explain(reason: str) -> str:
    """Return the reason that a job waits for: PBS says it in words."""
    return reason.removeprefix("Not Running: ")


def cancel(job: str) -> None:
    """Cancel a job; one that is over already is no error."""
    try:
        call("qdel", job)
    except BatchSystemError as error:
        if not any(sign in str(error) for sign in _GONE):
            raise


def restarts() -> int | None:
    """Return None: a job that is submitted again is another one, and is counted where it is known."""
    return None


def seconds_left() -> float | None:
    """Return how long this job may run yet; None if there is no limit, or PBS does not answer."""
    try:
        found = _job(os.environ.get(JOB_VARIABLE, ""))
    except BatchSystemError:
        return None
    asked = found.get("Resource_List", {}).get("walltime")
    return None if asked is None else _seconds(asked) - _seconds(found.get("resources_used", {}).get("walltime", "0"))


def nodes_of_job() -> list[Node]:
    """Return the nodes of the job that this process belongs to, with what the job has of each."""
    found = _job(os.environ.get(JOB_VARIABLE, ""))
    nodes = []
    for chunk in filter(None, found.get("exec_vnode", "").split("+")):
        name, *parts = chunk.strip("()").split(":")
        sizes = dict(part.split("=") for part in parts if "=" in part)
        nodes.append(Node(name, int(sizes.get("ncpus", "1")), _bytes(sizes.get("mem", "0")) // 2**20))
    if not nodes:
        raise BatchSystemError("qstat: nothing is known of the nodes of this job")
    return nodes


def on_each_node(command: Sequence[str], folder: Path, workers: int | None) -> list[str]:
    """Return the command that runs another one on every node of the job, with the environment of this process."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PBS_") and name.isidentifier()}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in own.items()]
    script = folder / "node.sh"  # in a folder that is the user's alone
    with os.fdopen(os.open(script, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o700), "w") as file:
        file.write("\n".join(["#!/bin/bash", *lines, f"exec {shlex.join(command)}"]) + "\n")
    return ["pbsdsh", "--", "/bin/bash", str(script)]


def requeue(job: str, folder: Path) -> str:
    """Submit the script of a job again, to start when this one has ended; returns the number of the new one."""
    return submit((folder / "job.sh").read_text(), options=["-W", f"depend=afterany:{job}"])


def worker_cluster(site: Site, name: str) -> tuple[str, dict[str, Any]]:
    """Return the class of dask-jobqueue for worker jobs, and its options beside those that all systems have."""
    memory = math.ceil(parse_memory(site.memory_per_worker or "1GB") / 2**20) + common.NANNY_MIB
    wanted = None if site.time is None or not math.isfinite(parse_time(site.time)) else _clock(parse_time(site.time))
    resources = f"select=1:ncpus=1:mem={memory}mb" if site.memory_per_worker else "select=1:ncpus=1"
    return "PBSCluster", {
        "walltime": wanted,
        "resource_spec": resources,
        "job_extra_directives": list(site.submit_options),
    }


def jobs_named(name: str) -> set[str]:
    """Return the numbers of the user's jobs of a name that are in the queue, or run, as dask-jobqueue has them."""
    return {number.partition(".")[0] for number in _jobs_named(name)}


def _jobs_named(name: str) -> set[str]:
    jobs = json.loads(call("qstat", "-f", "-F", "json")).get("Jobs", {})
    user = f"{getpass.getuser()}@"
    mine = {number: job for number, job in jobs.items() if str(job.get("Job_Owner", user)).startswith(user)}
    return {number for number, job in mine.items() if job.get("Job_Name") == name}


def cancel_named(name: str) -> None:
    """Cancel the user's jobs of a name, those that wait as well."""
    with contextlib.suppress(BatchSystemError):
        for number in _jobs_named(name):
            cancel(number)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(math.ceil(seconds), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest:02d}"


def _seconds(text: str) -> float:
    """Return HH:MM:SS, MM:SS or SS in seconds."""
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part or 0)
    return float(total)


def _bytes(text: str | int) -> int:
    """Return a size such as 16gb, of powers of 1024, in bytes."""
    match = re.fullmatch(r"(\d{1,18})([kmgt]?)(b|w)?", str(text).lower())
    return int(match[1]) * 1024 ** " kmgt".index(match[2] or " ") * (8 if match[3] == "w" else 1) if match else 0
