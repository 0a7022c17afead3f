"""Limits of running jobs of a site's file as rules.

Of limits of one kind the one of the QOS of a job's partition stands above that of the job's own QOS, and both stand
above those of its account and user, as in SLURM; the job still counts for the others. A limit of a user in an account
that has none of its own is that of the nearest account above; a limit of a group holds beside those of the accounts
above it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from faultsweep.simcore.model.limits import Rule
from faultsweep.simcore.sites.site import Account, Site

Names = frozenset[str]
Wheres = tuple[tuple[str, Names], ...]

_OF_QOS = (
    ("", (), "max_jobs", "max_cores"),
    (" of a user", ("user",), "max_jobs_user", "max_cores_user"),
    (" of an account", ("account",), "max_jobs_account", "max_cores_account"),
)
_OF_PARTITION = (
    ("", (), "max_run_jobs", "max_run_cores"),
    (" of a user", ("user",), "max_user_run_jobs", "max_user_run_cores"),
)
RUNNING_OF_QOS = tuple(field for *_, jobs, cores in _OF_QOS for field in (jobs, cores))
"""The fields of a QOS that limit running jobs."""


def limits_of(site: Site) -> tuple[Rule, ...]:
    """Return the limits of running jobs that a site has."""
    return (*_of_partitions(site), *_of_qos(site), *_of_accounts(site))


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


def _of_qos(site: Site) -> Iterator[Rule]:
    """Yield the limits of QOS: of the jobs of partitions that have it, and of jobs that ask for it elsewhere."""
    for qos in site.qos:
        theirs = frozenset(part.name for part in site.partitions if part.qos == qos.name)
        for what, each, *fields in _OF_QOS:
            for kind, field in zip(("most_jobs", "most_nodes"), fields, strict=True):
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


def _of_accounts(site: Site) -> Iterator[Rule]:
    rows = {row.account: row for row in site.accounts if not row.user}

    def unless(*fields: str) -> Wheres:
        return (("qos", _qos_with(site, *fields)), ("partition", _partitions_with(site, *fields)))

    for row in site.accounts:
        where = _jobs_of(row, rows)
        name = f"user {row.user} of account {row.account}" if row.user else f"account {row.account}"
        if row.group_jobs is not None:
            yield _limits(name, (), where, row.group_jobs, None, unless("max_jobs"))
        if row.group_cores is not None:
            yield _limits(name, (), where, None, row.group_cores, unless("max_cores"))
    for account, user, most in _most_of_users(site, rows):
        where = (("account", frozenset((account,))), *((("user", frozenset((user,))),) if user else ()))
        others = frozenset(row.user for row in site.accounts if row.account == account and row.max_jobs is not None)
        above = unless("max_jobs_user", "max_jobs_account")
        yield _limits(
            f"user {user} of account {account}" if user else f"account {account} of a user",
            ("user",),
            where,
            most,
            None,
            above if user else (*above, ("user", others - {""})),
        )


def _jobs_of(row: Account, rows: dict[str, Account]) -> Wheres:
    """Return whose jobs a user, or an account with those below it, has; the root has all."""
    if row.user:
        return (("account", frozenset((row.account,))), ("user", frozenset((row.user,))))
    return () if row.account == "root" else (("account", _accounts_in(row.account, rows)),)


def _most_of_users(site: Site, rows: dict[str, Account]) -> Iterator[tuple[str, str, int]]:
    """Yield account, user ("": any without a limit of its own), and the most running jobs of the user."""
    for row in site.accounts:
        if row.user and row.max_jobs is not None:
            yield row.account, row.user, row.max_jobs
    named = dict.fromkeys([*rows, *(row.account for row in site.accounts)])
    for account in named:
        limits = (rows[above].max_jobs for above in _path(account, rows) if above in rows)
        most = next((limit for limit in limits if limit is not None), None)
        if most is not None:
            yield account, "", most


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
