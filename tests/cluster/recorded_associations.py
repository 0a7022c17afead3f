"""A real SLURM with priorities of associations and site factors, whose priorities of waiting jobs are kept.

``python -m tests.cluster.recorded_associations FILE`` (``make against-slurm``) takes half a minute. It must be run by
root, as recorded_features.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.recorded_features import Feature, FeatureSlurm
from tests.cluster.recorded_slurm import Asked, _passes, write_rows
from tests.cluster.virtual_slurm import _wait_for
from tests.recorded_associations import Printed

ACCOUNTS = (
    *("modify account root set priority=7", "modify account physics set priority=30"),
    *("modify account chem set priority=90", "modify user u2 set priority=45", "modify user u4 set priority=0"),
    *("add account optics parent=physics", "add user u1 account=optics"),
    *("add account empty parent=root", "modify account empty set priority=120"),  # no user has the highest priority
)
JOBS = (
    *(("u1", "physics", 0, 0), ("u1", "optics", 0, 500), ("u2", "physics", 0, -300), ("u3", "chem", 0, 0)),
    *(("u3", "chem", 100, 20), ("u4", "chem", 0, 0), ("u5", "bio", 0, 123), ("u6", "bio", 77, 0)),
    *(("u6", "bio", 20000, 0), ("u5", "bio", 30000, 0), ("u5", "bio", 0, -20000)),
)
"""User, account, nice value and site factor of jobs."""


def record() -> dict[str, object]:
    """Have jobs wait, set their site factors, and return what SLURM prints."""
    config = "PriorityWeightAssoc=5000\nPriorityCalcPeriod=1"
    with FeatureSlurm(Feature((), _passes(1, 1, 1000), config=config, accounts=ACCOUNTS)) as slurm:
        slurm.submit("first", Asked(100, 2, 0, 12, user="u1", account="physics"))
        _wait_for("a job on all nodes", lambda: "R" in slurm.ask("squeue", "-h", "-o", "%t"), 60)
        jobs = {}
        for place, (user, account, nice, factor) in enumerate(JOBS):
            asked = Asked(5, 1, nice, 1, user=user, account=account)
            jobs[slurm.submit(f"t{place}", asked)] = Printed(user, account, nice, factor)
        for number, job in jobs.items():
            slurm.ask("scontrol", "update", f"jobid={number}", f"sitefactor={job.site_factor}")
        time.sleep(3)
        said = slurm.ask("sprio", "-h", "-l").splitlines()
        log = slurm.log()
        dump = slurm.base / "dump.cfg"
        slurm.ask("sacctmgr", "dump", "played", f"file={dump}")
        settings = slurm.ask("scontrol", "show", "config").splitlines()
        kept = [line for line in settings if line.startswith("Priority")]
        lines = [line for line in dump.read_text().splitlines() if line and not line.startswith("#")]
    rows = [job._asdict() for job in _printed(jobs, said, log)]
    return {"config": kept, "dump": lines, "jobs": rows}


def _printed(jobs: dict[str, Printed], said: list[str], log: str) -> Iterator[Printed]:
    first = dict(re.findall(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)", log))
    rows = {line.split()[0]: line.split() for line in said}
    for number, job in jobs.items():
        priority, site, _, association = map(int, rows[number][3:7])
        yield job._replace(submitted=int(first[number]), priority=priority, site=site, association=association)


if __name__ == "__main__":
    write_rows(record(), Path(sys.argv[1]))
