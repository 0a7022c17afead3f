"""Side by side with other ways to sweep: what they lose, refuse, notice and cost. Every row is what a script found.

    python -m benchmarks.peers                      # all, a quarter of an hour; writes results/peers.json
    python -m benchmarks.peers --only signac        # ourselves and one of them
    python -m benchmarks.peers --small              # little of everything, nothing written
    python -m benchmarks.peers --busy 18            # costs alone, beside 18 busy programs; nothing written

Each runs in a virtual environment of its own (made in ``build/peers`` with pip), since packages that it does not need
would make it slower, by a script of ``benchmarks/peer_scripts`` that uses it as its documents say, and that knows
nothing of what is checked here. Costs are the processor time of all processes of a sweep, from the start of Python
until an xarray Dataset with names is on the disk, in rounds in which every peer has a turn; medians, with the least and
the most beside them. The exit code is 1 where we are behind.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(__file__).resolve().parent / "peer_scripts"
RESULTS = Path(__file__).resolve().parent / "results" / "peers.json"
ENVIRONMENTS = ROOT / "build" / "peers"
PAGE = ROOT / "docs" / "peers.md"
A, B = 10, 20
ROUNDS = 3
FLIPS = 20
_CHILD_SUBREAPER = 36
_MOST_S = 600.0


@dataclass(frozen=True)
class Peer:
    """One way to sweep: the script, the packages that it takes, and the points of its costs."""

    name: str
    script: str
    packages: tuple[str, ...]
    points: tuple[int, int] = (100, 50)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("faultsweep", "faultsweep_store.py", ("faultsweep",)),
        Peer("xyzpy", "xyzpy_harvester.py", ("xyzpy", "h5netcdf", "zarr", "matplotlib")),
        Peer("pipefunc", "pipefunc_files.py", ("pipefunc", "xarray", "zarr", "pandas")),
        Peer("xsweep", "xsweep_store.py", ("xsweep",), (25, 20)),  # 5,000 points took longer than 600 s
        Peer("joblib", "joblib_xarray.py", ("joblib", "xarray", "zarr")),
        Peer("dask.delayed", "dask_delayed.py", ("dask", "distributed", "xarray", "zarr")),
        Peer("signac", "signac_project.py", ("signac", "xarray", "zarr", "pandas")),
    )
}


class Way:
    """A peer with its environment."""

    def __init__(self, peer: Peer, environments: Path | None) -> None:
        """Make the environment, if there is none; without ``environments``, take that of this process."""
        self.name = peer.name
        self._script = SCRIPTS / peer.script
        self._python = Path(sys.executable) if environments is None else _python(peer, environments)
        self.script, self.points = peer.script, peer.points
        self._package = peer.packages[0]

    def version(self) -> str:
        """Return the version of the package."""
        code = f"from importlib.metadata import version; print(version({self._package!r}))"
        return subprocess.run([self._python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    def start(self, *words: object, **variables: str) -> subprocess.Popen:
        """Start the script in a process group of its own."""
        command = [str(self._python), str(self._script), *map(str, words)]
        environment = {**os.environ, "PYTHONPATH": "", **variables}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    def sweep(self, folder: Path, function: str, a: int = A, b: int = B, **variables: str) -> str:
        """Sweep; return the last line of what went wrong."""
        process = self.start("sweep", folder, a, b, function, **variables)
        text = process.communicate(timeout=_MOST_S)[1]
        return "" if not process.returncode else (text.strip().splitlines() or ["no word"])[-1]

    def read(self, folder: Path) -> dict[str, dict[str, str]] | None:
        """Return all values that another process reads; None if it cannot."""
        process = self.start("read", folder)
        text = process.communicate(timeout=_MOST_S)[0]
        return json.loads(text.splitlines()[-1]) if not process.returncode else None


def _python(peer: Peer, environments: Path) -> Path:
    """Return the Python of a peer's environment, which is made if it is not there; we are installed as we are now."""
    [name, *_] = packages = peer.packages
    python = environments / f"venv-{name}" / "bin" / "python"
    is_new, is_ours = not python.exists(), name == "faultsweep"
    if is_new:
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
    if is_new or is_ours:  # ours may be of another version, or of another checkout
        wanted = ["--constraint", "constraints.txt", "--editable", "."] if is_ours else packages
        subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True, cwd=ROOT)
    return python


