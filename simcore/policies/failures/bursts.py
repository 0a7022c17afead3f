"""A synthetic year of a cluster of 350 nodes with the bursts and the skew that oliner2004 describes (section 6.2).

The paper's trace, collected for an earlier study of event prediction (Sahoo et al., KDD 2003), cannot be had. This one
is chosen, not fitted: 5,424 failures, which per node and day is the paper's 4,000 on 128 nodes in the 736 days of SDSC;
"multiple failure events, simultaneously reported from different nodes" in bursts of heavy-tailed size; bursts that come
in bad times; and a few nodes that bear most failures. What the paper leaves open are parameters: how large incidents
are, how near to each other their nodes, how unequal nodes, how incidents follow each other. Every draw is a new year,
mapped and fitted like a real log.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from faultsweep.simcore.contract import Config, Parameter, Policy
from faultsweep.simcore.failure_logs.records import FailureRecords
from faultsweep.simcore.policies.failures import FITTED, NONE_WANTED
from faultsweep.simcore.policies.failures.fitted import fitted_source
from faultsweep.simcore.policies.failures.source import FailureSource, Span, hash_of
from faultsweep.simcore.policies.failures.weibull import draw_nodes, exponentials, weibull_gaps_ms
from faultsweep.simcore.streams import stream
from numpy.typing import NDArray

NODES = 350
NUM_FAILURES = 5424
DAYS = 365


class Bursts(NamedTuple):
    """What the failures of a year are like; the names and defaults are those of the parameters ``burst_...``."""

    shape: float
    tail: float
    largest: int
    spacing_s: float
    same_node: float
    zipf_alpha: float
    locality: str

    def hashed(self) -> dict[str, float | str]:
        """Return what decides the records, beside seed and replicate."""
        facts: dict[str, float | str] = {"nodes": NODES, "num_failures": NUM_FAILURES, "days": DAYS}
        facts |= {"start_shape": self.shape, "tail": self.tail, "largest": self.largest, "gap_s": self.spacing_s}
        facts |= {"same_node": self.same_node, "alpha": self.zipf_alpha}
        return facts | ({"locality": self.locality} if self.locality != SCATTERED else {})


SCATTERED, ADJACENT = "scattered", "adjacent"


class Year(NamedTuple):
    """Failures of a synthetic year, and how many nodes behind the first of its burst each is, int64 (k,)."""

    records: FailureRecords
    behind: NDArray[np.int64]


def synthetic_year(seed: int, replicate: int, bursts: Bursts) -> Year:
    """Draw the year of one replicate: 5,424 failures in 365 days, without down times (the paper's are transient)."""
    times = stream(seed, replicate, "failures/times")
    places = stream(seed, replicate, "failures/nodes")
    size = np.floor(np.minimum((1.0 - times.random(NUM_FAILURES)) ** (-1.0 / bursts.tail), float(bursts.largest)))
    burst = np.repeat(np.arange(NUM_FAILURES), _no_more(size.astype(np.int64)))  # the last burst may be cut
    count = int(burst[-1]) + 1
    start = np.cumsum(weibull_gaps_ms(exponentials(times, count), bursts.shape, 1000.0)).astype(np.float64)
    start *= DAYS * 86_400_000 / max(start[-1], 1.0)
    within = np.rint(exponentials(times, NUM_FAILURES) * bursts.spacing_s * 1000.0)
    first = np.flatnonzero(np.diff(burst, prepend=-1))
    within[first] = 0.0
    elapsed = np.cumsum(within)
    time_ms = np.rint(start)[burst] + elapsed - elapsed[first][burst]
    drawn = draw_nodes(places, NUM_FAILURES, NODES, bursts.zipf_alpha)
    same = places.random(NUM_FAILURES) < bursts.same_node
    if bursts.locality == ADJACENT:
        node, other = drawn[first][burst], np.where(same, 0, 1)
        other[first] = 0
        passed = np.cumsum(other)
        behind = np.where(other > 0, passed - passed[first][burst], 0)
    else:
        node, behind = np.where(same, drawn[first][burst], drawn), np.zeros(NUM_FAILURES, np.int64)
    order = np.argsort(time_ms, kind="stable")
    records = FailureRecords(
        time_s=time_ms[order] / 1000.0,
        node=node[order],
        down_s=np.full(NUM_FAILURES, np.nan),
        num_nodes=NODES,
        name="bursts",
        kind="bursts",
        node_name=tuple(str(number) for number in range(NODES)),
        counts={"failures": NUM_FAILURES},
        content_hash=hash_of(bursts.hashed() | {"seed": seed, "replicate": replicate}),
    )
    return Year(records, behind[order])


def _no_more(size: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return sizes of bursts that sum to the failures of the year: those behind the last one are 0."""
    before = np.cumsum(size) - size
    return np.clip(NUM_FAILURES - before, 0, size)


def bursts_source(config: Config, machine_nodes: int, span: Span) -> FailureSource:
    """Return the failures of a year, brought to a machine and a span of jobs."""
    bursts = Bursts(*(config[f"burst_{name}"] for name in Bursts._fields))
    year = synthetic_year(config["seed"], config["replicate"], bursts)
    return fitted_source(year.records, config, machine_nodes, span, year.behind)


POLICY = Policy(
    "bursts",
    "A synthetic year with the bursts and the skew of the trace of oliner2004, or with others.",
    uses=FITTED,
    becomes=NONE_WANTED,
    consults=("seed",),
    facts={"source": bursts_source},
    parameters=(
        Parameter(
            "burst_shape",
            float,
            0.6,
            "Shape of the Weibull times between the starts of bursts; 1: at random.",
            "failures",
            minimum=0.05,
            maximum=20,
        ),
        Parameter(
            "burst_tail",
            float,
            1.5,
            "Tail of the sizes of bursts: s failures or more with probability s^-burst_tail.",
            "failures",
            minimum=0.05,
            maximum=20,
        ),
        Parameter(
            "burst_largest",
            int,
            100,
            "Failures in a burst at most; 1: single failures.",
            "failures",
            minimum=1,
            maximum=1000,
            unit="failures",
        ),
        Parameter(
            "burst_spacing_s",
            float,
            20.0,
            "Mean time between the failures of a burst; 0: all at once.",
            "failures",
            minimum=0,
            maximum=1e6,
            unit="s",
        ),
        Parameter(
            "burst_same_node",
            float,
            0.3,
            "Probability that a failure of a burst is of the node of its first.",
            "failures",
            minimum=0,
            maximum=1,
        ),
        Parameter(
            "burst_zipf_alpha",
            float,
            1.2,
            "Zipf exponent of the nodes that fail: 0: all alike; 1.2: the worst 4 % bear about two thirds.",
            "failures",
            minimum=0,
            maximum=20,
        ),
        Parameter(
            "burst_locality",
            str,
            SCATTERED,
            "Where the other nodes of a burst are.",
            "failures",
            choices={
                SCATTERED: "Anywhere: drawn as the first one is.",
                ADJACENT: "Next to the first: those of the following numbers, on a torus along its last side.",
            },
        ),
    ),
)
