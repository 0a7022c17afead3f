"""faultsweep: which scheduler, checkpoint and recovery policy should a machine run when nodes fail?

The names below are loaded on first use, so that importing the package (and ``faultsweep --help``) stays fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from faultsweep.garbage import uncollected

__version__ = "0.3.0"

_here = Path(__file__).resolve().parent
if not (_here / "simcore").is_dir() and (_here.parent / "simcore").is_dir():
    # In a checkout the packages stand beside this folder, and Python finds this folder first when it is started there.
    __path__.append(str(_here.parent))

_PUBLIC = {
    "simulate": "faultsweep.simcore.simulate",
    "Run": "faultsweep.simcore.simulate",
    "Workload": "faultsweep.simcore.model.workload",
    "read_swf": "faultsweep.simcore.workloads.swf",
    "write_swf": "faultsweep.simcore.workloads.swf",
    "FailureTrace": "faultsweep.simcore.model.failure_trace",
    "InputError": "faultsweep.errors",
    "load_workload": "faultsweep.sweeps.logs",
    "Sweep": "faultsweep.sweeps.sweep",
    "rerun": "faultsweep.sweeps.rerun",
    "FunctionTarget": "faultsweep.sweeps.target",
    "Output": "faultsweep.sweeps.outputs",
    "open_results": "faultsweep.sweeps.open",
    "plot": "faultsweep.analysis.plot",
    "compare_policies": "faultsweep.analysis.verdict",
    "pareto_front": "faultsweep.analysis.pareto",
}

__all__ = [*_PUBLIC, "__version__"]


def __getattr__(name: str) -> Any:
    """Import the module that defines a public name when the name is first used."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'faultsweep' has no attribute {name!r}; it offers {', '.join(sorted(_PUBLIC))}")
    if _PUBLIC[name] not in sys.modules:
        with uncollected():
            import_module(_PUBLIC[name])
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
