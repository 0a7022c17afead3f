"""The engine on clusters against the exact reference, event by event, and against small fixed steps."""

from __future__ import annotations

import numpy as np
import pytest
from faultsweep.simcore.engine.clusters import state as cs

from tests.clusters import random_system
from tests.reference.cluster_steps import work_by_steps

VERDICTS = {
    "fine": cs.NOT_SATURATED,
    "saturated": cs.SATURATED_TRUNK,
    "honest": cs.HONEST,
    "costly": cs.TOO_COSTLY,
    "useless": cs.USELESS,
    "nowhere": cs.NOWHERE_ELSE,
}


def same(run, reference):
    rows = sorted((round(float(t), 5), kind, job, tuple(nodes)) for t, kind, job, _, nodes in run.events.rows())
    expected = sorted((round(float(t), 5), kind, job, nodes) for t, kind, job, nodes in reference.events)
    assert [row[1:] for row in rows] == [row[1:] for row in expected]
    assert [row[0] for row in rows] == pytest.approx([row[0] for row in expected], rel=1e-9, abs=2e-5)
    for name, exact in (
        ("finish_s", [job.finish for job in reference.jobs]),
        ("start_s", [job.start for job in reference.jobs]),
        ("work_lost_s", [job.lost for job in reference.jobs]),
        ("checkpoint_overhead_s", [job.overhead for job in reference.jobs]),
        ("slowed_s", [job.slowed for job in reference.jobs]),
        ("checkpoints", [job.checkpoints for job in reference.jobs]),
        ("restarts", [job.restarts for job in reference.jobs]),
        ("offences", [job.offences for job in reference.jobs]),
    ):
        np.testing.assert_allclose(run.jobs[name], [float(x) for x in exact], rtol=1e-9, atol=1e-6, err_msg=name)
    told = run.decisions
    assert told.job_id.tolist() == [job for _, _, _, job, _ in reference.decisions]
    assert told.trunk.tolist() == [trunk for _, trunk, _, _, _ in reference.decisions]
    taken = {cs.TAKEN_FIRST, cs.TAKEN_AGAIN}
    for verdict, row in zip(told.verdict.tolist(), reference.decisions, strict=True):
        assert verdict in taken if row[4] == "taken" else verdict == VERDICTS[row[4]]
    np.testing.assert_allclose(told.saturation, [float(row[2]) for row in reference.decisions], rtol=1e-9)


@pytest.mark.sampled(100)
@pytest.mark.parametrize("seed", range(300))
def test_random_systems(seed):
    system = random_system(seed)
    same(system.engine(), system.reference())


@pytest.mark.parametrize("block", range(10))
@pytest.mark.sampled(1)
def test_fixed_steps_do_the_same_work(block):
    step = 0.5
    for seed in range(1000 + 20 * block, 1020 + 20 * block):
        system = random_system(seed)
        run = system.engine(debug=False)
        finished, changes = work_by_steps(system, run, step)
        work = [row[1] + row[2] for row in system.jobs]
        # each start, stop and change of rate is misplaced by half a step at most
        np.testing.assert_allclose(finished, work, atol=step * (changes + 1) / 2, rtol=0, err_msg=str(seed))
        assert np.median(np.abs(finished - work)) <= 2 * step
