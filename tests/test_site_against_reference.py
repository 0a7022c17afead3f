"""The engine on a site of shared nodes against the reference: random small sites, jobs and failures."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from faultsweep.simcore.model.workload import Demand
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.streams import coin_key, coins
from hypothesis import given
from hypothesis import strategies as st

from tests.adapter import ENGINE_NAMES, as_text, failures_of, outcome_of, recovery_of, workload_of
from tests.reference.site import Need, Node, SiteSimulator
from tests.strategies import DOWN_TIMES, GAPS, RUNS, examples

EXAMPLES = examples(20)
UNKNOWN_MEMORY = 1 << 60

CLASSES = ((1, 0, 0), (2, 0, 0), (4, 2, 100), (3, 1, 30), (8, 4, 0))
"""Cores, GPUs and memory of a node."""
_FOLDER = tempfile.TemporaryDirectory()


@st.composite
def sites(draw):
    """Rows (cores, GPUs, memory, count), and of each partition its nodes of each row and whether jobs share them."""
    rows = [(*draw(st.sampled_from(CLASSES)), draw(st.integers(1, 3))) for _ in range(draw(st.integers(1, 2)))]
    partitions = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 2, 3)))):
        counts = tuple(draw(st.integers(0, row[3])) for row in rows)
        if any(counts):
            partitions.append((counts, draw(st.sampled_from((False, False, True)))))
    return tuple(rows), tuple(partitions)


NO_RULES = ((), (), ())


def rows_of_limits(limits) -> list[str]:
    """QOS and accounts with their limits, as lines of a site's file."""
    qos, _, _, accounts = limits
    lines = []
    for name, most in qos.items():
        lines += ["[[qos]]", f'name = "{name}"', *_given(most)]
    for (account, user, parent), most in accounts.items():
        lines += ["[[accounts]]", f'account = "{account}"', f'user = "{user}"', f'parent = "{parent}"', *_given(most)]
    return lines


def _given(most) -> list[str]:
    return [f"{key} = {value}" for key, value in most.items() if value is not None]


def site_file(site, windows=(), rules=NO_RULES, limits=None, preempting=()) -> str:
    """The site as a file; windows are (begin, end, nodes of each row), rules: accounts, QOS, factors of partitions;
    preempting: by what, tiers of partitions, (name, priority, QOS that it preempts, mode) of each QOS, and graces."""
    (rows, partitions), (accounts, qos, factors) = site, rules
    by, tiers, classes, graces = (*(preempting or ("", (), ())), {})[:4]
    lines = ['format = "faultsweep site, 1"', f'preempt_by = "{by}"']
    for place, (cores, gpus, memory, count) in enumerate(rows):
        lines += ["[[nodes]]", f'name = "c{place}"', f"count = {count}", f"cores = {cores}", f"gpus = {gpus}"]
        lines += [f"memory_mb = {memory}"]
    for place, (counts, whole) in enumerate(partitions):
        nodes = ", ".join(f"c{row} = {count}" for row, count in enumerate(counts) if count)
        lines += ["[[partitions]]", f'name = "p{place}"', f"nodes = {{{nodes}}}", f"exclusive = {str(whole).lower()}"]
        lines += [f"priority_factor = {factors[place]}"] if factors else []
        lines += [f"priority_tier = {tiers[place][0]}", f'preempt_mode = "{tiers[place][1]}"'] if tiers else []
        lines += [f"grace_s = {graces.get(f'p{place}', 0)}"]
        lines += [f'qos = "{limits[1][place]}"', *_given(limits[2][place])] if limits else []
    for place, (begin, end, counts) in enumerate(windows):
        nodes = ", ".join(f"c{row} = {count}" for row, count in enumerate(counts) if count)
        lines += ["[[reservations]]", f'name = "w{place}"', f"start_s = {begin}", f"end_s = {end}"]
        lines += [f"classes = {{{nodes}}}", 'users = ["0", "1", "2"]']
    for account, user, parent, shares, *priority in accounts:
        lines += ["[[accounts]]", f'account = "{account}"', f'user = "{user}"', f'parent = "{parent}"']
        lines += [f"shares = {shares}", *(f"priority = {each}" for each in priority)]
    for name, priority in qos:
        lines += ["[[qos]]", f'name = "{name}"', f"priority = {priority}"]
    for name, priority, preempted, mode in classes:
        lines += ["[[qos]]", f'name = "{name}"', f"priority = {priority}", f"preempts = {list(preempted)!r}"]
        lines += [f'preempt_mode = "{mode}"', f"grace_s = {graces.get(name, 0)}"]
    lines += rows_of_limits(limits) if limits else []
    text = "\n".join(lines)
    path = Path(_FOLDER.name) / f"{abs(hash(text))}.toml"
    if not path.exists():
        path.write_text(text)
    return str(path)


