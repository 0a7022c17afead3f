"""Every array that a kernel takes says its dtype and shape where its type is declared or in the docstring, and every
field of the state is read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORE, BENCHMARKS = ROOT / "simcore", ROOT / "benchmarks"
KERNELS = {"kernel", "inlined", "entry_kernel", "outermost_kernel"}
SHAPE = r"(int|uint|float)\d+ \("


def trees(*folders: Path) -> Iterator[ast.Module]:
    for folder in folders or (CORE,):
        for path in folder.rglob("*.py"):
            yield ast.parse(path.read_text())


def kernels() -> Iterator[ast.FunctionDef]:
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and KERNELS & {ast.unparse(one) for one in node.decorator_list}:
                yield node


def array_types() -> dict[str, str]:
    """The names of array types, with what is said of each where it is declared."""
    found = {}
    for tree in trees():
        for node, after in zip(tree.body, [*tree.body[1:], ast.Pass()], strict=True):
            if isinstance(node, ast.Assign) and re.match(r"NDArray\[|Annotated\[\w+, Row", ast.unparse(node.value)):
                said = ast.unparse(node.value if "Row" in ast.unparse(node.value) else after)
                found[ast.unparse(node.targets[0])] = said
    return found


def test_every_array_of_a_kernel_says_its_dtype_and_shape():
    types, silent = array_types(), set()
    for node in kernels():
        text = ast.get_docstring(node) or ""
        for one in node.args.args:
            kind = ast.unparse(one.annotation) if one.annotation else ""
            if kind.startswith("NDArray"):
                said = re.search(rf"\b{one.arg}\b.*{SHAPE}", text, re.DOTALL)
            else:
                said = kind not in types or re.search(rf"{SHAPE}|Row\(", types[kind])
            if not said:
                silent.add(f"{node.name}: {one.arg}: {kind}")
    assert silent == set()


def test_the_arrays_of_kernels_are_found():
    found = {ast.unparse(one.annotation) for node in kernels() for one in node.args.args if one.annotation}
    assert {"Boxes", "Columns", "Occupancy", "ClusterRow", "NDArray[np.int64]"} <= found


def test_every_field_of_the_state_is_read():
    """By its name in code, or in a text from which code is made; what is only counted, by a benchmark."""
    declared, read = set(), set()
    for tree in trees(CORE, BENCHMARKS):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and {"Common", "CommonJobs", "Declared"} & {
                ast.unparse(one) for one in node.bases
            }:
                declared |= {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                read |= set(re.findall(r"\bs\.(\w+)", node.value))
                read.add(node.value)
    assert "own_window" in declared
    assert declared - read == set()