@contextmanager
def folder() -> Iterator[Path]:
    """Give a temporary folder."""
    path = Path(tempfile.mkdtemp(prefix="peers-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def noted(file: Path) -> Counter[str]:
    """Return how often each point has ended."""
    return Counter(file.read_text().splitlines()) if file.exists() else Counter()


def expected(a: int, b: int) -> dict[str, dict[str, str]]:
    """Return what ``points.noted`` gives."""
    points = [(i, j) for i in range(a) for j in range(b)]
    return {f"{i} {j}": {"y": f"float {10.0 * i + j / 7!r}", "z": f"float {i - j / 3!r}"} for i, j in points}


def right(values: Mapping[str, Mapping[str, str]] | None, wanted: Mapping[str, Mapping[str, str]]) -> int:
    """Count the points that are read as they were computed."""
    return sum(value.items() <= (values or {}).get(point, {}).items() for point, value in wanted.items())


def kill(way: Way, small: bool) -> dict[str, Any]:
    """Kill everything with half of the points done, and sweep again: which finished points run again?"""
    with folder() as path:
        calls = path / "calls"
        store = path / "store"
        store.mkdir()
        process = way.start("sweep", store, A, B, "noted", CALLS=str(calls))
        while sum(noted(calls).values()) < A * B // 2 and process.poll() is None:
            time.sleep(0.01)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(0.2)
        before = noted(calls)
        error = way.sweep(store, "noted", CALLS=str(calls))
        after = noted(calls)
        return {
            "finished before the kill": len(before),
            "lost": sum(after[point] > 1 for point in before),
            "right at the end": right(way.read(store), expected(A, B)),
            "error": error,
        }


def grow(way: Way, small: bool) -> dict[str, Any]:
    """Sweep, and again with one more value of an axis: how many points run? The new ones are 20."""
    with folder() as path:
        store = path / "store"
        store.mkdir()
        way.sweep(store, "noted", CALLS=str(path / "first"))
        error = way.sweep(store, "noted", a=A + 1, CALLS=str(path / "second"))
        return {
            "points run": sum(noted(path / "second").values()),
            "right at the end": right(way.read(store), expected(A + 1, B)),
            "error": error,
        }


def fail(way: Way, small: bool) -> dict[str, Any]:
    """Let one point of 200 raise: which others are there? Then mend it: how many run?"""
    with folder() as path:
        store = path / "store"
        store.mkdir()
        error = way.sweep(store, "noted", CALLS=str(path / "first"), FAILS="3 4")
        wanted = {point: value for point, value in expected(A, B).items() if point != "3 4"}
        values = way.read(store)
        text = json.dumps(values)
        kept = right(values, wanted)
        return {"others that can be read": kept, "says why, in the data": "is not liked" in text, "error": error}


def types(way: Way, small: bool) -> dict[str, Any]:
    """Store a whole number of 61 bits, a boolean, text and a time of nanoseconds: what comes back as it was?"""
    with folder() as path:
        store = path / "store"
        store.mkdir()
        error = way.sweep(store, "typed", a=3, b=2)
        values = way.read(store) or {}
        first = 1767225600000000001
        wanted = {
            "whole": lambda a, b: f"int {2**60 + 1 + a}",
            "flag": lambda a, b: f"bool {a > b}",
            "text": lambda a, b: f"text {'ä' * (1 + b)}",
            "when": lambda a, b: f"time {first + a * 86_400_000_000_000}",
        }
        exact = [
            name
            for name, value in wanted.items()
            if all(values.get(f"{a} {b}", {}).get(name) == value(a, b) for a in range(3) for b in range(2))
        ]
        return {"exact": exact, "error": error}


def flip(way: Way, small: bool) -> dict[str, Any]:
    """Flip single bits in all that a sweep has left: how often are other numbers read, without a word?"""
    with folder() as path:
        store = path / "store"
        store.mkdir()
        way.sweep(store, "noted", CALLS=str(path / "calls"))
        wanted = way.read(store)
        rng = random.Random(1)
        files = [file for file in sorted(store.rglob("*")) if file.is_file() and file.stat().st_size]
        sizes = [file.stat().st_size for file in files]
        silent = seen = 0
        for _ in range(4 if small else FLIPS):
            [file] = rng.choices(files, sizes)
            content = file.read_bytes()
            changed = bytearray(content)
            changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            values = way.read(store)
            silent += values is not None and values != wanted
            seen += values is None
            file.write_bytes(content)
        return {"flips": 4 if small else FLIPS, "read as other numbers": silent, "refused": seen}


FEATURES: dict[str, Callable[[Way, bool], dict[str, Any]]] = {
    "kill": kill,
    "grow": grow,
    "fail": fail,
    "types": types,
    "flip": flip,
}


def processor_s(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of all processes that a call starts, s, those that outlive their parents included, and
    what it returns."""
    ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    before = os.times()
    result = action()
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = os.times()
    took = after.children_user + after.children_system - before.children_user - before.children_system
    return took, result


Costs = dict[str, dict[str, list[float]]]
"""What a point costs, ms, by function and peer: one value for each round."""


def costs(ways: list[Way], small: bool) -> tuple[Costs, Costs]:
    """Return the processor times and the wall times of sweeps."""
    found: tuple[Costs, Costs] = {}, {}
    for function in ("nothing", "millisecond"):
        for each in found:
            each[function] = {way.name: [] for way in ways}
        for way in ways * (1 if small else ROUNDS):
            a, b = (10, 8) if small else way.points
            with folder() as path:
                began = time.perf_counter()
                took, error = processor_s(partial(way.sweep, path, function, a, b, LABELLED="1"))
                if error:
                    raise SystemExit(f"{way.name}, {function}: {error}")
                for each, seconds in zip(found, (took, time.perf_counter() - began), strict=True):
                    each[function][way.name].append(1000 * seconds / (a * b))
    return found


BUSY = """import os
while True:
    os.kill({pid}, 0)
    for _ in range(10**6): pass
"""
"""What keeps a processor busy as long as a process is there."""
START = """import subprocess, sys
for _ in range(int(sys.argv[1])):
    print(subprocess.Popen([sys.executable, "-c", sys.argv[2]], start_new_session=True, stdout=subprocess.DEVNULL).pid)
"""


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """Keep the processors busy with so many programs.

    Each is in a session of its own, since Linux shares out the processors among sessions; none is a child of this
    process, which waits for its children.
    """
    command = [sys.executable, "-c", START, str(programs), BUSY.format(pid=os.getpid())]
    pids = [int(pid) for pid in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()]
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def costs_beside(programs: int, ways: list[Way], small: bool) -> bool:
    """Print what a point costs beside busy programs; return whether we are behind in wall time."""
    with busy(programs):
        processor, wall = costs(ways, small)
    for function, found in wall.items():
        for name, values in found.items():
            own = _spread(processor[function][name])
            print(f"{function}, {name}, ms a point: {_spread(values)}, of processor time {own}")
    return _tell_behind(wall, "wall")


def tables(results: Mapping[str, Any]) -> str:
    """Return the two tables of the page."""
    names = list(results["versions"])
    head = f"| | {' | '.join(f'{name} {version}' for name, version in results['versions'].items())} |"
    rule = f"|---|{'---|' * len(names)}"
    features = results["features"]

    def row(title: str, value: Callable[[Mapping[str, Any]], str]) -> str:
        return f"| {title} | {' | '.join(value(features[name]) for name in names)} |"

    total = (A + 1) * B
    scripts = "| script | " + " | ".join(f"`{results['scripts'][name]}`" for name in names) + " |"
    points = "| points | " + " | ".join(f"{results['points'][name]:,}" for name in names) + " |"
    rows = [
        scripts,
        row(
            "finished points that a kill half-way loses",
            lambda f: f"{f['kill']['lost']} of {f['kill']['finished before the kill']}",
        ),
        row(
            f"points that run when an axis grows by one value (new: {B})",
            lambda f: str(f["grow"]["points run"]) if f["grow"]["right at the end"] == total else _refused(f["grow"]),
        ),
        row("points that can be read when 1 of 200 raises", lambda f: str(f["fail"]["others that can be read"])),
        row("the data say why that one failed", lambda f: "yes" if f["fail"]["says why, in the data"] else "no"),
        row("types that come back exactly", lambda f: ", ".join(f["types"]["exact"]) or "none"),
        row(
            "flipped bits that are read as other numbers, without a word",
            lambda f: f"{f['flip']['read as other numbers']} of {f['flip']['flips']}",
        ),
    ]
    cost = [
        f"| {title} | {' | '.join(_spread(results['costs'][function][name]) for name in names)} |"
        for function, title in (("nothing", "nothing to do"), ("millisecond", "1 ms of work"))
    ]
    load = f"the load was {results['load']} at first and {results['load at the costs']} when the costs were begun"
    when = f"Measured on {results['machine']}, beside other programs: {load}."
    return "\n".join([head, rule, *rows, "", head, rule, scripts, points, *cost, "", when])


def _refused(found: Mapping[str, Any]) -> str:
    return "refused" if found["error"] else f"{found['points run']}, wrong"


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _tell_behind(costs: Costs, what: str) -> bool:
    """Print where another one needs less time than we; return whether one does."""
    ours = {function: statistics.median(found["faultsweep"]) for function, found in costs.items()}
    less = [
        f"{function}: {name}"
        for function, found in costs.items()
        for name, values in found.items()
        if statistics.median(values) < ours[function]
    ]
    for text in less:
        print(f"less {what} time than ours: {text}")
    return bool(less)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results and the page's tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[*PEERS], default=[*PEERS])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--busy", type=int, default=0, metavar="PROGRAMS", help="measure costs beside so many")
    parser.add_argument("--environments", type=Path, default=ENVIRONMENTS)
    options = parser.parse_args(arguments)
    names = dict.fromkeys(["faultsweep", *options.only])
    here = {"faultsweep"} if options.small else set()
    ways = [Way(PEERS[name], None if name in here else options.environments) for name in names]
    if options.busy:
        return costs_beside(options.busy, ways, options.small)
    results: dict[str, Any] = {
        "machine": f"{os.cpu_count()} processors, {platform.machine()}, Python {platform.python_version()}",
        "versions": {way.name: way.version() for way in ways},
        "load": round(os.getloadavg()[0], 1),
        "scripts": {way.name: way.script for way in ways},
        "points": {way.name: math.prod(way.points) for way in ways},
        "features": {},
    }
    for way in ways:
        results["features"][way.name] = {name: check(way, options.small) for name, check in FEATURES.items()}
        print(way.name, json.dumps(results["features"][way.name]), flush=True)
    results["load at the costs"] = round(os.getloadavg()[0], 1)
    results["costs"] = costs(ways, options.small)[0]
    print(tables(results))
    if not options.small:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        text = PAGE.read_text()
        start, end = "<!-- tables -->\n", "\n<!-- end -->"
        PAGE.write_text(f"{text.partition(start)[0]}{start}{tables(results)}{end}{text.partition(end)[2]}")
    return _tell_behind(results["costs"], "processor")


if __name__ == "__main__":
    sys.exit(main())
