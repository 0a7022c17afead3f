"""The commands of OpenPBS, as its manuals describe them, for one machine that plays two nodes.

``install`` writes ``qsub``, ``qstat``, ``qdel``, ``pbsnodes`` and ``pbsdsh`` into a folder; each calls this file. A
job is a folder with its attributes as JSON, and a process that looks after it: it waits for the jobs that the job
depends on, starts the script with hardly any environment, ends it at its walltime or when it is deleted (SIGTERM, and
SIGKILL a little later), and copies what it wrote to where the job said. No real PBS was at hand to compare it with.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

NODES = ("n1", "n2")
CPUS, MEMORY_KB = 4, 8 * 2**20
COMMANDS = ("qsub", "qstat", "qdel", "pbsnodes", "pbsdsh")
QUEUES: dict[str, dict[str, Any]] = {
    "workq": {"queue_type": "Execution", "enabled": "True", "started": "True"},
    "short": {
        "queue_type": "Execution",
        "enabled": "True",
        "started": "True",
        "resources_max": {"walltime": "00:02:00"},
    },
    "route": {"queue_type": "Route", "enabled": "True", "started": "True"},
}
KILL_DELAY_S = 10.0
UNKNOWN, FINISHED, REFUSED = 153, 35, 170


def install(folder: Path) -> None:
    """Write the commands into ``folder / "bin"``; jobs are kept beside it."""
    (folder / "bin").mkdir(parents=True)
    (folder / "jobs").mkdir()
    for name in COMMANDS:
        path = folder / "bin" / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -I {Path(__file__).resolve()} {folder} {name} "$@"\n')
        path.chmod(0o755)


class Server:
    """What PBS knows, in a folder."""

    def __init__(self, base: Path) -> None:
        self.base = base

    def read(self, job: str) -> dict[str, Any]:
        return dict(json.loads((self.base / "jobs" / job / "job.json").read_text()))

    def write(self, job: str, **values: Any) -> None:
        path = self.base / "jobs" / job / "job.json"
        known = self.read(job) if path.exists() else {}
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(known | values))
        draft.replace(path)

    def jobs(self) -> list[str]:
        return sorted((path.name for path in (self.base / "jobs").glob("*.pbs")), key=lambda name: int(name[:-4]))

    # commands

    def qsub(self, arguments: list[str]) -> int:
        files = [word for word in arguments if Path(word).is_file()]
        script = Path(files[0]).read_text() if files else sys.stdin.read()
        arguments = [word for word in arguments if word not in files]
        lines = [shlex.split(line[5:]) for line in script.splitlines() if line.startswith("#PBS ")]
        words = [word for line in lines for word in line] + arguments
        options = [(words[i], words[i + 1]) for i in range(0, len(words), 2)]
        given = dict(options)
        resources = dict(value.split("=", 1) for name, value in options if name == "-l")
        queue = given.get("-q", "workq")
        if queue not in QUEUES:
            return _fail("qsub: Unknown queue", REFUSED)
        most = QUEUES[queue].get("resources_max", {}).get("walltime")
        if most and _seconds(resources.get("walltime", "9999:00:00")) > _seconds(most):
            return _fail("qsub: Job violates queue and/or server resource limits", 188)
        number = f"{1 + max((int(name[:-4]) for name in self.jobs()), default=0)}.pbs"
        (self.base / "jobs" / number).mkdir()
        (self.base / "jobs" / number / "script").write_text(script)
        after = re.fullmatch(r"depend=afterany:(.+)", given.get("-W", ""))
        select = resources.get("select", "1:ncpus=1").split(":")
        count = int(select[0]) if select[0].isdigit() else 1
        self.write(
            number,
            Job_Name=given.get("-N", "STDIN"),
            Job_Owner=f"{getpass.getuser()}@login",
            job_state="H" if after else "Q",
            queue=queue,
            Resource_List={**resources, "nodect": count},
            comment="Not Running: Insufficient amount of resource: ncpus",
            after=after[1] if after else "",
            output=given.get("-o", ""),
            nodes=list(NODES[:count]),
            chunk=":".join(part for part in select[1:] if not part.startswith("mpiprocs")),
        )
        subprocess.Popen(
            [sys.executable, "-I", __file__, str(self.base), "look-after", number, os.getcwd()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        print(number)
        return 0

    def qstat(self, arguments: list[str]) -> int:
        if "-Q" in arguments:
            print(json.dumps({"Queue": QUEUES}))
        elif "-B" in arguments:
            print(json.dumps({"Server": {"pbs": {"default_queue": "workq", "server_state": "Active"}}}))
        else:
            return self._show(arguments)
        return 0

    def _show(self, arguments: list[str]) -> int:
        history = "-x" in arguments
        named = [word for word in arguments if not word.startswith("-") and word != "json"]
        shown = {}
        for job in named or self.jobs():
            if job not in self.jobs():
                return _fail(f"qstat: Unknown Job Id {job}", UNKNOWN)
            found = self.read(job)
            if found["job_state"] == "F" and not history:
                if named:
                    return _fail(f"qstat: {job} Job has finished, use -x or -H to obtain historical job", FINISHED)
                continue
            if found["job_state"] == "R":
                found["resources_used"] = {"walltime": _clock(time.time() - found["began"])}
            shown[job] = found
        print(json.dumps({"timestamp": int(time.time()), "Jobs": shown}))
        return 0

    def qdel(self, arguments: list[str]) -> int:
        for job in (word if "." in word else f"{word}.pbs" for word in arguments):
            if job not in self.jobs():
                return _fail(f"qdel: Unknown Job Id {job}", UNKNOWN)
            if self.read(job)["job_state"] == "F":
                return _fail(f"qdel: Job has finished {job}", FINISHED)
            (self.base / "jobs" / job / "deleted").touch()
        return 0

    def pbsnodes(self, arguments: list[str]) -> int:
        available = {"ncpus": CPUS, "mem": f"{MEMORY_KB}kb"}
        print(json.dumps({"nodes": {name: {"state": "free", "resources_available": available} for name in NODES}}))
        return 0

    def pbsdsh(self, arguments: list[str]) -> int:
        """Run a command on every node of this job, with the environment that PBS gives."""
        command = arguments[arguments.index("--") + 1 :]
        names = Path(os.environ["PBS_NODEFILE"]).read_text().split()
        plain = {name: os.environ[name] for name in ("PBS_JOBID", "PBS_NODEFILE", "HOME")}
        plain["PATH"] = "/usr/bin:/bin"
        processes = [
            subprocess.Popen(command, env={**plain, "PBS_NODENUM": str(i)}, stdin=subprocess.DEVNULL)
            for i, _ in enumerate(names)
        ]
        signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in processes] and None)
        return max(process.wait() for process in processes)

    # the life of a job

    def look_after(self, job: str, submitted_in: str) -> None:
        folder = self.base / "jobs" / job
        deleted = folder / "deleted"
        while (after := self.read(job)["after"]) and self.read(after)["job_state"] != "F" and not deleted.exists():
            time.sleep(0.05)
        if deleted.exists():
            self.write(job, job_state="F")
            return
        found = self.read(job)
        (folder / "nodes").write_text("".join(f"{name}\n" for name in found["nodes"]))
        environment = {"HOME": os.environ.get("HOME", "/"), "PATH": f"{self.base / 'bin'}:/usr/bin:/bin"}
        environment |= {"USER": getpass.getuser(), "PBS_JOBID": job, "PBS_NODEFILE": str(folder / "nodes")}
        environment |= {"PBS_O_WORKDIR": submitted_in, "PBS_ENVIRONMENT": "PBS_BATCH", "PBS_O_HOST": "login"}
        with (folder / "output").open("wb") as output:
            process = subprocess.Popen(
                ["/bin/bash", str(folder / "script")],
                cwd=submitted_in,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        host = "+".join(f"{name}/0*{CPUS}" for name in found["nodes"])
        vnode = "+".join(f"({name}:{found['chunk']})" for name in found["nodes"])
        self.write(job, job_state="R", began=time.time(), exec_host=host, exec_vnode=vnode, comment="Job run")
        status = self._wait(process, deleted, _seconds(found["Resource_List"].get("walltime", "9999:00:00")))
        if found["output"]:
            with contextlib.suppress(OSError):
                Path(found["output"]).write_bytes((folder / "output").read_bytes())
        self.write(job, job_state="F", Exit_status=status)

    @staticmethod
    def _wait(process: subprocess.Popen, deleted: Path, walltime_s: float) -> int:
        """Wait for the end of a job, or end it: all its processes, which are one session."""
        end, killed, is_late = time.monotonic() + walltime_s, None, False
        while process.poll() is None:
            now = time.monotonic()
            is_late = is_late or now > end
            if killed is None and (is_late or deleted.exists()):
                killed = now
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGTERM)
            elif killed is not None and now > killed + KILL_DELAY_S:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)
        code = process.returncode
        return -29 if is_late else code if code >= 0 else 256 - code


def _fail(text: str, code: int) -> int:
    sys.stderr.write(f"{text}\n")
    return code


def _seconds(text: str) -> float:
    total = 0
    for part in text.split(":"):
        total = 60 * total + int(part)
    return float(total)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 3600:02d}:{int(seconds) // 60 % 60:02d}:{int(seconds) % 60:02d}"


if __name__ == "__main__":
    server, action = Server(Path(sys.argv[1])), sys.argv[2]
    if action == "look-after":
        server.look_after(sys.argv[3], sys.argv[4])
    else:
        sys.exit(getattr(server, action)(sys.argv[3:]))
