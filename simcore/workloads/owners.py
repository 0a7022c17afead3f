"""Users, accounts, partitions and QOS drawn for the jobs of a workload, as many as the configuration says.

Who submits much in a log submits very much: the shares of users in its jobs fall about as a power of their rank, which
is Zipf's law. The user of rank k, and the account, partition and QOS too, is drawn with a probability that is
proportional to k^-alpha. Jobs are drawn one by one, so the first jobs of a longer workload have the same labels as
those of a shorter one; a user has one account.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from faultsweep.simcore.model.workload import Label, Workload
from faultsweep.simcore.streams import coin_key, coins, stream
from numpy.typing import NDArray

DRAWN = {"num_users": "user", "num_accounts": "account", "num_partitions": "partition", "num_qos": "qos"}
"""What is drawn, by the parameter that says how many there are; 0: as the workload has them."""


def draw_owners(workload: Workload, config: Mapping[str, Any]) -> Workload:
    """Return the workload with drawn users and labels, named by rank from 1 on, in place of its own.

    workload : jobs; those that are not drawn stay as they are.
    config : resolved configuration; the parameters of DRAWN, ``zipf_owners``, ``seed`` and ``replicate`` are used.
    """
    labels = dict(workload.labels)
    for parameter, name in DRAWN.items():
        count = config[parameter]
        if not count:
            continue
        random = stream(config["seed"], config["replicate"], f"owners/{name}")
        if name == "user":
            user = _ranks(random.random(len(workload)), count, config["zipf_owners"])
            workload = replace(workload, user=user, user_names=_numbers(count))
        elif name == "account" and (workload.user >= 0).any():
            key = coin_key(config["seed"], config["replicate"], "owners/accounts")
            drawn = coins(key, workload.user, 0, 0)
            labels[name] = Label(_ranks(drawn, count, config["zipf_owners"]), _numbers(count))
        else:
            labels[name] = Label(_ranks(random.random(len(workload)), count, config["zipf_owners"]), _numbers(count))
    return replace(workload, labels=labels)


def _ranks(share: NDArray[np.float64], count: int, alpha: float) -> NDArray[np.int64]:
    """Return ranks from 0 on, drawn by numbers from [0, 1)."""
    weight = np.round(np.arange(1, count + 1, dtype=np.float64) ** -alpha, 12)  # last bits differ between processors
    total = np.cumsum(weight)
    return np.minimum(np.searchsorted(total, share * total[-1], side="right"), count - 1).astype(np.int64)


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(1, count + 1)))
