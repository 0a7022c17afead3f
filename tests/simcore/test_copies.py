"""When replicates are one run: the rule of the parameters says so exactly where nothing random is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.failure_logs.plain import write_failures
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.parameters import canonical, inert, resolve
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate
from hypothesis import given, settings
from hypothesis import strategies as st

MACHINE = "torus:2x2x4"
SOURCES = {
    "none": {"failures": "none"},
    "weibull": {"failures": "weibull", "weibull_scale_s": 3000.0},
    "weibull-copula": {"failures": "weibull-copula", "weibull_scale_s": 3000.0},
    "mtbf": {"failures": "mtbf", "mtbf_h": 1.0},
    "mtbf-without-end": {"failures": "mtbf", "node_mtbf_h": 20.0, "mttr_h": 0.0},
    "bursts": {"failures": "bursts", "failures_per_day": 20.0},
    "no-bursts": {"failures": "bursts", "num_failures": 0},
    "exact": {"failure_fit": "exact", "node_map": "identity"},
    "ranked": {"failure_fit": "exact", "node_map": "rank"},
    "permuted": {"failure_fit": "exact", "node_map": "permutation"},
    "thinned": {"failure_fit": "exact", "node_map": "identity", "failures_per_day": 15.0},
    "scaled": {"failure_fit": "scale", "node_map": "identity", "failures_per_day": 15.0},
}
RULES = st.fixed_dictionaries(
    {
        "placement": st.sampled_from(["mfp", "balancing", "tie-breaking"]),
        "accuracy": st.sampled_from([0.0, 0.5, 1.0]),
        "recall": st.sampled_from([0.0, 0.5, 1.0]),
    },
    optional={"false_positive_rate": st.sampled_from([0.0, 0.3, 1.0])},
) | st.fixed_dictionaries(
    {
        "placement": st.sampled_from(["balancing", "tie-breaking"]),
        "accuracy": st.sampled_from([0.0, 0.5, 1.0]),
        "precision": st.sampled_from([0.3, 1.0]),
    }
)


RISK = {"checkpoint": "risk", "checkpoint_interval_s": 300.0, "checkpoint_cost_s": 10.0}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A dense failure log of 16 nodes."""
    rng = np.random.default_rng(0)
    time_s = np.sort(rng.uniform(0, 60_000, 40).round())
    path = tmp_path_factory.mktemp("log") / "f.csv"
    write_failures(FailureTrace(time_s, rng.integers(0, 16, 40), np.zeros(40)), path, num_nodes=16)
    return str(path)


def jobs():
    """Thirty jobs of a few hours for 16 nodes; a log, so the same in every replicate."""
    model = generate("lublin", 30)
    number = np.arange(30)
    rng = np.random.default_rng(1)
    changes = {"submit_s": number * 1500.0, "run_s": rng.integers(500, 9000, 30).astype(float), "job_id": number}
    return type(model)(**{**model.__dict__, **changes, "size": rng.integers(1, 9, 30)})


JOBS = jobs()


def is_copy(config):
    return "replicate" in inert(resolve(config))


RECOVERIES = st.just({}) | st.fixed_dictionaries(
    {
        "recovery": st.sampled_from(["manual", "mix", "all-a", "all-c", "all-e"]),
        "credits": st.booleans(),
        "manual_delay_h": st.sampled_from([0.0, 0.5]),
    },
    optional={
        "credit_beta": st.sampled_from([0.0, 2.0]),
        "gaming_frac": st.just(0.5),
        "hold_nodes": st.just(False),
        "recovery_mix": st.just("even"),
    },
)


def outcome(config, replicate):
    """The events and every stored number, to the bit."""
    parameters = {name: value for name, value in config.items() if name not in ("log", "replicate")}
    found = simulate(JOBS, events=True, **parameters, replicate=replicate)
    metrics = {name: float(value).hex() for name, value in found.metrics.items()}
    return list(found.events.rows()), metrics, {name: column.tobytes() for name, column in found.jobs.items()}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(list(SOURCES)), RULES, st.sampled_from(["fcfs", "backfill+migration"]))
def test_copies_are_equal(log, source, rule, scheduler):
    config = {"log": "a.swf", "failures": log, "machine": MACHINE, "scheduler": scheduler} | SOURCES[source] | rule
    if is_copy(config):
        first = outcome(config, 0)
        assert all(outcome(config, replicate) == first for replicate in (1, 2))


