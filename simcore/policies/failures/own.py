"""A source of failures of the user's: a generator of failures one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from faultsweep.simcore.contract import Config
from faultsweep.simcore.outside import Shape, arguments_of, failing, function_of, own_policy, source_of, takes
from faultsweep.simcore.policies.failures.source import DAY_S, Block, DrawnSource, Span, hash_of
from faultsweep.simcore.policies.failures.weibull import draw_nodes
from faultsweep.simcore.streams import stream, stream_that_spawns
from numpy.typing import NDArray

from faultsweep.errors import InputError

_BLOCK = 256

SHAPE = Shape(
    "failures",
    {
        "nodes": ("", "nodes of the machine"),
        "stream": ("", "stream(purpose): a NumPy generator of this replicate, another for each purpose"),
        "places": ("", "places(count): random nodes under zipf_alpha, an array of whole numbers"),
    },
)


def own_source(config: Config, nodes: int, span: Span) -> DrawnSource:
    """Return the failures that a generator of (time since the last failure in s, node) or, with a down time, of three
    numbers gives; ``down_time_s`` stands for all down times if it is given."""
    text, function = source_of(config["failures"], "failures"), function_of(config["failures"], SHAPE)
    wanted = arguments_of(config["failures"], SHAPE)

    blocks = _blocks(function, wanted, config, nodes)
    first = next(blocks)
    mean_s = float(first.time_ms[-1]) / 1000.0 / len(first.time_ms)
    facts = {
        name: config[name]
        for name in ("seed", "replicate", "zipf_alpha", "down_time_s", "failures", *wanted)
        if name in config
    }
    facts |= {"nodes": nodes, "source": hash_of({"text": text})}
    return DrawnSource(config["failures"], chain([first], blocks), DAY_S / mean_s if mean_s > 0 else np.inf, facts)


def _blocks(function: Callable[..., Any], wanted: Iterable[str], config: Config, nodes: int) -> Iterator[Block]:
    places = stream(config["seed"], config["replicate"], "own failures/nodes")
    given = {
        "nodes": nodes,
        "stream": lambda purpose: stream_that_spawns(config["seed"], config["replicate"], f"own failures/of {purpose}"),
        "places": lambda count: draw_nodes(places, count, nodes, config["zipf_alpha"]),
    }
    try:
        drawn = iter(function(**{name: given[name] if name in given else config[name] for name in wanted}))
    except Exception as error:  # whatever the user's function raises, or a result that is no generator
        raise failing("failures", "before the first failure", error) from None
    now = 0.0
    while True:
        try:
            given_rows = [next(drawn, None) for _ in range(_BLOCK)]
        except Exception as error:  # whatever the user's function raises
            raise failing("failures", f"after {now / 1000.0:g} s", error) from None
        gaps, node, down = _columns(given_rows, nodes)
        times = now + np.cumsum(np.rint(gaps * 1000.0))
        now = float(times[-1])
        if config["down_time_s"] >= 0:
            down = np.full(len(down), config["down_time_s"])
        yield Block(times.astype(np.int64), node.astype(np.int64), down.astype(np.float64))


def _columns(rows: list[Any], nodes: int) -> tuple[NDArray[np.float64], ...]:
    """Return the gaps, nodes and down times that a generator gave, or raise InputError."""
    try:
        table = np.array(rows)
    except (TypeError, ValueError):
        table = np.zeros(0)
    numbers = table.dtype.kind in "iuf" and table.ndim == 2 and table.shape[1] in (2, 3)
    table = table.astype(np.float64) if numbers else np.zeros((1, 2))
    valid = numbers and bool(((table >= 0) & (table < 1e12)).all())
    if not valid or not (table[:, 1] < nodes).all():
        table = np.array([_checked(row, nodes) for row in rows])
    down = table[:, 2] if table.shape[1] == 3 else np.zeros(len(table))
    return table[:, 0], np.trunc(table[:, 1]), down


def _checked(row: Any, nodes: int) -> tuple[float, int, float]:
    """Return what a generator gave as gap, node and down time, or raise InputError."""
    try:
        gap, node, *rest = row
        found = float(gap), int(node), float(rest[0]) if rest else 0.0
    except (TypeError, ValueError, IndexError, OverflowError):
        raise InputError(
            f"failures: the generator gives {row!r}; expected (seconds since the last failure, node[, down time in "
            "s]), without end"
        ) from None
    if not (0 <= found[0] < 1e12 and 0 <= found[1] < nodes and 0 <= found[2] < 1e12):
        raise InputError(f"failures: the generator gives {row!r} (valid: times from 0 on, nodes 0 to {nodes - 1})")
    return found


POLICY = own_policy(SHAPE, uses=("down_time_s", ("zipf_alpha", takes(SHAPE, "places"))), facts={"source": own_source})
