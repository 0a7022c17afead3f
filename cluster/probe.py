"""What ``faultsweep cluster init`` and ``cluster check`` find out about a batch system."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from distributed import KilledWorker
from faultsweep.cluster.batch_systems import default_system, find
from faultsweep.cluster.connect import connect
from faultsweep.cluster.script import Work
from faultsweep.cluster.site import Site
from faultsweep.cluster.submit import cancel_job, describe_job, plan_job, submit_job

from faultsweep import __version__
from faultsweep.errors import InputError

ANSWER = "probe.json"
_WORKERS_S = 60.0


def site_text(name: str | None = None) -> str:
    """Return a commented site file from what the batch system says: everything that it cannot know is commented out."""
    name = name or default_system()
    system = find(name)
    found = system.partitions()
    if not found:
        raise InputError(f"{system.TITLE} shows no partition that you may use; ask whoever runs this cluster")
    lines = [
        f"# How faultsweep uses {system.TITLE} here; every line is optional; flags of 'faultsweep submit' override it.",
        "#",
    ]
    for partition in found.values():
        limit = f"at most {partition.most_s / 3600:g} h" if partition.most_s else "no limit of time"
        first = " (default)" if partition.default else ""
        lines.append(
            f"# {partition.name}{first}: {partition.nodes:,} nodes of {partition.cpus} processors and"
            f" {partition.memory_mb:,} MiB, {limit}{'' if partition.up else ', down'}"
        )
    default = next((one for one in found.values() if one.default), next(iter(found.values())))
    hours = 12.0 if default.most_s is None else min(12.0, default.most_s / 3600)
    minutes = max(1, int(60 * hours))
    known = {"system": name, "partition": default.name, "time": f"{minutes // 60:02d}:{minutes % 60:02d}:00"}
    for name, field in Site.model_fields.items():
        lines += ["", f"# {field.description}"]
        if name in known:
            lines.append(f"{name} = {json.dumps(known[name])}")
        else:
            lines.append(f"# {name} = {json.dumps(_EXAMPLES.get(name, field.default))}")
    return "\n".join(lines) + "\n"


_EXAMPLES: dict[str, Any] = {
    "account": "physics",
    "qos": "normal",
    "max_requeues": 100,
    "workers_per_node": 16,
    "memory_per_worker": "1GB",
    "controller_memory": "2GB",
    "interface": "ib0",
    "scratch": "/local/scratch",
    "setup": ["module load gcc"],
    "sbatch": ["--constraint=skylake"],
    "submit_options": ["-l software=gcc"],
    "python": "/home/me/faultsweep/bin/python",
}


def check_site(site: Site, say: Any, wait_s: float = 600.0) -> bool:
    """Submit a probe of a minute and say in sentences what works; returns whether all of it does.

    The probe's files are in a folder of the working directory, which all nodes must see, as they must see a store.
    """
    folder = Path(tempfile.mkdtemp(prefix="faultsweep-check-", dir=Path.cwd()))
    work = Work("check", folder, folder / "progress.json", ("-P", "-m", "faultsweep.cluster.probe", str(folder)))
    short = site.model_copy(update={"time": "2", "grace_s": 30, "workers_per_node": 1, "max_restarts": 0})
    ok = False
    try:
        script, workers = plan_job(short, work)
        system = find(site.system or default_system())
        say(f"{system.TITLE} takes the job: {site.nodes} nodes of {site.partition or 'the default partition'}")
        job = submit_job(short, script, workers, folder, {})
        say(f"submitted as job {job.job}")
        try:
            ok = _report(job, folder, say, time.monotonic() + wait_s)
        finally:
            cancel_job(job)
    finally:
        if ok or not any(folder.glob("job-*.log")):
            _remove(folder)
        else:
            say(f"what the job wrote is in {folder}")
    return ok


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _report(job: Any, folder: Path, say: Any, until: float) -> bool:
    """Wait for the probe's answer and tell it."""
    said = ""
    while not (folder / ANSWER).exists():
        found = describe_job(job)
        if found["over"]:
            say(f"the job ended ({found['state'].lower()}) without an answer: {found['text'] or 'see its log'}")
            return False
        state = found["text"] if found["over"] is None else f"the job is {found['state'].lower()}"
        if found["state"] == "PENDING" and found["reason"]:
            state += f": {find(job.system).explain(found['reason'])}"
        if state != said:
            say(state)
            said = state
        if time.monotonic() > until:
            say("it has not answered, so it is cancelled now")
            return False
        time.sleep(0.5)
    answer = json.loads((folder / ANSWER).read_text())
    wanted = answer["nodes"]
    hosts = sorted({worker["host"] for worker in answer["workers"]})
    say(f"{len(answer['workers'])} of {wanted} workers came, on {', '.join(hosts) or 'no node'}")
    problems = 0
    for worker in answer["workers"]:
        if not worker["sees"]:
            say(f"{worker['host']} does not see the working directory: results would travel to the first node")
        if not worker["same"]:
            say(f"{worker['host']} has another version of faultsweep")
        problems += (not worker["sees"]) + (not worker["same"])
    if len(answer["workers"]) < wanted:
        say("not all nodes reach the scheduler: set 'interface' (ip -brief address), 'python' or 'setup'")
        problems += 1
    if not problems:
        say("all nodes see this folder, have this version, and reach each other by TLS: sweeps will run")
    return not problems


def _look(folder: str) -> dict[str, Any]:
    """Return what one worker is and sees; runs on it."""
    return {"host": socket.gethostname(), "sees": (Path(folder) / "job.sh").is_file(), "version": __version__}


def main() -> None:
    """Be the client of the probe: wait for the workers, ask each of them, and write the answer down."""
    folder = Path(sys.argv[1])
    try:
        nodes = len(find(default_system()).nodes_of_job())
    except InputError:
        nodes = 1
    with connect() as client:
        end = time.monotonic() + _WORKERS_S
        while len(client.nthreads()) < nodes and time.monotonic() < end:
            time.sleep(0.2)
        calls = [
            client.submit(_look, str(folder), workers=[worker], allow_other_workers=False, pure=False)
            for worker in client.nthreads()
        ]
        end = time.monotonic() + _WORKERS_S
        found = []
        for call in calls:
            with contextlib.suppress(TimeoutError, KilledWorker):  # a worker that does not answer does not count
                found.append(call.result(max(1.0, end - time.monotonic())))
    workers = [{**worker, "same": worker["version"] == __version__} for worker in found]
    draft = folder / f"{ANSWER}.partial"
    draft.write_text(json.dumps({"nodes": nodes, "workers": workers}))
    os.replace(draft, folder / ANSWER)


def write_site(path: Path, force: bool, system: str | None = None) -> None:
    """Write the site's file; one that is there is left alone unless ``force``."""
    if path.exists() and not force:
        raise InputError(f"{path}: is there already; --force replaces it")
    text = site_text(system)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
