"""Building the arrays of a run: the state of an idle machine before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.engine.watch import MOST_WITHOUT_JOB
from faultsweep.simcore.finders.boxes import shape_table
from faultsweep.simcore.finders.papers.searches import finder_address, make_block
from faultsweep.simcore.model.failure_trace import LATEST_S, FailureTrace
from faultsweep.simcore.model.machines import FLAT, TORUS, Machine
from faultsweep.simcore.model.menus import Menu
from faultsweep.simcore.parameters import FORESEEN, no_failures, recall_of, recovers_nothing, saves_nothing
from faultsweep.simcore.policies.placement.scores import Score
from faultsweep.simcore.policies.prediction.predictors import BaseRate, coin_key
from faultsweep.simcore.policies.queue_order.priorities import priorities
from faultsweep.simcore.registry import (
    BUCKET_JOBS,
    CHECKPOINTS,
    EVENT_ORDERS,
    NODE_CHOICES,
    PARTITION_FAILURES,
    PLACEMENTS,
    QUEUE_ORDERS,
    REPAIRS,
    SCHEDULERS,
    code_of,
)
from numpy.typing import NDArray

_ROWS_OF_FAILURES = State.layout.rows("failures")
_LARGE = 4096  # footprints from which a machine counts as large


def build_state(
    jobs: Mapping[str, NDArray[Any]],
    machine: Machine,
    config: Mapping[str, Any],
    failures: FailureTrace | None,
    *,
    tracing: bool,
    capacity: int = 1,
    score: Score | None = None,
    base_rate: BaseRate | None = None,
) -> State:
    """Return the state of a run that has not begun.

    Parameters
    ----------
    jobs : arrays of shape (n,): ``submit_s`` (non-decreasing), ``work_s``, ``estimate_s``, ``requested`` (nodes
        submitted), ``size`` (nodes after rounding).
    machine : the machine.
    config : a resolved configuration.
    failures : the failures known so far, or None.
    tracing : whether events are recorded.
    capacity : factor on the sizes of lists whose need is not known beforehand.
    score : the user's placement score, if there is one.
    base_rate : of the failures; needed where the predictor's precision is below 1.
    """
    nodes, n = machine.nodes, len(jobs["submit_s"])
    words = _words(machine)
    breakpoints = _breakpoints(machine, n) * capacity if config["scheduler"] == "conservative" else 1
    rows = failure_rows(failures, base_rate)
    slots = 0 if machine.kind == TORUS else _slots(machine, config, n)
    state = State.zeros(
        job_f=n,
        job_i=n,
        agenda=n + nodes + 2,
        lists=max(2 * n, nodes) + 2,
        failures=rows.shape[1],
        masks=words,
        slot_masks=(slots, words),
        trace=1,
        profile=breakpoints,
        profile_masks=(breakpoints, words) if machine.kind == TORUS else (1, 1),
        **_index(machine, breakpoints, n, config["scheduler"]),
        **_tables(machine, capacity),
    ).with_arrays(failures=rows)
    if tracing:
        state = state.with_arrays(trace=trace_buffer(nodes, n, rows.shape[1], capacity))
    _set_jobs(state, jobs)
    state.job.priority[:] = priorities(jobs, config)
    _set_machine(state, machine)
    _set_codes(state, machine, config)
    _set_numbers(state, config, base_rate)
    state.tracing = int(tracing)
    if score:
        state.placement, state.score, state.score_needs = st.SCORED, score.address, score.needs
    if machine.menu is not None:
        state = _with_menu(state, machine.menu)
    state.down_until[:] = -np.inf
    state.levels[:] = _levels(nodes)
    if _searches(machine, config):
        state = _with_searches(state, make_block(config["finder"], machine.sides))
    state.base_gaps = 0 if base_rate is None or failures is None else len(base_rate.gap_s)
    if machine.menu is not None:
        state.shape_first[: nodes + 2] = np.searchsorted(machine.menu.sizes, np.arange(nodes + 2))
    if machine.kind == TORUS:
        state.shapes[:], state.shape_first[: nodes + 2] = shape_table(machine.sides)
    else:
        state.slots[:slots] = np.arange(slots)
        state.free_slots = slots
        state.safest[:nodes] = np.arange(nodes)
    return state


def _words(machine: Machine) -> int:
    """Return the words of a mask of nodes; on a machine with a menu it has bits for the wires, too."""
    if machine.menu is not None:
        return int(machine.menu.resources.shape[1])
    return (machine.nodes + 63) // 64 if machine.kind == FLAT else machine.sides[0] * machine.sides[1]


def _with_menu(state: State, menu: Menu) -> State:
    """Return the state with the partitions of a menu: what they occupy, and what they conflict with, as bits."""
    partitions, words = menu.resources.shape
    bits = np.packbits(menu.conflicts, axis=1, bitorder="little")
    rows = -(-partitions // 64)
    tables = np.zeros((2, partitions, max(words, rows)), np.uint64)
    tables[st.RESOURCES, :, :words] = menu.resources
    tables[st.CONFLICTS, :, :rows] = np.pad(bits, ((0, 0), (0, 8 * rows - bits.shape[1]))).view("<u8")
    state.partitions = partitions
    return state.with_arrays(footprints=tables, profile_masks=np.zeros((3, max(words, rows)), np.uint64))


def _searches(machine: Machine, config: Mapping[str, Any]) -> bool:
    return machine.kind == TORUS and config["finder"] != "columns"


def _with_searches(state: State, block: NDArray[np.int64]) -> State:
    """Return the state with the block of a finder of the papers."""
    rows = max(state.boxes.shape[1], -(-len(block) // 7))
    boxes = np.zeros((st.SEARCH + 1, rows, 7), np.int64)
    boxes[st.SEARCH].reshape(-1)[: len(block)] = block
    state.finder_call = finder_address()
    state.finder_data = boxes[st.SEARCH].ctypes.data
    return state.with_arrays(boxes=boxes)


def _breakpoints(machine: Machine, jobs: int) -> int:
    """Return the breakpoints to begin with: each running and each waiting job may add two; half as many more on a flat
    machine, where they are closed up from time to time."""
    most = 2 * (machine.nodes + jobs) + 8
    return most + most // 2 + 96 if machine.kind == FLAT else min(most, 4096)


def failure_rows(failures: FailureTrace | None, base_rate: BaseRate | None = None) -> NDArray[np.float64]:
    """Return the failures as the state has them; with the table of base rates, whose gaps are no more than they."""
    if failures is None:
        return np.zeros((_ROWS_OF_FAILURES, 0))
    rows = np.zeros((_ROWS_OF_FAILURES, len(failures)))
    rows[:3] = failures.time_s, failures.node, failures.down_s
    if base_rate is not None:
        rows[3, : len(base_rate.gap_s)] = base_rate.gap_s
        rows[4, : len(base_rate.gap_s)] = base_rate.sum_s[1:]
    return rows


def trace_buffer(nodes: int, jobs: int, failures: int, capacity: int = 1) -> NDArray[np.float64]:
    """Return a buffer of the event trace that holds whatever one instant can be expected to produce, twice."""
    return np.zeros(2 * capacity * (st.TRACE_HEAD + 1) * (8 * nodes + jobs + 3 * failures + 1024))


def _set_jobs(s: State, jobs: Mapping[str, NDArray[Any]]) -> None:
    s.job.submit[:] = jobs["submit_s"]
    s.job.work[:] = jobs["work_s"]
    s.job.estimate[:] = jobs["estimate_s"]
    s.job.utility_since[:] = jobs["submit_s"]
    for row in (s.job.start, s.job.first_start, s.job.finish, s.job.promised, s.job.fixed_utility):
        row[:] = np.nan
    s.job.requested[:] = jobs["requested"]
    s.job.size[:] = jobs["size"]
    s.job.option[:] = jobs.get("option", -1)


def _slots(machine: Machine, config: Mapping[str, Any], jobs: int) -> int:
    """Return how many jobs may have a set of nodes at a time: running ones, and those that wait for their own."""
    waits = not recovers_nothing(config) and not config["hold_nodes"]
    return jobs if waits else min(machine.nodes, jobs)


def _every_node(machine: Machine, words: int) -> NDArray[np.uint64]:
    """Return the mask of all nodes; bits behind the words of the nodes are never looked at."""
    mask = np.full(words, 0xFFFFFFFFFFFFFFFF, np.uint64)
    if machine.nodes % 64:
        mask[machine.nodes // 64] = (1 << (machine.nodes % 64)) - 1
    return mask


def _index(machine: Machine, breakpoints: int, jobs: int, scheduler: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the indices of the profile and of the queue (flat)."""
    shapes: dict[str, tuple[int, ...]] = {"room": (1, 1), "settled": (1, 1), "smallest": (1,), "shortest": (1, 1)}
    if machine.kind == FLAT and scheduler == "conservative":
        shapes |= {"room": (breakpoints // 64 + 2, st.LEVELS), "settled": (st.LEVELS, st.LENGTHS)}
    elif machine.kind == FLAT:
        blocks = jobs // st.BLOCK + 1
        shapes |= {"smallest": (blocks,), "shortest": (blocks, st.LEVELS)}
    return {**shapes, "levels": (machine.nodes + 1,)}


def _levels(nodes: int) -> NDArray[np.int64]:
    """Return the levels of each number of nodes up to that of the machine: level k is for 2^(k step) or more."""
    step = -(-nodes.bit_length() // st.LEVELS)
    least = 2 ** (step * np.arange(st.LEVELS))
    return np.asarray(np.searchsorted(least, np.arange(nodes + 1), side="right"), np.int64)


def _tables(machine: Machine, capacity: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tables of the finder (torus)."""
    if machine.kind != TORUS:
        return {"footprints": (2, 1, 1), "boxes": (3, 1, 7), "shapes": (1, 3)}
    X, Y, _ = machine.sides
    table = (X * (X - 1) + 1, Y * (Y - 1) + 1)
    boxes = capacity * (1024 if table[0] * table[1] < _LARGE else 65536)
    return {
        "footprints": (2, *table),
        "boxes": (3, boxes, 7),
        "shapes": shape_table(machine.sides)[0].shape,
    }


def _set_machine(s: State, machine: Machine) -> None:
    """Set the machine, idle."""
    s.free = machine.nodes
    s.version = 1
    s.attempted_version = s.scanned_version = -1
    s.kind = machine.kind
    s.side_x, s.side_y, s.side_z = machine.sides
    s.nodes = machine.nodes
    s.last_node = -1
    s.free_nodes[:] = (1 << machine.sides[2]) - 1 if machine.kind == TORUS else _every_node(machine, len(s.free_nodes))


def _set_codes(s: State, machine: Machine, config: Mapping[str, Any]) -> None:
    """Set the parameters that are whole numbers, or names."""
    scheduler = config["scheduler"]
    if machine.kind == FLAT:  # migration does nothing where any free nodes will do
        scheduler = {"migration": "fcfs", "backfill+migration": "backfill"}.get(scheduler, scheduler)
    s.scheduler = code_of(SCHEDULERS, scheduler)
    s.event_order = code_of(EVENT_ORDERS, config["event_order"])
    s.growth_limit = min(config["growth_limit"], machine.nodes)
    s.most_without_job = MOST_WITHOUT_JOB
    s.max_restarts = config["max_restarts"]
    if config["placement"] in PLACEMENTS:
        s.placement = code_of(PLACEMENTS, config["placement"])
    s.partition_failure = code_of(PARTITION_FAILURES, config["partition_failure"])
    s.node_choice = _node_choice(machine, config)
    s.node_key = coin_key(config["seed"], config["replicate"], "nodes")
    s.moves_to_safer = int(s.node_choice == st.LEAST_FAILURES and config["lff_moves"])
    s.move_threshold = config["move_threshold"]
    s.checkpoint = st.NO_CHECKPOINTS if saves_nothing(config) else code_of(CHECKPOINTS, config["checkpoint"])
    s.bucket_jobs = code_of(BUCKET_JOBS, config["bucket_jobs"])
    s.bucket_biggest = config["bucket_biggest"]
    s.queue_order = code_of(QUEUE_ORDERS, config["queue_order"])
    s.recovery = int(not recovers_nothing(config))
    s.hold_nodes = int(config["hold_nodes"])
    s.delay_kind = code_of(REPAIRS, config["manual_delay_distribution"])
    s.delay_key = coin_key(config["seed"], config["replicate"], "recovery/delays")
    s.coin_key = coin_key(config["seed"], config["replicate"])


def _node_choice(machine: Machine, config: Mapping[str, Any]) -> int:
    any_node = machine.kind == FLAT and machine.menu is None
    return code_of(NODE_CHOICES, config["node_choice"]) if any_node else st.FIRST_FIT


def _set_numbers(s: State, config: Mapping[str, Any], base_rate: BaseRate | None) -> None:
    """Set the parameters that are numbers."""
    s.now = -math.inf
    s.start_delay = config["start_delay_s"]
    s.migration_free = config["migration_free_frac"]
    s.migration_mfp = config["migration_mfp_frac"]
    s.migration_cost = config["migration_cost_s"]
    s.horizon = config["horizon_s"]
    s.latest = LATEST_S
    s.accuracy = config["accuracy"]
    s.drawn_until = math.inf
    s.recall = recall_of(config)
    s.false_rate = config["false_positive_rate"]
    s.precision = config["precision"]
    s.node_seconds = 1.0 if base_rate is None else base_rate.node_seconds
    weightless = config["placement"] == "balancing" and config["accuracy"] == 0
    if weightless or no_failures(config):
        s.recall, s.false_rate, s.precision = 0.0, 0.0, 1.0
    s.finished_start = math.inf
    s.move_cost = config["move_cost_s"]
    s.restart_cost = config["restart_cost_s"]
    s.checkpoint_cost = config["checkpoint_cost_s"]
    s.checkpoint_interval = config["checkpoint_interval_s"]
    s.checkpoint_mtbf = config["checkpoint_mtbf_h"] * 3600.0
    s.bucket = config["bucket_s"]
    s.bucket_repeat = config["bucket_repeat_s"]
    s.bucket_long = config["bucket_long_s"]
    s.delay_mean = config["manual_delay_h"] * 3600.0
    s.delay_sigma = config["manual_delay_sigma"]
    foreseen = config["checkpoint"] in FORESEEN and not saves_nothing(config)
    s.next_foreseen = -math.inf if foreseen else math.inf
    s.bucket_end = s.regained = -math.inf
