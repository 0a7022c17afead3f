"""The comparison with other ways to sweep: its page says what the scripts found, and our own part of it holds."""

from __future__ import annotations

import json

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
def test_our_own_part(tmp_path):
    way = peers.Way(peers.PEERS["faultsweep"], tmp_path)
    found = {name: check(way, True) for name, check in peers.FEATURES.items()}
    assert found["kill"]["lost"] == 0
    assert found["kill"]["right at the end"] == peers.A * peers.B
    assert found["grow"] == {"points run": peers.B, "right at the end": (peers.A + 1) * peers.B, "error": ""}
    assert found["fail"]["others that can be read"] == peers.A * peers.B - 1
    assert found["fail"]["says why, in the data"]
    assert found["types"]["exact"] == ["whole", "flag", "text", "when"]
    assert found["flip"]["read as other numbers"] == 0
