"""Names in factors and shares that belong to no job: a slip of the pen, or those of another part of a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from faultsweep.simcore.contract import Run
from faultsweep.simcore.model.nodes import NodeTable
from faultsweep.simcore.model.workload import Label
from faultsweep.simcore.policies.queue_order.associations import ROOT, parse_numbers, parse_shares

NUMBERS = {"priority_partition_factors": "partition", "priority_qos_factors": "qos", "lsf_shares": "user"}
"""Parameters that give numbers to names, and whose names they are."""
NAMING = (*NUMBERS, "priority_shares")
"""All parameters that name owners of jobs."""
_MOST = 5  # names in a sentence


def unused_names(run: Run, site: NodeTable | None, owners: Mapping[str, Label]) -> tuple[str, ...]:
    """Return a sentence for each parameter that names a user, account, partition or QOS of no job and not of the site.

    It is no error: the rest of the log may have the name.
    """
    asked = [parameter for parameter in NAMING if run[parameter]]
    live = run.live() if asked else ()
    found = []
    for parameter in asked:
        if parameter not in live:
            continue
        for label, names in _names(run, parameter):
            jobs = owners[label].names if label in owners else ()
            of_site = _names_of_site(site, label)
            unknown = [name for name in dict.fromkeys(names) if name not in jobs and name not in of_site]
            if jobs and unknown:
                word = "QOS" if label == "qos" else label
                found.append(
                    f"{parameter} names {_listed(unknown)}, which {'is' if len(unknown) == 1 else 'are'} the {word} "
                    f"of no job{' and not in the site file' if site is not None else ''} (the jobs have "
                    f"{_listed(sorted(jobs))})"
                )
    return tuple(found)


def _names(run: Run, parameter: str) -> Iterator[tuple[str, list[str]]]:
    """Yield whose names a parameter has, and the names."""
    if parameter in NUMBERS:
        yield NUMBERS[parameter], [name for name, _ in parse_numbers(run[parameter], parameter, "low:1,high:10")]
        return
    rows = parse_shares(run[parameter])
    above = {parent for _, _, parent, _ in rows}
    yield "account", [account for account, *_ in rows if account not in above and account != ROOT]
    yield "user", [user for _, user, _, _ in rows if user]


def _names_of_site(site: NodeTable | None, label: str) -> set[str]:
    if site is None:
        return set()
    if label == "partition":
        return set(site.partitions)
    if label == "qos":
        return {name for name, _ in site.qos_priorities}
    return {row[0] if label == "account" else row[1] for row in site.shares}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
