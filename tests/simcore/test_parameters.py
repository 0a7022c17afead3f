"""Every value of a parameter is taken, or refused by one sentence that names the parameter and says what is valid."""

from __future__ import annotations

import math

import pytest
from faultsweep.simcore.contract import LARGEST_INT
from faultsweep.simcore.model.machines import LONGEST_SIDES, parse_machine
from faultsweep.simcore.parameters import PARAMETERS, resolve
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError

NUMBERS = [parameter for parameter in PARAMETERS.values() if parameter.kind in (int, float)]
ODD = [math.inf, -math.inf, math.nan, 10**400, -(10**400), 10**5000, 2**63, 2**53 + 1, 1e308, True, None, "3", [1], 1.5]


@pytest.mark.sampled(40)
@pytest.mark.parametrize("parameter", NUMBERS, ids=lambda parameter: parameter.name)
@given(value=st.sampled_from(ODD) | st.floats() | st.integers())
def test_a_number_is_taken_or_refused_by_a_sentence(parameter, value):
    taken, problem = None, ""
    try:
        taken = parameter.check(value)
    except InputError as error:
        problem = str(error)
    if taken is None:
        assert problem.startswith(f"{parameter.name}: ")
        assert len(problem.splitlines()[0]) == len(problem) < 200
    else:
        assert type(taken) is parameter.kind
        assert taken == parameter.kind(value)
        assert parameter.minimum <= taken <= parameter.maximum
        assert math.isfinite(taken) or parameter.default == math.inf
        assert parameter.kind is float or abs(taken) <= LARGEST_INT


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("estimate_factor", math.inf, "estimate_factor: inf is outside the valid range, 1 or more (up to 1e+300)"),
        ("estimate_factor", 1e308, "estimate_factor: 1e+308 is outside the valid range, 1 or more (up to 1e+300)"),
        ("growth_limit", math.inf, "growth_limit: inf is outside the valid range, 0 or more (up to 2^53)"),
        ("offset", 10**25, "offset: 10000000000000000000000000 is outside the valid range, 0 or more (up to 2^53)"),
        ("accuracy", 1.5, "accuracy: 1.5 is outside the valid range 0 to 1"),
        ("seed", 1.5, "seed: expected a whole number, got 1.5"),
        ("log", "a\0b.swf", r"log: expected text without null characters, got 'a\x00b.swf'"),
    ],
)
def test_what_is_valid_is_said(name, value, sentence):
    with pytest.raises(InputError) as error:
        resolve({name: value})
    assert str(error.value) == sentence


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_torus_may_be_as_long_as_its_masks_reach(axis):
    sides = [1, 1, 1]
    sides[axis] = LONGEST_SIDES[axis]
    assert parse_machine("torus:{}x{}x{}".format(*sides)).nodes == LONGEST_SIDES[axis]
    sides[axis] += 1
    with pytest.raises(
        InputError, match=r"has a side that is too long \(valid: x up to 1023, y up to 1023, z up to 64"
    ):
        parse_machine("torus:{}x{}x{}".format(*sides))


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_default_is_as_a_check_gives_it(name):
    """It is taken without one."""
    parameter = PARAMETERS[name]
    checked = parameter.check(parameter.default)
    assert (type(checked), checked) == (parameter.kind, parameter.default)
    assert resolve({name: parameter.default})[name] == checked


def test_what_is_only_equal_to_a_default_is_checked():
    with pytest.raises(InputError, match="time_scheduling"):
        resolve({"time_scheduling": 0})
    with pytest.raises(InputError, match="replicate"):
        resolve({"replicate": False})
