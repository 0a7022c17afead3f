"""Mutation study: break the kernels on purpose, one small change at a time, and see whether the fast tests notice.

Run it with ``python -m tests.mutants``; a word restricts it to the mutants that contain it.
Every mutant is applied to a copy of the source tree; the tree itself is never touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutant_list import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".pytest_cache", ".hypothesis", ".venv", "*.zarr*", "node_modules"
)
TIMEOUT_S = 1800
TIMES_LONGER = 4  # than the unchanged tree takes: a mutant that needs more loops for ever


class Verdict(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant | None
    caught: bool
    seconds: float
    by: str


def copy_tree(where: Path) -> Path:
    """Copy the source tree and lay out the package in it as an installation would."""
    tree = where / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    folders = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    installed = where / "installed"
    (installed / "faultsweep").mkdir(parents=True)
    for path in (tree / folders["faultsweep"]).iterdir():
        (installed / "faultsweep" / path.name).symlink_to(path)
    for package, folder in folders.items():
        link = installed / package.replace(".", "/")
        if not link.exists():  # it may be in a folder that is linked as a whole
            link.symlink_to(tree / folder)
    return tree


def run_tests(tree: Path, tests: tuple[str, ...], examples: int, timeout_s: float) -> tuple[bool, str]:
    """Run tests against a tree with interpreted kernels; return whether they pass, and the first failure."""
    environment = os.environ | {
        "PYTHONPATH": str(tree.parent / "installed"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_DISABLE_JIT": "1",
        "FAULTSWEEP_SHARED": str(tree.parent / "absent"),
        "FAULTSWEEP_REQUIRE": "",
        "FAULTSWEEP_EXAMPLES": str(examples),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=line", *tests]
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return False, "ran into the time limit"
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"pytest itself failed: {done.stdout}{done.stderr}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, failed[0] if failed else ""


def judge(mutant: Mutant | None, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Apply one mutant (None: no change) to a fresh copy and run its tests."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = copy_tree(Path(name))
        tests = FAST_TESTS
        if mutant is not None:
            path = tree / mutant.file
            text = path.read_text()
            if text.count(mutant.old) != 1:
                raise ValueError(f"{mutant.file}: {mutant.old!r} occurs {text.count(mutant.old)} times, not once")
            path.write_text(text.replace(mutant.old, mutant.new))
        passes, first = run_tests(tree, tests, FEW, timeout_s)
        if passes:
            passes, first = run_tests(tree, tests, MANY, timeout_s)
    return Verdict(mutant, not passes, time.monotonic() - begin, first)


FEW, MANY = 8, 60  # examples of a property: few catch most mutants, at once
FAST_TESTS = ("tests/test_examples_scheduling.py", "tests/test_examples_failures.py", "tests/test_examples_metrics.py",
              "tests/test_engine_against_reference.py", "tests/test_recovery_against_reference.py",
              "tests/simcore/partitions/test_room.py", "tests/simcore/partitions/test_maximal_boxes.py",
              "tests/simcore/test_conservative.py", "tests/simcore/test_scores.py", "tests/simcore/test_endings.py",
              "tests/simcore/partitions/test_finders.py::test_equal_to_the_reference[columns]",
              "tests/simcore/test_shared_nodes.py", "tests/test_site_against_reference.py")  # fmt: skip


def main() -> int:
    """Run the study, print a table, and fail if more than two mutants survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only mutants whose file, text or reason contains it")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [m for m in MUTANTS if arguments.word in f"{m.file} {m.old} {m.why}"]
    baseline = judge(None)
    if baseline.caught:
        print(f"the unchanged tree fails: {baseline.by}")
        return 2
    print(f"unchanged tree passes in {baseline.seconds:.0f} s; {len(chosen)} mutants")
    with ThreadPoolExecutor(arguments.jobs) as pool:
        verdicts = []
        limits = [max(60.0, TIMES_LONGER * baseline.seconds)] * len(chosen)
        for verdict in pool.map(judge, chosen, limits):
            verdicts.append(verdict)
            word = "caught  " if verdict.caught else "SURVIVED"
            print(
                f"{word} {verdict.seconds:5.0f} s  {verdict.mutant.file}: {verdict.mutant.why}  [{verdict.by}]",
                flush=True,
            )
    caught = sum(verdict.caught for verdict in verdicts)
    print(f"{caught} of {len(verdicts)} mutants caught")
    return 0 if len(verdicts) - caught <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
