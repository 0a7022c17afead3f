"""Node choice: which free nodes of a flat machine, or which nodes of a site, a job gets (zhang2004, section V-D)."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN_POLICY, SENTENCES, Parameter, Role
from faultsweep.simcore.policies.failures import happen

ALIKE = ((lambda run: not happen(run), "first-fit"),)
"""Without failures it makes no difference which free nodes a job gets."""

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
