"""What travels: the source distribution is whole and can be tested, the wheel works outside of the checkout."""

from __future__ import annotations

import email
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MADE = {"PKG-INFO", "setup.cfg"}
SKIPPED = (".venv", "build", "dist", "demo", "figures", "__pycache__", ".git")


def run(*words: object, folder: Path, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = list(map(str, words))
    done = subprocess.run(
        command, cwd=folder, env=kept | environment, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def files_of_the_checkout() -> set[str]:
    """What is under version control; in a source distribution, everything that is there."""
    if (ROOT / ".git").exists():
        return set(run("git", "ls-files", folder=ROOT).split("\n")) - {""}
    found = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()}
    return {name for name in found if not set(Path(name).parts) & set(SKIPPED) and ".egg-info" not in name} - MADE


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the source distribution and the wheel that is built from it."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("built")
    for name in files_of_the_checkout():
        (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "source" / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source", folder=folder)
    return folder / "dist"


@pytest.fixture(scope="module")
def metadata(built) -> email.message.Message:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def test_the_source_distribution_has_every_file(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames() if archive.getmember(name).isfile()}
    assert {name for name in names if ".egg-info/" not in name} - MADE == files_of_the_checkout()


def test_twine_finds_nothing_wrong(built):
    pytest.importorskip("twine")
    run(sys.executable, "-m", "twine", "check", "--strict", *built.iterdir(), folder=built)


def test_the_wheel_says_what_it_is_and_holds_the_whole_package(built, metadata):
    assert metadata["Author"] == "faultsweep contributors"
    assert metadata["License-Expression"] == "BSD-3-Clause AND LicenseRef-SDSC-SP2"
    assert metadata.get_all("License-File") == ["LICENSE", "LICENSES/LicenseRef-SDSC-SP2.txt", "NOTICE"]
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    folders = ("simcore", "sweeps", "cluster", "analysis")
    files = [path for top in folders for path in (ROOT / top).rglob("*") if path.suffix in (".py", ".toml")]
    assert {*names} >= {f"faultsweep/{path.relative_to(ROOT)}" for path in files} | {"faultsweep/py.typed"}
    assert {name.partition("/")[0] for name in names} == {
        "faultsweep",
        next(built.glob("*.whl")).name[:16] + ".dist-info",
    }


def test_every_file_of_other_terms_is_named():
    terms = "SPDX-License-Identifier: "
    named = [path for path in (ROOT / "simcore").rglob("*.toml") if terms in path.read_text("utf-8")]
    assert [str(path.relative_to(ROOT)) for path in named] == ["simcore/workloads/sdsc.toml"]
    notice = (ROOT / "NOTICE").read_text("utf-8")
    for path in (ROOT / "simcore").rglob("*.toml"):
        if "acknowledge" in path.read_text("utf-8").lower():
            assert str(path.relative_to(ROOT)) in notice


@pytest.mark.slow
def test_the_wheel_runs_a_shipped_experiment_far_from_the_checkout(built, tmp_path):
    """With the dependencies of this Python, but this package from the wheel alone."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", folder=tmp_path)
    paths = sysconfig.get_paths(vars={"base": str(tmp_path / "env"), "platbase": str(tmp_path / "env")})
    wheel, site = next(built.glob("*.whl")), Path(paths["purelib"])
    run(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel, folder=tmp_path)
    # Folders that are named here are searched after this one, and the files *.pth in them, of an editable install, are
    # not read.
    dependencies = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    python = tmp_path / "env" / "bin" / "python"
    where = run(python, "-P", "-c", "import faultsweep; print(faultsweep.__file__)", folder=tmp_path).strip()
    assert where.startswith(str(tmp_path))
    spec = run(python, "-P", "-m", "faultsweep", "list", "experiments", folder=tmp_path)
    assert "demo" in spec
    run(python, "-P", "-m", "faultsweep", "figure", "demo", "--quiet", "--output", "out", folder=tmp_path)
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    store = tmp_path / "out" / "demo.zarr"
    found = json.loads(run(python, "-P", "-m", "faultsweep", "status", store, "--json", folder=tmp_path))
    assert found["complete"]
    assert found["status"]["failed"] == 0
