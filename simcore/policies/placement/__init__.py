"""Where a job goes on a torus: the free box that it takes."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN, OWN_POLICY, SENTENCES, Parameter, Role

ROLE = Role(
    "Which free box of a torus a job takes.",
    Parameter(
        "placement",
        str,
        "mfp",
        "Which free box a job takes: mfp leaves the largest free partition, balancing and tie-breaking heed predicted "
        "failures; or FILE.py:FUNCTION, a score of your own.",
        "scheduling",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
    otherwise=OWN,
)
