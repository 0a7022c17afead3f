"""``wfp``: the utility of Cobalt's WFP on the Blue Gene/P (tang2010).

A job that has waited w of an estimated e seconds for n nodes has the utility (w / e)^3 n: one that waits longer than it
will run soon comes first, and large jobs before small ones.
"""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE, Policy
from faultsweep.simcore.engine.jit import inlined
from faultsweep.simcore.engine.state import State


@inlined
def wait_utility(s: State, job: int) -> float:
    """Return the utility of a waiting job as of now."""
    share = (s.now - s.job.utility_since[job]) / s.job.estimate[job]
    return share * share * share * s.job.requested[job]


def expected_utility(s: State, job: int) -> float:
    """Return the same for the checks of debug mode, which share no code with kernels."""
    waited = float(s.now - s.job.utility_since[job]) / float(s.job.estimate[job])
    return float(waited**3 * int(s.job.requested[job]))


POLICY = Policy(
    "wfp",
    "By the utility (wait / estimate)^3 x nodes, anew at every pass, as Cobalt's WFP (tang2010).",
    aliases=("wfp3",),
    machines=ONE_MACHINE,
    kernels={"utility": wait_utility},
    facts={"expected_utility": expected_utility},
)
