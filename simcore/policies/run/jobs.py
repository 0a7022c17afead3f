"""Which jobs a run has: those of a log, or of a model."""

from __future__ import annotations

from faultsweep.simcore.contract import Named, Parameter, Policy, Role, Run
from faultsweep.simcore.workloads.models import is_model
from faultsweep.simcore.workloads.resampling import RESAMPLES
from faultsweep.simcore.workloads.transforms import SIZE_MAPS


def _resampled(run: Run) -> bool:
    return bool(run["resample"] != "none")


_SHARED = (
    Parameter("log", str, "", "Named log, path of a log or of a workload model.", "workload"),
    Parameter("offset", int, 0, "Valid jobs of the log to pass over.", "workload", minimum=0, unit="jobs"),
    Parameter(
        "num_jobs", int, 0, "Valid jobs of the log to use; 0 uses all of them.", "workload", minimum=0, unit="jobs"
    ),
    Parameter(
        "resample",
        str,
        "none",
        "Whether each replicate has other jobs of the log's users.",
        "workload",
        choices=RESAMPLES,
    ),
    Parameter(
        "load_scale", float, 1.0, "The load scale c: multiplies run times and estimates.", "workload", minimum=1e-9
    ),
    Parameter(
        "target_utilisation",
        float,
        0.0,
        "Load that the jobs used offer the machine, by scaling run times and estimates; 0: not given.",
        "workload",
        minimum=0,
        maximum=1000,
    ),
    Parameter("arrival_scale", float, 1.0, "Divides the gaps between submissions.", "workload", minimum=1e-9),
    Parameter(
        "procs_per_node",
        int,
        0,
        "Processors of a node of the log; 0 takes the header's MaxProcs / MaxNodes.",
        "workload",
        minimum=0,
    ),
    Parameter(
        "size_map", str, "exact", "What happens to sizes of a log of another machine.", "workload", choices=SIZE_MAPS
    ),
)

ROLES = (
    Role(
        "Which jobs a run has.",
        chooses=lambda run: "model" if is_model(run["log"]) else "log",
        parameters=_SHARED,
        name="jobs",
    ),
)

_USES: tuple[Named, ...] = (
    *(p.name for p in _SHARED if p.name != "load_scale"),
    ("load_scale", lambda run: run["target_utilisation"] <= 0),
)

POLICIES = (
    Policy("log", "", role="jobs", uses=_USES, consults=(("seed", _resampled),)),
    Policy("model", "", role="jobs", uses=_USES, consults=("seed",)),
)
