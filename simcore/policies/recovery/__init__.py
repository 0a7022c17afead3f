"""What happens to a job that a failure has killed (tang2010, AuCoRe)."""

from __future__ import annotations

from faultsweep.simcore.contract import (
    OWN_POLICY,
    SENTENCES,
    Parameter,
    Policy,
    Role,
    Run,
    constant,
)
from faultsweep.simcore.distributions import DISTRIBUTIONS
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.preemption import requeues

OPTIONS = {
    "A": "Notify only: the user resubmits the job by hand, after a delay.",
    "B": "Resubmit to the rear of the queue.",
    "C": "Restart on the original nodes once they are repaired.",
    "D": "Insert in the middle of the queue.",
    "E": "Resubmit to the head of the queue.",
}
NOTIFY, REAR, ORIGINAL_NODES, MIDDLE, HEAD = range(len(OPTIONS))
"""Their numbers in kernels."""
RECOVERY_MIXES = {"normal": "Shares 1:2:4:2:1 of the options A to E.", "even": "Shares 1:1:1:1:1."}
FIVE_NUMBERS = r"[0-9.eE+-]+(:[0-9.eE+-]+){4}"


def pays(run: Run) -> bool:
    """Tell whether users pay for recovery options; who cannot gets option A."""
    return bool(run["credits"])


def comes_back(run: Run) -> bool:
    """Tell whether jobs wait again by themselves after a failure, or when another one has had their place."""
    return (happen(run) or requeues(run)) and not run["machine"].startswith("clusters:")


def comes_back_preempted(run: Run) -> bool:
    """Tell whether jobs wait again by themselves when another one has had their place."""
    return requeues(run)


def _recovers(run: Run) -> bool:
    return not run.is_("recovery", "arrival")


METRICS = (
    *("lost_to_hold", "failure_slowdown", "mean_delay_regular_s", "max_delay_regular_s"),
    *(form.format(letter.lower()) for letter in OPTIONS for form in ("failure_slowdown_{}", "mean_response_{}_s")),
    *(f"jobs_hit_{letter.lower()}" for letter in OPTIONS),
    *("credits_granted", "credits_charged", "credit_refusals"),
)

ROLE = Role(
    "What happens to a job that a failure has killed.",
    Parameter(
        "recovery",
        str,
        "arrival",
        "What happens to a killed job: back to the place of its arrival, resubmission by hand (manual), the option A "
        "to E that its group calls for (mix), or one option for all jobs.",
        "recovery",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
    metrics=tuple((name, _recovers) for name in METRICS),
    parameters=(
        Parameter(
            "recovery_mix",
            str,
            "normal",
            "Shares of the groups A to E: even 1:1:1:1:1, normal 1:2:4:2:1, or weights; jobs are drawn into them once.",
            "recovery",
            choices=RECOVERY_MIXES,
            form=FIVE_NUMBERS,
            form_doc="weights such as 1:2:4:2:1",
        ),
        Parameter(
            "credits",
            bool,
            False,
            "Whether users pay for recovery options; who cannot pay gets option A.",
            "recovery",
        ),
        Parameter(
            "manual_delay_h",
            float,
            4.0,
            "Mean time until a user notices a failure and resubmits the job (option A, manual).",
            "recovery",
            minimum=0,
            maximum=1e6,
            unit="h",
        ),
    ),
)


def _at_once(run: Run) -> bool:
    return bool(run["manual_delay_h"] == 0)


ROLES = (
    Role("What recovery options cost.", chooses=constant("payment"), name="payment"),
    Role("Whether nodes wait for their job.", chooses=constant("hold"), name="hold"),
    Role("When jobs that come back wait again.", chooses=constant("requeue"), name="requeue"),
    Role("How long users take.", chooses=lambda run: "at once" if _at_once(run) else "later", name="delay"),
    Role(
        "Distribution of how long users take.",
        Parameter(
            "manual_delay_distribution",
            str,
            "exponential",
            "Distribution of that time.",
            "recovery",
            choices=DISTRIBUTIONS,
        ),
        name="delay_distribution",
    ),
)

POLICIES = (
    Policy(
        "payment",
        "",
        role="payment",
        parameters=(
            Parameter(
                "credit_prices",
                str,
                "1:2:3:4:5",
                "Prices alpha of a requested node-hour under the options A to E.",
                "recovery",
                choices={"1:2:3:4:5": "One credit more for every option."},
                form=FIVE_NUMBERS,
                form_doc="five prices such as 1:2:3:4:5",
            ),
            Parameter(
                "credit_beta",
                float,
                -1.0,
                "Credits granted for each requested node-hour with its submission; -1: the median price.",
                "recovery",
                minimum=-1,
                maximum=1e9,
            ),
        ),
    ),
    Policy(
        "hold",
        "",
        role="hold",
        parameters=(
            Parameter(
                "hold_nodes",
                bool,
                True,
                "Whether a job under option C keeps its healthy nodes idle until all of them are up.",
                "recovery",
            ),
        ),
    ),
    Policy(
        "requeue",
        "",
        role="requeue",
        parameters=(
            Parameter(
                "requeue_hold_s",
                float,
                0.0,
                "Time for which a killed or preempted job is held before it waits again (SLURM 22.05: 121 s); not one "
                "that its user resubmits, or that waits for its own nodes.",
                "recovery",
                minimum=0,
                maximum=1e9,
                unit="s",
            ),
        ),
    ),
    Policy("at once", "", role="delay", uses=("manual_delay_h",)),
    Policy("later", "", role="delay", uses=("manual_delay_h",), consults=("delay_distribution",)),
    *(Policy(name, "", role="delay_distribution") for name in DISTRIBUTIONS if name != "lognormal"),
    Policy(
        "lognormal",
        "",
        role="delay_distribution",
        parameters=(
            Parameter(
                "manual_delay_sigma",
                float,
                1.0,
                "Standard deviation of the logarithm of a lognormal such time.",
                "recovery",
                minimum=0,
                maximum=5,
            ),
        ),
    ),
)
