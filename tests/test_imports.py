"""Imports go one way: the graph of modules has no cycle, and its parts import only what lies below them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from faultsweep.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {part: f"faultsweep.{part}" for part in ("simcore", "sweeps", "cluster", "analysis")} | {
    "faultsweep": "faultsweep"
}
BASE = {"arguments", "errors", "extras", "files", "compression", "garbage", "terminal", "units"}
BASE |= {"faultsweep"}  # its version
ALLOWED = {
    "errors": set(),
    "garbage": set(),
    "arguments": {"errors"},
    "units": {"errors"},
    "extras": {"errors"},
    "terminal": {"errors"},
    "compression": {"errors"},
    "files": {"errors"},
    "simcore": BASE,
    "cluster": BASE,
    "sweeps": BASE | {"simcore", "cluster"},
    "analysis": BASE | {"simcore", "sweeps"},
    "cli": BASE | {"simcore", "sweeps", "cluster", "analysis"},
    "faultsweep": BASE | {"cli", "simcore", "sweeps", "cluster", "analysis"},
    "__main__": BASE | {"cli"},
}
"""What each part may import besides itself."""
WITHIN_SIMCORE = {
    "contract": {"installed"},
    "installed": set(),
    "streams": set(),
    "distributions": {"contract", "streams"},
    "finders": {"engine"},
    "model": {"finders", "sites"},
    "workloads": {"contract", "model", "parameters", "policies", "streams"},
    "sites": {"model", "workloads"},
    "failure_logs": {"model", "parameters", "policies", "streams", "workloads"},
    "policies": {
        "contract",
        "distributions",
        "engine",
        "failure_logs",
        "finders",
        "installed",
        "job_results",
        "model",
        "outside",
        "streams",
        "workloads",
    },
    "outside": {"contract", "engine", "installed", "streams"},
    "failure_sources": {"contract", "failure_logs", "policies"},
    "parameters": {"contract", "model", "outside", "policies"},
    "engine": {
        *("contract", "distributions", "finders", "job_results", "model", "parameters", "policies", "remembered"),
        "streams",
    },
    "possible": {"contract", "engine", "parameters", "policies"},
    "conformance": {"contract", "engine", "model", "parameters", "policies", "simulate"},
    "job_results": set(),
    "remembered": set(),
    "simulate": {
        *("engine", "failure_sources", "job_results", "model", "parameters", "policies", "remembered", "workloads"),
    },
}
"""The same for the folders of the simulator core; modules that import each other's folders have no cycle."""
INNER = {
    "simcore.model.nodes": "a site's file is checked by a library that takes long to import",
    "simcore.simulate": "what is compiled for clusters is loaded only there",
}
"""Modules of the simulator core that import inside functions, and why."""
SLOW = {
    "IPython": "only notebooks have it",
    "cryptography": "0.02 s, and only a cluster that is started here needs it",
    "distributed": "0.17 s, and status and plan of a store need no cluster",
    "holoviews": "it comes with hvplot, which is optional",
    "numpy": "0.07 s, which the help of all commands would pay",
    "pooch": "with requests 0.02 s, for a log that is not here yet",
    "psutil": "0.01 s, which the check of a lock seldom needs",
    "requests": "see pooch",
    "rich": "0.02 s, which the help of all commands would pay",
    "xarray": "0.4 s, which the help of all commands would pay",
}
"""Packages that may be imported inside functions beside the optional ones, and why."""
FEW = 3
"""Modules of the package that are not worth an import inside a function, if no other package comes with them."""


@cache
def modules() -> dict[str, Path]:
    """The modules of the package by name."""
    found = {}
    for folder, name in FOLDERS.items():
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            found[".".join((name, *parts)).removesuffix(".__init__")] = path
    return found


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text())


