"""Limits of running and of submitted jobs of a site's file as rules.

Of limits of one kind the one of the QOS of a job's partition stands above that of the job's own QOS, and both stand
above those of its account and user, as in SLURM; the job still counts for the others. A limit of a user in an account
that has none of its own is that of the nearest account above; a limit of a group holds beside those of the accounts
above it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from faultsweep.simcore.model.limits import Rule
from faultsweep.simcore.sites.site import Account, Site

Names = frozenset[str]
Wheres = tuple[tuple[str, Names], ...]

_OF_QOS = (
    ("", (), "max_jobs", "max_cores"),
    (" of a user", ("user",), "max_jobs_user", "max_cores_user"),
    (" of an account", ("account",), "max_jobs_account", "max_cores_account"),
)
_SUBMITTED_OF_QOS = (
    ("", (), "max_submit"),
    (" of a user", ("user",), "max_submit_user"),
    (" of an account", ("account",), "max_submit_account"),
)
_OF_PARTITION = (
    ("", (), "max_run_jobs", "max_run_cores"),
    (" of a user", ("user",), "max_user_run_jobs", "max_user_run_cores"),
)
LIMITS_OF_QOS = tuple(field for _, _, *fields in (*_OF_QOS, *_SUBMITTED_OF_QOS) for field in fields)
"""The fields of a QOS that limit running or submitted jobs."""


class _Kind(NamedTuple):
    """The fields that limit jobs of one kind: of all jobs of an account, and of each user in it; each with those of a
    QOS that stand above it."""

    groups: tuple[tuple[str, str], ...]
    user: str
    above_user: tuple[str, ...]


_RUNNING = _Kind(
    (("group_jobs", "max_jobs"), ("group_cores", "max_cores")), "max_jobs", ("max_jobs_user", "max_jobs_account")
)
_SUBMITTED = _Kind((("group_submit", "max_submit"),), "max_submit", ("max_submit_user", "max_submit_account"))


def limits_of(site: Site) -> tuple[Rule, ...]:
    """Return the limits of running jobs that a site has."""
    return (*_of_partitions(site), *_of_qos(site, _OF_QOS), *_of_accounts(site, _RUNNING))


def submit_limits_of(site: Site) -> tuple[Rule, ...]:
    """Return the limits of submitted jobs that a site has, as ``most_jobs``."""
    return (*_of_qos(site, _SUBMITTED_OF_QOS), *_of_accounts(site, _SUBMITTED))


def _limits(
    name: str, each: tuple[str, ...], where: Wheres, jobs: int | None, cores: int | None, unless: Wheres = ()
) -> Rule:
    most_jobs, most_cores = (math.inf if most is None else float(most) for most in (jobs, cores))
    return Rule(name, each, where, unless=unless, most_jobs=most_jobs, most_nodes=most_cores)


def _of_partitions(site: Site) -> Iterator[Rule]:
    for part in site.partitions:
        for what, each, *fields in _OF_PARTITION:
            jobs, cores = (getattr(part, field) for field in fields)
            if jobs is not None or cores is not None:
                where = (("partition", frozenset((part.name,))),)
                yield _limits(f"partition {part.name}{what}", each, where, jobs, cores)


def _of_qos(site: Site, limits: tuple[tuple[Any, ...], ...]) -> Iterator[Rule]:
    """Yield the limits of QOS: of the jobs of partitions that have it, and of jobs that ask for it elsewhere."""
    for qos in site.qos:
        theirs = frozenset(part.name for part in site.partitions if part.qos == qos.name)
        for what, each, *fields in limits:
            for kind, field in zip(("most_jobs", "most_nodes"), fields, strict=False):
                if getattr(qos, field) is None:
                    continue
                above = _partitions_with(site, field) - theirs
                yield Rule(
                    f"QOS {qos.name}{what}",
                    each,
                    where=(("qos", frozenset((qos.name,))),),
                    also=(("partition", theirs),) if theirs else (),
                    unless=(("partition", above),),
                    **{kind: getattr(qos, field)},
                )


def _partitions_with(site: Site, *fields: str) -> Names:
    """Return the partitions whose QOS sets any of some limits."""
    setting = _qos_with(site, *fields)
    return frozenset(part.name for part in site.partitions if part.qos in setting)


def _qos_with(site: Site, *fields: str) -> Names:
    return frozenset(qos.name for qos in site.qos if any(getattr(qos, field) is not None for field in fields))


def _of_accounts(site: Site, kind: _Kind) -> Iterator[Rule]:
    rows = {row.account: row for row in site.accounts if not row.user}
    for row in site.accounts:
        name = f"user {row.user} of account {row.account}" if row.user else f"account {row.account}"
        for field, above_it in kind.groups:
            if (most := getattr(row, field)) is not None:
                jobs, cores = (None, most) if field == "group_cores" else (most, None)
                yield _limits(name, (), _jobs_of(row, rows), jobs, cores, _unless(site, above_it))
    for account, user, most in _most_of_users(site, rows, kind.user):
        where = (("account", frozenset((account,))), *((("user", frozenset((user,))),) if user else ()))
        theirs = (row for row in site.accounts if row.account == account and getattr(row, kind.user) is not None)
        others = frozenset(row.user for row in theirs)
        above = _unless(site, *kind.above_user)
        yield _limits(
            f"user {user} of account {account}" if user else f"account {account} of a user",
            ("user",),
            where,
            most,
            None,
            above if user else (*above, ("user", others - {""})),
        )


def _unless(site: Site, *fields: str) -> Wheres:
    return (("qos", _qos_with(site, *fields)), ("partition", _partitions_with(site, *fields)))


def _jobs_of(row: Account, rows: dict[str, Account]) -> Wheres:
    """Return whose jobs a user, or an account with those below it, has; the root has all."""
    if row.user:
        return (("account", frozenset((row.account,))), ("user", frozenset((row.user,))))
    return () if row.account == "root" else (("account", _accounts_in(row.account, rows)),)


def _most_of_users(site: Site, rows: dict[str, Account], field: str) -> Iterator[tuple[str, str, int]]:
    """Yield account, user ("": any without a limit of its own), and the most jobs of the user."""
    for row in site.accounts:
        if row.user and getattr(row, field) is not None:
            yield row.account, row.user, getattr(row, field)
    named = dict.fromkeys([*rows, *(row.account for row in site.accounts)])
    for account in named:
        limits = (getattr(rows[above], field) for above in _path(account, rows) if above in rows)
        most = next((limit for limit in limits if limit is not None), None)
        if most is not None:
            yield account, "", most


def admitted_accounts(site: Site, accounts: list[str]) -> tuple[str, ...]:
    """Return accounts with those below them; one with - before it is left out with those below it."""
    rows = {row.account: row for row in site.accounts if not row.user}
    found = [
        sign + each
        for name in accounts
        for sign in ("-" if name.startswith("-") else "",)
        for each in sorted(_accounts_in(name.removeprefix("-"), rows))
    ]
    return tuple(dict.fromkeys(found))


def _path(account: str, rows: dict[str, Account]) -> list[str]:
    """Return an account and those above it, up to the root."""
    path = [account]
    while path[-1] in rows and path[-1] != "root":
        above = rows[path[-1]].parent or "root"
        if above in path:
            break
        path.append(above)
    return path


def _accounts_in(account: str, rows: dict[str, Account]) -> Names:
    """Return an account and all accounts below it."""
    return frozenset((account, *(name for name in rows if account in _path(name, rows))))
