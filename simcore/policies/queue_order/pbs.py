"""``pbs``: by a formula, as the ``job_sort_formula`` of a PBS server.

The job with the highest value comes first. The formula is arithmetic (+ - * / // % **, parentheses, and abs, exp, log,
log10, max, min, pow, sqrt) of

- ``ncpus``, ``ngpus``, ``nodect``: cores, GPUs and nodes (on a machine that is no site: nodes, 0 and nodes);
- ``mem``: memory in kB, as PBS counts sizes;
- ``walltime``: the estimate in s;
- ``queue_priority``: the priority of its partition, from ``priority_partition_factors`` or the site; 0 without;
- ``job_priority``: less its nice value (``qsub -p``);
- ``eligible_time``: its wait in s. The value must be a sum of what does not depend on it and what grows with it evenly,
  so that it is quickly known at each pass.

Source: PBS Professional Administrator's Guide, "Using a Formula for Computing Job Execution Priority".
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Config, Parameter, Policy, Refusal, Run
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import Machine
from faultsweep.simcore.policies.queue_order.associations import fewest_nodes, numbers_of, partition_factors
from numpy.typing import NDArray

from faultsweep.errors import InputError

Floats = NDArray[np.float64]
TERMS = ("ncpus", "ngpus", "nodect", "mem", "walltime", "queue_priority", "job_priority", "eligible_time")
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("abs", "exp", "log", "log10", "sqrt")},
    **{"max": np.maximum, "min": np.minimum, "pow": np.power},
}
_UNARY: Mapping[type, Callable[..., Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_BINARY: Mapping[type, Callable[..., Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow},
}
_KB_PER_MIB = 1024.0
_LOOKS_S = (0.0, 3600.0, 86_400.0)
"""Waits at which the formula is looked at: with the first two it is known if it is a straight line."""


@inlined
def value_of(s: State, job: int) -> float:
    """Return the value of a waiting job as of now."""
    return s.job.priority[job] + s.job.growth[job] * (s.now - s.job.utility_since[job])


def expected_value(s: State, job: int) -> float:
    """Return the same for the checks of debug mode, which share no code with kernels."""
    return float(s.job.priority[job]) + float(s.job.growth[job]) * (float(s.now) - float(s.job.utility_since[job]))


def parse(formula: str) -> ast.expr:
    """Return a formula as a tree.

    Raises
    ------
    InputError
        If it is no arithmetic of TERMS and FUNCTIONS.
    """
    try:
        tree = ast.parse(formula.strip(), mode="eval").body
        with np.errstate(all="ignore"):
            _value(tree, dict.fromkeys(TERMS, np.ones(1)))
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InputError(f"job_sort_formula: {formula!r} is no formula (valid: such as {_EXAMPLE!r})") from None
    return tree


_EXAMPLE = "ncpus * 10 + eligible_time / 3600"


def _value(node: ast.expr, terms: Mapping[str, Floats]) -> Any:
    """Return the value of a part of a formula."""
    match node:
        case ast.Constant(int() | float() as value) if not isinstance(value, bool):
            return np.float64(value)
        case ast.Name(name) if name in terms:
            return terms[name]
        case ast.UnaryOp(op, operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand, terms))
        case ast.BinOp(left, op, right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, terms), _value(right, terms))
        case ast.Call(ast.Name(name), values, []) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(value, terms) for value in values))
    raise InputError(
        f"job_sort_formula: {ast.unparse(node)!r} is not valid (valid: arithmetic of {', '.join(TERMS)} and "
        f"{', '.join(FUNCTIONS)})"
    )


def values(jobs: Mapping[str, NDArray[Any]], machine: Machine, run: Run) -> tuple[Floats, Floats]:
    """Return the value of each job when it arrives, and what it grows by for each second of its wait, (jobs,).

    Raises
    ------
    InputError
        If a value is no number, or does not grow evenly.
    """
    formula, count = run["job_sort_formula"], len(jobs["submit_s"])
    tree, terms = parse(formula), _terms(jobs, machine, run)
    with np.errstate(all="ignore"):
        found = [np.zeros(count) + _value(tree, {**terms, "eligible_time": np.full(count, wait)}) for wait in _LOOKS_S]
    if not np.isfinite(found).all():
        raise InputError(f"job_sort_formula: {formula!r} is no number for some jobs (valid: a number for each)")
    growth = (found[1] - found[0]) / _LOOKS_S[1]
    if not np.allclose(found[2], found[0] + growth * _LOOKS_S[2], rtol=1e-9):
        raise InputError(
            f"job_sort_formula: {formula!r} does not grow linearly with eligible_time (valid: a sum of what does not "
            f"depend on it and what is proportional to it, such as {_EXAMPLE!r})"
        )
    return found[0], growth


def _terms(jobs: Mapping[str, NDArray[Any]], machine: Machine, run: Run) -> dict[str, Floats]:
    """Return what a formula may name, but for the wait: float64 (jobs,)."""
    count, nodes = len(jobs["submit_s"]), jobs["requested"].astype(np.float64)
    found = {"ncpus": nodes, "nodect": nodes, "ngpus": np.zeros(count), "mem": np.zeros(count)}
    if machine.site is not None:
        found["nodect"] = fewest_nodes(jobs).astype(np.float64)
        found["ngpus"] = (jobs["chunks"] * jobs["gpus"]).astype(np.float64)
        found["mem"] = jobs["chunks"] * jobs["memory_mb"] * _KB_PER_MIB
    found["walltime"] = jobs["estimate_s"]
    factors = dict(partition_factors(machine, run))
    names = jobs.get("partition_names", np.empty(0, np.str_)).tolist()
    codes = jobs.get("partition_codes", np.full(count, -1))
    found["queue_priority"] = np.array([*(factors.get(str(name), 0.0) for name in names), 0.0])[codes]
    return {**found, "job_priority": -numbers_of(jobs, "nice")}


def _bad_formula(config: Config, kind: str, machine: str) -> str:
    try:
        parse(config["job_sort_formula"])
    except InputError as error:
        return str(error)
    return ""


POLICY = Policy(
    "pbs",
    "By a formula of cores, nodes, GPUs, memory, time, partition and wait, as PBS's job_sort_formula.",
    machines=ONE_MACHINE,
    parameters=(
        Parameter(
            "job_sort_formula",
            str,
            "eligible_time",
            f"Value of a job in the queue, the highest first, such as {_EXAMPLE} (PBS: job_sort_formula).",
            "scheduling",
        ),
    ),
    uses=("priority_partition_factors",),
    kernels={"utility": value_of},
    facts={"expected_utility": expected_value, "lasting": values},
    refuses=(Refusal(("job_sort_formula",), _bad_formula),),
)
