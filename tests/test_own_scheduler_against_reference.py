"""Queue disciplines of the user's on sites against the reference, and against the rules that are built in."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import examples
from tests.test_site_against_reference import CHOICES, assert_same, cases, engine

RULES = """
def easy(delays):
    return not delays

def nobody(nodes):
    return False

def by_room(nodes, extra, estimate_s, until_reservation_s):
    return nodes <= extra or estimate_s <= until_reservation_s

def mixed(free, head_nodes, overtaken, wait_s, delays):
    return wait_s > 4 or (not delays and overtaken < 3) or 2 * head_nodes > free + 3
"""
_FOLDER = tempfile.TemporaryDirectory()
_FILE = Path(_FOLDER.name) / "rules.py"
_FILE.write_text(RULES)
_SPEC = importlib.util.spec_from_file_location("rules", _FILE)
rules = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(rules)
MANY = {"failures": True, "reservations": True}


def own(name: str) -> str:
    return f"{_FILE}:{name}"


def asked(name: str):
    """The rule, asked with all inputs."""
    rule = getattr(rules, name)
    taken = rule.__code__.co_varnames[: rule.__code__.co_argcount]
    return lambda **inputs: rule(*(inputs[key] for key in taken))


@pytest.mark.parametrize("name", ["easy", "by_room", "mixed"])
def test_disciplines(name):
    @examples(40)
    @given(st.one_of(cases(), cases(**MANY)), st.sampled_from(CHOICES))
    def check(case, node_choice):
        assert_same(case, scheduler=own(name), rule=asked(name), node_choice=node_choice)

    check()


@examples(40)
@given(cases(**MANY))
def test_without_leave_nobody_overtakes(case):
    """On a site of one partition, which is FCFS's."""
    if case[0][1]:
        return
    assert starts(case, own("nobody")) == starts(case, "fcfs")


def starts(case, scheduler: str) -> list[float]:
    return engine(case, scheduler=scheduler, estimates="requested")[1].jobs["start_s"].tolist()
