"""Building the arrays of a run: the state of an idle machine before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.engine.watch import LATEST_S, MOST_WITHOUT_JOB
from faultsweep.simcore.finders.boxes import shape_table
from faultsweep.simcore.finders.papers.searches import finder_address, make_block
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.model.machines import FLAT, TORUS, Machine
from faultsweep.simcore.model.menus import Menu
from faultsweep.simcore.parameters import FORESEEN, no_failures, recall_of, recovers_nothing, saves_nothing
from faultsweep.simcore.policies.placement.scores import Score
from faultsweep.simcore.policies.prediction.predictors import BaseRate, coin_key
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
    state = State(
        f=_scalars_f(config, base_rate),
        i=_scalars_i(machine, config, tracing, score),
        job_f=_job_f(jobs, n),
        job_i=_job_i(jobs, n),
        agenda=np.zeros((st.NUM_AGENDA, n + nodes + 2)),
        lists=np.zeros((st.NUM_LISTS, max(2 * n, nodes) + 2), np.int64),
        failures=rows,
        masks=_masks(machine, words, _slots(machine, config, n)),
        trace=trace_buffer(nodes, n, rows.shape[1], capacity) if tracing else np.zeros(1),
        profile=np.zeros((3 if machine.kind == TORUS else st.NUM_PROFILE_ROWS, breakpoints)),
        profile_masks=np.zeros((breakpoints, words) if machine.kind == TORUS else (1, 1), np.uint64),
        **_tables(machine, capacity, config["scheduler"]),
    )
    if machine.menu is not None:
        state = _with_menu(state, machine.menu)
    state.agenda[st.DOWN_UNTIL] = -np.inf
    if _searches(machine, config):
        state = _with_searches(state, make_block(config["finder"], machine.sides))
    state.i[st.BASE_GAPS] = 0 if base_rate is None else len(base_rate.gap_s)
    if machine.menu is not None:
        state.lists[st.SHAPE_FIRST, : nodes + 2] = np.searchsorted(machine.menu.sizes, np.arange(nodes + 2))
    if machine.kind == TORUS:
        state.lists[st.SHAPE_FIRST, : nodes + 2] = shape_table(machine.sides)[1]
    else:
        slots = len(state.masks) - st.FIRST_SLOT
        state.lists[st.SLOTS, :slots] = np.arange(st.FIRST_SLOT, st.FIRST_SLOT + slots)
        state.i[st.FREE_SLOTS] = slots
        state.lists[st.SAFEST, :nodes] = np.arange(nodes)
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
    state.i[st.PARTITIONS] = partitions
    return replace(state, footprints=tables, profile_masks=np.zeros((3, max(words, rows)), np.uint64))


def _searches(machine: Machine, config: Mapping[str, Any]) -> bool:
    return machine.kind == TORUS and config["finder"] != "columns"


def _with_searches(state: State, block: NDArray[np.int64]) -> State:
    """Return the state with the block of a finder of the papers."""
    rows = max(state.boxes.shape[1], -(-len(block) // 7))
    boxes = np.zeros((st.SEARCH + 1, rows, 7), np.int64)
    boxes[st.SEARCH].reshape(-1)[: len(block)] = block
    state.i[st.FINDER_CALL] = finder_address()
    state.i[st.FINDER_DATA] = boxes[st.SEARCH].ctypes.data
    return replace(state, boxes=boxes)


def _breakpoints(machine: Machine, jobs: int) -> int:
    """Return the breakpoints to begin with: each running and each waiting job may add two."""
    most = 2 * (machine.nodes + jobs) + 8
    return most if machine.kind == FLAT else min(most, 4096)


def failure_rows(failures: FailureTrace | None, base_rate: BaseRate | None = None) -> NDArray[np.float64]:
    """Return the failures as the state has them; with the table of base rates, whose gaps are no more than they."""
    if failures is None:
        return np.zeros((3, 0))
    rows = [failures.time_s, failures.node.astype(np.float64), failures.down_s]
    if base_rate is not None:
        rows += [np.zeros(len(failures)), np.zeros(len(failures))]
        rows[st.BASE_GAP][: len(base_rate.gap_s)] = base_rate.gap_s
        rows[st.BASE_SUM][: len(base_rate.gap_s)] = base_rate.sum_s[1:]
    return np.stack(rows)


def trace_buffer(nodes: int, jobs: int, failures: int, capacity: int = 1) -> NDArray[np.float64]:
    """Return a buffer of the event trace that holds whatever one instant can be expected to produce, twice."""
    return np.zeros(2 * capacity * (st.TRACE_HEAD + 1) * (8 * nodes + jobs + 3 * failures + 1024))


def _job_f(jobs: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.float64]:
    rows = np.zeros((st.NUM_JOB_F, n))
    rows[st.SUBMIT] = jobs["submit_s"]
    rows[st.WORK] = jobs["work_s"]
    rows[st.ESTIMATE] = jobs["estimate_s"]
    rows[st.UTILITY_SINCE] = jobs["submit_s"]
    rows[[st.START, st.FIRST_START, st.FINISH, st.PROMISED, st.FIXED_UTILITY]] = np.nan
    return rows


def _job_i(jobs: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.int64]:
    rows = np.zeros((st.NUM_JOB_I, n), np.int64)
    rows[st.REQUESTED] = jobs["requested"]
    rows[st.SIZE] = jobs["size"]
    rows[st.OPTION] = jobs.get("option", -1)
    return rows


def _slots(machine: Machine, config: Mapping[str, Any], jobs: int) -> int:
    """Return how many jobs may have a set of nodes at a time: running ones, and those that wait for their own."""
    waits = not recovers_nothing(config) and not config["hold_nodes"]
    return jobs if waits else min(machine.nodes, jobs)


def _masks(machine: Machine, words: int, slots: int) -> NDArray[np.uint64]:
    if machine.kind == TORUS:
        masks = np.zeros((st.NUM_TORUS_MASKS, words), np.uint64)
        masks[st.FREE_NODES] = (1 << machine.sides[2]) - 1
        return masks
    masks = np.zeros((st.FIRST_SLOT + slots, words), np.uint64)
    masks[st.FREE_NODES] = 0xFFFFFFFFFFFFFFFF  # bits that no node and no wire has are never looked at
    if machine.nodes % 64:
        masks[st.FREE_NODES, machine.nodes // 64] = (1 << (machine.nodes % 64)) - 1
    return masks


def _tables(machine: Machine, capacity: int, scheduler: str) -> dict[str, Any]:
    """Return the tables of the finder of a torus, or that of conservative backfilling on a flat machine."""
    if machine.kind != TORUS:
        classes = st.CLASSES if scheduler == "conservative" else 1
        return {
            "footprints": np.zeros((2, 1, 1), np.uint64),
            "boxes": np.zeros((3, 1, 7), np.int64),
            "shapes": np.zeros((classes, max(classes, 3)), np.int64),
        }
    X, Y, _ = machine.sides
    table = (X * (X - 1) + 1, Y * (Y - 1) + 1)
    boxes = capacity * (1024 if table[0] * table[1] < _LARGE else 65536)
    return {
        "footprints": np.zeros((2, *table), np.uint64),
        "boxes": np.zeros((3, boxes, 7), np.int64),
        "shapes": shape_table(machine.sides)[0].copy(),
    }


def _scalars_i(machine: Machine, config: Mapping[str, Any], tracing: bool, score: Score | None) -> NDArray[np.int64]:
    i = np.zeros(st.NUM_I, np.int64)
    i[st.FREE] = machine.nodes
    i[st.VERSION] = 1
    i[[st.ATTEMPTED_VERSION, st.SCANNED_VERSION]] = -1
    i[st.KIND] = machine.kind
    i[[st.SIDE_X, st.SIDE_Y, st.SIDE_Z]] = machine.sides
    i[st.NODES] = machine.nodes
    scheduler = config["scheduler"]
    if machine.kind == FLAT:  # migration does nothing where any free nodes will do
        scheduler = {"migration": "fcfs", "backfill+migration": "backfill"}.get(scheduler, scheduler)
    i[st.SCHEDULER] = code_of(SCHEDULERS, scheduler)
    i[st.EVENT_ORDER] = code_of(EVENT_ORDERS, config["event_order"])
    i[st.GROWTH_LIMIT] = min(config["growth_limit"], machine.nodes)
    i[st.MAX_RESTARTS] = config["max_restarts"]
    i[st.TRACING] = int(tracing)
    i[st.MOST_WITHOUT_JOB] = MOST_WITHOUT_JOB
    i[st.PLACEMENT] = st.SCORED if score else code_of(PLACEMENTS, config["placement"])
    if score:
        i[st.SCORE], i[st.SCORE_NEEDS] = score.address, score.needs
    i[st.PARTITION_FAILURE] = code_of(PARTITION_FAILURES, config["partition_failure"])
    i[st.LAST_NODE] = -1
    i[st.NODE_CHOICE] = _node_choice(machine, config)
    i[st.NODE_KEY] = coin_key(config["seed"], config["replicate"], "nodes")
    i[st.MOVES_TO_SAFER] = int(i[st.NODE_CHOICE] == st.LEAST_FAILURES and config["lff_moves"])
    i[st.MOVE_THRESHOLD] = config["move_threshold"]
    i[st.CHECKPOINT] = st.NO_CHECKPOINTS if saves_nothing(config) else code_of(CHECKPOINTS, config["checkpoint"])
    i[st.BUCKET_JOBS] = code_of(BUCKET_JOBS, config["bucket_jobs"])
    i[st.BUCKET_BIGGEST] = config["bucket_biggest"]
    i[st.QUEUE_ORDER] = code_of(QUEUE_ORDERS, config["queue_order"])
    i[st.RECOVERY] = int(not recovers_nothing(config))
    i[st.HOLD_NODES] = int(config["hold_nodes"])
    i[st.DELAY_KIND] = code_of(REPAIRS, config["manual_delay_distribution"])
    i[st.DELAY_KEY] = coin_key(config["seed"], config["replicate"], "recovery/delays")
    i[st.COIN_KEY] = coin_key(config["seed"], config["replicate"])
    return i


def _node_choice(machine: Machine, config: Mapping[str, Any]) -> int:
    any_node = machine.kind == FLAT and machine.menu is None
    return code_of(NODE_CHOICES, config["node_choice"]) if any_node else st.FIRST_FIT


def _scalars_f(config: Mapping[str, Any], base_rate: BaseRate | None) -> NDArray[np.float64]:
    f = np.zeros(st.NUM_F)
    f[st.NOW] = -math.inf
    f[st.START_DELAY] = config["start_delay_s"]
    f[st.MIGRATION_FREE] = config["migration_free_frac"]
    f[st.MIGRATION_MFP] = config["migration_mfp_frac"]
    f[st.MIGRATION_COST] = config["migration_cost_s"]
    f[st.LATEST] = LATEST_S
    f[st.HORIZON] = config["horizon_s"]
    f[st.ACCURACY] = config["accuracy"]
    f[st.DRAWN_UNTIL] = math.inf
    f[st.RECALL] = recall_of(config)
    f[st.FALSE_RATE] = config["false_positive_rate"]
    f[st.PRECISION] = config["precision"]
    f[st.NODE_SECONDS] = 1.0 if base_rate is None else base_rate.node_seconds
    weightless = config["placement"] == "balancing" and config["accuracy"] == 0
    if weightless or no_failures(config):
        f[[st.RECALL, st.FALSE_RATE]] = 0.0
    f[st.FINISHED_START] = math.inf
    f[st.MOVE_COST] = config["move_cost_s"]
    f[st.RESTART_COST] = config["restart_cost_s"]
    f[st.CHECKPOINT_COST] = config["checkpoint_cost_s"]
    f[st.CHECKPOINT_INTERVAL] = config["checkpoint_interval_s"]
    f[st.CHECKPOINT_MTBF] = config["checkpoint_mtbf_h"] * 3600.0
    f[st.BUCKET] = config["bucket_s"]
    f[st.BUCKET_REPEAT] = config["bucket_repeat_s"]
    f[st.BUCKET_LONG] = config["bucket_long_s"]
    f[st.DELAY_MEAN] = config["manual_delay_h"] * 3600.0
    f[st.DELAY_SIGMA] = config["manual_delay_sigma"]
    foreseen = config["checkpoint"] in FORESEEN and not saves_nothing(config)
    f[st.NEXT_FORESEEN] = -math.inf if foreseen else math.inf
    f[[st.BUCKET_END, st.REGAINED]] = -math.inf
    return f
