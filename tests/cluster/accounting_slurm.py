"""A real SLURM with its accounting database on the loopback, and the recording of a dump that has all kinds of rows.

``python -m tests.cluster.accounting_slurm FOLDER`` records anew what is kept in tests/simcore/workloads/dumps: array
tasks, waiting ranges of them, heterogeneous jobs, requeues, cancels, time-outs, a node that fails, jobs without a time
limit, a reservation, and GPUs that are plain files. It takes about four minutes.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
from pathlib import Path

from tests.cluster.virtual_slurm import USER, VirtualSlurm, _free_ports, _wait_for

NODES = tuple(f"n{number}" for number in range(1, 7))
GPU_NODES = ("n5", "n6")
ACCOUNTS = {"physics": ("astro", "plasma"), "chemistry": ("organic",)}
COLUMNS = (
    "JobID,JobIDRaw,User,UID,Account,Partition,QOS,State,ExitCode,Submit,Eligible,Start,End,ElapsedRaw,Suspended,Timelimit,"
    "TimelimitRaw,AllocNodes,AllocCPUS,AllocTRES,ReqNodes,ReqCPUS,ReqMem,ReqTRES,NodeList,Priority,Reservation,Flags,Comment"
)

CONFIG = """
ClusterName=recorded
SlurmctldHost=localhost
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
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
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={dbd_port}
AccountingStoragePass={base}/munge.socket
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu
AccountingStoreFlags=job_comment
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=2,bf_window=1440,bf_max_job_user=20,default_queue_depth=200
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityMaxAge=1-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightQOS=5000
PreemptType=preempt/qos
PreemptMode=REQUEUE
ReturnToService=1
KillWait=2
MinJobAge=3600
SlurmctldTimeout=60
SlurmdTimeout=60
InactiveLimit=0
PropagateResourceLimits=NONE
Licenses=matlab:4
NodeName=DEFAULT CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=8000
{nodes}
PartitionName=batch Nodes=n[1-4] Default=YES DefMemPerCPU=500 DefaultTime=1 MaxTime=60 PriorityJobFactor=1 State=UP
PartitionName=gpu Nodes=n[5-6] DefMemPerCPU=500 DefaultTime=1 MaxTime=30 PriorityTier=2 State=UP
PartitionName=long Nodes=n[1-6] DefMemPerCPU=500 DefaultTime=1 MaxTime=UNLIMITED OverSubscribe=EXCLUSIVE State=UP
"""
DATABASE = """
AuthType=auth/munge
AuthInfo=socket={base}/munge.socket
CommunicationParameters=NoInAddrAny
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser={user}
LogFile={base}/slurmdbd.log
PidFile={base}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
"""


class Database(VirtualSlurm):
    """What starts MariaDB, and writes what slurmdbd reads."""

    def _start_database(self, dbd_port: int) -> None:
        base = self.base
        socket = base / "db.sock"
        self.environment["MYSQL_UNIX_PORT"] = str(socket)  # where slurmdbd looks for the database
        folder, log = f"--datadir={base / 'db'}", base / "install.log"
        scratch = f"--tmpdir={base}"  # in a shared one, servers that start delete tables of each other
        with log.open("wb") as stream:
            command = [self.which("mariadb-install-db"), "--no-defaults", folder, f"--user={USER}", "--skip-test-db"]
            command += ["--auth-root-authentication-method=normal", scratch]
            subprocess.run(command, stdout=stream, stderr=stream, check=True)
        self._launch(
            "mariadbd",
            *(
                "--no-defaults",
                folder,
                scratch,
                f"--user={USER}",
                f"--socket={socket}",
                f"--pid-file={base / 'db.pid'}",
            ),
            *("--skip-networking", "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=0"),
        )
        admin = ("mariadb", "--no-defaults", "-S", str(socket), "-u", "root")
        _wait_for("the database", lambda: self.ask(*admin, "-Ne", "select 1") == "1")
        rights = "create user slurm@localhost identified by 'slurm'; grant all on slurm_acct.* to slurm@localhost;"
        self.ask(*admin, "-e", rights)
        settings = base / "slurmdbd.conf"
        settings.touch(mode=0o600)
        settings.write_text(DATABASE.format(base=base, user=USER, dbd_port=dbd_port))


class AccountingSlurm(Database):
    """The daemons of SLURM, slurmdbd and MariaDB, as a context manager."""

    def _start(self) -> None:
        self._start_munge("db", *(f"spool-{node}" for node in NODES))
        ports = _free_ports(2 + len(NODES))
        self._start_database(ports[1])
        self._configure(ports)
        self._start_nodes(*NODES)

    def _configure(self, ports: list[int]) -> None:
        base = self.base
        nodes = [
            f"NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port}"
            + (" Gres=gpu:a100:2 Feature=gpu" if node in GPU_NODES else "")
            for node, port in zip(NODES, ports[2:], strict=True)
        ]
        names = {"user": USER, "base": base, "port": ports[0], "dbd_port": ports[1], "nodes": "\n".join(nodes)}
        self.config.write_text(CONFIG.format(**names))
        for gpu in range(2):
            (base / f"gpu{gpu}").touch()
        (base / "gres.conf").write_text(f"NodeName=n[5-6] Name=gpu Type=a100 File={base}/gpu[0-1]\n")
        self._launch("slurmdbd", "-D")
        _wait_for("slurmdbd", lambda: "Cluster" in self.ask("sacctmgr", "list", "cluster"))
        manage = ("sacctmgr", "-i", "-Q")
        self.ask(*manage, "add", "cluster", "recorded")
        self.ask(*manage, "add", "qos", "low,high")
        self.ask(*manage, "modify", "qos", "high", "set", "priority=100", "preempt=low", "MaxJobsPerUser=4")
        self.ask(*manage, "modify", "qos", "low", "set", "preemptmode=requeue")
        for parent, accounts in ACCOUNTS.items():
            self.ask(*manage, "add", "account", parent, "fairshare=50")
            for account in accounts:
                self.ask(*manage, "add", "account", account, f"parent={parent}", "fairshare=10")
                self.ask(*manage, "add", "user", USER, f"account={account}", "qos=normal,low,high", "defaultqos=normal")

    def submit(self, *arguments: str, sleep: int = 5, account: str = "astro") -> str:
        """Submit a job that sleeps, and return its number."""
        common = ("sbatch", "--parsable", "-A", account, "-o", "/dev/null", "--wrap", f"sleep {sleep}")
        return self.ask(*common[:-2], *arguments, *common[-2:])


def play(slurm: AccountingSlurm) -> None:
    """Submit, cancel, requeue and fail until every kind of row is there; some jobs are left waiting and running."""
    start = f"starttime=now+40 duration=10 nodes=n4 accounts=astro users={USER}".split()
    slurm.ask("scontrol", "create", "reservation", "ReservationName=course", *start)
    low = slurm.submit("-q", "low", "-w", "n2", "-N1", "--exclusive", "-t", "5", sleep=60)
    slurm.submit("-N", "2", "--exclusive")
    slurm.submit("--array=0-5%2", "-n", "1", sleep=3, account="plasma")
    slurm.submit("-p", "gpu", "--gpus-per-node=2", sleep=8, account="organic")
    slurm.submit("-n1", ":", "-n1", "-N1", sleep=6)  # SLURM takes the second part as options of a component
    slurm.ask("sbatch", "-A", "astro", "-o", "/dev/null", "-n1", ":", "-n2", "-N1", "--wrap", "sleep 6")
    slurm.submit("-p", "long", "-t", "UNLIMITED", "-N", "1", sleep=9)
    slurm.submit("-n", "2", "--mem-per-cpu=900", "--comment=a|b", sleep=4)
    failing = slurm.submit("-w", "n3", "-n", "1", sleep=300, account="plasma")
    over = slurm.submit("-t", "1", "-n1", "-w", "n1", sleep=100)
    bad = slurm.ask("sbatch", "--parsable", "-A", "organic", "-o", "/dev/null", "--wrap", "exit 3")
    waiting = slurm.submit("-N", "4", "--exclusive", "--begin=now+1hour", account="plasma")
    after = slurm.submit(f"--dependency=afterok:{over}", "-n1")
    time.sleep(12)
    slurm.submit("-q", "high", "-w", "n2", "-N1", "--exclusive", sleep=5)  # takes the node of the low job
    slurm.ask("scontrol", "update", "NodeName=n3", "State=DOWN", "Reason=test")
    slurm.ask("scancel", slurm.submit("-n1", "--begin=now+2hour"))
    ran = slurm.submit("-n1", sleep=60)
    time.sleep(8)
    slurm.ask("scancel", ran)
    slurm.ask("scontrol", "update", "NodeName=n3", "State=RESUME")
    slurm.submit("--reservation=course", "-n1", "-t", "1", sleep=3)
    requeued = slurm.submit("-n1", "-t", "3", sleep=20)
    time.sleep(5)
    slurm.ask("scontrol", "requeue", requeued)
    ended = lambda: over not in slurm.ask("squeue", "-h", "-o", "%i", "-t", "R,PD,CG").split()  # noqa: E731
    _wait_for("the job that exceeds its time", ended, 150)
    again = lambda: low in slurm.ask("squeue", "-h", "-o", "%i", "-t", "R").split()  # noqa: E731
    _wait_for("the second run of the job that was preempted", again, 250)
    time.sleep(5)
    slurm.ask("scancel", low)
    slurm.submit("-n1", "-w", "n1", "-t", "5", sleep=200)  # is left running
    slurm.submit("--array=8-20%4", "-N4", "--exclusive")  # is left waiting as a range
    time.sleep(6)
    print("jobs:", failing, low, over, bad, waiting, after, ran, requeued)


def record(folder: Path) -> None:
    """Record the dumps and what an operator can print of the site."""
    folder.mkdir(parents=True, exist_ok=True)
    with AccountingSlurm() as slurm:
        play(slurm)
        slurm.environment["TZ"] = "UTC"
        slurm.environment["SLURM_BITSTR_LEN"] = "0"
        commands = {
            "sacct.psv": ("sacct", "-aDP", "-S", "now-1hour", "-o", COLUMNS),
            "sacct-last.psv": ("sacct", "-aP", "-S", "now-1hour", "-o", COLUMNS),
            "sacct.json": ("sacct", "-a", "--json", "-S", "now-1hour"),
            "config.txt": ("scontrol", "show", "config"),
            "partition.txt": ("scontrol", "show", "partition", "-o"),
            "node.txt": ("scontrol", "show", "node", "-o"),
            "reservation.txt": ("scontrol", "show", "reservation", "-o"),
            "license.txt": ("scontrol", "show", "license", "-o"),
            "qos.psv": ("sacctmgr", "-P", "list", "qos"),
            "assoc.psv": ("sacctmgr", "-P", "list", "assoc"),
        }
        for name, command in commands.items():
            text = slurm.ask(*command).replace(str(slurm.base), "/slurm")
            (folder / f"{name}.gz").write_bytes(gzip.compress(f"{text}\n".encode(), mtime=0))


if __name__ == "__main__":
    record(Path(sys.argv[1]))
