"""The memory that a run needs: what ``plan`` says, and what ``submit`` asks a batch system for.

Measured as the largest resident size of each process of a batch job (``python -m benchmarks.grid`` does it again), with
a quarter more.
"""

from __future__ import annotations

import math
from pathlib import Path

from faultsweep.sweeps.runner.prepare import Prepared, values_of
from faultsweep.sweeps.runner.progress import PROGRESS, recommend_memory
from faultsweep.sweeps.spec import Spec
from faultsweep.sweeps.store.collector import CACHE_BYTES
from faultsweep.sweeps.store.store import chunk_shape, run_folder

from faultsweep.files import read_fields

PROCESSES_BYTES = 450_000_000
"""Scheduler and sweep with nothing to do (90 and 190 MB), and the process that keeps them alive."""
CELL_BYTES = 120
"""What the sweep has in memory of every cell: its key, source, status, order, chunk, and copies of them for a while."""
WORKER_BYTES = 1_000_000
"""What scheduler and sweep have in memory for every worker: its connection, and the tasks that are at it."""
CHUNKS_IN_MEMORY = 4
"""Chunks, at most, that have unsaved results at a time, beside the cache of others."""


def controller_bytes(cells: int, words: int, chunk_cells: int, workers: int) -> int:
    """Return the memory of scheduler and sweep for a grid of so many cells, each with so many stored numbers."""
    chunks = CACHE_BYTES + CHUNKS_IN_MEMORY * 8 * words * min(chunk_cells, cells)
    return PROCESSES_BYTES + CELL_BYTES * cells + WORKER_BYTES * workers + chunks


def grid_bytes(prepared: Prepared, workers: int) -> int:
    """Return the memory of scheduler and sweep for a prepared run on so many workers."""
    lengths = prepared.store.chunks.lengths if prepared.store else chunk_shape(prepared.grid.shape, prepared.outputs)
    words = 2 + sum(out.width + 16 * out.texts for out in prepared.outputs)
    return controller_bytes(prepared.grid.size, words, math.prod(lengths), workers)


def worker_bytes(spec: Spec, store: Path) -> int:
    """Return the memory of one worker process: what an earlier run has measured, or else what the target says.

    0 if neither is known: a function of the user's own.
    """
    return measured_worker_bytes(store) or spec.target.worker_bytes(values_of(spec))


def measured_worker_bytes(store: Path) -> int:
    """Return the memory that is recommended for a worker after a run into this store, 0 if there was none."""
    progress = read_fields(run_folder(store) / PROGRESS, {"worker_bytes": int})
    most = progress["worker_bytes"] if progress else 0
    return recommend_memory(most) if most > 0 else 0
