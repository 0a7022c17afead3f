"""``coins``: failures are reported by coins that err as recall and precision say (oliner2004, sections 4 and 5).

The engine throws them: ``predict`` in ``faultsweep.simcore.policies.placement.rules``.
"""

from __future__ import annotations

from faultsweep.simcore.contract import Policy, Run
from faultsweep.simcore.policies.failures import happen


def _reports_nothing(run: Run) -> bool:
    return bool(run["recall"] == 0 and run["false_positive_rate"] == 0)


def _throws_coins(run: Run) -> bool:
    """Tell whether the predictor errs at random."""
    recall = run["recall"]
    certain = recall in (0, 1) and run["false_positive_rate"] in (0, 1)
    return not (certain and (run["precision"] == 1 or recall == 0))


POLICY = Policy(
    "coins",
    "It reports nodes by a coin for each node, job and restart.",
    uses=("recall", "false_positive_rate", ("precision", lambda run: run["recall"] > 0)),
    becomes=((lambda run: not happen(run), "unasked"), (_reports_nothing, "blind")),
    consults=("failures", ("seed", _throws_coins)),
)
