"""Which jobs of a site's file may take the place of which others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from faultsweep.simcore.model.preempting import Preempting, check_preempting
from faultsweep.simcore.sites.site import Partition, Qos, Site

NEVER = "OFF"
"""The mode of partitions and QOS whose jobs nobody preempts."""


def preempting_of(site: Site, path: str) -> Preempting:
    """Return what a site says of preemption: jobs of partitions of a higher tier, or of QOS that name others.

    Raises
    ------
    InputError
        If QOS preempt each other; the message names the file.
    """
    tiers = tuple(part.priority_tier for part in site.partitions)
    if site.preempt_by == "partition":
        names = tuple(part.name for part in site.partitions)
        below = [frozenset(_lower(site.partitions, part)) for part in site.partitions]
        return Preempting("partition", tiers, names, tiers, tuple(below))
    if site.preempt_by == "qos":
        places = {qos.name: place for place, qos in enumerate(site.qos)}
        yields = {qos.name for qos in site.qos if qos.preempt_mode.upper() != NEVER}
        named = [frozenset(places[name] for name in qos.preempts if name in yields) for qos in site.qos]
        order = tuple(qos.priority for qos in site.qos)
        found = Preempting("qos", tiers, tuple(places), order, tuple(named))
        check_preempting(found, path)
        return found
    return Preempting(tiers=tiers)


def graces_of(site: Site) -> tuple[float, ...]:
    """Return the grace of each partition, or QOS, by which jobs of a site preempt others, s; () where all have none."""
    owners: Mapping[str, Sequence[Partition | Qos]] = {"partition": site.partitions, "qos": site.qos}
    found = tuple(each.grace_s for each in owners.get(site.preempt_by, ()))
    return found if any(found) else ()


def _lower(partitions: list[Partition], part: Partition) -> list[int]:
    """Return the places of the partitions whose jobs those of a partition may preempt."""
    return [
        place
        for place, other in enumerate(partitions)
        if other.priority_tier < part.priority_tier and other.preempt_mode.upper() != NEVER
    ]
