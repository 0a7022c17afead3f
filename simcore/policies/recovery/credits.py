"""Credits: what a recovery option costs its user, so that not everybody asks for the highest (tang2010, slides 10-11).

A job of T requested hours on N nodes costs alpha_i T N credits under option i; with its submission its user is granted
beta T N. So the account changes by (beta - alpha_i) T N. It is paid at the submission and not given back if no failure
comes. Accounts begin at 0 and never fall below: a user who cannot pay gets the lowest option, A, and is charged for
that. All of it is decided by the order of submission alone, before anything is scheduled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from faultsweep.simcore.policies.recovery import NOTIFY, OPTIONS
from faultsweep.simcore.policies.recovery.options import parse_prices
from numpy.typing import NDArray

from faultsweep.files import write_csv

HOUR_S = 3600.0
_EXACT = 1e-9  # of the turnover: a balance that is 0 but for rounding can pay what is 0 but for rounding


@dataclass(frozen=True)
class Charges:
    """What the credits did to every job: arrays of shape (jobs,).

    Attributes
    ----------
    option : int64, the option that the job gets, a position in OPTIONS: the one asked for, or A.
    cost : float64, alpha T N in node-hours times the price.
    grant : float64, beta T N.
    """

    option: NDArray[np.int64]
    cost: NDArray[np.float64]
    grant: NDArray[np.float64]


@dataclass(frozen=True)
class Accounts:
    """The accounts at the end of a run: arrays of shape (users,), by rising number of the user.

    Attributes
    ----------
    user : int64, the log's number; -1 where it has none.
    granted, charged, balance : float64, credits; balance = granted - charged.
    jobs, refused : int64, jobs of the user, and those of them whose option could not be paid.
    options : int64, shape (users, 5), jobs that got each option.
    """

    user: NDArray[np.int64]
    granted: NDArray[np.float64]
    charged: NDArray[np.float64]
    balance: NDArray[np.float64]
    jobs: NDArray[np.int64]
    refused: NDArray[np.int64]
    options: NDArray[np.int64]


def median_price(prices: NDArray[np.float64]) -> float:
    """Return what the owner of the system usually grants, beta: the median unit price."""
    return float(np.median(prices))


def charge(
    config: Mapping[str, Any], asked: NDArray[np.int64], user: NDArray[np.int64], node_h: NDArray[np.float64]
) -> Charges:
    """Charge the jobs, in the order of their submission, for the options that they ask for.

    Parameters
    ----------
    config : a resolved configuration: ``credits``, ``credit_prices`` and ``credit_beta`` are used. Without credits
        every job gets what it asks for, and nothing is charged.
    asked : options asked for, positions in OPTIONS.
    user : the user of each job; jobs of the same one share an account.
    node_h : T N, requested time times nodes, node-hours.
    """
    if not config["credits"]:
        nothing = np.zeros(len(asked))
        return Charges(asked.copy(), nothing, nothing.copy())
    prices = parse_prices(config["credit_prices"])
    beta = config["credit_beta"] if config["credit_beta"] >= 0 else median_price(prices)
    option, balances, turnovers = asked.copy(), dict.fromkeys(user.tolist(), 0.0), dict.fromkeys(user.tolist(), 0.0)
    for job, (who, amount) in enumerate(zip(user.tolist(), node_h.tolist(), strict=True)):
        turnovers[who] += amount * (beta + float(prices.max()))
        net = (beta - float(prices[option[job]])) * amount
        if balances[who] + net < -_EXACT * turnovers[who]:
            option[job] = NOTIFY
            net = (beta - float(prices[NOTIFY])) * amount
        balances[who] += net
    return Charges(option, prices[option] * node_h, beta * node_h)


def accounts(jobs: Mapping[str, NDArray[Any]]) -> Accounts:
    """Return the accounts after all submissions, from the per-job results of a run: ``user``, ``recovery_asked``,
    ``recovery_option``, ``credits_granted`` and ``credits_charged``."""
    users, row = np.unique(jobs["user"], return_inverse=True)
    row = row.ravel()

    def total(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(row, values, len(users)).astype(np.float64)

    granted, charged = total(jobs["credits_granted"]), total(jobs["credits_charged"])
    option = jobs["recovery_option"]
    options = np.zeros((len(users), len(OPTIONS)), np.int64)
    np.add.at(options, (row[option >= 0], option[option >= 0]), 1)
    num_jobs = np.bincount(row, minlength=len(users))
    refused = total((option != jobs["recovery_asked"]).astype(float)).astype(np.int64)
    return Accounts(users, granted, charged, granted - charged, num_jobs, refused, options)


def write_accounts(found: Accounts, path: str | Path) -> None:
    """Write the accounts as CSV, a row per user."""
    header = ("user", "jobs", "refused", *(f"option_{o.lower()}" for o in OPTIONS), "granted", "charged", "balance")
    rows = []
    for row, user in enumerate(found.user.tolist()):
        credits = (f"{values[row]:.17g}" for values in (found.granted, found.charged, found.balance))
        rows.append((user, found.jobs[row], found.refused[row], *found.options[row].tolist(), *credits))
    write_csv(path, header, rows)
