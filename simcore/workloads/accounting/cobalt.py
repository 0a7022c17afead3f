"""Reading the accounting files of Cobalt, which have the form of those of PBS with resources of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from faultsweep.simcore.workloads.accounting import pbs
from faultsweep.simcore.workloads.accounting.source import Dump, Options, Source
from faultsweep.simcore.workloads.accounting.units import number


def matches(head: bytes) -> bool:
    """Return whether a file begins like an accounting file of Cobalt."""
    return pbs.looks_like(head) and pbs.is_cobalt(head)


def read(sources: Sequence[Source], options: Options, dump: Dump) -> None:
    """Read accounting files into ``dump``."""
    pbs.read_with(sources, options, dump, _sizes)


def _sizes(pairs: dict[str, str]) -> dict[str, float | None]:
    """Return nodes used, or else requested, and processors: on Blue Gene a block of nodes, elsewhere node numbers."""

    def known(*names: str) -> float | None:
        for name in names:
            text = pairs.get(name, "")
            if re.fullmatch(r"\d{1,12}(\.0*)?", text):
                return number(text) or None
        return None

    location = pairs.get("resources_used.location") or pairs.get("exec_host") or ""
    numbered = re.fullmatch(r"\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*", location)
    return {
        "nodes": known("resources_used.nodect", "Resource_List.nodect"),
        "cores": known("Resource_List.ncpus"),
        "node_list": (f"[{location}]" if numbered else location) or None,  # type: ignore[dict-item]
    }
