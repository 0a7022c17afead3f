"""Hosts of a site: which of its nodes they are."""

from __future__ import annotations

import re
from itertools import groupby

from faultsweep.simcore.sites.site import NodeClass, Reservation, Site
from faultsweep.simcore.workloads.accounting.units import expand_hosts

from faultsweep.errors import InputError


def hosts_text(hosts: list[str]) -> str:
    """Return hosts as a list such as n[1-3,7], which ``expand_hosts`` reads, in the same order."""
    split = [re.fullmatch(r"(.*?)(\d{1,9})", host) for host in hosts]
    texts = []
    for prefix, group in groupby(zip(hosts, split, strict=True), lambda pair: pair[1] and pair[1][1]):
        members = list(group)
        if prefix is None or len(members) == 1:
            texts += [host for host, _ in members]
            continue
        runs: list[list[str]] = []
        for _, found in members:
            number = found[2] if found else ""
            follows = runs and int(runs[-1][-1]) + 1 == int(number) and len(runs[-1][0]) == len(number)
            runs[-1:] = [[runs[-1][0], number]] if follows else [*runs[-1:], [number]]
        texts.append(f"{prefix}[{','.join('-'.join(run) for run in runs)}]")
    return ",".join(texts)


def nodes_of(site: Site, window: Reservation, path: str) -> list[int]:
    """Return the indices of the nodes of a reservation, classes one after another as in the file.

    Raises
    ------
    InputError
        If a host is of no class.
    """
    first, places = 0, dict[str, int]()
    starts = {}
    for of_class in site.nodes:
        starts[of_class.name] = first
        places |= {host: first + place for place, host in enumerate(_hosts_of(of_class))}
        first += of_class.count
    if window.hosts:
        return [
            place for host in _expanded(window.hosts) for place in _places(host, places, site, starts, window, path)
        ]
    if window.classes:
        return [starts[name] + place for name, count in window.classes.items() for place in range(count)]
    return list(range(first if window.nodes is None else window.nodes))


def _places(
    host: str, places: dict[str, int], site: Site, starts: dict[str, int], window: Reservation, path: str
) -> list[int]:
    """Return the nodes of a host, or of the class that it names."""
    if host in places:
        return [places[host]]
    for of_class in site.nodes:
        if of_class.name == host:
            return list(range(starts[host], starts[host] + of_class.count))
    raise InputError(
        f"{path}: reservation {window.name} is of host {host}, which no class of nodes lists (valid: hosts or names of "
        "classes, or classes = {name = count})"
    )


def _hosts_of(of_class: NodeClass) -> list[str]:
    """Return the hosts of a class, if they are all known."""
    found = _expanded(re.sub(r"^(.*?)(\d+) to \1(\d+)$", r"\1[\2-\3]", of_class.hosts))
    return found if len(found) == of_class.count else []


def _expanded(text: str) -> list[str]:
    try:
        return expand_hosts(text)
    except ValueError:
        return [item.strip() for item in text.split(",")]
