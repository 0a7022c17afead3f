"""A failure predictor of the user's: a function that says whether a node is reported."""

from __future__ import annotations

from faultsweep.simcore.contract import ONE_MACHINE
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.outside import Shape, address_of, own_policy
from faultsweep.simcore.policies.failures import happen

_TEMPLATE = """
    job, window = a, s.own_window
    while s.own_counted < s.next_failure:
        node = int(s.fail_node[s.own_counted])
        s.own_failures[node] += 1.0
        s.own_last[node] = s.fail_time[s.own_counted]
        s.own_counted += 1
    s.own_ahead[: s.nodes] = _np.inf
    at = s.next_failure
    while at < s.fail_time.shape[0] and s.fail_time[at] < s.now + window:
        node = int(s.fail_node[at])
        s.own_ahead[node] = min(s.own_ahead[node], s.fail_time[at] - s.now)
        at += 1
    for node in range(s.nodes):
        s.own_reported[node] = 1.0 if _policy(ARGUMENTS) else 0.0
    return 0
"""

SHAPE = Shape(
    "predictor",
    {
        "node": ("node", "index of a node"),
        "machine_nodes": ("s.nodes", "nodes of the machine"),
        "window_s": ("window", "length of the window from now on that is asked about, s"),
        "until_failure_s": ("s.own_ahead[node]", "time until the node fails in the window, s; infinite if it does not"),
        "failures": ("int(s.own_failures[node])", "failures of the node so far"),
        "since_failure_s": (
            "s.now - s.own_last[node] if s.own_failures[node] > 0.0 else _np.inf",
            "time since its last failure, s; infinite without",
        ),
        "nodes": ("s.job.requested[job]", "nodes that the job asks for"),
        "restarts": ("s.job.restarts[job]", "failures that have killed the job"),
        "drawn": ("_coin(s.own_key[5], node, job, s.job.restarts[job])", "a number of node, job and restart, [0, 1)"),
    },
    _TEMPLATE,
    place=5,
)


def _begin(s: State, value: str) -> None:
    s.own_predictor = address_of(value, SHAPE)


POLICY = own_policy(
    SHAPE,
    becomes=((lambda run: not happen(run), "unasked"),),
    consults=("failures",),
    machines=ONE_MACHINE,
    begins=_begin,
)
