"""The project's files agree with each other: dependencies, versions, packages, Makefile."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from faultsweep.simcore.simulate import MODEL_VERSION
from faultsweep.sweeps.store.store import FORMAT
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import faultsweep
from faultsweep.extras import EXTRAS

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = ("3.11.0", "3.11.2", "3.12.0", "3.13.0", "3.14.0")
TARGETS = {"demo", "test", "check", "bench", "mutants", "reproduce", "clean"}


def requirements() -> list[Requirement]:
    texts = [*PROJECT["dependencies"], *(text for extra in PROJECT["optional-dependencies"].values() for text in extra)]
    return [Requirement(text) for text in texts if not text.startswith("faultsweep[")]


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


def constraints(python: str = platform.python_version()) -> dict[str, Version]:
    """What is pinned for a Python; each package once."""
    held = [pin for pin in pins() if pin.marker is None or pin.marker.evaluate({"python_full_version": python})]
    found = {canonicalize_name(pin.name): Version(str(pin.specifier).removeprefix("==")) for pin in held}
    assert len(found) == len(held)
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_has_a_tested_version_within_its_bounds(python):
    tested = constraints(python)
    for requirement in requirements():
        assert tested[canonicalize_name(requirement.name)] in requirement.specifier


def test_constraints_are_names_and_versions_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        pin = r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*(; python_full_version (<|>=) \"3\.[0-9.]+\")?"
        assert line.startswith("#") or re.fullmatch(pin, line), line


@pytest.mark.parametrize("python", PYTHONS)
def test_no_constraint_refuses_a_python_that_the_project_takes(python):
    """As far as the packages are installed here, which say it."""
    wanted = constraints(python)
    refused = [
        f"{one.name} {one.version}"
        for one in importlib.metadata.distributions()
        if wanted.get(canonicalize_name(one.name)) == Version(one.version)
        and python not in SpecifierSet(one.metadata.get("Requires-Python", ""))
    ]
    assert refused == []


def test_environment_file_has_the_bounds_of_the_project():
    lines = re.findall(r"^  - (\S+)$", (ROOT / "environment.yml").read_text(), flags=re.M)
    listed = sorted(str(Requirement(line)) for line in lines if ">=" in line)
    assert listed == sorted([f"python{PROJECT['requires-python']}", *map(str, requirements())])


def test_what_a_feature_says_of_its_package_is_the_extra_that_installs_it():
    extras = {
        canonicalize_name(Requirement(text).name): extra
        for extra, texts in PROJECT["optional-dependencies"].items()
        if extra not in ("docs", "test")
        for text in texts
    }
    extras.pop("faultsweep")
    assert {canonicalize_name(package): extra for package, extra in EXTRAS.items()} == extras


def releases() -> dict[str, str]:
    """The versions of the changelog, the last first, each with its date or "unreleased"."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)
    pairs = [re.fullmatch(r"(\d+\.\d+\.\d+) \((unreleased|\d{4}-\d\d-\d\d)\)", heading) for heading in headings]
    assert None not in pairs, headings
    return {pair[1]: pair[2] for pair in pairs}


def test_the_changelog_has_short_lines_under_headings():
    """A merge that brings removed lines back is seen here."""
    heading = ""
    for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines():
        heading = line if line.startswith("#") else heading
        assert len(line) <= 160, line[:80]
        assert not line.startswith("- ") or heading.startswith("### "), line[:80]


def test_version_and_date_are_the_same_everywhere():
    version, date = next(iter(releases().items()))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert [faultsweep.__version__, PROJECT["version"], citation["version"]] == [version] * 3
    assert str(citation.get("date-released", "unreleased")) == date


