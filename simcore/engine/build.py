"""Building the arrays of a run: the state of an idle machine before its first event."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from faultsweep.simcore.contract import Run
from faultsweep.simcore.distributions import DISTRIBUTIONS
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.cores import WORD
from faultsweep.simcore.engine.fairness import owners_of
from faultsweep.simcore.engine.layout import Template
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.engine.timers import set_timers
from faultsweep.simcore.engine.watch import MOST_WITHOUT_JOB, most_in_vain
from faultsweep.simcore.finders.boxes import shape_table
from faultsweep.simcore.finders.papers.searches import finder_address, make_block
from faultsweep.simcore.model.dependencies import PAIRS, Dependencies
from faultsweep.simcore.model.failure_trace import LATEST_S, FailureTrace
from faultsweep.simcore.model.limits import Groups, groups_of
from faultsweep.simcore.model.machines import FLAT, SITE, TORUS, Machine
from faultsweep.simcore.model.menus import Menu
from faultsweep.simcore.model.nodes import NodeTable
from faultsweep.simcore.model.preempting import Classes, classes_of
from faultsweep.simcore.model.workload import DEMANDED, LABELS, Label
from faultsweep.simcore.parameters import run_of
from faultsweep.simcore.policies.catalogue import ROLES
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.limits import rules_of, submit_rules_of
from faultsweep.simcore.policies.placement.scores import Score
from faultsweep.simcore.policies.prediction import PARTITION_FAILURES
from faultsweep.simcore.policies.prediction.predictors import BaseRate
from faultsweep.simcore.policies.preemption import preempts
from faultsweep.simcore.policies.queue_order.associations import Associations
from faultsweep.simcore.policies.queue_order.by_priority import Queued
from faultsweep.simcore.policies.run import EVENT_ORDERS
from faultsweep.simcore.remembered import Remembered
from faultsweep.simcore.streams import coin_key, coins
from numpy.typing import NDArray

_ROWS_OF_FAILURES = State.layout.rows("failures")
GAINS = 4096
"""Gains of nodes that can be noted, in both generations together (conservative, flat)."""
_MOST_KEPT = 1 << 24  # bytes of a state of which there is a template: to make a larger one takes little beside its run
_ONE_SPAN = 512  # nodes at most of which one record is made: to look at several takes longer than they save
_OF_RECORDS = ("free_record", "record_free", "record_shape", "record_chunks")
_IF_NEEDED = {"profile_gpus": "gpus", "profile_memory": "memory_mb"}
_ROWS_OF_ENDS = 64
_RECORDS_OF_ENDS = 1 << 16  # at most: a row has one for each 32 nodes
_LARGE = 4096  # footprints from which a machine counts as large
Jobs = Mapping[str, NDArray[Any]]
"""Arrays of the jobs by name."""


def build_state(
    jobs: Jobs,
    machine: Machine,
    config: Mapping[str, Any],
    failures: FailureTrace | None,
    *,
    tracing: bool,
    names_nodes: bool = True,
    capacity: int = 1,
    score: Score | None = None,
    base_rate: BaseRate | None = None,
    built: Remembered | None = None,
) -> State:
    """Return the state of a run that has not begun.

    Parameters
    ----------
    jobs : arrays of shape (n,): ``submit_s`` (non-decreasing), ``work_s``, ``estimate_s``, ``requested`` (nodes
        submitted), ``size`` (nodes after rounding); those of PAIRS, shape (pairs,), where jobs wait for others.
    machine : the machine.
    config : a resolved configuration.
    failures : the failures known so far, or None.
    tracing : whether events are recorded.
    names_nodes : whether it must be known which nodes of a flat machine a job has, and not only how many.
    capacity : factor on the sizes of lists whose need is not known beforehand.
    score : the user's placement score, if there is one.
    base_rate : of the failures; needed where the predictor's precision is below 1.
    built : keeps what runs of the same jobs have in common, which have no policies of the user's.
    """
    about = (jobs, machine, names_nodes or machine.kind != FLAT or machine.menu is not None, capacity)
    idle = _idle(config, *about) if built is None else built.of(_Idle, config, *about).take()
    rows = failure_rows(failures, base_rate)
    state = idle.with_arrays(failures=rows)
    if tracing:
        buffer = trace_buffer(machine.capacity, len(jobs["submit_s"]), rows.shape[1], capacity)
        state = state.with_arrays(trace=buffer)
    state.tracing = int(tracing)
    state.base_gaps = 0 if base_rate is None or failures is None else len(base_rate.gap_s)
    state.node_seconds = 1.0 if base_rate is None else base_rate.node_seconds
    if score:
        state.score, state.score_needs = score.address, score.needs
    return _with_machine_tables(state, machine, config, jobs)


class _Idle:
    """The idle machine of runs that are alike but for their failures: the first gets what was built, others copies."""

    def __init__(self, *about: Any) -> None:
        """Build it; ``about`` are the arguments of ``_idle``."""
        self._about = about
        self._first = [_idle(*about)]
        self._template: Template[State] | None = None

    def take(self) -> State:
        """Return a state that no one else has."""
        with suppress(IndexError):
            return self._first.pop()
        if self._template is not None:
            return self._template.copy()
        state = _idle(*self._about)
        if state.own_bytes <= _MOST_KEPT:
            self._template = Template(state)
        return state


def _idle(config: Mapping[str, Any], jobs: Jobs, machine: Machine, names_nodes: bool, capacity: int) -> State:
    """Return the state of an idle machine before any failure is known, without tables of a site, a menu or a finder."""
    n, run = len(jobs["submit_s"]), run_of(config)
    known = _known_of(jobs, machine, run)
    shapes = {
        **_sizes(machine, config, run, jobs, capacity, names_nodes),
        "failures": 0,
        "trace": 1,
        **_shapes_of_known(n, known),
    }
    state = State.zeros(**shapes)
    _set_jobs(state, jobs)
    _set_known(state, known, jobs)
    for row, values in zip((state.job.priority, state.job.growth), _priorities(jobs, machine, run), strict=True):
        _fill(row, values)
    _set_parameters(state, jobs, machine, config, run, names_nodes)
    return state


class _Known(NamedTuple):
    """What is known of the jobs together: who shares limits, what they ask for, how they depend on each other."""

    groups: Groups
    submits: Groups
    asks_for: NDArray[np.int64]
    array_of: NDArray[np.int64]
    classes: Classes
    tree: Associations
    dependencies: Dependencies | None


def _known_of(jobs: Jobs, machine: Machine, run: Run) -> _Known:
    rules = rules_of(run, () if machine.site is None else machine.site.limits)
    return _Known(
        groups_of(rules, _owners(jobs) if rules else {}, len(jobs["submit_s"])),
        _submit_groups(jobs, machine, run),
        _windows_asked(jobs, machine, run),
        _arrays_listed(jobs, run),
        _classes(machine, jobs),
        run.policy("queue_order").facts.get("associations", _no_tree)(jobs, machine, run),
        Dependencies(*(jobs[name] for name in PAIRS)) if PAIRS[0] in jobs else None,
    )


def _shapes_of_known(n: int, known: _Known) -> dict[str, Any]:
    """Return the shapes of the tables that follow from what is known of the jobs together."""
    return {
        **_shapes_of_policies(n, known.groups, known.classes, known.tree),
        **_shapes_of_submits(n, known.submits),
        "asking_jobs": len(known.asks_for),
        "listed_jobs": len(known.array_of),
        "listed_times": len(known.array_of),
        "arrays": 1 + int(max(known.array_of, default=-1)),
        **_shapes_of_pairs(n, known.dependencies),
    }


def _set_known(s: State, known: _Known, jobs: Jobs) -> None:
    """Set what is known of the jobs together."""
    _set_tree(s, known.tree)
    _set_limits(s, known.groups)
    _set_submits(s, known.submits, jobs)
    s.asks, s.asks_for[:] = int(len(known.asks_for) > 0), known.asks_for
    _set_listed(s, known.array_of)
    _set_dependencies(s, known.dependencies)
    _set_classes(s, known.classes)


def _set_parameters(
    s: State,
    jobs: Jobs,
    machine: Machine,
    config: Mapping[str, Any],
    run: Run,
    names_nodes: bool,
) -> None:
    """Set what the machine and the parameters say, and let the policies begin."""
    _set_machine(s, machine)
    _set_codes(s, machine, config, run)
    _set_numbers(s, config, run)
    reached = run.reached()
    if names_nodes and "node_choice" in reached:  # as named, also where it makes no difference but to the event trace
        reached["node_choice"] = run.named("node_choice")
        s.node_choice = ROLES["node_choice"].code(reached["node_choice"].name)
    for policy in reached.values():
        if policy.begins is not None:
            policy.begins(s, run)
    run.policy("scheduling").facts.get("checks", _checks_nothing)(jobs, run)


def _with_machine_tables(state: State, machine: Machine, config: Mapping[str, Any], jobs: Jobs) -> State:
    """Return the state with what a site, a menu of partitions or a finder with tables of its own needs."""
    if machine.site is not None:
        _set_site(state, machine.site, jobs)
    if machine.menu is not None:
        state = _with_menu(state, machine.menu)
    if _searches(machine, config):
        state = _with_searches(state, make_block(config["finder"], machine.sides))
    return state


def _sizes(
    machine: Machine, config: Mapping[str, Any], run: Run, jobs: Jobs, capacity: int, names_nodes: bool
) -> dict[str, Any]:
    """Return the shapes of the tables that follow from the machine and the jobs."""
    n = len(jobs["submit_s"])
    words, scheduling = _words(machine) if names_nodes else 0, run.policy("scheduling")
    reserves = scheduling.facts.get("reserves")
    reserved = reserves in (st.ALL_JOBS, st.TOP_JOBS)
    breakpoints = _breakpoints(machine, n) * capacity if reserved or reserves == st.IN_PLANS else 1
    return {
        **dict.fromkeys(("given_times", "given_jobs", "job_f", "job_i"), n),
        "movable_jobs": n if machine.kind == TORUS or _saves(machine, run) else 0,
        "sequenced_jobs": n if config["event_order"] == "submits-first" else 0,
        "agenda": _agenda(machine, config, run, n),
        "nodes": max(machine.nodes, machine.capacity),
        "lists": 2 * n + 2,
        "node_lists": max(machine.nodes, machine.capacity, _slots(machine, config, run, n)) + 2,
        "job_lists": n + 2 if _recovers(run) or preempts(run) else 0,
        **dict.fromkeys(("site_jobs", "site_times"), n if machine.kind == SITE else 0),
        **dict.fromkeys(("saving_jobs", "saving_times"), n if _saves(machine, run) else 0),
        **dict.fromkeys(("ordered_jobs", "ordered_times"), n if _orders(machine, run) else 0),
        "planned_of_user": (n + 1 if machine.kind == SITE else 0,),
        **dict.fromkeys(("reserved_times", "reservations"), n if reserved else 0),
        "masks": words,
        "slot_masks": (_slots(machine, config, run, n), words),
        "profile": breakpoints,
        **_changes(machine, breakpoints),
        "profile_masks": (breakpoints, words) if machine.kind == TORUS else (1, 0 if machine.kind == SITE else 1),
        **_plans(machine.site if reserves == st.IN_PLANS else None, breakpoints),
        **_index(machine, breakpoints, n, reserved),
        **_tables(machine, capacity),
        **_site_shapes(
            machine.site,
            jobs,
            _listed(machine, config, run, n, reserved) * capacity,
            run.is_("preemption", "suspend"),
        ),
        **_site_profile(machine.site, breakpoints if reserved else 0, reserves == st.IN_PLANS, jobs),
    }


def _changes(machine: Machine, breakpoints: int) -> dict[str, Any]:
    """Return the shapes of what is known of breakpoints on machines but flat ones: where the tables have them, and when
    they changed, by partition of a site."""
    rows = breakpoints if machine.kind != FLAT else 0
    columns = 1 if machine.site is None else len(machine.site.whole)
    tables = dict.fromkeys(("profile_changed", "profile_gained"), (rows, columns))
    return {"profile_index": rows, "last_gain": (columns,), **tables}


def _plans(site: NodeTable | None, breakpoints: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of masks of the nodes of a site: of plans, partitions and advance reservations (slurm)."""
    words = 0 if site is None else -(-len(site.cores) // 64)
    shapes: dict[str, tuple[int, ...]] = {"open_mask": (words,), "for_job": (words,)}
    shapes["touched"] = (0 if site is None else -(-len(site.cores) // st.SPAN),)
    shapes["partition_masks"] = (0 if site is None else len(site.whole), words)
    shapes["window_masks"] = (0 if site is None else len(site.windows), words)
    return shapes if site is None else {**shapes, "profile_masks": (breakpoints, words)}


def _saves(machine: Machine, run: Run) -> bool:
    """Tell whether the state of a running job may be saved: by a checkpoint, or to move it."""
    named = (run.policy("checkpointing"), run.named("node_choice"))
    return machine.kind == SITE or any("saves_by" in p.facts or p.facts.get("saves", _never)(run) for p in named)


def _never(run: Run) -> bool:
    return False


def _orders(machine: Machine, run: Run) -> bool:
    """Tell whether the queue may have another order than that of arrival, or jobs may come back to it elsewhere."""
    return machine.kind == SITE or run.code("queue_order") != st.DEFAULT or _recovers(run)


def _shapes_of_policies(n: int, groups: Groups, classes: Classes, tree: Associations) -> dict[str, Any]:
    """Return the shapes of what policies keep: own values, limits, classes of preemption, the tree of accounts."""
    limited = len(groups.of_job)
    return {
        "own_values": (st.OWN_ROLES, st.MOST_OWN),
        "own_key": (st.OWN_ROLES,),
        "pass_kinds": st.PASS_KINDS,
        "may_preempt": classes.may_preempt.shape,
        "preempt_order": classes.order.shape,
        "classes": len(classes.order),
        "limit_groups": len(groups.most_jobs),
        "limited_jobs": limited,
        "limited_times": limited,
        "groups_of": groups.of_job.shape,
        "associations": len(tree.parent),
        "parent": (len(tree.parent),),
        "path": tree.path.shape,
        "ranking": (len(tree.path),),
    }


def _shapes_of_pairs(n: int, dependencies: Dependencies | None) -> dict[str, Any]:
    """Return the shapes of what is known of jobs that wait for others."""
    pairs, jobs = (0, 0) if dependencies is None else (len(dependencies), n)
    return {
        **dict.fromkeys(("following_jobs", "following_times"), jobs),
        **dict.fromkeys(("pairs", "pair_times"), pairs),
        "first_follower": (jobs + 1,),
    }


def _set_dependencies(s: State, dependencies: Dependencies | None) -> None:
    """Set which jobs wait for others."""
    if dependencies is None:
        return
    s.follows = 1
    jobs = len(s.waits_for)
    s.waits_for[:] = np.bincount(dependencies.job, minlength=jobs)
    s.free_from[:] = -np.inf
    order = np.argsort(dependencies.after, kind="stable")
    s.follower[:] = dependencies.job[order]
    s.think[:] = dependencies.think_s[order]
    s.first_follower[:] = np.searchsorted(dependencies.after[order], np.arange(jobs + 1))


def _agenda(machine: Machine, config: Mapping[str, Any], run: Run, jobs: int) -> int:
    """Return how many timers there can be: two of each running job, one of each node that is down, and one of each
    other job where such jobs have any; on a site jobs share nodes, and have two more where others may take their place
    and one where they have."""
    running = min(jobs, machine.capacity)
    have_timers = (
        machine.kind == SITE
        or config["event_order"] == "submits-first"
        or config["requeue_hold_s"] > 0
        or _recovers(run)
        or config["dependencies"] == "log"
    )
    count = st.SOON + (jobs if have_timers else running) + machine.capacity + 2
    if machine.site is None:
        return count
    return count + 3 * running + st.PASS_KINDS + 2 * len(machine.site.windows)


def _listed(machine: Machine, config: Mapping[str, Any], run: Run, jobs: int, reserved: bool) -> int:
    """Return how many pieces to begin with are listed and not held on a site: those of reservations, and of jobs that
    wait for nodes which others may use meanwhile."""
    waits = machine.site is not None and _recovers(run) and not config["hold_nodes"]
    waits = waits or (machine.site is not None and run.is_("preemption", "suspend"))
    return (jobs if reserved else 0) + (machine.capacity if waits else 0)


def _site_shapes(site: NodeTable | None, jobs: Jobs, listed: int, suspends: bool) -> dict[str, int | tuple[int, ...]]:
    """Return the shapes of the tables of a site: a piece that is held is of one job and one node, and has a core or
    more; ``listed`` more are not held."""
    nodes, partitions = (1, 1) if site is None else (len(site.cores), len(site.whole))
    pieces = 1 if site is None else min(site.total_cores, int(np.minimum(jobs["requested"], nodes).sum()))
    tables = dict.fromkeys(("then_cores", "then_gpus", "then_memory", "then_takes"), (partitions, nodes))
    pieces += listed
    words = 0 if site is None or not suspends else -(-int(site.cores.max()) // WORD)
    tables["piece_bits"] = (pieces, words)
    rows = {"site_nodes": nodes, "pieces": pieces, "site_partitions": partitions, "partition_times": partitions}
    rows["windows"] = 1 if site is None else max(1, len(site.windows))
    return {**rows, **tables}


def _site_profile(site: NodeTable | None, breakpoints: int, plans: bool, jobs: Jobs) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tables of what is free of each node from when on: of GPUs and memory only if a job needs
    any; if jobs are planned pass by pass, behind some of the expected ends."""
    tables = ("profile_records", "profile_most", "profile_edges", "record_takes", "end_records")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys((*tables, "profile_cores", *_IF_NEEDED), (1, 0))
    shapes |= dict.fromkeys(("more_cores", "more_gpus", "more_memory"), (1, 0))
    shapes |= {**dict.fromkeys(_OF_RECORDS, (0,)), "span_most": (0,), "partition_spans": (0, 0), "full_spans": (0, 0)}
    if site is None or not (breakpoints or plans):
        return shapes
    bits, partitions = _span_bits(site, plans), len(site.whole)
    spans = -(-len(site.cores) // (1 << bits))
    words, rows = -(-spans // 64), max(2, min(_ROWS_OF_ENDS, _RECORDS_OF_ENDS // spans)) if plans else breakpoints
    if plans:
        shapes["end_records"] = rows, spans
    else:
        shapes |= {"profile_records": (rows, spans), "profile_edges": (rows, words), "span_most": (spans,)}
        columns = partitions * (2 if jobs["whole"].any() else 1)
        shapes["profile_most"] = rows, columns
        shapes |= dict.fromkeys(("partition_spans", "full_spans"), (partitions, words))
    shapes |= dict.fromkeys(_OF_RECORDS, (rows * spans,))
    needed = [table for table, demand in _IF_NEEDED.items() if jobs[demand].any()]
    columns = st.SPAN if plans else min(len(site.cores), 1 << bits)
    shapes |= {table.replace("profile", "more"): (1, columns) for table in ("profile_cores", *needed)}
    return shapes | dict.fromkeys(("profile_cores", "record_takes", *needed), (rows * spans, columns))


def _span_bits(site: NodeTable, plans: bool) -> int:
    """Return the bits of the number of nodes in a span: all nodes if these are few and all partitions have them."""
    is_parted = (site.members != site.members[0]).any()
    if plans or is_parted or len(site.cores) > _ONE_SPAN:
        return st.SPAN.bit_length() - 1
    return (len(site.cores) - 1).bit_length()


def _shapes_of_demand(jobs: Jobs) -> NDArray[np.int64]:
    """Return numbers of jobs, shape (jobs,), that are equal if each chunk of two jobs can have the same nodes."""
    shape = np.zeros(len(jobs["submit_s"]), np.int64)
    for name in ("partition", "cores", "gpus", "memory_mb", "per_node", "whole"):
        values, column = np.unique(jobs[name], return_inverse=True)
        shape = np.unique(shape * len(values) + column, return_inverse=True)[1]
    return shape


def _set_site(s: State, site: NodeTable, jobs: Jobs) -> None:
    """Set the nodes of a site, idle, and what jobs need of them."""
    for name in DEMANDED:
        getattr(s.job, _OF_DEMAND[name])[:] = jobs[name]
    s.job.first_piece[:] = -1
    others = np.stack([jobs[name] for name in ("gpus", "memory_mb", "per_node", "whole")])
    if len(s.record_shape):
        s.job.shape[:] = _shapes_of_demand(jobs)
    s.job.plain[:] = (jobs["cores"] == 1) & ~others.any(axis=0)
    s.span_bits = _span_bits(site, s.end_records.shape[1] > 0)
    s.node_cores[:] = s.free_cores[:] = site.cores
    s.node_gpus[:] = s.free_gpus[:] = site.gpus
    s.node_memory[:] = s.free_memory[:] = site.memory_mb
    s.node_members[:] = site.members
    for partition in range(len(s.partition_spans)):
        is_there = site.members >> partition & 1
        begins, words = range(0, len(is_there), 1 << s.span_bits), s.partition_spans.shape[1]
        s.partition_spans[partition] = _mask_of(np.maximum.reduceat(is_there, begins), words)
        s.full_spans[partition] = _mask_of(np.minimum.reduceat(is_there, begins), words)
    for partition in range(len(s.partition_masks)):
        s.partition_masks[partition] = _mask_of(site.members >> partition & 1, s.partition_masks.shape[1])
    _set_windows(s, site)
    s.piece_on[:] = -1
    s.free_piece[:] = np.arange(len(s.free_piece))
    s.num_free_pieces = len(s.free_piece)
    s.head_job[:] = -1
    s.class_grace[: len(site.graces_s)] = site.graces_s
    for partition in range(len(site.whole)):
        nodes = np.flatnonzero(site.members >> partition & 1)
        here = site.members[nodes]
        s.first_node[partition], s.end_node[partition] = (nodes[0], nodes[-1] + 1) if len(nodes) else (0, 0)
        s.has_all[partition] = len(here) == len(site.members)
        s.overlaps[partition] = np.bitwise_or.reduce(here) | 1 << partition


def _kept_windows(site: NodeTable) -> list[int]:
    """Return the places of the advance reservations that do not end before the first submission, in order of ends."""
    kept = [place for place, (_, end) in enumerate(site.windows) if end > 0.0]
    return sorted(kept, key=lambda place: site.windows[place][1])


def _windows_asked(jobs: Jobs, machine: Machine, run: Run) -> NDArray[np.int64]:
    """Return the advance reservation of each job as its bit in the state; shape (0,) if no job asks for one."""
    if machine.site is None or not run["site_reservations"] or "reservation_codes" not in jobs:
        return np.zeros(0, np.int64)
    bits = {machine.site.window_names[place]: bit for bit, place in enumerate(_kept_windows(machine.site))}
    over = dict.fromkeys(machine.site.window_names, st.OVER)
    of_code = [(over | bits).get(str(name), st.ANYWHERE) for name in jobs["reservation_names"]]
    found = np.array([*of_code, st.ANYWHERE], np.int64)[jobs["reservation_codes"]]
    return found if (found != st.ANYWHERE).any() else np.zeros(0, np.int64)


def _arrays_listed(jobs: Jobs, run: Run) -> NDArray[np.int64]:
    """Return the job array of each job, -1 of those that are no task; shape (0,) if nothing asks for it."""
    listed = run.policy("scheduling").facts.get("lists_tasks", False) and "array_codes" in jobs
    return np.asarray(jobs["array_codes"], np.int64) if listed else np.zeros(0, np.int64)


def _set_listed(s: State, array_of: NDArray[np.int64]) -> None:
    """Set where jobs stand in the list of jobs before any of them has started."""
    s.lists, s.array_of[:] = int(len(array_of) > 0), array_of
    s.listed_since[:] = s.job.submit if s.lists else 0.0
    s.last_start[:] = -np.inf


def _set_windows(s: State, site: NodeTable) -> None:
    """Set the advance reservations that do not end before the first submission, each with a timer at its end, and at
    its begin if jobs ask for it.

    Where there are some, or jobs are suspended on their nodes, jobs that need single cores are not counted alike: it
    matters on which nodes these are.
    """
    kept, timers = _kept_windows(site), []
    s.num_windows = len(kept)
    for bit, place in enumerate(kept):
        s.window_begin[bit], s.window_end[bit] = site.windows[place]
        key = st.OTHER_TIMER * st.TIMER_STRIDE + len(s.job.submit) + bit
        timers.append((site.windows[place][1], key))
        if site.windows[place][0] > 0.0 and (s.asks_for == bit).any():
            timers.append((site.windows[place][0], key + len(kept)))
        s.node_windows[:] |= (site.reserved >> place & 1) << bit
        if len(s.window_masks):
            s.window_masks[bit] = _mask_of(site.reserved >> place & 1, s.window_masks.shape[1])
    set_timers(s, timers)
    if kept or s.suspends:
        s.job.plain[:] = 0


def _mask_of(chosen: NDArray[np.int64], words: int) -> NDArray[np.uint64]:
    """Return a mask of the nodes of which 1 is given, uint64 (words,)."""
    bits = np.packbits(chosen.astype(np.uint8), bitorder="little")
    return np.pad(bits, (0, 8 * words - len(bits))).view("<u8")


_OF_DEMAND = {name: name for name in DEMANDED} | {
    "cores": "chunk_cores",
    "gpus": "chunk_gpus",
    "memory_mb": "chunk_memory",
    "per_node": "chunks_per_node",
}
"""The fields of the state that hold what jobs need."""


def _words(machine: Machine) -> int:
    """Return the words of a mask of nodes; on a machine with a menu it has bits for the wires, too."""
    if machine.menu is not None:
        return int(machine.menu.resources.shape[1])
    if machine.kind == SITE:
        return 1
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
    machine, where dropped ones are kept for two passes; few on a site, where each is as long as there are nodes."""
    if machine.kind == SITE:
        return 256
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


def _set_jobs(s: State, jobs: Jobs) -> None:
    s.job.submit[:] = s.job.eligible[:] = jobs["submit_s"]
    s.job.work[:] = jobs["work_s"]
    s.job.estimate[:] = jobs["estimate_s"]
    _fill(s.job.utility_since, jobs["submit_s"])
    for row in (s.job.start, s.job.first_start, s.job.finish, s.job.reserved, s.job.fixed_utility):
        row[:] = np.nan
    s.job.requested[:] = jobs["requested"]
    s.job.size[:] = jobs["size"]
    _fill(s.job.option, jobs.get("option", -1))
    _fill(s.job.user, jobs.get("user_number", 0))


def _fill(row: NDArray[Any], values: NDArray[Any] | float) -> None:
    """Set a row of the jobs, if the run has it."""
    if len(row):
        row[:] = values


def _checks_nothing(jobs: Jobs, run: Run) -> None:
    pass


def _no_tree(jobs: Jobs, machine: Machine, run: Run) -> Associations:
    return Associations.none(len(jobs["submit_s"]))


def _set_tree(s: State, tree: Associations) -> None:
    """Set the tree of accounts of an order of the queue that has one."""
    _fill(s.job.association, tree.of_job)
    s.parent[:] = tree.parent
    s.path[:] = tree.path
    s.due[:] = tree.due
    s.inverse_share[:] = tree.inverse_share
    s.ranking[:] = np.arange(len(tree.path))


def _owners(jobs: Jobs) -> dict[str, Label]:
    """Return user, account, partition and QOS of each job, as far as they are known."""
    known = [label for label in LABELS if f"{label}_codes" in jobs]
    labels = {label: Label(jobs[f"{label}_codes"], tuple(jobs[f"{label}_names"].tolist())) for label in known}
    return owners_of(jobs["user"], tuple(jobs["user_names"].tolist()), labels) if "user" in jobs else labels


def _set_limits(s: State, groups: Groups) -> None:
    """Set the groups of jobs that share a limit."""
    s.limited = int(len(groups.of_job) > 0)
    s.groups_of[:] = groups.of_job
    s.most_jobs[:] = groups.most_jobs
    s.most_nodes[:] = groups.most_nodes


def _submit_groups(jobs: Jobs, machine: Machine, run: Run) -> Groups:
    """Return the groups of jobs that share a limit of submitted jobs."""
    rules = () if machine.site is None else submit_rules_of(run, machine.site)
    return groups_of(rules, _owners(jobs) if rules else {}, len(jobs["submit_s"]))


def _shapes_of_submits(n: int, groups: Groups) -> dict[str, Any]:
    """Return the shapes of what is known of limits of submitted jobs."""
    limited = len(groups.of_job)
    return {
        "submit_groups": len(groups.most_jobs),
        "refusable_jobs": limited,
        "submit_groups_of": groups.of_job.shape,
    }


def _set_submits(s: State, groups: Groups, jobs: Jobs) -> None:
    """Set the groups of jobs that share a limit of submitted jobs, and the tasks that are submitted together."""
    s.refuses = int(len(groups.of_job) > 0)
    if not s.refuses:
        return
    s.submit_groups_of[:] = groups.of_job
    s.most_submitted[:] = groups.most_jobs
    s.first_task[:] = np.arange(len(s.first_task))
    s.next_task[:] = -1
    arrays = jobs.get("array_codes", s.next_task)
    tasks = np.flatnonzero(arrays >= 0)
    keys = np.stack((arrays[tasks].astype(np.float64), jobs["submit_s"][tasks]))
    _, first, of_task = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    s.first_task[tasks] = tasks[first[of_task.reshape(-1)]]
    by_array = tasks[np.argsort(of_task.reshape(-1), kind="stable")]
    together = s.first_task[by_array[1:]] == s.first_task[by_array[:-1]]
    s.next_task[by_array[:-1][together]] = by_array[1:][together]


def _classes(machine: Machine, jobs: Jobs) -> Classes:
    """Return the classes of jobs that decide who preempts whom."""
    if machine.site is None:
        return Classes.one(len(jobs["submit_s"]))
    return classes_of(machine.site.preempting, _owners(jobs), jobs["partition"])


def _set_classes(s: State, classes: Classes) -> None:
    _fill(s.job.preempt_class, classes.of_job)
    _fill(s.job.queue_rank, classes.rank)
    s.may_preempt[:] = classes.may_preempt
    s.preempt_order[:] = classes.order


def _slots(machine: Machine, config: Mapping[str, Any], run: Run, jobs: int) -> int:
    """Return how many jobs may have a set of nodes at a time: running ones, and those that wait for their own."""
    if machine.kind != FLAT:
        return 0
    waits = _recovers(run) and not config["hold_nodes"]
    return jobs if waits else min(machine.nodes, jobs)


def _every_node(machine: Machine, words: int) -> NDArray[np.uint64]:
    """Return the mask of all nodes; bits behind the words of the nodes are never looked at."""
    mask = np.full(words, 0xFFFFFFFFFFFFFFFF, np.uint64)
    if words and machine.nodes % 64:
        mask[machine.nodes // 64] = (1 << (machine.nodes % 64)) - 1
    return mask


def _index(machine: Machine, breakpoints: int, jobs: int, reserved: bool) -> dict[str, Any]:
    """Return the shapes of the indices of the profile and of the queue (flat)."""
    counted = machine.kind == FLAT and reserved
    classes = (2, st.LEVELS, st.LENGTHS) if counted else (2, 1, 1)
    shapes: dict[str, Any] = {"points": breakpoints if counted else 0, "smallest": (1,), "shortest": (1, 1)}
    shapes |= dict.fromkeys(("gains", "gain_times"), GAINS if counted else 0)
    shapes |= {"gain_heads": classes, "gain_classes": classes[:2], "newest_gain": classes[:2]}
    shapes |= {"first_gain": (2, classes[1] * classes[2]), "latest_use": classes[1] * classes[2]}
    if machine.kind == FLAT and not reserved:
        blocks = jobs // st.BLOCK + 1
        shapes |= {"smallest": (blocks,), "shortest": (blocks, st.LEVELS)}
    return {**shapes, "levels": (machine.nodes + 1,)}


def _level_bits(nodes: int) -> int:
    """Return by how many doublings the least numbers of nodes of two levels differ."""
    return -(-nodes.bit_length() // st.LEVELS)


def _levels(nodes: int) -> NDArray[np.int64]:
    """Return the levels of each number of nodes up to that of the machine: level k is for 2^(k step) or more."""
    least = 2 ** (_level_bits(nodes) * np.arange(st.LEVELS))
    return np.asarray(np.searchsorted(least, np.arange(nodes + 1), side="right"), np.int64)


def _tables(machine: Machine, capacity: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the tables of the finder (torus)."""
    if machine.kind != TORUS:
        return {"footprints": (2, 1, 1), "extents": (2, 1), "boxes": (3, 1, 7), "shapes": (1, 3)}
    X, Y, _ = machine.sides
    table = (X * (X - 1) + 1, Y * (Y - 1) + 1)
    boxes = capacity * (1024 if table[0] * table[1] < _LARGE else 65536)
    return {
        "footprints": (2, *table),
        "extents": (2, table[0]),
        "boxes": (3, boxes, 7),
        "shapes": shape_table(machine.sides)[0].shape,
    }


def _set_machine(s: State, machine: Machine) -> None:
    """Set the machine, idle."""
    s.free = machine.capacity
    s.version = 1
    s.attempted_version = s.scanned_version = -1
    s.kind = machine.kind
    s.side_x, s.side_y, s.side_z = machine.sides
    s.nodes = machine.capacity
    if machine.kind != SITE:
        every = _every_node(machine, len(s.free_nodes))
        s.free_nodes[:] = (1 << machine.sides[2]) - 1 if machine.kind == TORUS else every
    s.down_until[:] = -np.inf
    s.profile_place[:] = np.arange(len(s.profile_place))
    s.level_bits = _level_bits(machine.nodes)
    s.levels[:] = _levels(machine.nodes)
    if machine.menu is not None:
        s.shape_first[: machine.nodes + 2] = np.searchsorted(machine.menu.sizes, np.arange(machine.nodes + 2))
    if machine.kind == TORUS:
        s.shapes[:], s.shape_first[: machine.nodes + 2] = shape_table(machine.sides)
    else:
        s.free_slots = len(s.slot_masks)
        s.slots[: s.free_slots] = np.arange(s.free_slots)


def _recovers(run: Run) -> bool:
    """Tell whether a job that is killed, or preempted, does what its recovery option says."""
    return (happen(run) or preempts(run)) and not run.is_("recovery", "arrival")


def _set_codes(s: State, machine: Machine, config: Mapping[str, Any], run: Run) -> None:
    """Set the parameters that are whole numbers, or names."""
    s.scheduler = run.code("scheduling")
    scheduling = run.policy("scheduling").facts
    s.reserves = scheduling.get("reserves", st.NOBODY)
    s.migrates = int(scheduling.get("migrates", False))
    s.event_order = list(EVENT_ORDERS).index(config["event_order"])
    s.growth_limit = min(config["growth_limit"], machine.nodes)
    s.most_without_job = MOST_WITHOUT_JOB
    s.most_in_vain = most_in_vain(machine.nodes)
    s.max_restarts = config["max_restarts"]
    s.placement = run.policy("placement").facts.get("search", st.MFP)
    s.partition_failure = list(PARTITION_FAILURES).index(config["partition_failure"])
    s.checkpoint = run.code("checkpointing")
    s.saves_by = run.policy("checkpointing").facts.get("saves_by", st.SAVES_NOTHING)
    s.queue_order = run.code("queue_order")
    s.order_stays = int("utility" not in run.policy("queue_order").kernels)
    s.preemption = run.code("preemption") if machine.site is not None else st.DEFAULT
    s.chooses_by_room = int(run.policy("node_choice").facts.get("by_room", False))
    s.chooses_in_window = int(s.reserves in (st.ALL_JOBS, st.IN_PLANS, st.TOP_JOBS))
    s.recovery = int(_recovers(run))
    s.hold_nodes = int(config["hold_nodes"])
    s.delay_kind = list(DISTRIBUTIONS).index(config["manual_delay_distribution"])
    s.delay_key = coin_key(config["seed"], config["replicate"], "recovery/delays")
    s.coin_key = coin_key(config["seed"], config["replicate"])


def _priorities(jobs: Jobs, machine: Machine, run: Run) -> tuple[Any, Any]:
    """Return the priority of each job in the queue, or what of it lasts, shape (jobs,), and what it grows by with the
    wait; 0 under an order that has none."""
    facts = run.policy("queue_order").facts
    if "lasting" in facts:
        found = facts["lasting"](jobs, machine, run)
        return found if isinstance(found, tuple) else (found, 0.0)
    count, priority = len(jobs["submit_s"]), facts.get("priority")
    if priority is None or count == 0:
        return 0.0, 0.0
    drawn = coins(coin_key(run["seed"], run["replicate"], "queue"), 0, np.arange(count), 0)
    submitted = jobs["submit_s"] - jobs["submit_s"][0] + 1.0
    queued = Queued(jobs["estimate_s"], jobs["requested"].astype(np.float64), submitted, drawn)
    return priority(queued), 0.0


def _set_numbers(s: State, config: Mapping[str, Any], run: Run) -> None:
    """Set the parameters that are numbers."""
    s.now = -math.inf
    s.start_delay = config["start_delay_s"]
    s.migration_free = config["migration_free_frac"]
    s.migration_mfp = config["migration_mfp_frac"]
    s.migrates_empty = config["migration_empty_queue"]
    s.counts_repeats = config["migration_repeats"]
    s.migration_cost = config["migration_cost_s"]
    s.horizon = config["horizon_s"]
    s.latest = LATEST_S
    s.accuracy = config["accuracy"]
    s.drawn_until = math.inf
    reports = run.is_("prediction", "coins")
    s.recall = run["recall"] if reports else 0.0
    s.false_rate = config["false_positive_rate"] if reports else 0.0
    s.precision = config["precision"] if reports else 1.0
    s.restart_cost = config["restart_cost_s"]
    s.checkpoint_cost = config["checkpoint_cost_s"]
    s.checkpoint_interval = config["checkpoint_interval_s"]
    s.checkpoint_mtbf = config["checkpoint_mtbf_h"] * 3600.0
    s.delay_mean = config["manual_delay_h"] * 3600.0
    s.delay_sigma = config["manual_delay_sigma"]
    s.requeue_hold = config["requeue_hold_s"]
    s.next_ordering = -math.inf
    s.next_foreseen = -math.inf if s.saves_by == st.BY_FORESIGHT else math.inf
