"""What a run reads, as its state records it without the compiler, beside what policies say that it heeds."""

from __future__ import annotations

import random
from contextlib import contextmanager

import numpy as np
import pytest
from faultsweep.simcore import conformance, simulate
from faultsweep.simcore.conformance import MACHINES, SELECTORS, values_of
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.parameters import canonical, check_combination, inert, known_parameters, resolve

from faultsweep.errors import InputError
from tests.policies import named_policies

pytestmark = pytest.mark.skipif(not is_interpreted(), reason="compiled kernels do not tell what they read")

GROUPS = ("scheduling", "failures", "checkpoints", "recovery", "policies of yours")
SCALARS = [name for name, place in State.layout.places.items() if place.is_scalar]
OWN = """
PARAMETERS = {"slope": {"default": 2.0, "doc": "Read."}, "idle": {"default": 3.0, "doc": "Not taken."}}

def rule(nodes, estimate_s, slope):
    return -nodes * slope - estimate_s
"""

RARE = {f"burst_{name}" for name in ("spacing_s", "largest", "shape", "locality", "same_node", "zipf_alpha", "tail")}
RARE |= {"failure_fit", "num_failures", "failures_per_day", "node_map"}
"""Of bursts, of which few jobs see none."""


class BuiltError(Exception):
    """The state of a run that has not begun is known."""


@contextmanager
def recorded(stop=False):
    """Yield the scalars and arrays of a state before its run, and the set of scalars that the run reads."""
    before, read, begun = {}, set(), []
    plain, go_on = {name: State.__dict__[name] for name in SCALARS}, simulate._advance_to_end

    def noting(name):
        def get(state):
            if begun:
                read.add(name)
            return plain[name].fget(state)

        return property(get, plain[name].fset)

    def advance(state, *rest):
        if not before:
            before.update({name: plain[name].fget(state) for name in SCALARS})
            before["arrays"] = {name: a.tobytes() for name, a in state.arrays.items() if name not in "fi"}
        if stop:
            raise BuiltError
        begun.append(1)
        try:
            return go_on(state, *rest)
        finally:
            begun.clear()

    for name in SCALARS:
        setattr(State, name, noting(name))
    simulate._advance_to_end = advance
    try:
        yield before, read
    finally:
        simulate._advance_to_end = go_on
        for name, found in plain.items():
            setattr(State, name, found)


def begun(config):
    """The state of a run before it begins; None if the configuration is refused."""
    with recorded(stop=True) as (before, _):
        try:
            check_combination(config, parse_machine(config["machine"]))
            conformance._outcome(config)
        except BuiltError:
            return before
        except InputError:
            return None


def affected(before, other):
    """The scalars that differ, and whether any array does."""
    same = {name for name in SCALARS if np.array_equal(before[name], other[name], equal_nan=True)}
    return set(SCALARS) - same, before["arrays"] != other["arrays"]


def different(outcome, config):
    try:
        other = conformance._outcome(config)
        return ", ".join(name for name in outcome if outcome[name] != other.get(name, outcome[name]))
    except InputError:
        return ""


def configurations(tmp_path):
    path = tmp_path / "rules.py"
    path.write_text(OWN)
    for parameter, value in [*named_policies(), ("queue_order", f"{path}:rule")]:
        for machine in MACHINES[:3]:
            for given in conformance._configurations(parameter, value, machine, 2):
                config = resolve({**given, "weibull_scale_s": 300.0})
                try:
                    check_combination(config, parse_machine(machine))
                except InputError:
                    continue
                yield canonical(config)
                break


def matters_somewhere(name, configs):
    """Whether some value of a parameter changes some run in which it is not inert."""
    for config in configs:
        if name not in known_parameters(config) or name in inert(config):
            continue
        try:
            outcome = conformance._outcome(config)
        except InputError:
            continue
        others = [config | {name: value} for value in values_of(known_parameters(config)[name])]
        if any(different(outcome, other) for other in others):
            return True
    return False


def test_a_run_reads_what_is_live_and_nothing_that_is_inert(tmp_path, monkeypatch):
    monkeypatch.setattr(conformance, "_JOBS", 14)
    draw, live, seen, checked = random.Random(7), {}, set(), 0
    every = list(configurations(tmp_path))
    for config in [*draw.sample(every, 36), *every[-2:]]:
        with recorded() as (before, read):
            try:
                outcome = conformance._outcome(config)
            except InputError:
                continue
        neutral, known = inert(config), known_parameters(config)
        names = [name for name in known if known[name].group in GROUPS and name not in SELECTORS]
        for name in sorted({*draw.sample(names, 12), *(known.keys() & {"slope", "idle"})}):
            values = [value for value in values_of(known[name]) if value != config[name]]
            changed = {**config, name: draw.choice(values)} if values else config
            other = begun(changed)
            if other is None:
                continue
            scalars, arrays = affected(before, other)
            touched = arrays or scalars & read
            if name in neutral:
                checked += 1
                assert not touched or different(outcome, changed) == "", (name, config)
            else:
                live.setdefault(name, config)
                if touched or (name not in seen and different(outcome, changed)):
                    seen.add(name)
    assert checked > 50
    assert "slope" in seen
    assert "idle" not in live
    assert len(live) > 10
    rare = {name for name in live.keys() - seen if not matters_somewhere(name, every)}
    assert rare <= RARE
