"""Mutation study: break the kernels on purpose, one small change at a time, and see whether the fast tests notice.

Run it with ``python -m tests.mutants``; a word restricts it to the mutants that contain it.
Every mutant is applied to a copy of the source tree; the tree itself is never touched.
With ``--results FILE`` each verdict is kept as soon as it is known: the same command then goes on where it was stopped,
and after a change of the tests it judges only those again that survived.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.mutant_list import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(
    ".git", "__pycache__", ".pytest_cache", ".hypothesis", ".venv", "*.zarr*", "node_modules"
)
TIMEOUT_S = 1800  # of processor time, so that a busy machine makes no difference
TIMES_LONGER = 4  # than the unchanged tree takes: a mutant that needs more loops for ever


class Verdict(NamedTuple):
    """What became of one mutant."""

    mutant: Mutant | None
    caught: bool
    seconds: float  # of the processor, in the longest run of the tests
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
    command = ["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(max(1, round(timeout_s))), *command]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return False, "ran into the time limit"
    if done.returncode not in (0, 1, 2):
        raise RuntimeError(f"pytest itself failed: {done.stdout}{done.stderr}")
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode == 0, failed[0] if failed else ""


def processor_s() -> float:
    """Return the processor time of all runs of tests so far, s; of several at once, their sum."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge(mutant: Mutant | None, timeout_s: float = TIMEOUT_S) -> Verdict:
    """Apply one mutant (None: no change) to a fresh copy and run its tests; the limit is that of one run of them."""
    longest = 0.0
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        tree = copy_tree(Path(name))
        if mutant is not None:
            path = tree / mutant.file
            text = path.read_text()
            if text.count(mutant.old) != 1:
                raise ValueError(f"{mutant.file}: {mutant.old!r} occurs {text.count(mutant.old)} times, not once")
            path.write_text(text.replace(mutant.old, mutant.new))
        near, all_tests = near_tests(mutant), nearest_first(mutant)
        rounds = [(FEW, all_tests, timeout_s / 4), (MANY, all_tests, timeout_s), (MOST, near, timeout_s)]
        for count, tests, limit_s in rounds if near else rounds[:2]:
            begin = processor_s()
            passes, first = run_tests(tree, tests, count, limit_s)
            longest = max(longest, processor_s() - begin)
            if not passes:
                break
    return Verdict(mutant, not passes, longest, first)


FEW, MANY, MOST = 8, 60, 700  # examples of a property: few catch most mutants, at once; the most, of tests near by
LAWS_OF_TIME = ("test_later_submissions_change_times_only[flat:64]",  # those on a torus take long
                "test_later_submissions_change_times_only[clusters:40+40]",
                "test_a_span_of_a_log_is_a_log_of_its_own",
                "test_a_log_that_begins_late_has_no_more_failures_than_one_that_begins_at_once",
                "test_failures_before_the_first_submission_teach_nothing",
                "test_failures_of_another_clock_are_told",
                "test_a_written_trace_repeats_the_run_of_a_span",
                "test_nodes_are_held_until_a_completion_is_processed")  # fmt: skip
FAST_TESTS = ("tests/test_examples_scheduling.py", "tests/test_examples_failures.py", "tests/test_examples_metrics.py",
              "tests/test_engine_against_reference.py", "tests/test_recovery_against_reference.py",
              "tests/simcore/partitions/test_room.py", "tests/simcore/partitions/test_maximal_boxes.py",
              "tests/simcore/test_timers.py", "tests/simcore/test_releases.py",
              "tests/simcore/test_conservative.py", "tests/simcore/test_scores.py", "tests/simcore/test_endings.py",
              "tests/simcore/test_long_queues.py",
              "tests/simcore/partitions/test_finders.py::test_equal_to_the_reference[columns]",
              "tests/simcore/test_shared_nodes.py", "tests/test_site_against_reference.py",
              "tests/test_priorities_against_reference.py", "tests/test_limits_against_reference.py",
              "tests/test_dependencies_against_reference.py", "tests/test_submit_limits_against_reference.py",
              "tests/test_reservations_against_reference.py", "tests/simcore/test_recorded_associations.py",
              "tests/test_slurm_against_reference.py", "tests/test_site_recovery_against_reference.py",
              "tests/test_preemption_against_reference.py", "tests/test_top_jobs_against_reference.py",
              "tests/test_large_sites_against_reference.py",
              "tests/test_own_scheduler_against_reference.py", "tests/simcore/failures/test_generators.py",
              *(f"tests/test_laws_of_time.py::{name}" for name in LAWS_OF_TIME))  # fmt: skip