def named(node: ast.AST) -> list[str]:
    """The modules of the package that an import names; none of anything else."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "faultsweep":
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        return [name if name in modules() else str(node.module) for name in inner]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name.partition(".")[0] == "faultsweep"]
    return []


@cache
def import_nodes(module: str) -> tuple[tuple[ast.Import | ast.ImportFrom, bool, bool], ...]:
    """All imports of a module, and of each whether it is not at the top, and whether it is inside a function."""
    found = []
    todo: list[tuple[ast.AST, bool, bool]] = [(node, False, False) for node in tree_of(module).body]
    while todo:
        node, deeper, inner = todo.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append((node, deeper, inner))
        inner |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        parts = (ast.stmt, ast.excepthandler, ast.match_case)  # no expression has an import
        todo += [(part, True, inner) for part in ast.iter_child_nodes(node) if isinstance(part, parts)]
    return tuple(found)


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """What a module imports of the package, and whether it does so deeper than at its top."""
    for node, deeper, _ in import_nodes(module):
        for name in named(node):
            if name != module:
                yield name, deeper


@cache
def edges() -> tuple[tuple[str, str, bool], ...]:
    return tuple((module, name, inner) for module in modules() for name, inner in imports(module))


def part(module: str, depth: int = 1) -> str:
    names = module.split(".")
    return names[depth] if len(names) > depth else names[-1]


def short(module: str) -> str:
    return module.removeprefix("faultsweep.")


def test_every_import_goes_down():
    wrong = {
        (short(a), short(b)) for a, b, _ in edges() if part(a) != part(b) and part(b) not in ALLOWED.get(part(a), set())
    }
    assert not wrong


def test_folders_of_the_simulator_core_import_what_they_may():
    core = [(a, b) for a, b, _ in edges() if part(a) == part(b) == "simcore" and a.count(".") > 1 and b.count(".") > 1]
    pairs = {(part(a, 2), part(b, 2)) for a, b in core}
    drawn = {(a, b) for a, b in pairs if a != b}
    assert drawn <= {(a, b) for a, others in WITHIN_SIMCORE.items() for b in others}


def test_no_module_imports_itself_by_way_of_others():
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for a, b, _ in edges():
        graph[a].add(b)
    done: set[str] = set()

    def walk(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module not in done:
            for other in sorted(graph.get(module, ())):
                walk(other, (*above, module))
            done.add(module)

    for module in graph:
        walk(module, ())


def inner_imports(module: str) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports inside functions of a module."""
    return (node for node, _, inner in import_nodes(module) if inner)


def inside_functions(module: str) -> set[str]:
    """The modules of the package that a module imports inside functions."""
    return {name for node in inner_imports(module) for name in named(node)} - {module}


@cache
def at_top(module: str) -> set[str]:
    """The modules of the package that are imported when a module is, its own folder with it."""
    body = tree_of(module).body if module in modules() else []
    return {name for node in body for name in named(node)} | {module.rpartition(".")[0] or module}


def loaded_with(module: str) -> set[str]:
    """The modules of the package that are loaded when a module is imported."""
    found: set[str] = set()
    todo = {module}
    while todo:
        found |= todo
        todo = {name for one in todo for name in at_top(one)} - found
    return found


def test_an_import_inside_a_function_spares_one_at_start():
    needless = {(short(a), short(b)) for a in modules() for b in inside_functions(a) & loaded_with(a)}
    assert {pair for pair in needless if pair[0] not in INNER} == set()


def test_the_core_imports_inside_functions_only_for_a_reason():
    assert {short(a) for a, _, inner in edges() if inner and part(a) == "simcore"} <= set(INNER)


def packages(node: ast.AST) -> set[str]:
    """The packages that an import names, this one excepted."""
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").partition(".")[0]} - {"faultsweep"}
    return {alias.name.partition(".")[0] for alias in getattr(node, "names", ())} - {"faultsweep"}


def loaded_packages(names: set[str]) -> set[str]:
    """The packages that modules import at their top, the standard library excepted."""
    at_tops = (node for name in names if name in modules() for node in tree_of(name).body)
    imports = (node for node in at_tops if isinstance(node, ast.Import | ast.ImportFrom))
    return {package for node in imports for package in packages(node)} - sys.stdlib_module_names


def test_only_slow_and_optional_packages_are_imported_inside_functions():
    found = {(short(m), package) for m in modules() for node in inner_imports(m) for package in packages(node)}
    assert {pair for pair in found if pair[1] not in SLOW.keys() | EXTRAS.keys()} == set()
    needless = {pair for pair in found if pair[1] in loaded_packages(loaded_with(f"faultsweep.{pair[0]}"))}
    assert needless == set()
    assert SLOW.keys() <= {package for _, package in found}


def test_an_import_inside_a_function_spares_more_than_a_few_modules():
    """But for commands, whose help loads nothing of the rest."""
    needless = set()
    for module in (module for module in modules() if part(module) != "cli" and short(module) not in INNER):
        here = loaded_with(module)
        for name in inside_functions(module):
            new = loaded_with(name) - here
            if len(new) <= FEW and not loaded_packages(new) - loaded_packages(here):
                needless.add((short(module), short(name)))
    assert needless == set()
