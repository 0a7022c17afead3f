"""Failures of trunks, beside those of nodes: trunks are numbered behind the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from faultsweep.simcore.distributions import draw_times
from faultsweep.simcore.model.failure_trace import FailureTrace
from faultsweep.simcore.policies.co_allocation import co_allocates
from faultsweep.simcore.policies.failures.source import DAY_S, Block, DrawnSource, FailureSource, Span, hash_of
from faultsweep.simcore.streams import stream

_BLOCK = 256
_HOUR_S = 3600.0


def with_trunks(
    nodes: FailureSource | None, config: Mapping[str, Any], machine_nodes: int, clusters: int, span: Span
) -> FailureSource | None:
    """Return the failures of nodes together with those of trunks that a configuration asks for."""
    if config["trunk_mtbf_h"] == 0 or not co_allocates(config):
        return nodes
    trunks = _trunk_source(config, machine_nodes, clusters, span)
    return trunks if nodes is None else BothSources(nodes, trunks)


def _trunk_source(config: Mapping[str, Any], machine_nodes: int, clusters: int, span: Span) -> DrawnSource:
    """Return failures of all trunks: exponential gaps with the mean of one trunk over the number of trunks."""
    mean_s = config["trunk_mtbf_h"] * _HOUR_S / clusters
    times = stream(config["seed"], config["replicate"], "failures/trunk times")
    places = stream(config["seed"], config["replicate"], "failures/trunks")
    repairs = stream(config["seed"], config["replicate"], "failures/trunk repairs")
    down = config["trunk_down_s"], config["trunk_repair_distribution"], config["repair_sigma"]

    def blocks() -> Iterator[Block]:
        now = 0
        while True:
            gaps = np.rint(-mean_s * np.log1p(-times.random(_BLOCK)) * 1000.0).astype(np.int64)
            time_ms = now + np.cumsum(gaps)
            now = int(time_ms[-1])
            trunk = np.floor(places.random(_BLOCK) * clusters).astype(np.int64)
            yield Block(time_ms, machine_nodes + trunk, draw_times(repairs, _BLOCK, *down))

    named = ("seed", "replicate", "trunk_mtbf_h", "trunk_down_s", "trunk_repair_distribution", "repair_sigma")
    facts = {name: config[name] for name in named}
    facts |= {"nodes": machine_nodes, "clusters": clusters}
    return DrawnSource("trunks", blocks(), DAY_S / mean_s, facts)


class BothSources(FailureSource):
    """The failures of two sources in order of time; of one instant those of the first come first."""

    def __init__(self, first: FailureSource, second: FailureSource) -> None:
        """Join two sources of different nodes."""
        self.name = f"{first.name} and {second.name}"
        self.content_hash = hash_of({"first": first.content_hash, "second": second.content_hash})
        self.failures_per_day = first.failures_per_day + second.failures_per_day
        self.endless = first.endless or second.endless
        self._both = (first, second)

    def until(self, time_s: float) -> FailureTrace:
        """Return all failures at or before a time."""
        one, two = (source.until(time_s) for source in self._both)
        times = np.concatenate([one.time_s, two.time_s])
        order = np.argsort(times, kind="stable")
        return FailureTrace(
            times[order],
            np.concatenate([one.node, two.node])[order],
            np.concatenate([one.down_s, two.down_s])[order],
            self.name,
            self.content_hash,
        )
