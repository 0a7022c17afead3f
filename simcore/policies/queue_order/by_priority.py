"""Orders of the queue by a priority that a job has from its arrival on: what it depends on, and how one is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE, Policy
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Queued(NamedTuple):
    """What a priority may depend on, for each job: estimate in s, nodes asked for, submission in s from 1 on, and a
    number drawn from [0, 1)."""

    estimate: Floats
    nodes: Floats
    submitted: Floats
    drawn: Floats


def by_priority(
    name: str,
    sentence: str,
    priority: Callable[[Queued], Floats],
    aliases: tuple[str, ...] = (),
    consults: tuple[str, ...] = (),
) -> Policy:
    """Return an order by the priority of each job, shape (jobs,): the highest comes first."""
    return Policy(
        name, sentence, aliases=aliases, machines=ONE_MACHINE, consults=consults, facts={"priority": priority}
    )
