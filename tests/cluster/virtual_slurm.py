"""A real SLURM of two virtual nodes on the loopback, in a folder of its own: slurmctld, two slurmd, and their munge.

Nothing outside the folder is read or written; it works with and without root. The daemons stay in the foreground, as
children of this process, and end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

NODES = ("n1", "n2")
LARGE = "n3"
"""A node of another kind, of the partition "mixed": 6 cores of two hardware threads, and more memory."""
USER = pwd.getpwuid(os.getuid()).pw_name  # variables such as LOGNAME may name another user
CPUS = 4
MEMORY_MB = 8000
_DAEMONS = ("munged", "slurmctld", "slurmd")
_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_PR_SET_PDEATHSIG = 1

# A requeued job may start again when its old credential has expired, so cred_expire is short (2 minutes by default).
CONFIG = """
ClusterName=virtual
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket,cred_expire=5
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort={port}
SlurmctldPidFile={base}/slurmctld.pid
StateSaveLocation={base}/state
SlurmdPidFile={base}/slurmd-%n.pid
SlurmdSpoolDir={base}/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobSubmitPlugins={plugins}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=5
MinJobAge=300
SlurmctldTimeout=30
SlurmdTimeout=30
InactiveLimit=0
PropagateResourceLimits=NONE
NodeName=DEFAULT CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port1}
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port2}
NodeName=DEFAULT CPUs=12 CoresPerSocket=6 ThreadsPerCore=2 RealMemory=16000
NodeName=n3 NodeHostname=localhost NodeAddr=127.0.0.1 Port={port3}
PartitionName=debug Nodes=n1,n2 Default=YES DefMemPerCPU=1000 MaxTime=INFINITE State=UP
PartitionName=short Nodes=n1,n2 DefMemPerCPU=1000 MaxTime=2 State=UP
PartitionName=mixed Nodes=n1,n3 DefMemPerCPU=1000 MaxTime=INFINITE State=UP
PartitionName=threads Nodes=n3 DefMemPerCPU=1000 MaxTime=INFINITE State=UP
"""

# The account database is a daemon with an SQL server of its own; sites without it check accounts like this.
SUBMIT_RULE = """
function slurm_job_submit(job, partitions, uid)
   if job.account ~= nil and job.account ~= "physics" then
      return slurm.ESLURM_INVALID_ACCOUNT
   end
   return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid)
   return slurm.SUCCESS
end
return slurm.SUCCESS
"""


def missing() -> list[str]:
    """Return the daemons that are not installed."""
    return [name for name in _DAEMONS if shutil.which(name, path=_PATH) is None]


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_ports(number: int) -> list[int]:
    """Return ports that are free, of those that no connection gets by itself, so that they stay so."""
    found: list[int] = []
    with contextlib.ExitStack() as stack:
        while len(found) < number:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
                found.append(one.getsockname()[1])
    return found


class VirtualSlurm:
    """The daemons; use as a context manager. ``environment`` is what a login to this SLURM has."""

    def __init__(self) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.config = self.base / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.config), "PATH": _PATH}
        self._processes: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> VirtualSlurm:
        try:
            self._start()
        except AssertionError as error:
            logs = self.logs()
            self.__exit__()
            raise AssertionError(f"{error}\n{logs}") from None
        return self

    def _start_munge(self, *folders: str) -> None:
        """Make the folders of the daemons, and start what proves who asks."""
        base = self.base
        base.chmod(0o711)  # so that daemons reach the socket
        for folder in ("state", *folders):
            (base / folder).mkdir()
        key = base / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(1024))
        files = {"key-file": key, "socket": base / "munge.socket", "pid-file": base / "munge.pid"}
        files |= {"seed-file": base / "munge.seed", "log-file": base / "munge.log"}
        # --force: the folder is the user's, not of a daemon's account
        self._launch("munged", "--foreground", "--force", *(f"--{name}={path}" for name, path in files.items()))
        _wait_for("munge", lambda: (base / "munge.socket").exists())

    def _start_nodes(self, *nodes: str) -> None:
        """Start the controller and the nodes, and wait until they are idle."""
        self._launch_controller()
        for node in nodes:
            self._launch("slurmd", "-D", "-N", node, "-f", self.config, name=node)
        idle = lambda: set(self.ask("sinfo", "-hN", "-t", "idle", "-o", "%N").split()) == set(nodes)  # noqa: E731
        _wait_for("idle nodes", idle, 60)

    def _start(self) -> None:
        base = self.base
        self._start_munge(*(f"spool-{node}" for node in (*NODES, LARGE)))
        port, port1, port2, port3 = _free_ports(4)
        lua = any(Path("/usr/lib").glob("*/slurm-wlm/job_submit_lua.so"))
        (base / "job_submit.lua").write_text(SUBMIT_RULE)
        names = {"user": USER, "base": base, "cpus": CPUS, "memory": MEMORY_MB}
        names |= {"port": port, "port1": port1, "port2": port2, "port3": port3, "plugins": "lua" if lua else ""}
        self.config.write_text(CONFIG.format(**names))
        self._start_nodes(*NODES, LARGE)

    def _launch(self, program: str, *arguments: object, name: str = "") -> None:
        path = shutil.which(program, path=_PATH)
        assert path is not None
        with (self.base / f"{name or program}.log").open("ab") as log:
            self._processes[name or program] = subprocess.Popen(
                [path, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.environment},
                preexec_fn=_die_with_parent,
                start_new_session=True,
            )

    def _launch_controller(self) -> None:
        self._launch("slurmctld", "-D", "-i", "-f", self.config)

    @contextlib.contextmanager
    def controller_away(self) -> Iterator[None]:
        """Let the controller be down for a while; the nodes, and what runs on them, go on."""
        controller = self._processes["slurmctld"]
        controller.terminate()
        controller.wait()
        try:
            yield
        finally:
            self._launch_controller()
            _wait_for("the controller", lambda: self.ask("sinfo", "-h"))

    def ask(self, *command: str) -> str:
        """Run a command of SLURM and return what it prints; "" if it fails."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, executable=self.which(command[0])
        )
        return done.stdout.strip()

    @staticmethod
    def which(program: str) -> str:
        return shutil.which(program, path=_PATH) or program

    def jobs(self) -> dict[int, str]:
        """Return the jobs that are not over: id -> state."""
        lines = self.ask("squeue", "-h", "-o", "%A %T").splitlines()
        return {int(number): state for number, state in (line.split() for line in lines)}

    def state(self, job: int) -> str:
        """Return the state of a job that SLURM still remembers."""
        return self.ask("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T")

    def clear(self) -> None:
        """Cancel all jobs, let both nodes work again, and wait until all is quiet."""
        self.ask("scancel", "-u", USER)
        for node in (*NODES, LARGE):
            self.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        _wait_for("an end of all jobs", lambda: not self.jobs())

    def logs(self) -> str:
        """Return the ends of the daemons' logs."""
        return "\n".join(
            f"== {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-20:])
            for path in sorted(self.base.glob("*.log"))
        )

    def __exit__(self, *error: object) -> None:
        if "n1" in self._processes:
            self.ask("scancel", "-u", USER)
            with contextlib.suppress(AssertionError):
                _wait_for("an end of all jobs", lambda: not self.jobs())
        for process in reversed(self._processes.values()):
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.base, ignore_errors=True)


def _wait_for(what: str, is_there: object, timeout_s: float = 30.0) -> None:
    end = time.monotonic() + timeout_s
    while not is_there():  # type: ignore[operator]
        assert time.monotonic() < end, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.1)