def nodes_of(site) -> list[Node]:
    rows, partitions = site
    found = []
    for row, (cores, gpus, memory, count) in enumerate(rows):
        for number in range(count):
            member = {place for place, (counts, _) in enumerate(partitions) if number < counts[row]}
            found.append(Node((cores, gpus, memory or UNKNOWN_MEMORY), frozenset(member | {len(partitions)})))
    return found


@st.composite
def cases(draw, failures: bool = False, reservations: bool = False):
    """A site, jobs that fit it, failures, and advance reservations."""
    site = draw(sites())
    nodes, partitions = nodes_of(site), site[1]
    rows, time = [], 0
    for job_id in range(1, draw(st.integers(1, 16)) + 1):
        time += draw(st.sampled_from(GAPS))
        place = draw(st.integers(0, len(partitions)))
        here = [node for node in nodes if place in node.partitions]
        whole = (place < len(partitions) and partitions[place][1]) or draw(st.sampled_from((False, False, False, True)))
        largest = here[draw(st.integers(0, len(here) - 1))].has
        each = (
            draw(st.integers(1, largest[0])),
            draw(st.integers(0, largest[1])),
            draw(st.sampled_from((0, 0, 10, 25))),
        )
        each = (each[0], each[1], min(each[2], largest[2]))
        per_node = draw(st.sampled_from((0, 0, 1, 2)))
        room = sum(chunks_of(each, per_node, node.has) for node in here)
        need = Need(draw(st.integers(1, room)), each, per_node, whole, place)
        run, factor = draw(st.sampled_from(RUNS)), draw(st.sampled_from((None, 1, 1, 2, 5, 0.5)))
        rows.append((job_id, time, run, None if factor is None else run * factor, need))
    failed, time = [], 0
    for _ in range(draw(st.integers(0, 8)) if failures else 0):
        time += draw(st.sampled_from((0, 0, 1, 2, 5, 10, 40)))
        failed.append((time, draw(st.integers(0, len(nodes) - 1)), draw(st.sampled_from(DOWN_TIMES))))
    windows = []
    for _ in range(draw(st.integers(1, 3)) if reservations else 0):
        begin = rows[0][1] + draw(st.sampled_from((-5, 0, 1, 2, 5, 12, 40, -0.75, 2.5)))
        counts = tuple(draw(st.integers(0, row[3])) for row in site[0])
        if any(counts):
            windows.append((begin, begin + draw(st.sampled_from((1, 3, 10, 30, 0.25, 3.5))), counts))
    return site, rows, failed, tuple(windows)


def members_of(site, counts) -> set[int]:
    """The indices of the first nodes of each row."""
    firsts = [sum(row[3] for row in site[0][:place]) for place in range(len(site[0]))]
    return {first + number for first, count in zip(firsts, counts, strict=True) for number in range(count)}


