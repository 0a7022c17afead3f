"""What jobs on several clusters communicate, and what they state of it."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy, Role, Run, constant
from faultsweep.simcore.policies.co_allocation import cuts_meshes

BANDWIDTHS = {
    "constant": "Every job needs the mean.",
    "uniform": "Uniform around the mean.",
    "exponential": "Exponentially distributed.",
}
ERROR_DIRECTIONS = {
    "both": "Below or above the true bandwidth.",
    "under": "Below the true bandwidth.",
    "over": "Above the true bandwidth.",
}


def _silent(run: Run) -> bool:
    return bool(run["ppbw_mbps"] == 0)


def _is_drawn(run: Run) -> bool:
    return bool(run["ppbw_distribution"] != "constant")


ROLES = (
    Role(
        "What jobs communicate.",
        chooses=constant("traffic"),
        parameters=(
            Parameter(
                "ppbw_mbps",
                float,
                300.0,
                "Mean bandwidth that a job needs per processor (PPBW).",
                "clusters",
                minimum=0,
                maximum=1e12,
                unit="Mbit/s",
            ),
            Parameter(
                "mesh_share",
                float,
                0.5,
                "Share of the bandwidth that goes to neighbours on a 2-D mesh; the rest goes to all.",
                "clusters",
                minimum=0,
                maximum=1,
            ),
        ),
        name="traffic",
    ),
    Role("How wrong statements are.", chooses=constant("error"), name="error"),
)

POLICIES = (
    Policy("silence", "", role="traffic", uses=("ppbw_mbps", ("mesh_share", cuts_meshes))),
    Policy(
        "traffic",
        "",
        role="traffic",
        parameters=(
            Parameter(
                "link_mbps",
                float,
                1000.0,
                "Speed of a node's link: no job needs more bandwidth per processor.",
                "clusters",
                minimum=1e-6,
                maximum=1e12,
                unit="Mbit/s",
            ),
            Parameter(
                "ppbw_distribution",
                str,
                "uniform",
                "Distribution of the jobs' bandwidths per processor.",
                "clusters",
                choices=BANDWIDTHS,
            ),
            Parameter(
                "ppbw_spread_pct",
                float,
                50.0,
                "Half the width of the uniform distribution, of its mean.",
                "clusters",
                minimum=0,
                maximum=100,
                unit="%",
                live=lambda run: run["ppbw_distribution"] == "uniform",
            ),
            Parameter(
                "communication_share",
                float,
                0.5,
                "Share of the run time on one cluster that is communication, T_C / (T_P + T_C).",
                "clusters",
                minimum=0,
                maximum=1,
            ),
        ),
        uses=("ppbw_mbps", "mesh_share"),
        becomes=((_silent, "silence"),),
        consults=(("seed", _is_drawn),),
    ),
    Policy(
        "error",
        "",
        role="error",
        parameters=(
            Parameter(
                "error_direction",
                str,
                "both",
                "Whether stated bandwidths err to both sides, or all below or all above the true ones.",
                "clusters",
                choices=ERROR_DIRECTIONS,
            ),
        ),
    ),
)
