"""Shared fixtures, and the way to the package under test."""

from __future__ import annotations

import functools
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

# How long an example takes says nothing where the first one compiles.
settings.register_profile("faultsweep", deadline=None)
settings.load_profile("faultsweep")

# What is started in the background of a script ignores Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what ``make test`` leaves out, all but a few cases, spread evenly, of tests that are marked as sampled; and
    those few, which bounds checks leave out."""
    cases: dict[str, list[tuple[pytest.Item, int]]] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark and not item.get_closest_marker("slow"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append((item, mark.args[0]))
    for alike in cases.values():
        for number, (item, wanted) in enumerate(alike):
            is_rest = number * wanted // len(alike) == (number - 1) * wanted // len(alike)
            if wanted < len(alike):
                item.add_marker("rest" if is_rest else "sample")


def pytest_collection_finish() -> None:
    """Look for garbage only in what tests make: what is here now, modules and tests, stays to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def what_ctrl_c_does():
    """Restore it: a command that ends by Ctrl-C lets its process ignore another one, and so would what tests start."""
    handler = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not handler:
        signal.signal(signal.SIGINT, handler)


ROOT = Path(__file__).resolve().parent.parent

# The folder faultsweep/ of the source tree holds only a part of the package, so the root must not come before the place
# where the package is installed; after it, it makes ``tests`` importable.
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != ROOT] + [str(ROOT)]


def shared_data() -> Path | None:
    """The directory of real job and failure logs, or None where it is absent."""
    data = Path(os.environ.get("FAULTSWEEP_SHARED", ROOT.parent / "shared" / "data"))
    return data if data.is_dir() else None


def require(what: str, reason: str) -> NoReturn:
    """Skip the test, or fail it where FAULTSWEEP_REQUIRE (names separated by commas) says ``what`` must be there."""
    if what in os.environ.get("FAULTSWEEP_REQUIRE", "").replace(",", " ").split():
        pytest.fail(f"required by FAULTSWEEP_REQUIRE: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session", autouse=True)
def commands_made_once():
    """Keep the commands that typer makes of functions: else it makes all of them anew for each command line."""
    import typer.main
    import typer.testing

    kept = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", kept)
        patch.setattr(typer.testing, "_get_command", kept)
        yield


@pytest.fixture(scope="session")
def client():
    """A cluster of two workers for the tests that do not need their own."""
    from faultsweep.cluster.connect import connect

    with connect("local", 2) as client:
        yield client


@pytest.fixture
def on_client(monkeypatch, client):
    """Let everything that would start a cluster of its own use that of the tests."""
    from faultsweep.cluster import connect as module

    monkeypatch.setattr(module, "_local", lambda workers, dashboard: module.connect(client))


@pytest.fixture
def command(monkeypatch, capsys):
    """Run the command line in this process; returns exit code, output and error output."""
    from faultsweep import cli

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["faultsweep", *map(str, arguments)])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code or 0
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def read_only(tmp_path):
    """A folder that not even root can write into."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=False, capture_output=True)
    if done.returncode:
        folder.chmod(0o555)
        if os.access(folder, os.W_OK):
            pytest.skip("a read-only folder cannot be made here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=False, capture_output=True)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of real job and failure logs; a test that needs it is skipped without it."""
    data = shared_data()
    if data is None:
        require("shared", "the real logs of ../shared/data are absent (FAULTSWEEP_SHARED names another place)")
    return data


@pytest.fixture(scope="session")
def job_logs(shared: Path) -> Path:
    """The directory of real job logs."""
    return shared / "job-logs"
