"""A synthetic year of a cluster of 350 nodes with the bursts and the skew that oliner2004 describes (section 6.2).

The paper's trace, collected for an earlier study of event prediction (Sahoo et al., KDD 2003), cannot be had. This one
is chosen, not fitted: 5,424 failures, which per node and day is the paper's 4,000 on 128 nodes in the 736 days of SDSC;
"multiple failure events, simultaneously reported from different nodes" in bursts of heavy-tailed size; bursts that come
in bad times; and a few nodes that bear most failures. Every draw is a new year, mapped and fitted like a real log.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.contract import Config, Policy
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.policies.failures import FITTED, NONE_WANTED
from faultsweep.simcore.policies.failures.fitted import fitted_source
from faultsweep.simcore.policies.failures.source import FailureSource, Span, hash_of
from faultsweep.simcore.policies.failures.weibull import draw_nodes, exponentials, weibull_gaps_ms, zipf_cumulative
from faultsweep.simcore.streams import stream

NODES = 350
NUM_FAILURES = 5424
DAYS = 365
START_SHAPE = 0.6  # of the Weibull times between the starts of bursts
TAIL = 1.5  # P(burst has s failures or more) = s^-TAIL ...
LARGEST = 100  # ... and none has more
GAP_S = 20.0  # mean of the exponential times within a burst
SAME_NODE = 0.3  # probability that a failure of a burst is of the node of its first
ALPHA = 1.2  # of Zipf's law of nodes: the worst 4 % bear about two thirds

CONSTANTS = {
    "nodes": NODES,
    "num_failures": NUM_FAILURES,
    "days": DAYS,
    "start_shape": START_SHAPE,
    "tail": TAIL,
    "largest": LARGEST,
    "gap_s": GAP_S,
    "same_node": SAME_NODE,
    "alpha": ALPHA,
}


def synthetic_records(seed: int, replicate: int) -> FailureRecords:
    """Draw the year of one replicate: 5,424 failures in 365 days, without down times (the paper's are transient)."""
    times = stream(seed, replicate, "failures/times")
    places = stream(seed, replicate, "failures/nodes")
    size = np.floor((1.0 - times.random(NUM_FAILURES)) ** (-1.0 / TAIL))
    size = np.minimum(size, LARGEST).astype(np.int64)
    burst = np.repeat(np.arange(NUM_FAILURES), size)[:NUM_FAILURES]  # the last burst may be cut
    bursts = int(burst[-1]) + 1
    start = np.cumsum(weibull_gaps_ms(exponentials(times, bursts), START_SHAPE, 1000.0)).astype(np.float64)
    start *= DAYS * 86_400_000 / start[-1]
    within = np.rint(exponentials(times, NUM_FAILURES) * GAP_S * 1000.0)
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    within[first] = 0.0
    elapsed = np.cumsum(within)
    time_ms = np.rint(start)[burst] + elapsed - elapsed[first][burst]
    node = draw_nodes(places, NUM_FAILURES, zipf_cumulative(NODES, ALPHA))
    node = np.where(places.random(NUM_FAILURES) < SAME_NODE, node[first][burst], node)
    order = np.argsort(time_ms, kind="stable")
    return FailureRecords(
        time_s=time_ms[order] / 1000.0,
        node=node[order],
        down_s=np.full(NUM_FAILURES, np.nan),
        num_nodes=NODES,
        name="bursts",
        kind="bursts",
        node_name=tuple(str(number) for number in range(NODES)),
        counts={"failures": NUM_FAILURES},
        content_hash=hash_of(CONSTANTS | {"seed": seed, "replicate": replicate}),
    )


def bursts_source(config: Config, machine_nodes: int, span: Span) -> FailureSource:
    """Return the failures of a year, brought to a machine and a span of jobs."""
    return fitted_source(synthetic_records(config["seed"], config["replicate"]), config, machine_nodes, span)


POLICY = Policy(
    "bursts",
    "A synthetic year with the bursts and the skew of the trace of oliner2004.",
    uses=FITTED,
    becomes=NONE_WANTED,
    consults=("seed",),
    facts={"source": bursts_source},
)