def test_every_tag_is_a_released_version():
    if not (ROOT / ".git").exists():
        pytest.skip("tags are in the repository")
    tags = subprocess.run(["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    dated = {f"v{version}" for version, date in releases().items() if date != "unreleased"}
    assert set(tags.split()) <= dated


def test_every_place_says_the_same_licence():
    parts = PROJECT["license"].split(" AND ")
    assert parts == ["BSD-3-Clause", "LicenseRef-SDSC-SP2"]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert PROJECT["license"] in citation
    assert "license" not in yaml.safe_load(citation), "the format has no expression, and a part alone is not true"
    notice = (ROOT / "NOTICE").read_text("utf-8")
    assert all(part in notice for part in parts)
    assert {path.stem for path in (ROOT / "LICENSES").iterdir()} == set(parts[1:])
    said = next(part for part in (ROOT / "README.md").read_text("utf-8").split("\n\n") if part.startswith("Licence: "))
    assert parts[0] in said
    assert "[NOTICE](NOTICE)" in said


def test_classifiers_name_what_was_tested():
    rows = re.findall(r"^\| (3\.\d+) \| (.*) \|$", (ROOT / "docs" / "install.md").read_text("utf-8"), flags=re.M)
    tested = {python for python, what in rows if what != "nothing"}
    named = {text.rsplit(" ", 1)[1] for text in PROJECT["classifiers"] if "Python :: 3." in text}
    assert named == tested
    systems = [text for text in PROJECT["classifiers"] if text.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_the_page_of_versions_has_a_row_for_every_model_and_format():
    text = (ROOT / "docs" / "releases.md").read_text("utf-8")
    models, formats = text.partition("## Store formats")[::2]
    assert re.findall(r"^\| (\d+), (\d+) \|", models, re.M)[-1] == (str(MODEL_VERSION - 1), str(MODEL_VERSION))
    assert re.findall(r"^\| (\d+), (\d+) \|", formats, re.M)[-1] == (str(FORMAT - 1), str(FORMAT))


def test_the_public_workflow_calls_what_there_is():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "checks.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    steps = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    named = {name for step in steps for name in re.findall(r"^make ([a-z-]+)", step)}
    assert named | set(jobs["long"]["strategy"]["matrix"]["lane"]) <= targets
    assert os.access(ROOT / next(step for step in steps if step.startswith(".ci/")), os.X_OK)


def test_what_test_rest_leaves_to_test_bounds_is_run_there():
    """Test-bounds runs nothing that needs SLURM, a browser or the real logs, and no test of the cache of kernels."""
    tests = ["tests/simcore", *map(str, ROOT.glob("tests/test_examples_*.py"))]
    tests += map(str, ROOT.glob("tests/test_*_against_reference.py"))
    tests_of_cache = re.findall(r"^CACHE := (.*)$", (ROOT / "Makefile").read_text(), flags=re.M)
    for left, where in (("rest and not slow and (shared or slurm or chromium)", tests), ("rest", tests_of_cache)):
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", left, *where]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout[-2000:]
        assert "deselected" in done.stdout


def test_every_folder_of_code_is_packaged():
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {setuptools["package-dir"][package] for package in setuptools["packages"]}
    code = {
        str(path.parent.relative_to(ROOT))
        for top in ("faultsweep", "simcore", "sweeps", "cluster", "analysis")
        for path in (ROOT / top).rglob("*.py")
    }
    assert folders == code


def test_makefile_offers_its_targets():
    if shutil.which("make") is None:
        pytest.skip("there is no make on this machine")
    help_text = subprocess.run(["make", "-C", str(ROOT)], capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\S+)", help_text, flags=re.M)) >= TARGETS


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("exit 1", "Python 3.11 or newer is needed, and ./python is older"),
        ('case "$2" in *venv*) exit 1;; esac', "./python cannot make virtual environments: install its venv module"),
        (None, "No Python was found"),
    ],
)
def test_a_python_that_does_not_do_is_one_sentence(tmp_path, script, sentence):
    if shutil.which("make") is None:
        pytest.skip("there is no make on this machine")
    shutil.copy(ROOT / "Makefile", tmp_path)
    if script:
        (tmp_path / "python").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "python").chmod(0o755)
    command = ["make", ".venv/bin/python", "PYTHON=./python"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert sentence in done.stderr
