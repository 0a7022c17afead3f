"""Formulas: arithmetic equal to Python's, and nothing but arithmetic."""

from __future__ import annotations

import math

import pytest
from faultsweep.sweeps.formulas import FUNCTIONS, parse
from hypothesis import given
from hypothesis import strategies as st

from faultsweep.errors import InputError

VALUES = {"a": 3, "b": 0.5, "text": "x", "yes": True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * a ** 2", 27),
        ("-a / +b", -6),
        ("2 ** -1", 0.5),
        ("min(a, b, 7) + max(1, 2)", 2.5),
        ("sqrt(16) + abs(-1) + exp(0) + log(1) + log2(8) + log10(100)", 11),
        ("round(2.6) + floor(2.6) + ceil(2.2)", 8),
        ("1e3", 1000),
        ("  a  ", 3),
    ],
)
def test_values(text, value):
    result = parse(text)(VALUES)
    assert result == value
    assert isinstance(result, float)


def test_names_are_those_that_are_read():
    assert parse("a * min(b, a) + 1").names == ("a", "b")


REFUSED = """
a + | a; b | a = 1 | a if b else 1 | [a] | a[0] | a.real | 'x' * 3 | True | a < b | a // b | a % b | a @ b | lambda: 1
open('x') | __import__('os') | min(1) | sqrt(1, 2) | sqrt() | max(*a) | min(1, b=2) | a and b | ~a | not a | (a := 1)
f'{a}' | 1j | ... | {a} | a, b | (1).__class__ | [x for x in a] | await a | abs.__self__(1) | a\x00b
"""


@pytest.mark.parametrize(
    "text", [part for line in REFUSED.strip().splitlines() for part in line.split(" | ")] + ["", " ", 3, "1" * 600]
)
def test_everything_else_is_refused_with_a_sentence(text):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1 / (a - 3)", "has no value for a = 3 ("),
        ("log(-a)", "has no value for a = 3 ("),
        ("9 ** 9 ** 9", "has no value (math range error)"),
        ("1e308 * 10", "gives inf"),
        ("text + 1", "a formula needs a number, but text is 'x'"),
        ("yes + 1", "a formula needs a number, but yes is True"),
    ],
)
def test_formulas_without_a_value(text, sentence):
    with pytest.raises(InputError) as caught:
        parse(text)(VALUES)
    assert sentence in str(caught.value)


numbers = st.floats(0.1, 10).map(lambda value: round(value, 3))
trees = st.recursive(
    numbers.map(repr) | st.sampled_from(["a", "b"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
        | st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner)
        | st.builds("-{}".format, inner)
    ),
    max_leaves=12,
)


@given(trees)
def test_random_formulas_have_the_value_of_python(text):
    known = {name: FUNCTIONS[name] for name in ("min", "max")}
    try:
        expected = eval(text, {"__builtins__": {}, **known}, {"a": 3.0, "b": 0.5})  # noqa: S307 - our own text
    except ZeroDivisionError:
        expected = math.nan
    try:
        assert parse(text)(VALUES) == expected
    except InputError:
        assert not math.isfinite(expected)


@given(st.text(max_size=40))
def test_no_text_does_anything_else(text):
    try:
        parse(text)
    except InputError as error:
        assert str(error)  # noqa: PT017
