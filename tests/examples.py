"""Worked cases: what goes in, what must come out, and how a case is held against an implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from tests.adapter import IMPLEMENTATIONS, Outcome, engine_lacks
from tests.reference.machines import machine as machine_of


def box(machine: str, text: str) -> tuple[int, ...]:
    """The nodes of a box ``a,b,c@x,y,z`` of a torus."""
    shape, base = (tuple(int(n) for n in part.split(",")) for part in text.split("@"))
    return tuple(sorted(machine_of(machine).box(shape, base)))


@dataclass(frozen=True)
class Case:
    """One worked case.

    ``jobs`` are rows (id, submit, run, estimate or None, size[, option]); ``expect`` maps job ids to (start, finish),
    (start, finish, nodes) or a mapping of any attributes of the job; ``metrics`` maps names to exact values.
    """

    name: str
    machine: str
    jobs: Sequence[Sequence]
    expect: Mapping[int, Any]
    metrics: Mapping[str, Any] = field(default_factory=dict)
    failures: Sequence[Sequence] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, outcome: Outcome) -> None:
        for job_id, expected in self.expect.items():
            found = outcome.jobs[job_id]
            for name, value in self._expected(expected).items():
                if name == "nodes" and isinstance(value, str):
                    value = box(self.machine, value)
                assert_equal(found[name], value, f"job {job_id}: {name}")
        for name, value in self.metrics.items():
            assert_equal(outcome.metrics[name], value, name)

    @staticmethod
    def _expected(expected: Any) -> Mapping[str, Any]:
        if isinstance(expected, Mapping):
            return expected
        names = ("start", "finish", "nodes")
        return dict(zip(names, expected, strict=False))


def assert_equal(found: Any, expected: Any, what: str) -> None:
    """Equal; a float may differ from a fraction by its rounding."""
    if isinstance(expected, (tuple, list, set, frozenset)):
        assert sorted(found) == sorted(expected), f"{what}: {found} instead of {expected}"
    elif isinstance(found, float):
        assert found == pytest.approx(float(expected), rel=1e-12, abs=1e-12), f"{what}: {found} instead of {expected}"
    else:
        assert found == Fraction(expected), f"{what}: {found} instead of {expected}"


def both(cases: Sequence[Case]):
    """Parametrise a test with every case under every implementation that has the case's parameters."""
    rows = []
    for case in cases:
        for name, run in IMPLEMENTATIONS.items():
            if name == "engine" and engine_lacks(case.machine, case.options):
                continue
            rows.append(pytest.param(case, run, id=f"{case.name}-{name}"))
    return pytest.mark.parametrize(("case", "run"), rows)


def run_case(case: Case, run) -> None:
    """Run a case under an implementation and hold the outcome against what was worked by hand."""
    case.check(run(case.jobs, case.machine, failures=case.failures, **case.options))
