"""Node choice: which free nodes of a flat machine, or which nodes of a site, a job gets (zhang2004, section V-D)."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN_POLICY, SENTENCES, Parameter, Role, Run
from faultsweep.simcore.model.machines import may_be_site
from faultsweep.simcore.policies.failures import happen


def _alike(run: Run) -> bool:
    return not happen(run) and not may_be_site(run["machine"])


ALIKE = ((_alike, "first-fit"),)
"""Without failures it makes no difference which free nodes of a flat machine a job gets."""

ROLE = Role(
    "Which free nodes of a flat machine, or which nodes of a site, a job gets.",
    Parameter(
        "node_choice",
        str,
        "first-fit",
        "Which free nodes of a flat machine, or which nodes of a site, a job gets: the lowest, those with the least "
        "failures so far (lff), those that it fits best (best-fit), ...",
        "scheduling",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
)