@pytest.mark.compiled
@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(list(SOURCES)), RULES, st.sampled_from(["product", "max"]), st.sampled_from([{}, RISK]), RECOVERIES
)
def test_the_canonical_form_is_the_same_run(log, source, rule, partition_failure, checkpoints, recovery):
    """Inert parameters do nothing, to the bit: a = 0 is mfp, a rate of 0 and a precision of 1 err never."""
    config = {"log": "a.swf", "failures": log, "machine": MACHINE, "scheduler": "backfill+migration"}
    config |= SOURCES[source] | rule | checkpoints | {"partition_failure": partition_failure} | recovery
    plain = canonical(config)
    assert outcome(plain, plain["replicate"]) == outcome(config, 0)
    if config["accuracy"] == 0 and not config.get("false_positive_rate"):
        assert plain["placement"] == "mfp"


@pytest.mark.parametrize(
    ("source", "rule", "copy"),
    [
        ("none", {"placement": "tie-breaking", "accuracy": 0.5}, True),
        ("no-bursts", {"placement": "tie-breaking", "accuracy": 0.5}, True),
        ("exact", {}, True),
        ("ranked", {}, True),
        ("exact", {"placement": "balancing", "accuracy": 0.5}, True),
        ("exact", {"placement": "tie-breaking", "accuracy": 1.0}, True),
        ("exact", {"placement": "tie-breaking", "accuracy": 0.5}, False),
        ("exact", {"placement": "balancing", "accuracy": 0.5, "recall": 0.5}, False),
        ("exact", {"placement": "balancing", "accuracy": 0.5, "false_positive_rate": 0.3}, False),
        ("exact", {"placement": "tie-breaking", "accuracy": 1.0, "precision": 0.3}, False),
        ("exact", {"placement": "balancing", "accuracy": 0.0, "false_positive_rate": 0.3}, True),
        ("exact", {"placement": "tie-breaking", "accuracy": 0.0, "precision": 0.3}, True),
        ("exact", RISK | {"accuracy": 0.5}, True),
        ("exact", RISK | {"placement": "tie-breaking", "accuracy": 0.5}, False),
        ("exact", {"machine": "flat:16", "node_choice": "random"}, False),
        ("exact", {"machine": "flat:16", "node_choice": "round-robin"}, True),
        ("exact", {"node_choice": "random"}, True),
        ("weibull", {}, False),
        ("weibull-copula", {}, False),
        ("mtbf", {}, False),
        ("mtbf-without-end", {}, False),
        ("bursts", {}, False),
        ("permuted", {}, False),
        ("thinned", {}, False),
        ("scaled", {}, False),
    ],
)
def test_what_is_random_and_what_is_not(log, source, rule, copy):
    config = {"log": "a.swf", "failures": log, "machine": MACHINE, "scheduler": "backfill"} | SOURCES[source] | rule
    assert is_copy(config) is copy
    first = outcome(config, 0)
    assert all(outcome(config, replicate) == first for replicate in (1, 2, 3)) is copy


@pytest.mark.parametrize("name", ["lublin", "nasa-model", "sdsc-model", "atlas-model"])
def test_jobs_of_models_and_estimates_of_the_f_model_are_random(name):
    assert not is_copy({"log": name, "machine": MACHINE})
    assert generate(name, 20, 0, 0).run_s.tolist() != generate(name, 20, 0, 1).run_s.tolist()
    assert not is_copy({"log": "a.swf", "machine": MACHINE, "estimates": "f-model", "estimate_factor": 2.0})


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(list(SOURCES)), RULES)
def test_a_predictor_that_is_never_wrong_and_one_that_is_never_right_have_plain_names(source, rule):
    """Neutral values of what errs are the defaults, so specs that name them are the same runs."""
    config = {"log": "a.swf", "failures": "f.csv", "machine": MACHINE} | SOURCES[source] | rule
    named = {**config, "false_positive_rate": 0.0, "precision": 1.0}
    plain = {name: value for name, value in config.items() if name not in ("false_positive_rate", "precision")}
    assert canonical(named) == canonical(plain)
    assert resolve(named)["precision"] == 1.0
