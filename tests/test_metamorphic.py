"""Changes of the input with a known effect on the outcome, for the reference and for the engine."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.adapter import IMPLEMENTATIONS, reference_run
from tests.reference.machines import Torus
from tests.reference.machines import machine as machine_of
from tests.strategies import SCHEDULERS, examples, machines, runs, tori

EXAMPLES = examples(60)
FEWER = examples(25)
RULES = st.sampled_from(
    ({}, {"estimates": "requested"}, {"estimates": "requested", "kill_at_estimate": True}, {"growth_limit": 0})
)
EARLY_END = (
    "flat:7",
    [(0, 0, 100, 100, 5), (1, 0, 10, 1000, 2), (2, 1, 20, 20, 3), (3, 2, 10, 10, 7), (4, 3, 50, 50, 5)],
    [],
)
"""Job 1 ends early: the reservation of job 3 moves up to where job 4's ends, and job 4 starts before it."""
PLACES = ("schedule", "start", "migrate", "fail", "repair")
laws = pytest.mark.parametrize("run", IMPLEMENTATIONS.values())


def scaled(rows, columns, factor=1, shift=0):
    """Rows with some columns multiplied and the time (the first of the columns) moved."""
    found = []
    for row in rows:
        row = list(row)
        for column in columns:
            row[column] = None if row[column] is None else row[column] * factor
        row[columns[0]] += shift
        found.append(tuple(row))
    return found


def moved(events, factor=1, shift=0):
    return [(time * factor + shift, *rest) for time, *rest in events]


@laws
@EXAMPLES
@given(
    case=runs(machines, failures=True),
    scheduler=st.sampled_from(list(SCHEDULERS)),
    options=RULES,
    shift=st.sampled_from((1, 1024, 0.25)),
)
def test_shift_of_time(run, case, scheduler, options, shift):
    machine, jobs, failures = case
    before = run(jobs, machine, failures, scheduler=scheduler, **options)
    after = run(scaled(jobs, [1], 1, shift), machine, scaled(failures, [0], 1, shift), scheduler=scheduler, **options)
    assert after.events == moved(before.events, 1, shift)


@laws
@EXAMPLES
@given(
    case=runs(machines, failures=True),
    scheduler=st.sampled_from(list(SCHEDULERS)),
    options=RULES,
    times=st.fixed_dictionaries({"start_delay": st.sampled_from((0, 1, 5)), "migration_cost": st.sampled_from((0, 3))}),
    factor=st.sampled_from((0.25, 2, 64)),
)
def test_scale_of_time(run, case, scheduler, options, times, factor):
    machine, jobs, failures = case
    times = {**times, "slowdown_bound": 10}
    before = run(jobs, machine, failures, scheduler=scheduler, **options, **times)
    options = {**options, **{name: value * factor for name, value in times.items()}}
    after = run(
        scaled(jobs, [1, 2, 3], factor), machine, scaled(failures, [0, 2], factor), scheduler=scheduler, **options
    )
    assert after.events == moved(before.events, factor)
    for job_id, row in before.jobs.items():
        assert after.jobs[job_id]["bounded_slowdown"] == row["bounded_slowdown"]


@laws
@EXAMPLES
@given(case=runs(machines, max_jobs=8), other=st.data(), scheduler=st.sampled_from(list(SCHEDULERS)))
def test_a_long_gap_splits_a_workload(run, case, other, scheduler):
    machine, first, _ = case
    second = other.draw(runs(st.just(machine), max_jobs=8))[1]
    begin = 4096
    later = [(row[0] + 100, *row[1:]) for row in scaled(second, [1], 1, begin)]
    together = run([*first, *later], machine, scheduler=scheduler, estimates="requested")
    alone = [run(jobs, machine, scheduler=scheduler, estimates="requested").events for jobs in (first, later)]
    assert together.events == alone[0] + alone[1]


@laws
@EXAMPLES
@given(case=runs(machines), scheduler=st.sampled_from(list(SCHEDULERS)))
def test_no_failures_is_failure_free(run, case, scheduler):
    machine, jobs, _ = case
    far = [(10**6, 0, 5)]
    assert run(jobs, machine, far, scheduler=scheduler).events == run(jobs, machine, [], scheduler=scheduler).events


