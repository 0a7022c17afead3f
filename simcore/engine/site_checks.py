"""Debug mode on a site: what must hold after every event time, recomputed from what the jobs hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from faultsweep.simcore.engine import state as st
from faultsweep.simcore.engine.checks import Checker, attempts_of, common_checks, has_ended, seen_jobs
from faultsweep.simcore.engine.cores import WORD
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.policies.recovery import ORIGINAL_NODES
from numpy.typing import NDArray

from faultsweep.errors import InvariantError

Ints = NDArray[np.int64]


class SiteChecker(Checker):
    """Checks the state of a run on a site."""

    def check(self, state: State) -> None:
        """Raise InvariantError with the first sentence that a check has."""
        self.state = state
        self.pieces = {int(job): _pieces_of(state, int(job)) for job in np.flatnonzero(state.job.status == st.RUNNING)}
        self.reserved = {job: _pieces_of(state, job) for job in seen_jobs(state).tolist()}
        self.held = {job: pieces[:, 0] for job, pieces in self.pieces.items()}
        self.down = np.flatnonzero(state.down_until[: len(state.node_cores)] > -np.inf)
        self.waiting = {int(job): _pieces_of(state, int(job)) for job in state.suspended[: int(state.num_suspended)]}
        self.wanted = {job: pieces[:, 0] for job, pieces in self.waiting.items()} if state.hold_nodes else {}
        halted = {int(job): _pieces_of(state, int(job)) for job in np.flatnonzero(state.job.status == st.HALTED)}
        self.waiting |= {job: _kept_of(state, job) for job in halted}
        self.wanted |= {job: pieces[:, 0] for job, pieces in halted.items()}
        for name, check in (
            ("sharing", self._check_sharing),
            ("demands", self._check_demands),
            ("cores", self._check_cores),
            ("suspension", self._check_suspension),
            ("reservations", self._check_heads),
            ("profile", self._check_profile),
            ("ticks", self._check_ticks),
        ):
            problem = check()
            if problem:
                raise InvariantError(f"debug: after {state.now:.6f} s: {name}: {problem}")
        for name, common in common_checks().items():
            problem = common(self)
            if problem:
                raise InvariantError(f"debug: after {state.now:.6f} s: {name}: {problem}")

    def kept_pieces(self) -> dict[int, Ints]:
        """Return what is kept of nodes that are up, by the job that waits for the others of its nodes."""
        return {job: self.waiting[job][~np.isin(nodes, self.down)] for job, nodes in self.wanted.items()}

    def expected_up(self) -> Ints:
        """Return the down nodes: others share those that a suspended job waits for."""
        return self.down

    def expected_end(self, job: int) -> float:
        """Return when a job that waits for its own nodes is expected to end: it starts when all are up, and meets no
        advance reservation of them."""
        state, nodes = self.state, self.wanted[job]
        if state.job.status[job] == st.HALTED:
            return self._expected_of_halted(job)
        remaining = float(state.job.estimate[job] - state.job.saved[job])
        windows = [
            (float(state.window_begin[bit]), float(state.window_end[bit]))
            for bit in range(int(state.num_windows))
            if (state.node_windows[nodes] >> bit & 1).any()
        ]
        up = max(float(state.now), float(state.down_until[nodes].max()))
        for time in (up, *sorted(end for _, end in windows if end > up)):
            last = ((time + float(state.start_delay)) + float(state.restart_cost)) + remaining
            if not any(time < end and (begin < last or begin <= time) for begin, end in windows):
                return max(time, last)
        raise AssertionError("no time behind all advance reservations")

    def _expected_of_halted(self, job: int) -> float:
        """Return when a suspended job is expected to end: it goes on when what runs on its cores has ended."""
        state, cores = self.state, _cores_of(self.state, job)
        if state.reserves == st.IN_PLANS:  # SLURM expects it as if it had not been suspended
            return float(state.job.expected_end[job])
        ends = [float(state.job.expected_end[other]) for other in self.held if cores & _cores_of(state, other)]
        start = max([float(state.now), *ends])
        return max(start, start + float(state.job.expected_end[job] - state.job.halted_since[job]))

    def _check_sharing(self) -> str:
        """No node is over-committed, or held while it is down; what is marked free is what nobody holds or keeps."""
        state = self.state
        free = np.stack([state.node_cores, state.node_gpus, state.node_memory], axis=1)
        jobs_on = np.zeros(len(free), np.int64)
        for pieces in (*self.pieces.values(), *self.kept_pieces().values()):
            np.subtract.at(free, pieces[:, 0], pieces[:, 1:])
            np.add.at(jobs_on, pieces[:, 0], 1)
        running = np.bincount(np.concatenate([np.zeros(0, np.int64), *self.held.values()]), minlength=len(free))
        if (free < 0).any():
            node = int(np.argmax((free < 0).any(axis=1)))
            return f"node {node} is over-committed by {free[node].tolist()} cores, GPUs and MiB"
        if jobs_on[self.down].any():
            return f"node {self.down[np.argmax(jobs_on[self.down])]} is down and held"
        free[self.down] = 0
        marked = np.stack([state.free_cores, state.free_gpus, state.free_memory], axis=1)
        wrong = np.flatnonzero((marked != free).any(axis=1))
        if len(wrong):
            return f"node {wrong[0]} is marked with {marked[wrong[0]].tolist()} free and has {free[wrong[0]].tolist()}"
        alone = [job for job, nodes in self.held.items() if state.job.whole[job] and (running[nodes] > 1).any()]
        return f"job {alone[0]} shares a node and must not" if alone else ""

    def _check_demands(self) -> str:
        """Every job holds nodes of its partition, each once, and in all what it needs."""
        state = self.state
        for job, pieces in self.pieces.items():
            nodes = pieces[:, 0]
            if len(np.unique(nodes)) < len(nodes) or (np.diff(nodes) <= 0).any():
                return f"the pieces of job {job} are of nodes {nodes.tolist()}"
            if not (state.node_members[nodes] >> state.job.partition[job] & 1).all():
                return f"job {job} holds a node of another partition than {state.job.partition[job]}"
            chunks = pieces[:, 1] // state.job.chunk_cores[job]
            for need, has in ((state.job.chunk_gpus[job], pieces[:, 2]), (state.job.chunk_memory[job], pieces[:, 3])):
                if need:
                    chunks = np.minimum(chunks, has // need)
            if state.job.chunks_per_node[job]:
                chunks = np.minimum(chunks, state.job.chunks_per_node[job])
            if chunks.sum() < state.job.chunks[job]:
                return f"job {job} needs {state.job.chunks[job]} chunks and holds {int(chunks.sum())}"
            if pieces[:, 1].sum() != state.job.allocated[job]:
                return f"job {job} holds {int(pieces[:, 1].sum())} cores and {state.job.allocated[job]} are counted"
        return ""

    def _check_cores(self) -> str:
        """The counters of cores are those of what they count."""
        state = self.state
        listed = sum(sum(map(len, of.values())) for of in (self.held, self.reserved, self.waiting))
        counts = {
            "free cores": ("free", int(state.free_cores.sum())),
            "down cores": ("num_down", int(state.node_cores[self.down].sum())),
            "cores asked for by waiting jobs": (
                "queued",
                int(state.job.requested[state.job.status == st.WAITING].sum()),
            ),
            "finished jobs": ("finished", int(has_ended(state).sum())),
            "expected releases": ("num_releases", len(self.held) + len(self.down) + len(self.wanted)),
            "kept cores": ("kept", sum(int(pieces[:, 1].sum()) for pieces in self.kept_pieces().values())),
            "free pieces": ("num_free_pieces", len(state.free_piece) - listed),
        }
        for what, (name, count) in counts.items():
            if getattr(state, name) != count:
                return f"{getattr(state, name)} {what} are counted and there are {count}"
        return ""

    def _check_suspension(self) -> str:
        """A core has one running job at most, and a job is suspended if one runs on its cores."""
        state = self.state
        if not state.suspends:
            return ""
        runs: dict[tuple[int, int], int] = {}
        for job, pieces in self.pieces.items():
            cores = _cores_of(state, job)
            if len(cores) != pieces[:, 1].sum():
                return f"job {job} has {len(cores)} cores and {pieces[:, 1].sum()} are counted"
            if runs.keys() & cores:
                return f"job {job} runs on a core of another one"
            runs |= dict.fromkeys(cores, job)
        for job in np.flatnonzero(state.job.status == st.HALTED).tolist():
            if not runs.keys() & _cores_of(state, job):
                return f"job {job} is suspended and nobody runs on its cores"
        return ""

    def _check_heads(self) -> str:
        """Of the first jobs that were refused, each can be placed at its reservation."""
        state = self.state
        for partition in np.flatnonzero(state.head_job >= 0).tolist():
            job, free = int(state.head_job[partition]), state.then_cores[partition]
            if state.scanned_version != state.version or not np.isfinite(state.head_time[partition]):
                continue
            if state.head_extra[partition] >= 0 and state.job.plain[job]:
                continue
            if state.head_extra[partition] < 0 or (free + state.lacking < 0).any() or (free > state.node_cores).any():
                return f"at the reservation of job {job} the free cores are {free.tolist()}"
        return ""

    def _check_ticks(self) -> str:
        """Jobs start at ticks or when a preempted job has left (slurm), but for those that have waited for their own
        nodes or a reservation."""
        state = self.state
        waited = (state.job.option == ORIGINAL_NODES) & (state.job.restarts > 0)
        waited |= state.asks_for != st.ANYWHERE if state.asks else False
        starts = state.job.start == state.now + state.start_delay
        started = np.flatnonzero((state.job.status == st.RUNNING) & starts & ~waited)
        if state.reserves != st.IN_PLANS or not len(started) or (state.tick_interval == 0).any():
            return ""
        if state.left_at == state.now:
            return ""
        late = (state.now - state.job.submit[0] - state.first_tick) / state.tick_interval
        on_tick = np.abs(late - np.round(late)) < 1e-6
        on_tick[st.BACKFILL_PASS] = True  # it follows the one before it
        if (on_tick & (state.last_pass == state.now)).any():
            return ""
        return f"job {started[0]} starts between the ticks of all passes"

    def _check_profile(self) -> str:
        """From every breakpoint on, that is free which no job holds or has reserved then (conservative)."""
        state = self.state
        if state.reserves != st.ALL_JOBS:
            return ""
        jobs, now = state.job, (float(state.now), 0.0)
        spans = [(now, _expected(jobs.expected_end[job], now), pieces) for job, pieces in self.pieces.items()]
        for job, pieces in self.reserved.items():
            start = float(jobs.reserved[job]), float(jobs.reserved_rank[job])
            if not len(pieces) or start <= now:
                return f"waiting job {job} has no reservation"
            spans.append((start, self._reserved_end(job, start), pieces))
        for job in self.wanted:
            end = _expected(self.expected_end(job), now)
            for piece in self.waiting[job]:
                spans.append((max(now, (float(state.down_until[piece[0]]), 0.0)), end, piece.reshape(1, 4)))
        for row in range(state.num_profile):
            point = max(now, (float(state.profile_time[row]), float(state.profile_rank[row])))
            free = np.stack([state.node_cores, state.node_gpus, state.node_memory], axis=1)
            for node in self.down:
                free[node] *= point >= (float(state.down_until[node]), 0.0)
            for start, end, pieces in spans:
                if start <= point < end:
                    np.subtract.at(free, pieces[:, 0], pieces[:, 1:])
            records = state.profile_records[state.profile_place[row]]
            tables: list[NDArray[Any]] = [state.profile_cores, state.profile_gpus, state.profile_memory]
            # Those of GPUs and memory are empty where no job needs any.
            noted = [table[records].reshape(-1)[: len(free)] for table in tables if table.size]
            kinds = [at for at, table in enumerate(tables) if table.size]
            differs = any((table != free[:, at]).any() for at, table in zip(kinds, noted, strict=True))
            if (free < 0).any() or differs:
                return f"at {point} the free cores are {free[:, 0].tolist()}, noted {noted[0].tolist()}"
        return self._check_records()

    def _check_records(self) -> str:
        """Breakpoints that follow each other share a record if they say the same, and no others do; their cores are
        counted; all records that have been used are in use or free."""
        state = self.state
        most = np.zeros((int(state.num_profile), state.profile_most.shape[1]), np.int64)
        places = state.profile_place[: state.num_profile]
        rows = state.profile_records[places]
        for span, used in enumerate(rows.T):
            tables = (state.profile_cores, state.profile_gpus, state.profile_memory)
            noted = [table[used] for table in tables if table.size]
            alike = np.all([(each[1:] == each[:-1]).all(axis=1) for each in noted], axis=0)
            if 1 + np.count_nonzero(~alike) != len(np.unique(used)) or (alike != (np.diff(used) == 0)).any():
                return f"breakpoints have the records {used.tolist()} of span {span}"
            all_cores = state.node_cores[span << state.span_bits : span + 1 << state.span_bits]
            cores = noted[0][:, : len(all_cores)]
            if (cores.sum(axis=1) != state.record_free[used]).any():
                return f"the free cores of span {span} are {cores.sum(axis=1).tolist()}, not as counted"
            edges = state.profile_edges[places, span >> 6] >> np.uint64(span & 63) & np.uint64(1)
            if (edges[1:] == alike).any():
                return f"span {span} changes at the breakpoints {np.flatnonzero(~alike) + 1}, noted {edges.tolist()}"
            counted = (cores, cores * (cores == all_cores))[: most.shape[1] // len(state.first_node)]
            members = state.node_members[span << state.span_bits : span + 1 << state.span_bits]
            is_there = members >> np.arange(len(state.first_node))[:, np.newaxis] & 1
            most += np.concatenate([each @ is_there.T for each in counted], axis=1)
        if (most != state.profile_most[places]).any():
            return f"partitions have {most.tolist()} free or idle cores, noted {state.profile_most[places].tolist()}"
        free = state.free_record[: int(state.num_free_records)]
        every = np.concatenate([np.unique(rows), free])
        if len(every) != state.num_records or len(np.unique(every)) < len(every):
            return f"of {state.num_records} records {np.unique(rows).tolist()} are used and {free.tolist()} free"
        return ""

    def _reserved_end(self, job: int, start: tuple[float, float]) -> tuple[float, float]:
        """Return the point at which the reservation of a waiting job ends, rounded as the engine does."""
        state = self.state
        restart = state.restart_cost if attempts_of(state)[job] else 0.0
        end = start[0] + state.start_delay + restart + (state.job.estimate[job] - state.job.saved[job])
        return (float(end), start[1]) if end > start[0] else (start[0], start[1] + 1.0)


def _expected(end: float, now: tuple[float, float]) -> tuple[float, float]:
    """Return the point at which a running job is expected to end."""
    return (float(end), 0.0) if end > now[0] else (now[0], 1.0)


def _kept_of(state: State, job: int) -> Ints:
    """Return what a suspended job holds: its pieces, without the cores that it lacks."""
    rows, piece = _pieces_of(state, job), int(state.job.first_piece[job])
    for row in rows:
        row[1] -= state.piece_lacking[piece]
        piece = int(state.piece_next[piece])
    return rows


def _cores_of(state: State, job: int) -> set[tuple[int, int]]:
    """Return the cores that a job holds or is suspended on: nodes, and numbers of their cores."""
    cores, piece = set(), int(state.job.first_piece[job])
    while piece >= 0:
        node = int(state.piece_node[piece])
        for word, bits in enumerate(state.piece_bits[piece].tolist()):
            cores |= {(node, word * WORD + core) for core in range(WORD) if bits >> core & 1}
        piece = int(state.piece_next[piece])
    return cores


def _pieces_of(state: State, job: int) -> Ints:
    """Return what a job holds: rows of node, cores, GPUs, MiB."""
    rows: list[list[int]] = []
    piece = int(state.job.first_piece[job])
    while piece >= 0 and len(rows) <= len(state.piece_node):
        held = (state.piece_node, state.piece_cores, state.piece_gpus, state.piece_memory)
        rows.append([int(column[piece]) for column in held])
        piece = int(state.piece_next[piece])
    return np.array(rows, np.int64).reshape(-1, 4)
