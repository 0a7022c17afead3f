"""Failure predictors: what a scheduler is told about the nodes of a partition."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN_POLICY, Config, Parameter, Policy, Refusal, Role, Run

PARTITION_FAILURES = {
    "product": "1 - the product of the survival probabilities of its nodes.",
    "max": "The largest of the failure probabilities of its nodes.",
}


def is_blind(run: Run) -> bool:
    """Tell whether the predictor never reports a node."""
    return run.is_("prediction", "blind", "unasked")


def has_no_confidence(run: Run) -> bool:
    """Tell whether what is reported counts for nothing."""
    return bool(run["accuracy"] == 0)


def _both_rates(config: Config, kind: str, machine: str) -> str:
    if config["precision"] < 1 and config["false_positive_rate"] > 0:
        return "precision: give precision or false_positive_rate, not both"
    return ""


ROLE = Role(
    "What is told of failures to come.",
    Parameter(
        "predictor",
        str,
        "coins",
        "What a scheduler is told of failures to come: by coins that err as recall and precision say, or by "
        "FILE.py:FUNCTION.",
        "scheduling",
        choices={"coins": "Nodes that will fail, by coins that err as recall, precision and false_positive_rate say."},
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
    parameters=(
        Parameter(
            "accuracy",
            float,
            0.0,
            "a: confidence (balancing) or accuracy (tie-breaking) of the failure predictor.",
            "scheduling",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "partition_failure",
            str,
            "product",
            "How the failure of a partition follows from its nodes': 1 - product of their survivals, or their maximum.",
            "scheduling",
            choices=PARTITION_FAILURES,
        ),
        Parameter(
            "recall",
            float,
            1.0,
            "Probability that the predictor reports a node that will fail (under tie-breaking that is the accuracy).",
            "scheduling",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "false_positive_rate",
            float,
            0.0,
            "Probability that the predictor reports a node that will not fail.",
            "scheduling",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "precision",
            float,
            1.0,
            "Share of true reports, the other way to say the false positives; 1: as false_positive_rate says.",
            "scheduling",
            minimum=0.001,
            maximum=1,
        ),
    ),
    refuses=(Refusal(("precision", "false_positive_rate"), _both_rates),),
)

# What a predictor becomes: they have no rule, and nobody names them.
POLICIES = (
    Policy("unasked", "There are no failures to report."),
    Policy("blind", "It reports no node.", uses=("recall", "false_positive_rate")),
)
