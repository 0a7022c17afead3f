"""Values by their place in order: those of a sort, whatever the values are like."""

import numpy as np
import pytest
from faultsweep.simcore.engine.order_statistics import values_at


def _zeros_and_weeks(random, count):
    return np.where(random.random(count) < 0.6, 0.0, random.exponential(1e5, count).round(3))


SAMPLES = {
    "waits": _zeros_and_weeks,
    "slowdowns": lambda random, count: 1.0 + random.pareto(0.5, count),
    "alike": lambda random, count: np.full(count, random.normal(0.0, 1e6)),
    "few values": lambda random, count: random.integers(-3, 4, count).astype(float),
    "near each other": lambda random, count: 1e9 + random.random(count) * 1e-6,
    "less than one": lambda random, count: random.random(count) * 1e-12,
    "one far off": lambda random, count: np.append(random.random(count - 1), 1e300),
    "every size": lambda random, count: 10.0 ** random.uniform(-300, 300, count) * random.choice((-1, 1), count),
    "neighbours": lambda random, count: 1.0 + random.integers(0, 40, count) * 2.0**-52,
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("count", [1, 2, 999, 1000, 1001, 1002, 5000, 20_000])
def test_values_are_those_of_a_sort(name, count):
    random = np.random.default_rng([count, *name.encode()])
    values = SAMPLES[name](random, count)
    values.flags.writeable = False
    places = [0, *random.integers(0, count, 40).tolist(), count // 2, count - 1, count // 2]
    assert values_at(values, places, values.max()) == np.sort(values)[places].tolist()


def test_values_of_a_row_that_is_not_contiguous():
    table = np.random.default_rng(1).lognormal(0, 3, (3000, 2))
    row = table[:, 1]
    assert values_at(row, [0, 1500, 2999], row.max()) == np.sort(row)[[0, 1500, 2999]].tolist()
