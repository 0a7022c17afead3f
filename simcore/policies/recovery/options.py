"""Recovery options A to E: who asks for which (tang2010, slides 8 to 14).

Every job belongs to a group A to E, drawn once from the mix of the configuration: the option that its importance calls
for. What it asks for depends on the case: its group's option, or one option for all jobs. So groups label the same jobs
in every run with the same seed, whatever the jobs ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from faultsweep.simcore.policies.recovery import OPTIONS, RECOVERY_MIXES
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

from faultsweep.errors import InputError

Asks = Callable[[Mapping[str, Any], Mapping[str, NDArray[Any]]], NDArray[np.int64]]
"""What a policy asks for: of the configuration and of arrays of jobs (nodes, requested_h, user, group)."""

_MIXES: dict[str, Sequence[float]] = {"even": (1, 1, 1, 1, 1), "normal": (1, 2, 4, 2, 1)}


def parse_mix(text: str) -> NDArray[np.float64]:
    """Return the shares of the options A to E, float64 (5,), of a name of RECOVERY_MIXES or of weights as "1:2:4:2:1".

    Raises
    ------
    InputError
        If it is neither, or all weights are zero.
    """
    weights = _MIXES.get(text) or _numbers(
        text, "recovery_mix", f"{', '.join(RECOVERY_MIXES)}, or five weights such as 1:2:4:2:1"
    )
    shares = np.array(weights, float)
    if shares.sum() <= 0:
        raise InputError(f"recovery_mix: {text!r} has no weight above 0")
    return shares / shares.sum()


def parse_prices(text: str) -> NDArray[np.float64]:
    """Return the prices alpha of the options A to E, float64 (5,), of a text such as "1:2:3:4:5"."""
    return np.array(_numbers(text, "credit_prices", "five prices such as 1:2:3:4:5"), float)


def _numbers(text: str, name: str, valid: str) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        numbers = []
    if len(numbers) != len(OPTIONS) or not all(0 <= number < 1e12 for number in numbers):
        raise InputError(f"{name}: {text!r} is not valid (valid: {valid}; 0 or more each)")
    return numbers


def draw_groups(config: Mapping[str, Any], num_jobs: int) -> NDArray[np.int64]:
    """Return the group of every job, int64 (jobs,), positions in OPTIONS; a longer workload begins with the same."""
    shares = np.cumsum(parse_mix(config["recovery_mix"]))
    uniform = stream(config["seed"], config["replicate"], "recovery/groups").random(num_jobs)
    drawn = np.searchsorted(shares, uniform * shares[-1], side="right")
    return np.minimum(drawn, len(OPTIONS) - 1).astype(np.int64)


def given_groups(options: str, num_jobs: int) -> NDArray[np.int64]:
    """Return the groups that a text of letters gives, int64 (jobs,).

    Raises
    ------
    InputError
        If it is not one letter A to E for each job.
    """
    if not isinstance(options, str) or len(options) != num_jobs or set(options) - set(OPTIONS):
        raise InputError(
            f"options: expected a text of {num_jobs} letters A to E, one for each job, got {options!r:.40}"
        )
    return np.array([list(OPTIONS).index(letter) for letter in options], np.int64)


def draw_gamers(config: Mapping[str, Any], user: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which jobs are of users who always ask for the highest option, bool (jobs,): each user with the chance
    ``gaming_frac``, whatever other users there are."""
    users, index = np.unique(user, return_inverse=True)
    draws = [stream(config["seed"], config["replicate"], f"recovery/user {number}").random() for number in users]
    games: NDArray[np.bool_] = np.array(draws)[index.ravel()] < config["gaming_frac"]
    return games
