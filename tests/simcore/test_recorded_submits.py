"""The jobs that a real SLURM refused by its limits of submitted jobs are those that the engine refuses.

Of QOS all jobs, those of a user and of an account are limited, and of accounts and users those of each user and all;
single jobs and arrays. Those that were accepted end in the engine when they did in SLURM.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Label, Workload
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.sites import slurm
from faultsweep.simcore.sites.facts import read_facts
from faultsweep.simcore.sites.site import site_text

from tests.recorded_shares import coded
from tests.recorded_submits import Submitted, read

FILE = Path(__file__).parent / "recorded" / "rules" / "submits.json"
NODES = "\nNodeName=n[1-16] CPUs=4\nPartitionName=batch Nodes=ALL Default=YES\n"


def workload_of(jobs: list[Submitted]) -> Workload:
    rows = [(place, job, task) for place, job in enumerate(jobs) for task in range(job.tasks)]
    one = np.ones(len(rows), np.int64)
    submit = np.array([job.submit for _, job, _ in rows]) - jobs[0].submit
    run = np.array([job.ends[task] - job.submit if job.ends else 1.0 for _, job, task in rows])
    labels = {}
    for name in ("account", "qos"):
        names, codes = coded([getattr(job, name) for _, job, _ in rows])
        labels[name] = Label(codes, tuple(names))
    arrays = np.array([place if job.tasks > 1 else -1 for place, job, _ in rows])
    labels["array"] = Label(arrays, tuple(map(str, range(len(jobs)))))
    names, user = coded([job.user for _, job, _ in rows])
    return Workload(
        np.arange(len(rows)), submit, run, run.copy(), one, user, labels=labels, user_names=tuple(map(str, names))
    )


@pytest.mark.parametrize("without", ["", "max_submit", "max_submit_user", "max_submit_account", "group_submit"])
def test_refusals_are_those_of_slurm(tmp_path, without):
    """Without one kind of limit there are fewer."""
    text, jobs = read(FILE)
    (tmp_path / "slurm.txt").write_text(NODES + text)
    site = slurm.build(read_facts([tmp_path / "slurm.txt"]))
    parts = {
        name: [row.model_copy(update={without: None}) if hasattr(row, without) else row for row in getattr(site, name)]
        for name in ("qos", "accounts")
    }
    (tmp_path / "site.toml").write_text(site_text(site.model_copy(update=parts)))
    run = simulate(workload_of(jobs), machine=str(tmp_path / "site.toml"), site_submit_limits=True, debug=True)
    refused = [not job.ends for job in jobs for _ in range(job.tasks)]
    assert sum(refused) == 114
    mine = np.isnan(run.jobs["start_s"]).tolist()
    assert (mine == refused) == (without == "")
