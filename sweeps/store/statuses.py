"""The statuses of cells, as a store has them. Workers need them, and not what opens a store."""

PENDING, DONE, FAILED, TRUNCATED, COPY, EXCLUDED, NOT_REQUESTED, TRUNCATED_COPY, FAILED_COPY, DAMAGED = range(10)
STATUS_NAMES = (
    "pending",
    "done",
    "failed",
    "truncated",
    "copy",
    "excluded",
    "not_requested",
    "truncated_copy",
    "failed_copy",
    "damaged",
)
COPY_OF = {DONE: COPY, TRUNCATED: TRUNCATED_COPY, FAILED: FAILED_COPY}
"""The status of a cell that takes the result of another one, by the status of that."""
FINAL = tuple(COPY_OF)
SETTLED = (*COPY_OF, *COPY_OF.values())
FAILURES = (FAILED, FAILED_COPY)
WITH_RESULT = (DONE, TRUNCATED, COPY, TRUNCATED_COPY)
