"""A real SLURM that refuses jobs by limits of submitted jobs: which ones it refused, and when the others ended.

``python -m tests.cluster.recorded_submits FILE`` (``make against-slurm``) takes two minutes. It must be run by root, as
recorded_features.
"""

from __future__ import annotations

import random
import re
import sys
import time
from datetime import datetime
from pathlib import Path

from tests.cluster.recorded_features import ACCOUNT_OF, Feature, FeatureSlurm
from tests.cluster.recorded_slurm import Asked, _passes, write_rows
from tests.cluster.virtual_slurm import _wait_for
from tests.recorded_submits import Submitted

LIMITS = (
    *("add qos low", "add qos high", "modify qos low set MaxSubmitJobsPerUser=2 MaxSubmitJobsPerAccount=3"),
    *("modify qos high set GrpSubmitJobs=5", "modify account root set GrpSubmitJobs=20"),
    *("modify account physics set MaxSubmitJobs=4", "modify user u2 set MaxSubmitJobs=2"),
    *("modify account chem set GrpSubmitJobs=4", "modify user u5 set GrpSubmitJobs=3"),
    *("add account optics parent=physics", "add user u1 account=optics qos=normal,low,high"),
)
PRINTED = {
    "config": ("scontrol", "show", "config"),
    "qos": ("sacctmgr", "-P", "list", "qos"),
    "assoc": ("sacctmgr", "-P", "list", "assoc"),
}
COUNT, BETWEEN_S = 150, 0.4


def asked(seed: int) -> list[Asked]:
    """Jobs of a core, some of them arrays, by users of three QOS."""
    draw, jobs = random.Random(seed), []
    for _ in range(COUNT):
        user = draw.choice(tuple(ACCOUNT_OF))
        account = draw.choice(("physics", "optics")) if user == "u1" else ACCOUNT_OF[user]
        qos, tasks = draw.choice(("normal", "low", "low", "high")), draw.choice((0, 0, 0, 0, 2, 3))
        jobs.append(Asked(draw.choice((2, 5, 12)), 1, 0, 1, 1, user=user, account=account, qos=qos, tasks=tasks))
    return jobs


def record() -> dict[str, object]:
    """Submit the jobs, and return what SLURM prints of the site, and what became of each job."""
    site = {"qos": [{"name": "low"}, {"name": "high"}]}
    with FeatureSlurm(Feature((), _passes(1, 1, 1000), accounts=LIMITS, site=site)) as slurm:
        slurm.submit("first", Asked(1, 1, 0, 1, user="u1", account="physics"))
        _wait_for("the end of the first job", lambda: not slurm.jobs(), 60)
        submitted, begin = [], time.monotonic()
        for place, job in enumerate(asked(7)):
            time.sleep(max(0.0, begin + place * BETWEEN_S - time.monotonic()))
            at, number = time.time(), slurm.submit(f"t{place}", job)
            submitted.append((at, number if number.isdigit() else "", job))
        _wait_for("the end of all jobs", lambda: not slurm.jobs(), 300)
        log = slurm.log()
        kept = ("clustername", "name|", "normal|", "low|", "high|", "cluster|", "played|")
        texts = {name: slurm.ask(*command).splitlines() for name, command in PRINTED.items()}
    ends = {
        number: stamp(at) for at, number in re.findall(r"\[(\S+)\] _job_complete: JobId=(\S+?)(?:\(\d+\))? done", log)
    }
    jobs = []
    for at, number, job in submitted:
        numbers = [f"{number}_{task}" for task in range(job.tasks)] or [number]
        jobs.append(
            Submitted(
                job.user, job.account, job.qos, at, [ends[each] for each in numbers] if number else [], len(numbers)
            )
        )
    lines = [line for text in texts.values() for line in text if line.lower().startswith(kept)]
    return {"printed": lines, "jobs": [job._asdict() for job in jobs]}


def stamp(text: str) -> float:
    """Return a time of the controller's log, s."""
    return datetime.fromisoformat(text).timestamp()


if __name__ == "__main__":
    write_rows(record(), Path(sys.argv[1]))
