"""The benchmark of a site of several partitions."""

import numpy as np

from benchmarks import mixed_site


def test_every_scheduler_is_measured(capsys):
    assert mixed_site.main(["--jobs", "60", "--scale", "0.02"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == 2 * list(mixed_site.SCHEDULERS)
    assert all(float(line.split()[-4]) > 0 for line in lines)


def test_jobs_ask_for_everything():
    demand = mixed_site.jobs_of(0.1, 1.0, 500).demand
    assert np.unique(demand.partition).tolist() == [0, 1, 2, 3]
    assert demand.gpus.any()
    assert demand.memory_mb.any()
    assert demand.whole.any()
    assert (demand.chunks > 1).any()
