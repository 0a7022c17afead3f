"""The comparison with other ways to sweep: its page says what the scripts found, and our own part of it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from benchmarks import peers


def test_the_page_has_what_was_found():
    results = json.loads(peers.RESULTS.read_text())
    assert set(results["features"]) == set(results["versions"]) == set(peers.PEERS)
    assert peers.tables(results) in peers.PAGE.read_text()


def test_every_peer_has_a_script():
    scripts = {path.name for path in peers.SCRIPTS.glob("*.py")} - {"points.py"}
    assert scripts == {peer.script for peer in peers.PEERS.values()}


@pytest.mark.slow
def test_our_own_part():
    way = peers.Way(peers.PEERS["faultsweep"], None)
    found = {name: check(way, True) for name, check in peers.FEATURES.items()}
    assert found["kill"]["lost"] == 0
    assert found["kill"]["right at the end"] == peers.A * peers.B
    assert found["grow"] == {"points run": peers.B, "right at the end": (peers.A + 1) * peers.B, "error": ""}
    assert found["fail"]["others that can be read"] == peers.A * peers.B - 1
    assert found["fail"]["says why, in the data"]
    assert found["types"]["exact"] == ["whole", "flag", "text", "when"]
    assert found["flip"]["read as other numbers"] == 0


@pytest.mark.slow
def test_costs_beside_busy_programs():
    command = [sys.executable, "-m", "benchmarks.peers", "--only", "--small", "--busy", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=peers.ROOT)
    lines = done.stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "nothing, faultsweep, ms a point",
        "millisecond, faultsweep, ms a point",
    ]
    wall, processor = (float(part.split()[0]) for part in lines[1].partition(": ")[2].split(", of processor time "))
    assert wall > 0.5
    assert processor > 1.0


def test_busy_programs_end():
    def alive(pid: int) -> bool:
        return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE

    marker = f"os.kill({os.getpid()}, 0)"
    with peers.busy(3):
        pids = [
            process.pid
            for process in psutil.process_iter(["cmdline"])
            if marker in " ".join(process.info["cmdline"] or ())
        ]
        assert len(pids) == 3
        assert all(map(alive, pids))
    for _ in range(50):
        if not any(map(alive, pids)):
            break
        time.sleep(0.1)
    assert not any(map(alive, pids))
