"""The failure generators as the target of a sweep (``target = "failures"``): failures alone, without jobs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Config, Parameter
from faultsweep.simcore.failure_logs.statistics import autocorrelation, worst_share
from faultsweep.simcore.failure_sources import source_for
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import PARAMETERS, inert, resolve
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.policies.failures.source import DAY_S, Span
from faultsweep.sweeps.target import Outcome, Output, Target

from faultsweep.errors import InputError

GENERATORS = {
    name: policy.doc for name, policy in ROLES["failures"].policies.items() if "source" in policy.facts and policy.doc
}
"""The generators of failures, each with a sentence."""
_NOT_HERE = ("failures", "num_failures", "failure_system", "failure_filter_s", "failure_columns")


TRACE_PARAMETERS: dict[str, Parameter] = {
    "days": Parameter("days", float, 365.0, "Length of the trace.", "failures", minimum=1e-6, maximum=1e6, unit="d"),
    **{name: PARAMETERS[name] for name in ("seed", "replicate")},
    "machine": PARAMETERS["machine"],
    "failures": replace(PARAMETERS["failures"], default="weibull", doc="Generator.", choices=GENERATORS),
    **{name: p for name, p in PARAMETERS.items() if p.group == "failures" and name not in _NOT_HERE},
}
"""The parameters of a generated trace: its length, and those of the simulator that a generator heeds."""


_DEFAULTS = {name: parameter.default for name, parameter in PARAMETERS.items()}
_ALWAYS = {"days", "machine", "seed", "replicate", "failures"}
"""What decides every trace."""


def generate(values: Config, days: float) -> tuple[FailureTrace, int]:
    """Return the failures of a generator in the first ``days``, and the number of the machine's nodes.

    Raises
    ------
    InputError
        If a value is not valid, or parameters contradict each other.
    """

    config = resolve(values)
    nodes = parse_machine(config["machine"]).nodes
    source = source_for(config, nodes, Span(0.0, days * DAY_S, days * DAY_S))
    if source is None:
        raise InputError(f"failures: {config['failures']!r} draws none (valid: {', '.join(GENERATORS)})")
    return source.until(days * DAY_S), nodes


_WORKER_BYTES = 300_000_000
"""Memory of a worker process, whose traces are small."""


class FailureTarget(Target):
    """Draws failures; per-job results (``keep_jobs``) are the failures themselves: time_s, node, down_s."""

    name = "failures"
    outputs = (
        Output("failures_drawn", "1", "Failures in the trace."),
        Output("failures_drawn_per_day", "1/d", "Failures per day."),
        Output("mean_gap_s", "s", "Mean time between failures."),
        Output("gap_variation", "1", "Coefficient of variation of the times between failures."),
        Output("gap_autocorrelation", "1", "Correlation of each time between failures with the next."),
        Output("worst_tenth_share", "1", "Share of the failures that the worst tenth of the nodes has."),
    )

    def __init__(self) -> None:
        """Take the table of parameters, and the version of the model, of this process."""
        from faultsweep.simcore.simulate import MODEL_VERSION

        self.parameters: Mapping[str, Any] = TRACE_PARAMETERS
        self.version = str(MODEL_VERSION)

    def __getstate__(self) -> dict[str, Any]:
        """Travel to workers without the table of parameters."""
        return {"version": self.version}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the table of parameters of the process at hand."""
        self.__dict__.update(state, parameters=TRACE_PARAMETERS)

    def inert(self, config: Config) -> frozenset[str]:
        """Return the parameters that the generator does not heed."""
        known = ChainMap(config, _DEFAULTS)  # type: ignore[arg-type]  # it is only read
        return inert(known, root="failures") & frozenset(config) - _ALWAYS

    def precheck(self, values: Mapping[str, Sequence[Any]]) -> list[str]:
        """Return a sentence for every machine there is not."""
        problems = []
        for machine in values.get("machine", ()):
            try:
                parse_machine(machine)
            except InputError as error:
                problems.append(str(error))
        return problems

    def warm(self, config: Config) -> None:
        """Import what draws failures."""
        self.run({**config, "days": min(config["days"], 1.0)})

    def worker_bytes(self, values: Mapping[str, Sequence[Any]]) -> int:
        """Return the memory of a worker process."""
        return _WORKER_BYTES

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Draw the failures of one configuration, and measure them."""

        days = config["days"]
        trace, nodes = generate({name: value for name, value in config.items() if name != "days"}, days)
        gaps = np.diff(trace.time_s, prepend=0.0)
        count, mean = len(trace), float(gaps.mean()) if len(trace) else np.nan
        values = [
            count,
            count / days,
            mean,
            gaps.std() / mean if mean > 0 else np.nan,
            autocorrelation(gaps, 1),
            worst_share(np.bincount(trace.node, minlength=nodes)) if count else np.nan,
        ]
        failures = {"time_s": trace.time_s, "node": trace.node, "down_s": trace.down_s} if keep_jobs else None
        return Outcome([float(value) for value in values], jobs=failures)
