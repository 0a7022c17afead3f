"""Queue disciplines, one file each: a scheduling pass starts what may start now."""

from __future__ import annotations

from faultsweep.simcore.contract import OWN_POLICY, SENTENCES, Named, Parameter, Role, Run
from faultsweep.simcore.policies.checkpointing import OVERHEAD
from faultsweep.simcore.policies.run import on_torus

ROLE = Role(
    "Which waiting jobs start now.",
    Parameter(
        "scheduler",
        str,
        "backfill",
        "Queue discipline; first-fit, fcfs and backfill on clusters.",
        "scheduling",
        choices=SENTENCES,
        form=OWN_POLICY,
        form_doc="FILE.py:FUNCTION",
    ),
    parameters=(
        Parameter(
            "growth_limit",
            int,
            1,
            "I: nodes by which backfilling may grow a job to fit a free box.",
            "scheduling",
            minimum=0,
            unit="nodes",
        ),
        Parameter(
            "migration_free_frac",
            float,
            0.1,
            "FN_tor: migration needs free / total nodes of at least this.",
            "scheduling",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "migration_mfp_frac",
            float,
            0.7,
            "FN_max: migration needs largest free partition / free nodes of at most this.",
            "scheduling",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "migration_empty_queue",
            bool,
            False,
            "Whether migration is attempted when no job waits, too.",
            "scheduling",
        ),
        Parameter(
            "migration_repeats",
            bool,
            False,
            "Whether an attempt on a machine that has not changed since the last one counts, too.",
            "scheduling",
        ),
        Parameter(
            "migration_cost_s",
            float,
            0.0,
            "Time that each migration adds to a job.",
            "scheduling",
            minimum=0,
            maximum=1e9,
            unit="s",
        ),
    ),
)

GROWTH = (("growth_limit", on_torus),)
"""What backfilling heeds on a torus."""
MIGRATION = tuple(
    (name, on_torus)
    for name in (
        *("migration_free_frac", "migration_mfp_frac", "migration_empty_queue", "migration_repeats"),
        "migration_cost_s",
    )
)
"""What migration heeds; it does nothing where any free nodes will do."""


def _moves_cost(run: Run) -> bool:
    return bool(run["migration_cost_s"] > 0)


MOVES: tuple[Named, ...] = (
    *("migrations_attempted", "migrations_successful", "migrations_per_attempt"),
    *("mean_time_between_migrations_s", "jobs_migrated"),
    *((name, _moves_cost) for name in OVERHEAD),
)
"""The metrics of migration."""
