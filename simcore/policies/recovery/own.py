"""Recovery of the user's: a function that gives the option A to E that a job asks for, at its submission."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.contract import ONE_MACHINE
from faultsweep.simcore.outside import Shape, arguments_of, failing, function_of, own_policy
from faultsweep.simcore.policies.failures import happen
from faultsweep.simcore.policies.recovery import OPTIONS, comes_back, pays
from faultsweep.simcore.streams import coin_key, coins
from numpy.typing import NDArray

from faultsweep.errors import InputError

SHAPE = Shape(
    "recovery",
    {
        "nodes": ("", "nodes that the job asks for"),
        "requested_h": ("", "time that it asks for, h"),
        "user": ("", "number of its user, -1 where the log has none"),
        "group": ("", "its group, a letter A to E drawn from recovery_mix"),
        "drawn": ("", "a number of the job's, drawn from [0, 1)"),
    },
)


def ask(config: Mapping[str, Any], jobs: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Return the options that a function gives, positions in OPTIONS; jobs: arrays by the names of the inputs."""
    function = function_of(config["recovery"], SHAPE)
    wanted = arguments_of(config["recovery"], SHAPE)
    values = {name: config[name] for name in wanted if name not in SHAPE.inputs}
    count, letters = len(jobs["user"]), list(OPTIONS)
    drawn = coins(coin_key(config["seed"], config["replicate"], "own recovery"), 0, np.arange(count), 0)
    known = {**jobs, "drawn": drawn, "group": np.array(letters)[jobs["group"]]}
    inputs = [name for name in wanted if name in known]
    found = []
    for job in range(count):
        try:
            found.append(function(**values, **{name: known[name][job].item() for name in inputs}))
        except Exception as error:  # whatever the user's function raises
            raise failing("recovery", f"for job {job + 1}", error) from None
    for job, letter in enumerate(found):
        if letter not in letters:
            raise InputError(f"recovery: the function gives {letter!r} for job {job + 1} (valid: {', '.join(letters)})")
    return np.array([letters.index(letter) for letter in found], np.int64)


POLICY = own_policy(
    SHAPE,
    uses=("recovery_mix", "credits"),
    consults=("seed", ("payment", pays), ("hold", happen), ("delay", happen), ("requeue", comes_back)),
    machines=ONE_MACHINE,
    facts={"asks": ask},
)
