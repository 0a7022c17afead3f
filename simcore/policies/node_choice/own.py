"""A choice of nodes of the user's: a function of a free node and of the job; the lowest numbers are taken.

NaN is behind all numbers. The numbers of a function that asks nothing of the job change with the failures alone: nodes
are kept in their order.
"""

from __future__ import annotations

from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import State
from faultsweep.simcore.outside import Shape, address_of, arguments_of, own_policy
from faultsweep.simcore.policies.node_choice.nodes import (
    choose_from,
    choose_in_order,
    num_nodes,
    take_in_order,
    take_node,
)

_TEMPLATE = """
    job, every, count = a, b, 0
    for node in range(_num_nodes(s)):
        if every == 1 or _can_take(s, node):
            number = _policy(ARGUMENTS)
            s.node_score[node] = number if number == number else _np.inf
            s.trial_box[count] = node
            count += 1
    return count
"""

SHAPE = Shape(
    "node_choice",
    {
        "node": ("node", "index of a free node"),
        "failures": ("int(s.node_failures[node])", "failures of the node so far"),
        "machine_nodes": ("_num_nodes(s)", "nodes of the machine"),
        "nodes": ("s.job.requested[job]", "nodes that the job asks for; cores on a site"),
        "estimate_s": ("s.job.estimate[job]", "run time that the scheduler believes, s"),
        "restarts": ("s.job.restarts[job]", "failures that have killed the job"),
        "drawn": (
            "_coin(s.own_key[1], node, job, s.job.restarts[job])",
            "a number of the node's for this start, [0, 1)",
        ),
    },
    _TEMPLATE,
    place=1,
)

_OF_JOBS = frozenset(SHAPE.inputs) - {"node", "failures", "machine_nodes"}


@kernel
def take_lowest(s: State, job: int, slot: int, size: int) -> None:
    """Take the free nodes with the lowest numbers, equal ones by index."""
    if s.choice_lasts == 1:
        _keep_order(s)
        take_in_order(s, slot, size)
        return
    count = _heap(s, job, 0)
    for _ in range(size):
        take_node(s, slot, s.trial_box[0])
        count = _pop(s, count)


@kernel
def choose_by_number(s: State, job: int) -> None:
    """Choose the nodes with the lowest numbers, of each as much as it can take (site)."""
    if s.choice_lasts == 1:
        _keep_order(s)
        choose_in_order(s, job)
        return
    count, left = _heap(s, job, 0), s.job.chunks[job]
    while left > 0:
        left = choose_from(s, s.trial_box[0], left)
        count = _pop(s, count)


@kernel
def _keep_order(s: State) -> None:
    """Put all nodes in order of their numbers, unless they are."""
    if s.choice_known == 1:
        return
    s.choice_known = 1
    count, at = _heap(s, 0, 1), 0
    while count > 0:
        s.safest[at] = s.trial_box[0]
        count, at = _pop(s, count), at + 1


@kernel
def _heap(s: State, job: int, every: int) -> int:
    """Make a heap of the nodes that can take some of a job, or of every node; return how many they are."""
    count = call_own(s.own_choice, s, job, every, 0)
    for at in range(count // 2 - 1, -1, -1):
        _sift(s, at, count)
    return count


@kernel
def _pop(s: State, count: int) -> int:
    """Remove the first node of the heap; return how many are left."""
    count -= 1
    s.trial_box[0] = s.trial_box[count]
    _sift(s, 0, count)
    return count


@kernel
def _sift(s: State, at: int, count: int) -> None:
    """Move the node at a place of the heap, ``trial_box``, down to where it belongs."""
    heap = s.trial_box
    node = heap[at]
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _comes_before(s, heap[child + 1], heap[child]):
            child += 1
        if not _comes_before(s, heap[child], node):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = node


@inlined
def _comes_before(s: State, one: int, other: int) -> bool:
    """Tell whether a node has a lower number than another, or an equal one and a lower index."""
    mine, its = s.node_score[one], s.node_score[other]
    return mine < its or (mine == its and one < other)


@kernel
def count(s: State, node: int) -> None:
    """Count a failure of a node, which gets another place in the order if numbers change with failures alone."""
    s.node_failures[node] += 1.0
    if s.choice_known == 1 and s.choice_counts == 1:
        call_own(s.own_choice, s, 0, 1, 0)
        _place_again(s, node)


@kernel
def _place_again(s: State, node: int) -> None:
    """Move a node to its place in the order of all others, which have theirs."""
    at, last = 0, num_nodes(s) - 1
    while s.safest[at] != node:
        at += 1
    while at < last and _comes_before(s, s.safest[at + 1], node):
        s.safest[at] = s.safest[at + 1]
        at += 1
    while at > 0 and _comes_before(s, node, s.safest[at - 1]):
        s.safest[at] = s.safest[at - 1]
        at -= 1
    s.safest[at] = node


def _begin(s: State, value: str) -> None:
    s.watches = 1
    s.own_choice = address_of(value, SHAPE)
    taken = set(arguments_of(value, SHAPE))
    s.choice_lasts, s.choice_counts = int(taken.isdisjoint(_OF_JOBS)), int("failures" in taken)


POLICY = own_policy(
    SHAPE,
    kernels={"take_nodes": take_lowest, "choose_nodes": choose_by_number, "node_failed": count},
    begins=_begin,
)
