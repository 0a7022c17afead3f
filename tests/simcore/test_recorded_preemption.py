"""Whom jobs preempt beside what a real SLURM 22.05 did: the same jobs leave, and the same nodes are taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded_preemption import ours, read

RECORDED = Path(__file__).parent / "recorded" / "preempted"
FOUND = [(path.stem, place, each) for path in sorted(RECORDED.glob("*.json")) for place, each in enumerate(read(path))]


@pytest.mark.parametrize("found", [each for *_, each in FOUND], ids=[f"{stem}-{place}" for stem, place, _ in FOUND])
def test_the_same_jobs_leave(tmp_path, found):
    assert ours(tmp_path, found) == (found.victims, found.hosts)
