"""The list of mutants fits the sources: that they are caught is for ``make mutants`` to say."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.mutant_list import MUTANTS
from tests.mutants import FAST_TESTS, NEAR, Kept, Verdict, copy_tree, nearest_first

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_every_mutant_changes_one_place_into_other_code_that_can_be_parsed(file):
    text = (ROOT / file).read_text()
    for mutant in MUTANTS:
        if mutant.file == file:
            assert text.count(mutant.old) == 1, f"{mutant.old!r} occurs {text.count(mutant.old)} times"
            changed = text.replace(mutant.old, mutant.new)
            assert changed != text
            compile(changed, file, "exec")


def test_no_mutant_is_listed_twice():
    changes = [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS]
    assert len(set(changes)) == len(changes)


def test_the_copy_of_the_tree_has_every_package_and_the_tests(tmp_path):
    tree = copy_tree(tmp_path)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    for package in packages:
        assert (tmp_path / "installed" / package.replace(".", "/") / "__init__.py").is_file(), package
    for test in FAST_TESTS:
        assert (tree / test.partition("::")[0]).is_file()


def test_kept_verdicts_are_not_judged_again_but_those_of_survivors(tmp_path):
    caught, survivor, other = MUTANTS[:3]
    kept = Kept(tmp_path / "verdicts.jsonl")
    for verdict in (Verdict(None, False, 9.0, ""), Verdict(caught, True, 1.5, "x"), Verdict(survivor, False, 2.0, "")):
        kept.add(verdict)
    kept = Kept(kept.path)
    assert kept.get(None).seconds == 9.0
    assert kept.get(caught) == Verdict(caught, True, 1.5, "x")
    assert kept.get(survivor) is None
    assert kept.get(other) is None
    kept.add(Verdict(survivor, True, 2.0, "y"))
    assert Kept(kept.path).get(survivor).by == "y"


def test_the_tests_near_a_mutant_come_first_and_none_is_left_out():
    assert set(NEAR) == {part for part in NEAR if any(part in mutant.file for mutant in MUTANTS)}
    for mutant in (None, *MUTANTS):
        tests = nearest_first(mutant)
        assert set(FAST_TESTS) <= set(tests)
        assert len(set(tests)) == len(tests)