NEAR = {
    "limits": ("tests/test_limits_against_reference.py",),
    "engine/submits": ("tests/test_submit_limits_against_reference.py",),
    "engine/admitted": ("tests/test_reservations_against_reference.py",),
    "preemption/cancel": ("tests/test_submit_limits_against_reference.py",),
    "engine/timers": ("tests/simcore/test_timers.py",),
    "engine/events": ("tests/simcore/test_releases.py",),
    "engine/dependencies": ("tests/test_dependencies_against_reference.py",),
    "recovery/requeue": ("tests/test_recovery_against_reference.py", "tests/test_site_recovery_against_reference.py"),
    "preemption/": ("tests/test_preemption_against_reference.py",),
    "scheduling/own": ("tests/test_own_scheduler_against_reference.py",),
    "scheduling/dominance": ("tests/test_dominance_against_reference.py",),
    **dict.fromkeys(
        ("scheduling/unchanged", "scheduling/conservative", "engine/profile", "round_robin"),
        ("tests/test_compression_against_reference.py",),
    ),
    "top_jobs": ("tests/test_top_jobs_against_reference.py",),
    "scheduling/slurm": ("tests/test_slurm_against_reference.py",),
    "queue_order/associations": ("tests/simcore/test_recorded_associations.py",),
    "queue_order/": ("tests/test_priorities_against_reference.py",),
    "checkpointing/": ("tests/simcore/test_checkpointing.py",),
    "engine/clusters/": ("tests/test_clusters_against_reference.py", "tests/test_examples_clusters.py"),
    "placement/": ("tests/simcore/partitions/test_room.py", "tests/simcore/test_scores.py"),
    "finders/": ("tests/simcore/partitions/test_finders.py::test_equal_to_the_reference[columns]",),
    "policies/failures/": ("tests/simcore/failures/test_generators.py",),
    **dict.fromkeys(
        ("pieces", "shared_", "site_profile", "engine/records", "node_choice/", "engine/bits"),
        (
            "tests/test_large_sites_against_reference.py",
            "tests/simcore/test_shared_nodes.py",
            "tests/test_site_against_reference.py",
            "tests/test_site_recovery_against_reference.py",
        ),
    ),
}
"""Tests that are likely to catch an error in a file whose path has this in it, so that it is caught soon."""


def near_tests(mutant: Mutant | None) -> tuple[str, ...]:
    """Return the tests that are likely to catch a mutant."""
    return tuple(test for part, tests in NEAR.items() if mutant and part in mutant.file for test in tests)


def nearest_first(mutant: Mutant | None) -> tuple[str, ...]:
    """Return all fast tests, those near the mutant first."""
    near = near_tests(mutant)
    return (*near, *(test for test in FAST_TESTS if test not in near))


class Kept:
    """The verdicts of earlier runs, in a file of one line each (JSON); without a file, none."""

    def __init__(self, path: Path | None) -> None:
        """Read the file, if it is there."""
        self.path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.found: dict[tuple[str, ...], Verdict] = {}
        for line in lines:
            mutant, *rest = json.loads(line)
            verdict = Verdict(mutant and Mutant(*mutant), *rest)
            self.found[_change(verdict.mutant)] = verdict

    def get(self, mutant: Mutant | None) -> Verdict | None:
        """Return the last verdict on a mutant, None if it was not judged or survived: tests may be better now."""
        verdict = self.found.get(_change(mutant))
        return verdict if verdict and verdict.caught == (mutant is not None) else None

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict."""
        if self.path:
            with self.path.open("a") as out:
                out.write(json.dumps(verdict) + "\n")


def _change(mutant: Mutant | None) -> tuple[str, ...]:
    return (mutant.file, mutant.old, mutant.new) if mutant else ()


def main() -> int:
    """Run the study, print a table, and fail if more than two mutants survive."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("word", nargs="?", default="", help="only mutants whose file, text or reason contains it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, help="file of verdicts, to go on with")
    parser.add_argument("--most", type=int, default=len(MUTANTS), help="judge so many, then stop")
    arguments = parser.parse_args()
    kept = Kept(arguments.results)
    baseline = kept.get(None) or judge(None)
    if baseline.caught:
        print(f"the unchanged tree fails: {baseline.by}")
        return 2
    if not kept.get(None):
        kept.add(baseline)
    chosen = [mutant for mutant in MUTANTS if arguments.word in f"{mutant.file} {mutant.old} {mutant.why}"]
    fresh = [mutant for mutant in chosen if not kept.get(mutant)][: arguments.most]
    print(
        f"unchanged tree passes in {baseline.seconds:.0f} s; {len(fresh)} of {len(chosen)} mutants to judge", flush=True
    )
    verdicts = [verdict for verdict in map(kept.get, chosen) if verdict]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        limits = [max(60.0, TIMES_LONGER * baseline.seconds)] * len(fresh)
        for verdict in pool.map(judge, fresh, limits):
            verdicts.append(verdict)
            kept.add(verdict)
            word = "caught  " if verdict.caught else "SURVIVED"
            print(
                f"{word} {verdict.seconds:5.0f} s  {verdict.mutant.file}: {verdict.mutant.why}  [{verdict.by}]",
                flush=True,
            )
    caught = sum(verdict.caught for verdict in verdicts)
    print(f"{caught} of {len(verdicts)} mutants caught; {len(chosen) - len(verdicts)} not judged yet")
    return 0 if len(chosen) - caught <= 2 else 1


if __name__ == "__main__":
    sys.exit(main())
