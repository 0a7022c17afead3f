"""What is wrong in the file of a fitted model, changed by hand: the key, and what it may be."""

import copy
import math

import pytest
from faultsweep.simcore.workloads.fitted_checks import problem_of

GOOD = {
    "name": "mine",
    "header": ["from a log"],
    "nodes": 128,
    "procs_per_node": 1,
    "log_span_s": 1e6,
    "users": [30, 5],
    "classes": [
        {
            "sizes": [1, 4],
            "jobs": [0.5, 20],
            "gap": {"order": 2, "share": 0.25, "means_s": [10, 300.5]},
            "run": {"order": 0, "share": 1.0, "means_s": [60, 60]},
        }
    ],
}
NUMBERS = (-1, 0.5, True, "1", None, [], {}, math.nan, math.inf, 10**30, 1e300)
WRONG = {
    ("name",): ("", 1, None),
    ("header",): ("a line", ["a", 1], None),
    ("nodes",): (0, *NUMBERS),
    ("procs_per_node",): (0, *NUMBERS),
    ("log_span_s",): (-1, True, "1", None, math.nan, math.inf, 1e300),
    ("users",): ([], 3, [0], [3, -1], ["3"], [math.nan], [1e300]),
    ("classes",): ([], {}, 3, [1]),
    ("classes", 0, "sizes"): ([], 4, [1, 0], [1, 2.5], [1, 10**30], ["1", 2]),
    ("classes", 0, "jobs"): ([], 4, [1], [1, -1], [0, 0], [1, math.inf], [1, 10**30], [1, 2, 3]),
    ("classes", 0, "gap"): (3, {}, {"order": 2}),
    ("classes", 0, "gap", "order"): (1001, *NUMBERS),
    ("classes", 0, "run", "share"): (-0.1, 1.1, True, "1", math.nan),
    ("classes", 0, "run", "means_s"): ([60], [60, -1], [60, math.nan], [60, 1e300], [60, "60"], 60),
}


def _changed(path, value):
    model = copy.deepcopy(GOOD)
    part = model
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return model


def test_a_model_is_good():
    assert problem_of(GOOD) == ""
    assert problem_of({key: value for key, value in GOOD.items() if key != "users"}) == ""


@pytest.mark.parametrize("path", WRONG, ids=lambda path: ".".join(map(str, path)))
def test_what_is_wrong_is_named(path):
    for value in WRONG[path]:
        assert problem_of(_changed(path, value)).startswith(".".join(map(str, path[:3]))), value


@pytest.mark.parametrize("path", [path for path in WRONG if len(path) < 4 and path != ("users",)])
def test_what_is_missing_is_named(path):
    model = _changed(path, None)
    part = model
    for key in path[:-1]:
        part = part[key]
    del part[path[-1]]
    assert problem_of(model).startswith(".".join(map(str, path)))
