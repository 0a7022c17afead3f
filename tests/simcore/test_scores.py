"""Placement scores of a user's own: the built-in rules written as scores, their inputs, mistakes, what they cost."""

from __future__ import annotations

import re
from types import FunctionType

import numpy as np
import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.loop import _advance
from faultsweep.simcore.outside import provided
from faultsweep.simcore.policies.placement.scores import INPUTS, make_score, score_for
from faultsweep.simcore.simulate import simulate

from faultsweep.errors import InputError
from tests.adapter import failures_of, workload_of

MACHINE = "torus:2x3x4"
RNG = np.random.default_rng(3)
JOBS = [(i, 3 * i, int(RNG.integers(5, 60)), None, int(RNG.integers(1, 13))) for i in range(30)]
FAILURES = [(7.5 * k, int(RNG.integers(0, 24)), float(k % 3)) for k in range(30)]
SCHEDULERS = ("fcfs", "backfill", "conservative", "backfill+migration")


def score_of_source(name, text):
    """The score of a file that has this text."""
    with provided({("placement", name): text}):
        return score_for(name)


def run(placement, scheduler="backfill+migration", **parameters):
    given = {"machine": MACHINE, "scheduler": scheduler, "placement": placement, "events": True}
    return simulate(workload_of(JOBS), failures=failures_of(FAILURES, JOBS), **given, **parameters)


def largest_left(mfp_after):
    return -mfp_after


def balancing(mfp_before, mfp_after, requested, risk):
    return (mfp_before - mfp_after) + requested * risk


def tie_breaking(mfp_after, reported):
    return -2 * mfp_after + (1 if reported > 0 else 0)


def monotone(score):
    """The same function with the promise that it never rises with mfp_after."""
    copy = FunctionType(score.__code__, score.__globals__, score.__name__)
    copy.monotone = True
    return copy


@pytest.mark.compiled
@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    ("rule", "score", "parameters"),
    [
        ({"placement": "mfp"}, largest_left, {}),
        ({"placement": "balancing", "accuracy": 0.25}, balancing, {"accuracy": 0.25}),
        (
            {"placement": "balancing", "accuracy": 0.5, "recall": 0.5, "precision": 0.5, "partition_failure": "max"},
            balancing,
            {"accuracy": 0.5, "recall": 0.5, "precision": 0.5, "partition_failure": "max"},
        ),
        (
            {"placement": "tie-breaking", "accuracy": 0.6, "false_positive_rate": 0.1},
            tie_breaking,
            {"recall": 0.6, "false_positive_rate": 0.1},
        ),
    ],
    ids=["mfp", "balancing", "balancing-that-errs", "tie-breaking"],
)
def test_a_built_in_rule_written_as_a_score_is_that_rule(rule, score, parameters, scheduler):
    expected, found = run(scheduler=scheduler, **rule), run(score, scheduler=scheduler, **parameters)
    assert list(found.events.rows()) == list(expected.events.rows())
    promised = run(monotone(score), scheduler=scheduler, **parameters)
    assert list(promised.events.rows()) == list(expected.events.rows())
    assert found.config["placement"] == score.__name__
    if rule["placement"] != "mfp":
        plain = run("mfp", scheduler=scheduler)
        assert list(plain.events.rows()) != list(expected.events.rows())


def test_inputs_are_what_they_are_called():
    """Each input decides the place of one job on an empty torus of 2 x 3 x 4, or of two in a row."""

    def place(score, size=4):
        rows = [(1, 0, 10, 20, size)]
        found = simulate(workload_of(rows), machine=MACHINE, placement=score, estimates="requested", events=True)
        return next(nodes for _, kind, _, _, nodes in found.events.rows() if kind == "start")

    assert place(lambda x, y, z: -(12 * x + 4 * y + z)) == [12, 15, 20, 23]
    assert place(lambda a, c: -10 * a + c) == [0, 4, 12, 16]
    assert place(lambda c: -c) == [0, 1, 2, 3]
    assert place(lambda b, a: b + 10 * a, size=3) == [0, 1, 2]
    assert place(lambda size, requested, x: -x * (size - 4) * (requested - 3), size=4) == place(lambda: 0, size=4)
    assert place(lambda mfp_before, mfp_after, x: x * (24 - mfp_before)) == [0, 1, 2, 3]
    assert place(lambda look_ahead_s, now_s, x: x * (1 if look_ahead_s == 20 and now_s == 0 else -1)) == [0, 1, 2, 3]


def test_scores_that_are_no_numbers_leave_the_first_box():
    first = run(lambda: 0.0)
    bads = [lambda x: np.nan, lambda x: np.inf, lambda x: np.inf - np.inf]
    if not is_interpreted():
        bads.append(lambda x: 1.0 / (x - x))  # plain Python raises an error
    for bad in bads:
        assert list(run(bad).events.rows()) == list(first.events.rows())


def test_a_score_of_a_source():
    text = "import math\nfrom numba import njit\nHALF = 0.5\n\n@njit\ndef half(n):\n    return HALF * n\n\n"
    text += "def rule(mfp_after):\n    return -math.floor(half(mfp_after))\n"
    score = score_of_source("rules.py:rule", text)
    assert score.name == "rules.py:rule"
    assert run(score).metrics["unfinished_jobs"] == 0
    assert score_of_source("rules.py:rule", text) == score


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def other(x):\n    return x\n", "unknown function in rules.py 'rule' (valid: other)"),
        ("1 / 0", "placement: rules.py cannot be executed (ZeroDivisionError: division by zero)"),
        ("def rule(:", "placement: rules.py cannot be executed (SyntaxError"),
        ("def rule(after):\n    return 0", "unknown argument of rule 'after'"),
    ],
)
def test_mistakes_in_a_source(text, message):
    with pytest.raises(InputError, match=re.escape(message)):
        score_of_source("rules.py:rule", text)


def test_mistakes_in_a_value():
    with pytest.raises(InputError, match=r"placement: nowhere/rules.py cannot be read \(No such file"):
        run("nowhere/rules.py:rule")
    with pytest.raises(InputError, match=r"unknown placement 'balance'.*balancing.*FILE.py:FUNCTION"):
        run("balance")
    with pytest.raises(InputError, match="placement: expected a rule or a function"):
        run(3)
    with pytest.raises(InputError, match="precision or false_positive_rate, not both"):
        run("balancing", precision=0.5, false_positive_rate=0.1)


@pytest.mark.skipif(is_interpreted(), reason="nothing is compiled")
def test_what_cannot_be_compiled_is_one_sentence():
    with pytest.raises(InputError, match="placement: the score 'rule' cannot be compiled") as error:
        make_score(lambda x: str(x), "rule")
    assert "\n" not in str(error.value)


@pytest.mark.skipif(is_interpreted(), reason="nothing is compiled")
def test_a_score_compiles_nothing_but_itself():
    run("mfp")
    before = _advance._run
    for number in range(3):
        run(score_of_source("rules.py:rule", f"def rule(x):\n    return {number} * x\n"))
    assert _advance._run is before is not None


def test_every_input_is_documented():
    assert all(doc and kind is not None for kind, doc in INPUTS.values())