@laws
@EXAMPLES
@example(case=EARLY_END, scheduler="conservative", interval=30)
@given(case=runs(machines), scheduler=st.sampled_from(list(SCHEDULERS)), interval=st.sampled_from((1, 7, 30)))
def test_checkpoints_that_cost_nothing_change_no_schedule(run, case, scheduler, interval):
    machine, jobs, _ = case
    options = {"scheduler": scheduler, "estimates": "requested"}
    free = {"checkpoint": "periodic", "checkpoint_interval": interval, "checkpoint_cost": 0}
    without, saving = (run(jobs, machine, (), **options, **extra) for extra in ({}, free))
    assert [event for event in saving.events if event[1] in PLACES] == [
        event for event in without.events if event[1] in PLACES
    ]


@laws
@EXAMPLES
@given(case=runs(machines), factor=st.sampled_from((1, 2, 10)))
def test_first_come_first_served_ignores_estimates(run, case, factor):
    machine, jobs, _ = case
    others = [(*row[:3], row[2] * factor, row[4]) for row in jobs]
    assert run(jobs, machine, estimates="actual").events == run(others, machine, estimates="requested").events


@laws
@FEWER
@given(
    case=runs(st.sampled_from(("torus:1x2x4", "torus:1x5x3", "torus:1x4x6")), failures=True), place=st.integers(1, 2)
)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_axis_of_one_node_may_stand_anywhere(run, scheduler, case, place):
    """Axes are relabelled; the order of shapes and bases and the numbers of the nodes stay what they are."""
    machine, jobs, failures = case
    sides = machine.removeprefix("torus:1x").split("x")
    other = "torus:" + "x".join([*sides[:place], "1", *sides[place:]])
    found = run(jobs, other, failures, scheduler=scheduler)
    assert found.events == run(jobs, machine, failures, scheduler=scheduler).events


class Relabelled(Torus):
    """A torus whose axes have other names and whose boxes are searched in the order of the original."""

    def __init__(self, original: Torus, order: tuple[int, int, int]):
        self.original = original
        self.place = {}
        sides = tuple(original.sides[axis] for axis in order)
        for node in product(*(range(side) for side in original.sides)):
            x, y, z = (node[axis] for axis in order)
            self.place[original.index(*node)] = (x * sides[1] + y) * sides[2] + z
        super().__init__(*sides)

    def boxes(self, size):
        return tuple(frozenset(self.place[node] for node in box) for box in self.original.boxes(size))


@laws
@FEWER
@given(
    case=runs(tori, failures=True, max_jobs=12),
    scheduler=st.sampled_from(list(SCHEDULERS)),
    order=st.sampled_from(list(permutations(range(3)))),
)
def test_relabelled_axes_and_search_order(run, case, scheduler, order):
    """Nothing in a schedule depends on the names of the axes but the order of the search.

    The relabelled torus is always one of the reference: the order of the engine's search is not a parameter.
    """
    machine, jobs, failures = case
    before = run(jobs, machine, failures, scheduler=scheduler)
    other = Relabelled(machine_of(machine), order)
    moved_failures = [(time, other.place[node], down) for time, node, down in failures]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.reference.simulator.machine_of", lambda name: other)
        after = reference_run(jobs, machine, moved_failures, scheduler=scheduler)
    moved_events = [(*row[:3], tuple(other.place[node] for node in row[3])) for row in before.events]
    assert in_order(after.events) == in_order(moved_events)


def in_order(events):
    """Rows with sorted nodes where both implementations have them; nodes that fail or come back at one instant are
    listed by number, which is a name."""
    return sorted(
        (time, kind, None if kind in ("fail", "repair") else job, tuple(sorted(nodes)) if kind in PLACES else ())
        for time, kind, job, nodes in events
    )


@EXAMPLES
@given(tori, st.data())
def test_permuted_axes_have_the_same_partitions(name, data):
    """Renaming the axes maps the free boxes of every size, and so the largest, onto each other."""
    torus = machine_of(name)
    free = data.draw(st.sets(st.integers(0, torus.nodes - 1)))
    occupied = set(range(torus.nodes)) - free
    for order in permutations(range(3)):
        other = machine_of("torus:" + "x".join(str(torus.sides[axis]) for axis in order))
        place = {}
        for x in range(torus.sides[0]):
            for y in range(torus.sides[1]):
                for z in range(torus.sides[2]):
                    place[torus.index(x, y, z)] = other.index(*((x, y, z)[axis] for axis in order))
        mapped = {place[node] for node in occupied}
        assert other.mfp(mapped) == torus.mfp(occupied)
        for size in torus.possible_sizes:
            boxes = {frozenset(place[n] for n in found) for found in torus.free_boxes(size, occupied)}
            assert boxes == set(other.free_boxes(size, mapped))