def chunks_of(each, per_node, has) -> int:
    count = min(h // e for e, h in zip(each, has, strict=True) if e)
    return min(count, per_node) if per_node else count


def demand_of(rows, partitions: int) -> Demand:
    needs = [row[4] for row in sorted(rows, key=lambda row: row[1])]
    columns = [
        [need.chunks for need in needs],
        *([need.each[k] for need in needs] for k in range(3)),
        [need.per_node for need in needs],
        [int(need.whole) for need in needs],
        [need.partition if need.partition < partitions else -1 for need in needs],
    ]
    arrays = [np.array(column, np.int64) for column in columns]
    return Demand(*arrays, partitions=tuple(f"p{place}" for place in range(partitions)))


def engine(case, rules=NO_RULES, limits=None, preempting=(), limited="limits", **options):
    site, rows, failures, windows = case
    plain = [(*row[:4], row[4].chunks * row[4].each[0]) for row in rows]
    from dataclasses import replace

    asks = options.get("asks")
    workload = replace(
        workload_of(plain, options.get("dependencies", "none"), options.pop("asks", None)),
        demand=demand_of(rows, len(site[1])),
    )
    for name in ("first_ticks", "rule"):  # it draws them, and reads it from a file
        options.pop(name, None)
    recovers = recovery_of(rows, options)
    named = {ENGINE_NAMES[name]: as_text(value) for name, value in ({"lff_moves": False} | options).items()}
    run = simulate(
        workload,
        machine=site_file(site, windows, rules, limits, preempting),
        **({f"site_{limited}": True} if limits else {}),
        site_reservations=asks is not None,
        failures=failures_of(failures, rows),
        events=True,
        debug=True,
        **named,
        **recovers,
    )
    return outcome_of(run), run


def assert_same(case, rules=NO_RULES, limits=None, preempting=None, limited="limits", **options) -> None:
    """Compare engine and reference; limits and preempting: of a site's file, and what the reference makes of them.

    limited : limits, which are of running jobs, or submit_limits.
    """
    site, rows, failures, windows = case
    options = {"estimates": "requested"} | options
    found, run = engine(case, rules, limits and limits[0], preempting[0] if preempting else (), limited, **options)
    options |= {limited: limits[1]} if limits else {}
    options.pop("site_tiers", None)
    options |= preempting[1] if preempting else {}
    if rules != NO_RULES:
        options["tree"], options["qos_factors"] = tuple(row[:4] for row in rules[0]), rules[1]
        options["association_priorities"] = {row[:2]: row[4] for row in rules[0] if len(row) > 4}
        options["partition_factors"] = tuple((f"p{place}", rules[2][place]) for place in range(len(site[1])))
    estimates = options.pop("estimates")
    known = rows if estimates == "requested" else [(*row[:3], None, *row[4:]) for row in rows]
    reserved = [(begin, end, members_of(site, counts)) for begin, end, counts in windows]
    key = coin_key(0, 0, "nodes")
    options.setdefault("lff_moves", False)
    options["draw"] = lambda number, job, restarts: float(coins(key, number, job, restarts))
    reference = SiteSimulator(known, nodes_of(site), failures, reserved, **options)
    reference.simulate()
    nodes = {e.job_id: e.nodes for e in reference.events if e.kind in ("start", "migrate")}
    for job in reference.jobs:
        row = found.jobs[job.job_id]
        if job.is_refused or job.is_late:
            assert (row["start"], row["finish"]) == (None, None)
            assert row["first_start"] == job.first_start
            continue
        if job.is_cancelled:
            job.start, nodes[job.job_id] = None, row["nodes"]
        expected = (job.start, job.first_start, job.finish, job.restarts, job.checkpoints, nodes.get(job.job_id, ()))
        assert tuple(map(plain_of, expected)) == tuple(
            plain_of(row[name]) for name in ("start", "first_start", "finish", "restarts", "checkpoints", "nodes")
        ), job.job_id
        assert row["size"] == job.held_size
        assert row["migrations"] == job.migrations
        assert row["work_lost"] == pytest.approx(float(job.work_lost))
        assert row["checkpoint_overhead"] == pytest.approx(float(job.overhead))
    assert run.metrics["failures_that_hit"] == reference.failures_hitting
    assert run.metrics["preemptions"] == sum(job.preemptions + job.suspensions for job in reference.jobs)
    if options.get("preemption") == "suspend":
        assert run.jobs["suspended_s"].tolist() == [float(job.suspended) for job in reference.jobs]
    assert run.metrics["jobs_cancelled"] == sum(job.is_cancelled for job in reference.jobs)
    assert run.metrics["reservations_missed"] == sum(job.is_late for job in reference.jobs)
    assert run.metrics["jobs_refused"] == sum(job.is_refused is True for job in reference.jobs)
    if all(job.finish is None for job in reference.jobs):
        return  # nothing ended
    work = sum(job.requested_size * job.run for job in reference.jobs if job.finish is not None)
    capacity = run.metrics["makespan_s"] * sum(node.has[0] for node in nodes_of(site))
    assert run.metrics["utilisation"] == pytest.approx(float(work) / capacity)
    lost = sum(job.preempted_seconds for job in reference.jobs)
    assert run.metrics["lost_to_preemption"] == pytest.approx(float(lost) / capacity)


def plain_of(value):
    return value if value is None or isinstance(value, tuple) else float(value)


CHOICES = ("first-fit", "best-fit", "consecutive", "random", "round-robin", "lff")
SCHEDULERS = ("fcfs", "backfill", "conservative")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_scheduling(scheduler):
    @examples(60)
    @given(cases(), st.sampled_from(CHOICES), st.sampled_from((0, 0, 1)))
    def check(case, node_choice, delay):
        assert_same(case, scheduler=scheduler, node_choice=node_choice, start_delay=delay)

    check()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_failures(scheduler):
    @EXAMPLES
    @given(cases(failures=True), st.sampled_from(CHOICES))
    def check(case, node_choice):
        assert_same(case, scheduler=scheduler, node_choice=node_choice)

    check()


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_moves_to_safer_nodes(scheduler):
    @examples(60)
    @given(
        st.one_of(cases(failures=True), cases(failures=True, reservations=True)),
        st.sampled_from((0, 1)),
        st.sampled_from((0, 1, 3)),
        st.sampled_from(("none", "periodic")),
    )
    def check(case, threshold, cost, checkpoint):
        options = {"node_choice": "lff", "lff_moves": True, "move_threshold": threshold, "move_cost": cost}
        saves = {"checkpoint": checkpoint, "checkpoint_interval": 3, "checkpoint_cost": 1}
        assert_same(case, scheduler=scheduler, **options, **(saves if checkpoint != "none" else {}))

    check()


FIRST = Need(1, (1, 0, 0), whole=False, partition=0)


@pytest.mark.parametrize(
    ("case", "moves"),
    [
        pytest.param((((1, 0, 0, 2),), (), FIRST, ()), 1, id="to the node that comes free"),
        pytest.param((((1, 0, 0, 2),), (), FIRST, ((20, 30, (1,)),)), 0, id="not into a reservation of it"),
        pytest.param((((2, 0, 0, 2),), (), Need(2, (1, 0, 0), per_node=1), ()), 0, id="not where it has a part"),
    ],
)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_part_moves_when_a_safer_node_comes_free(scheduler, case, moves):
    """Node 1 fails while the first job is on node 0; the second job gets node 1, until the first one ends."""
    rows, partitions, need, windows = case
    jobs = [(1, 0, 5, 5, FIRST), (2, 2, 40, 40, need)]
    case = ((rows, partitions), jobs, [(1, 1, 0)], windows)
    options = {"node_choice": "lff", "lff_moves": True, "move_threshold": 0, "move_cost": 1}
    assert_same(case, scheduler=scheduler, **options)
    assert engine(case, scheduler=scheduler, **options)[1].jobs["migrations"].tolist() == [0, moves]


def test_a_reservation_beside_one_of_another_partition_is_made_anew():
    """Job 3 has room at 3 and would delay job 2, so its reservation is the end of job 1. Then job 4 starts, which ends
    before: at 4 the reservation is that end, and job 6 would be in its way."""
    rows = [
        *((1, 0, 8, 8, Need(3, (2, 0, 0), partition=0)), (2, 0, 1, 1, Need(3, (1, 0, 0), 1, partition=2))),
        *((3, 0, 20, 20, Need(8, (1, 0, 0), partition=1)), (4, 1, 3, 3, Need(2, (3, 0, 0), partition=1))),
        *((5, 2, 1, 1, Need(4, (1, 0, 0), partition=0)), (6, 4, 3, 3, Need(3, (1, 0, 0), 1, partition=1))),
    ]
    site = ((4, 0, 0, 4),), (((2,), False), ((4,), False), ((3,), False))
    case = site, rows, [(0, 0, 3)], ()
    assert_same(case, scheduler="backfill")
    assert engine(case, scheduler="backfill", estimates="requested")[1].jobs["start_s"].tolist() == [3, 11, 11, 3, 2, 6]


@given(st.data(), st.sampled_from(("fcfs", "backfill")), st.sampled_from((0.0, 3.0)))
@examples(40)
def test_safer_nodes_of_one_core_are_those_of_a_flat_machine(data, scheduler, cost):
    """The same moves, of the same jobs, to the same nodes; not under conservative backfilling, whose reservations
    are of nodes on a site, chosen before the job starts."""
    count = data.draw(st.integers(2, 6))
    site = ((1, 0, 0, count),), ()
    sizes = st.tuples(st.sampled_from(GAPS), st.sampled_from(RUNS), st.integers(1, count))
    time, rows = 0.0, []
    for number, (gap, run_s, size) in enumerate(data.draw(st.lists(sizes, min_size=2, max_size=12)), start=1):
        time += float(gap)
        rows.append((number, time, run_s, None, size))
    failed = data.draw(st.lists(st.tuples(st.integers(0, 40), st.integers(0, count - 1), st.just(0)), max_size=6))
    options = {"scheduler": scheduler, "node_choice": "lff", "move_threshold": 0, "move_cost_s": cost, "events": True}
    found = [
        simulate(workload_of(rows), machine=machine, failures=failures_of(sorted(failed), rows), **options)
        for machine in (f"flat:{count}", site_file(site))
    ]
    assert outcome_of(found[0]).jobs == outcome_of(found[1]).jobs


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_advance_reservations(scheduler):
    @EXAMPLES
    @given(
        st.one_of(cases(reservations=True), cases(failures=True, reservations=True)),
        st.sampled_from(CHOICES),
        st.sampled_from((0, 0, 1)),
    )
    def check(case, node_choice, delay):
        assert_same(case, scheduler=scheduler, node_choice=node_choice, start_delay=delay)

    check()


@EXAMPLES
@given(
    cases(failures=True),
    st.sampled_from((0, 2)),
    st.sampled_from(("periodic", "exact", "bucket")),
    st.sampled_from(("backfill", "conservative")),
)
def test_checkpoints(case, cost, checkpoint, scheduler):
    options = (
        {"checkpoint_interval": 5} if checkpoint == "periodic" else {"bucket": 10} if checkpoint == "bucket" else {}
    )
    assert_same(case, scheduler=scheduler, checkpoint=checkpoint, checkpoint_cost=cost, restart_cost=1, **options)


@EXAMPLES
@given(cases(failures=True), st.sampled_from(("wfp", "sjf", "saf")), st.sampled_from(SCHEDULERS))
def test_queue_orders(case, order, scheduler):
    assert_same(case, scheduler=scheduler, queue_order=order)


@EXAMPLES
@given(st.integers(1, 12), st.data())
def test_nodes_of_one_core_are_a_flat_machine(count, data):
    """Where nodes have one core, EASY counts cores as it counts nodes on a flat machine."""
    rows, time = [], 0
    for job_id in range(1, data.draw(st.integers(1, 24)) + 1):
        time += data.draw(st.sampled_from(GAPS))
        run = data.draw(st.sampled_from(RUNS))
        rows.append((job_id, time, run, run * data.draw(st.sampled_from((1, 2, 5))), data.draw(st.integers(1, count))))
    site = site_file((((1, 0, 0, count),), ()))
    for scheduler in ("fcfs", "backfill"):
        options = {"scheduler": scheduler, "estimates": "requested"}
        flat, shared = (simulate(workload_of(rows), machine=name, **options) for name in (f"flat:{count}", site))
        assert np.array_equal(flat.jobs["start_s"], shared.jobs["start_s"])
        assert flat.metrics["utilisation"] == shared.metrics["utilisation"]


RULES = (
    (
        (("a", "", "", 2, 40), ("b", "", "a", 3), ("b", "2", "", 1), ("a", "0", "", 2, 70)),
        (("x", 5), ("y", 1)),
        (1, 4, 2),
    ),
    ((("b", "", "c", 1), ("d", "", "c", 2), ("d", "7", "", 1), ("c", "", "", 4), ("root", "8", "", 1)), (), (2, 1, 1)),
    ((("root", "", "", 1, 5), ("a", "", "", 1), ("b", "0", "", 1, 0), ("d", "", "", 1, 30)), (), (2, 1, 1)),
    ((("a", "", "b", 0), ("b", "", "", 3, 9)), (("z", 0),), (0, 0, 0)),
)
"""Accounts in accounts, with users, shares and some with a priority; priorities of QOS; factors of up to three
partitions."""


@examples(60)
@given(
    cases(failures=True),
    st.sampled_from(RULES),
    st.sampled_from(("backfill", "conservative")),
    st.sampled_from(("classic", "fair-tree", "fair-tree")),
    st.sampled_from((0, 7.5, 20)),
    st.sampled_from(((1000, 0, 0, 0), (100, 1000, 0, 0), (300, 0, 500, 0), (200, 0, 0, 700), (500, 300, 200, 100))),
    st.sampled_from((0.0, 0.0, 900.0)),
)
def test_priorities(case, rules, scheduler, fair_share, period, weights, association):
    share, size, partition, qos = map(float, weights)
    assert_same(
        case,
        rules,
        scheduler=scheduler,
        queue_order="multifactor",
        fair_share=fair_share,
        period=period,
        half_life=1 / 64,
        age_weight=10,
        longest_age=1 / 64,
        share_weight=share,
        size_weight=size,
        partition_weight=partition,
        qos_weight=qos,
        association_weight=association,
    )
