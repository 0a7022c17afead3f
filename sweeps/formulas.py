"""Formulas for derived parameter values: arithmetic on numbers and parameter names, and nothing else.

``3600 * mtbf_h / max(1, nodes)`` is parsed by Python's own grammar and then walked by a small evaluator that knows the
operators and functions below. Nothing is ever executed: no attribute, no index, no other call, no text.
All arithmetic is in float64, so that no power of whole numbers can fill the memory.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from faultsweep.errors import InputError, unknown_name

FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": lambda value: float(round(value)),
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
}
"""The functions of formulas; ``min`` and ``max`` take two or more values, the others one."""

_OPERATORS: dict[type[ast.AST], Callable[..., float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_ALLOWED = f"numbers, parameter names, + - * / ** ( ) and {', '.join(sorted(FUNCTIONS))}"
_LONGEST = 500


@dataclass(frozen=True)
class Formula:
    """A checked formula: its text, its syntax tree, and the names of the parameters it reads."""

    text: str
    tree: ast.expr
    names: tuple[str, ...]

    def same_as(self, other: Formula) -> bool:
        """Tell whether another formula is the same, spaces and brackets that do nothing aside."""
        return ast.dump(self.tree) == ast.dump(other.tree)

    def __call__(self, values: Mapping[str, Any]) -> float:
        """Return the value for these parameter values; InputError where it has none (a division by zero, text)."""
        try:
            value = _evaluate(self.tree, values)
        except (ArithmeticError, ValueError) as error:
            known = ", ".join(f"{name} = {values[name]!r}" for name in self.names)
            raise InputError(f"formula {self.text!r} has no value{known and ' for '}{known} ({error})") from None
        if not math.isfinite(value):
            raise InputError(f"formula {self.text!r} gives {value!r}")
        return value


def parse(text: str) -> Formula:
    """Return the formula that ``text`` writes, or raise InputError saying what is allowed in one."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"expected a formula as text, got {text!r}")
    if len(text) > _LONGEST:
        raise InputError(f"a formula has at most {_LONGEST} characters, this one has {len(text)}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise InputError(f"cannot read the formula {text!r} (valid: {_ALLOWED})") from None
    names: dict[str, None] = {}
    _check(tree, text, names)
    return Formula(text.strip(), tree, tuple(names))


def _check(node: ast.AST, text: str, names: dict[str, None]) -> None:
    """Refuse every kind of syntax that is not arithmetic, and collect the names that are read."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    if isinstance(node, ast.Name):
        names[node.id] = None
    elif isinstance(node, ast.BinOp | ast.UnaryOp) and type(node.op) in _OPERATORS:
        for part in (node.left, node.right) if isinstance(node, ast.BinOp) else (node.operand,):
            _check(part, text, names)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise unknown_name("function", node.func.id, FUNCTIONS, where=f"formula {text!r}")
        many = node.func.id in ("min", "max")
        if (len(node.args) < 2) if many else (len(node.args) != 1):
            raise InputError(f"formula {text!r}: {node.func.id} takes {'two or more values' if many else 'one value'}")
        for part in node.args:
            _check(part, text, names)
    else:
        raise InputError(f"formula {text!r}: only {_ALLOWED} are allowed")


def _evaluate(node: ast.AST, values: Mapping[str, Any]) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.Name):
        value = values[node.id]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"a formula needs a number, but {node.id} is {value!r}")
        return float(value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, values), _evaluate(node.right, values))
    if isinstance(node, ast.UnaryOp):
        return _OPERATORS[type(node.op)](_evaluate(node.operand, values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return float(FUNCTIONS[node.func.id](*[_evaluate(part, values) for part in node.args]))
    raise AssertionError(node)
