"""``all-a`` to ``all-e``: one option for all jobs; who cannot pay for it gets A.

They share a file because they are one rule, made for each option of ``OPTIONS``.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy, Run
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.recovery import OPTIONS, comes_back, comes_back_preempted, pays
from faultsweep.simcore.policies.recovery.options import Asks


def _some_notify(run: Run) -> bool:
    """Tell whether jobs that cannot pay are left to their users."""
    return happen(run) and pays(run)


def _ask_for(option: int) -> Asks:
    return lambda config, jobs: np.full(len(jobs["group"]), option)


POLICIES = tuple(
    Policy(
        f"all-{letter.lower()}",
        f"All jobs: {sentence[0].lower()}{sentence[1:]}",
        uses=("recovery_mix", "credits"),
        consults=(
            "seed",
            ("payment", pays),
            *((("hold", happen),) if letter == "C" else ()),
            ("delay", happen if letter == "A" else _some_notify),
            ("requeue", comes_back_preempted if letter in "AC" else comes_back),
        ),
        machines=ONE_MACHINE,
        facts={"asks": _ask_for(option)},
    )
    for option, (letter, sentence) in enumerate(OPTIONS.items())
)
