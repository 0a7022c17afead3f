"""Workload models that need no network, by name: what ``log = "lublin"`` and its like stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.workloads import calibrated, fitted, lublin

from faultsweep.errors import InputError, unknown_name

DEFAULT_JOBS = 10_000
LLNL_FILE = Path(__file__).with_name("llnl-model.toml")
INTREPID_FILE = Path(__file__).with_name("intrepid-model.toml")
MOST_JOBS = 10_000_000
"""Most jobs that a model makes: they are all in memory."""


@dataclass(frozen=True)
class Model:
    """A workload model: ``generate(num_jobs, seed, replicate)``, and one sentence about it."""

    generate: Callable[[int, int, int], Workload]
    doc: str


MODELS: dict[str, Model] = {
    "lublin": Model(
        lublin.generate,
        "Lublin and Feitelson (2003) with its published constants, 128 nodes, batch and interactive jobs",
    ),
    "nasa-model": Model(
        lambda num_jobs, seed, replicate: calibrated.generate("nasa-model", num_jobs, seed, replicate),
        "calibrated to the NASA iPSC log of krevat2003 (jobs from 20,000 on, with the one-node system jobs)",
    ),
    "sdsc-model": Model(
        lambda num_jobs, seed, replicate: calibrated.generate("sdsc-model", num_jobs, seed, replicate),
        "calibrated to the SDSC SP2 log of krevat2003 (the first 10,000 jobs), for non-profit use and research",
    ),
    "atlas-model": Model(
        lambda num_jobs, seed, replicate: calibrated.generate("atlas-model", num_jobs, seed, replicate),
        "calibrated to the LLNL Atlas log (the first 10,000 jobs), its sizes scaled to 128 nodes",
    ),
    "intrepid-model": Model(
        lambda num_jobs, seed, replicate: fitted.generate(fitted.read_model(INTREPID_FILE), num_jobs, seed, replicate),
        "hyper-Erlang, fitted to the first 1,200 jobs of the Blue Gene/P log ANL Intrepid, 40,960 nodes, with users",
    ),
    "llnl-model": Model(
        lambda num_jobs, seed, replicate: fitted.generate(fitted.read_model(LLNL_FILE), num_jobs, seed, replicate),
        "hyper-Erlang as in zhang2004, fitted to the LLNL Atlas log (the first 10,000 jobs), sizes scaled to 320 nodes",
    ),
}


def is_model(name: str) -> bool:
    """Return whether a name is that of a model, or of a file with one: its jobs depend on seed and replicate."""
    return name.lower() in MODELS or name.endswith(".toml")


def generate(name: str, num_jobs: int = 0, seed: int = 0, replicate: int = 0) -> Workload:
    """Return ``num_jobs`` jobs (0: 10,000) of a model, by its name or by the file that ``logs fit`` has written.

    The first jobs of a longer workload are those of a shorter one with the same seed and replicate.

    Raises
    ------
    InputError
        If there is no such model (it lists them), or ``num_jobs`` is negative or above 10,000,000.
    """
    is_file = name.endswith(".toml")
    if not is_file and name not in MODELS:
        raise unknown_name("workload model", name, MODELS)
    if not 0 <= num_jobs <= MOST_JOBS:
        raise InputError(
            f"{name}: cannot make {num_jobs:,} jobs (valid: offset and num_jobs together {MOST_JOBS:,} at most)"
        )
    num_jobs = num_jobs or DEFAULT_JOBS
    if is_file:
        return fitted.generate(fitted.read_model(name), num_jobs, seed, replicate)
    return MODELS[name].generate(num_jobs, seed, replicate)
