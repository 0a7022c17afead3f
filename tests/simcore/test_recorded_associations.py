"""Priorities of waiting jobs that a real SLURM printed, by priorities of associations, nice values and site factors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.engine.build import build_state
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import resolve
from faultsweep.simcore.policies.queue_order.multifactor import ROUNDING
from faultsweep.simcore.sites import slurm
from faultsweep.simcore.sites.facts import read_facts
from faultsweep.simcore.sites.not_simulated import priority_options
from faultsweep.simcore.sites.site import site_text

from tests.recorded_associations import read
from tests.recorded_shares import coded

FILE = Path(__file__).parent / "recorded" / "rules" / "associations.json"
NODES = """
NodeName=n[1-16] CPUs=4 RealMemory=8000
PartitionName=batch Nodes=n[1-12] Default=YES PriorityJobFactor=1
PartitionName=gpu Nodes=n[13-16] PriorityJobFactor=2
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    path = tmp_path_factory.mktemp("site") / "slurm.txt"
    path.write_text(NODES + read(FILE)[0])
    return slurm.build(read_facts([path]))


def test_the_import_reads_priorities_of_associations(site):
    """Those of the root are in the line of its cluster; 0 is not the same as none."""
    found = {(row.account, row.user): row.priority for row in site.accounts if row.priority is not None}
    accounts = {("root", ""): 7, ("physics", ""): 30, ("chem", ""): 90, ("empty", ""): 120}
    assert found == accounts | {("physics", "u2"): 45, ("chem", "u4"): 0}
    assert "--priority-association-weight 5000" in " ".join(priority_options(site.priority))


@pytest.mark.parametrize("column", ["submitted", "priority", "site", "association"])
def test_priorities_are_those_of_slurm(site, tmp_path, column):
    path = tmp_path / "site.toml"
    path.write_text(site_text(site))
    jobs, weights = read(FILE)[1], site.priority.weights
    one = np.ones(len(jobs), np.int64)
    arrays = dict.fromkeys(("work_s", "estimate_s"), 1.0 * one) | {"submit_s": 0.0 * one}
    arrays |= dict.fromkeys(("requested", "size", "chunks", "cores", "per_node"), one)
    arrays |= dict.fromkeys(("gpus", "memory_mb", "whole", "partition", "partition_codes"), 0 * one)
    arrays["partition_names"] = np.array(["batch", "gpu"])
    arrays["user_names"], arrays["user"] = coded([job.user for job in jobs])
    for name in ("account", "nice", "site_factor"):
        arrays[f"{name}_names"], arrays[f"{name}_codes"] = coded([str(getattr(job, name)) for job in jobs])
    asked = {"association": "association", "submitted": "partition association nice", "site": "site_factor"}
    parts = asked.get(column, "partition association nice site_factor").split()
    settings = {
        "priority_association_weight": weights["assoc"] * ("association" in parts),
        "priority_partition_weight": weights["partition"] * ("partition" in parts),
        "priority_nice": "nice" in parts,
        "priority_site_factor": "site_factor" in parts,
    }
    parameters = settings | {"queue_order": "multifactor", "machine": str(path), "priority_share_weight": 0.0}
    state = build_state(arrays, parse_machine(str(path)), resolve(parameters), None, tracing=False)
    said = [getattr(job, column) for job in jobs]
    if column in ("site", "association"):  # printed as whole numbers
        assert np.abs(state.job.priority - said).max() <= 0.5
    else:  # SLURM has no priority below 1
        assert np.maximum(1, np.floor(state.job.priority + ROUNDING)).tolist() == said
