"""The trunks that join clusters, and their failures."""

from __future__ import annotations

from faultsweep.simcore.contract import Parameter, Policy, Role, Run, constant
from faultsweep.simcore.distributions import DISTRIBUTIONS
from faultsweep.simcore.policies.co_allocation import co_allocates
from faultsweep.simcore.policies.failures import LOSSES

TRUNK_OUTAGES = {
    "kill": "Jobs that need the trunk are killed.",
    "stall": "Jobs that need the trunk wait for its repair.",
}


def trunks_fail(run: Run) -> bool:
    """Tell whether trunks fail that carry something."""
    return co_allocates(run) and run["trunk_mtbf_h"] > 0


ROLES = (
    Role(
        "What becomes of trunks.",
        chooses=constant("failing"),
        parameters=(
            Parameter(
                "trunk_mtbf_h",
                float,
                0.0,
                "Mean time between failures of each trunk, exponential; 0: trunks do not fail.",
                "clusters",
                minimum=0,
                maximum=1e7,
                unit="h",
            ),
            Parameter(
                "trunk_mbps",
                float,
                1000.0,
                "Capacity of the trunk of a cluster, each way, unless the machine's name gives its own (100@2500).",
                "clusters",
                minimum=1e-6,
                maximum=1e12,
                unit="Mbit/s",
            ),
        ),
        name="trunks",
    ),
    Role(
        "How long trunks are down.",
        Parameter(
            "trunk_repair_distribution",
            str,
            "constant",
            "Distribution of the down times of trunks; a lognormal one has repair_sigma.",
            "clusters",
            choices=DISTRIBUTIONS,
        ),
        name="trunk_repair",
    ),
)

POLICIES = (
    Policy("sound", "", role="trunks", uses=("trunk_mtbf_h", "trunk_mbps")),
    Policy(
        "failing",
        "",
        role="trunks",
        parameters=(
            Parameter(
                "trunk_down_s",
                float,
                3600.0,
                "Mean down time of a trunk that fails.",
                "clusters",
                minimum=0,
                maximum=1e9,
                unit="s",
            ),
            Parameter(
                "trunk_outage",
                str,
                "kill",
                "What the failure of a trunk does to the jobs that need it: they are killed, or wait until it is up.",
                "clusters",
                choices=TRUNK_OUTAGES,
            ),
        ),
        uses=("trunk_mtbf_h", "trunk_mbps"),
        becomes=((lambda run: not trunks_fail(run), "sound"),),
        metrics=LOSSES,
        consults=("seed", ("trunk_repair", lambda run: run["trunk_down_s"] > 0)),
    ),
    *(
        Policy(name, "", role="trunk_repair", uses=("repair_sigma",) if name == "lognormal" else ())
        for name in DISTRIBUTIONS
    ),
)
