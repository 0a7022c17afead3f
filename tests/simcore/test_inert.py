"""What is inert follows from the policies: it survives the round trip, and changes no bit of a run."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from faultsweep.simcore.contract import EVERYWHERE, OWN
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import COMBINED, PARAMETERS, canonical, check_combination, inert, resolve, run_of
from faultsweep.simcore.policies.catalogue import ROLES

from faultsweep.errors import InputError
from tests.fixed import results

pytestmark = pytest.mark.skipif(is_interpreted(), reason="the same rules of parameters, and hundreds of runs")

SITE = str(Path(__file__).parents[1] / "fixed" / "site.toml")
MACHINES = ("flat:64", "torus:2x2x9", "midplanes:8", "clusters:40+40", SITE)
VALUES = {
    "log": ("x.swf", "sdsc-model"),
    "timezone": ("", "Europe/Berlin"),
    "machine": MACHINES,
    "failures": ("none", "given", "given", "weibull", "weibull-copula", "mtbf", "bursts"),
    "placement": ("mfp", "balancing", "tie-breaking", "score.py:clearance"),
    "recall": (0.0, 0.5, 1.0),
    "false_positive_rate": (0.0, 0.0, 0.3, 1.0),
    "precision": (1.0, 1.0, 0.5),
    "accuracy": (0.0, 0.5, 1.0),
    "num_failures": (-1, -1, 0, 50),
    "failures_per_day": (-1.0, -1.0, 0.0, 60.0),
    "mtbf_h": (0.0, 3.0),
    "mttr_h": (0.0, 0.5),
    "down_time_s": (-1.0, 0.0, 600.0),
    "manual_delay_h": (0.0, 0.5),
    "trunk_mtbf_h": (0.0, 5.0),
    "trunk_down_s": (0.0, 600.0),
    "information_pct": (0.0, 50.0, 100.0),
    "ppbw_mbps": (0.0, 300.0),
    "estimate_error_pct": (0.0, 40.0),
    "weibull_scale_s": (3000.0, 9000.0),
    "burst_spacing_s": (0.0, 20_000.0),
    "checkpoint_interval_s": (600.0, 3600.0),
    "checkpoint_cost_s": (0.0, 60.0),
    "bucket_s": (600.0, 3600.0),
    "finder": ("columns", "columns", "pop", "divisor"),  # "exhaustive" takes minutes
    "event_order": ("instant",),
    "start_delay_s": (0.0,),
    "horizon_s": (math.inf,),
    "time_scheduling": (False,),
    "resample": ("none",),
    "size_map": ("exact",),
    "preemption": (*["none"] * 9, "requeue", "checkpoint", "cancel", "suspend"),
    "offset": (0,),
    "num_jobs": (0,),
    "procs_per_node": (0,),
    "failure_system": (0,),
    "failure_columns": ("",),
    "target_utilisation": (0.0,),
    "num_users": (0, 3),
    "num_qos": (0, 2),
    "max_restarts": (30, 60),
    "priority_shares": ("", "1:3,2:1,1/2:5"),
    "priority_partition_factors": ("", "1:4,2:1"),
    "priority_qos_factors": ("", "1:1,2:10"),
    "priority_tres_weights": ("", "cpu:500,node:20"),
    "job_sort_formula": ("eligible_time", "ncpus * 10 - walltime"),
    "lsf_shares": ("", "1:3"),
    **{f"{owner}_max_jobs": (*[0] * 12, 2) for owner in ("user", "account", "partition", "qos")},
    **{f"{owner}_max_nodes": (*[0] * 12, 64) for owner in ("user", "account", "partition", "qos")},
}
"""What to try of parameters that have no short list of names."""


def values_of(name):
    parameter = PARAMETERS[name]
    if name in VALUES:
        return VALUES[name]
    if parameter.kind is bool:
        return (False, True)
    if parameter.choices:
        return tuple(parameter.choices)
    other = min(parameter.maximum, 2 * parameter.default) if parameter.default > 0 else 1
    return (parameter.default, parameter.kind(other))


def configurations(count, seed, **fixed):
    """Yield so many random configurations that are valid, some of their values fixed."""
    draw = random.Random(seed)
    while count:
        config = {name: draw.choice(values_of(name)) for name in PARAMETERS} | fixed
        if config["machine"].startswith("clusters"):
            config |= {"checkpoint": "none", "recovery": "arrival", "queue_order": "fcfs", "scheduler": "backfill"}
            config["dependencies"] = "none"
        try:
            check_combination(config, parse_machine(config["machine"]))
        except InputError:
            continue
        count -= 1
        yield resolve(config)


def tree(config):
    return {role: policy.name for role, policy in run_of(config).reached().items()}


def test_the_canonical_form_is_the_same_run_to_its_policies():
    for config in configurations(1500, seed=1):
        plain = canonical(config)
        assert canonical(plain) == plain
        assert tree(plain) == tree(config)


def outcome(config):
    """The per-job results, the metrics and the end of a run, to the bit; which nodes jobs held is left out."""
    kept = {name: value for name, value in config.items() if name != "log"}
    kept["placement"] = "score" if kept["placement"] == "score.py:clearance" else kept["placement"]
    try:
        found = results.run({**kept, "workload": 1})
    except InputError:
        return None
    jobs = {name: values.tobytes() for name, values in found.jobs.items()}
    return jobs, {name: float(value).hex() for name, value in found.metrics.items()}, found.status


WITHOUT_ARRAYS = {"log": "x.swf", "array_max_jobs": 0, "array_max_nodes": 0}
"""Of the jobs that are simulated here none is in an array."""


def test_what_a_restart_costs_counts_for_preempted_jobs_that_wait_again():
    for preemption, counts in (("none", False), ("requeue", True), ("checkpoint", True), ("suspend", False)):
        config = resolve({"machine": "x.toml", "preemption": preemption, "restart_cost_s": 5.0, "requeue_hold_s": 9.0})
        plain = canonical(config)
        assert (plain["restart_cost_s"], plain["requeue_hold_s"]) == ((5.0, 9.0) if counts else (0.0, 0.0))


MAY_KILL = {
    "no failures": ({}, False),
    "failures": ({"failures": "mtbf", "mtbf_h": 5.0}, True),
    "preemption": ({"machine": "x.toml", "preemption": "requeue"}, False),
    "trunks": ({"machine": "clusters:40+40", "meta_scheduler": "naive", "trunk_mtbf_h": 5.0}, True),
    "trunks of nothing": ({"machine": "flat:40", "meta_scheduler": "naive", "trunk_mtbf_h": 5.0}, False),
}


@pytest.mark.parametrize(("values", "kills"), MAY_KILL.values(), ids=MAY_KILL)
def test_restarts_are_limited_where_failures_may_kill_jobs(values, kills):
    """Preempted jobs that wait again are not counted."""
    config = resolve({**values, "max_restarts": 3})
    assert ("max_restarts" not in inert(config)) == kills


def test_what_happens_to_killed_jobs_is_idle_where_none_wait_again():
    for values, idle in (({}, True), ({"failures": "mtbf", "mtbf_h": 5.0}, False), ({"recovery": "mix"}, False)):
        assert ("recovery" in run_of(resolve(values)).idle()) == idle
    site = {"machine": "x.toml", "preemption": "requeue"}
    assert "recovery" not in run_of(resolve(site)).idle()


@pytest.mark.parametrize("machine", MACHINES, ids=[*MACHINES[:-1], "site"])
@pytest.mark.sampled(2)
def test_no_bit_of_a_result_depends_on_what_is_inert(machine):
    """No bit of a stored number: a metric that is NaN in one run is NaN in the other."""
    draw, compared = random.Random(f"{Path(machine).name}, inert"), 0
    for config in configurations(800, seed=f"{Path(machine).name}, inert", **WITHOUT_ARRAYS, machine=machine):
        if compared == 8:
            break
        plain = canonical(config)  # what is inert in it may change alone: no policy in it would become another
        changed = plain | {name: draw.choice(values_of(name)) for name in sorted(inert(plain))}
        first = outcome(plain)
        others = [other for other in map(outcome, (config, changed)) if other is not None]  # some values are refused
        if first is not None:
            assert all(other == first for other in others)
            compared += len(others) == 2
    assert compared == 8


class Noting(dict):
    """A configuration that notes what is read."""

    def __init__(self, values):
        """Begin with nothing read."""
        super().__init__(values)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)


def test_a_refusal_reads_what_it_says_it_reads():
    for config in configurations(300, seed=3):
        noting = Noting(config)
        check_combination(noting, parse_machine(config["machine"]))
        chosen = {role.selector.name for role in ROLES.values() if role.selector}
        assert noting.read <= set(COMBINED) | chosen | {"log", "manual_delay_h"}


def test_every_parameter_is_live_somewhere_and_every_policy_is_reached():
    live, reached = set(), set()
    for config in configurations(4000, seed=4):
        live |= set(PARAMETERS) - inert(config)
        reached |= set(tree(config).items())
    assert set(PARAMETERS) - live <= {
        "finder",
        "failure_system",
        "failure_filter_s",
        "failure_columns",
    }  # not in these configurations
    named = {(role, name) for role, found in ROLES.items() for name in found.policies if name != OWN}
    assert named - reached <= {("failures", "log"), ("scheduling", "first-fit")}
    assert all(set(policy.machines) <= set(EVERYWHERE) for role in ROLES.values() for policy in role.policies.values())
