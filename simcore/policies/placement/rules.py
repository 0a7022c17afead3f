"""Where a job goes on the torus: the free box that a placement rule likes best (krevat2003 ch. 2, oliner2004 sec. 5).

``mfp`` leaves the largest maximal free partition (MFP). ``balancing`` weighs the loss of MFP against the predicted
failure of the box. ``tie-breaking`` chooses, among the boxes that leave the largest MFP, one that is not predicted to
fail. A user's score says how bad a box is. The first best box in the search order wins.
"""

from __future__ import annotations

import numpy as np
from faultsweep.simcore.engine.bits import ONE, ZERO, lowest_bit, popcount, ring_run, run_starts
from faultsweep.simcore.engine.jit import inlined, kernel
from faultsweep.simcore.engine.own import call_own
from faultsweep.simcore.engine.state import (
    BALANCING,
    ELSEWHEN,
    MACHINE,
    MAXIMUM,
    MFP,
    MONOTONE,
    NEEDS_MFP,
    NEEDS_PLACE,
    NEEDS_PREDICTION,
    SCORED,
    SCRATCH,
    TIE_BREAKING,
    State,
)
from faultsweep.simcore.finders.boxes import Boxes, Columns
from faultsweep.simcore.finders.columns import (
    OVERFLOW,
    build_footprints,
    has_box_at,
    insert_box,
    largest_beside,
    maximal_boxes,
    mfp_after,
    starts_with_room,
    take_box,
)
from faultsweep.simcore.finders.papers.searches import ANY, BESIDE, FIND, FOUND, LIST, TAKE, ask, set_occupancy
from faultsweep.simcore.policies.placement.scores import call_score

Starts = tuple[np.uint64, np.uint64, np.uint64]
"""Along each axis of a torus a mask of where a box can begin: at a place where one of the three allows it."""

NO_BOX, HOPELESS = -1, -2


@inlined
def pack_box(a: int, b: int, c: int, x: int, y: int, z: int) -> int:
    """Return a box as one int64."""
    return ((((a << 10 | b) << 10 | c) << 10 | x) << 10 | y) << 10 | z


@inlined
def unpack_box(box: int) -> tuple[int, int, int, int, int, int]:
    """Return (a, b, c, x, y, z) of a packed box."""
    return (
        (box >> 50) & 1023,
        (box >> 40) & 1023,
        (box >> 30) & 1023,
        (box >> 20) & 1023,
        (box >> 10) & 1023,
        box & 1023,
    )


@inlined
def occupy(columns: Columns, box: int, X: int, Y: int, Z: int) -> None:
    """Clear the nodes of a packed box in masks of free nodes."""
    a, b, c, x, y, z = unpack_box(box)
    keep = ~ring_run(z, c, Z)
    for dx in range(a):
        u = x + dx
        row = (u - X if u >= X else u) * Y
        for dy in range(b):
            v = y + dy
            columns[row + (v - Y if v >= Y else v)] &= keep


@inlined
def vacate(columns: Columns, box: int, X: int, Y: int, Z: int) -> None:
    """Set the nodes of a packed box in masks of free nodes."""
    a, b, c, x, y, z = unpack_box(box)
    run = ring_run(z, c, Z)
    for dx in range(a):
        u = x + dx
        row = (u - X if u >= X else u) * Y
        for dy in range(b):
            v = y + dy
            columns[row + (v - Y if v >= Y else v)] |= run


@kernel
def box_holds(box: int, node: int, X: int, Y: int, Z: int) -> bool:
    """Tell whether a packed box contains a node."""
    a, b, c, x, y, z = unpack_box(box)
    u, v, w = node // (Y * Z), node // Z % Y, node % Z
    return (u - x) % X < a and (v - y) % Y < b and (w - z) % Z < c


@inlined
def refresh_boxes(s: State) -> bool:
    """Bring the list of maximal free boxes up to date; return False if it does not fit."""
    if s.boxes_version == s.version:
        return True
    refresh_footprints(s)
    count = list_boxes(s, MACHINE, MACHINE, 1)
    if count == OVERFLOW:
        return False
    s.num_boxes = count
    s.boxes_version = s.version
    return True


@inlined
def refresh_footprints(s: State) -> None:
    """Bring the table of footprints up to date."""
    if s.footprints_version != s.version:
        set_table(s, MACHINE, s.free_nodes)
        s.footprints_version = s.version


@inlined
def largest_free(s: State) -> int:
    """Return the size of the maximal free partition, or -1 if the list of boxes does not fit."""
    if not refresh_boxes(s):
        return -1
    return s.boxes[MACHINE, 0, 0] if s.num_boxes > 0 else 0


@inlined
def fits(s: State, size: int) -> bool:
    """Tell whether a free box of exactly this size exists; the list of boxes must be up to date."""
    memo = s.fits[size]
    if memo >> 1 == s.version:
        return memo & 1 == 1
    found = _has_free_box(s, size)
    s.fits[size] = 2 * s.version + (1 if found else 0)
    return found


@kernel
def _has_free_box(s: State, size: int) -> bool:
    if s.finder_data != 0:
        return ask(s, ANY, MACHINE, size) > 0
    boxes = s.boxes[MACHINE]
    for at in range(s.num_boxes):
        if boxes[at, 0] < size:
            return False
        for row in range(s.shape_first[size], s.shape_first[size + 1]):
            if (
                s.shapes[row, 0] <= boxes[at, 1]
                and s.shapes[row, 1] <= boxes[at, 2]
                and s.shapes[row, 2] <= boxes[at, 3]
            ):
                return True
    return False


@kernel
def take(s: State, box: int) -> bool:
    """Occupy a packed box of the machine and split the maximal free boxes; return False if the list does not fit."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    occupy(s.free_nodes, box, X, Y, Z)
    current = s.boxes_version == s.version
    s.version += 1
    if not current:
        return True
    count = take_listed(s, MACHINE, s.num_boxes, box, 1)
    if count == OVERFLOW:
        return False
    s.num_boxes = count
    s.boxes_version = s.version
    return True


# --- what the finder of the run knows: tables in which boxes are sought, and lists of the maximal free boxes ----------
# Our own finder keeps footprints and all maximal boxes; those of the papers are asked, and list the largest box alone.


@kernel
def set_table(s: State, table: int, columns: Columns) -> None:
    """Make a table of the finder that of masks of free nodes, uint64 (X * Y,)."""
    if s.finder_data == 0:
        build_footprints(columns, s.side_x, s.side_y, s.footprints[table], s.extents[table])
    else:
        set_occupancy(s, table, columns)


@kernel
def list_boxes(s: State, table: int, listed: int, least: int) -> int:
    """List the maximal free boxes, of at least ``least`` nodes, of a table; return their number or OVERFLOW."""
    if s.finder_data == 0:
        X, Y, Z = s.side_x, s.side_y, s.side_z
        return maximal_boxes(s.footprints[table], s.extents[table], X, Y, Z, least, s.boxes[listed])
    return _list_one(s, listed, ask(s, LIST, listed, table), least)


@kernel
def take_listed(s: State, listed: int, count: int, box: int, least: int) -> int:
    """Take a packed box out of a list of ``count`` boxes; return the new number, or OVERFLOW."""
    if s.finder_data == 0:
        a, b, c, x, y, z = unpack_box(box)
        X, Y, Z = s.side_x, s.side_y, s.side_z
        return take_box(s.boxes[listed], count, s.boxes[SCRATCH], a, b, c, x, y, z, X, Y, Z, least)
    return _list_one(s, listed, ask(s, TAKE, listed, box), least)


@kernel
def _list_one(s: State, listed: int, box: int, least: int) -> int:
    """List a packed box alone unless it has fewer than ``least`` nodes or is 0; return the number of boxes."""
    if box == 0:
        return 0
    a, b, c, x, y, z = unpack_box(box)
    if a * b * c < least:
        return 0
    return insert_box(s.boxes[listed], 0, a * b * c, a, b, c, x, y, z)


@kernel
def have_box_at(s: State, columns: Columns, size: int, x: int, a: int, y: int, b: int) -> bool:
    """Tell whether masks of free nodes hold a box of at least ``size`` nodes; if none did before the nodes in the a x b
    columns at (x, y) were freed."""
    if s.finder_data == 0:
        return has_box_at(columns, s.side_x, s.side_y, s.side_z, size, x, a, y, b, s.plane)
    set_occupancy(s, ELSEWHEN, columns)
    return _list_one(s, SCRATCH, ask(s, LIST, SCRATCH, ELSEWHEN), size) > 0


@kernel
def has_box(s: State, table: int, size: int) -> bool:
    """Tell whether a table of the finder has a free box of exactly this size."""
    if s.finder_data != 0:
        return ask(s, FIND, table, size) > 0
    footprints, extents = s.footprints[table], s.extents[table]
    X, Y, Z = s.side_x, s.side_y, s.side_z
    for shape in range(s.shape_first[size], s.shape_first[size + 1]):
        a, b, c = s.shapes[shape, 0], s.shapes[shape, 1], s.shapes[shape, 2]
        for x in range(X if a < X else 1):
            if extents[(a - 1) * X + x] < b:
                continue
            for y in range(Y if b < Y else 1):
                if run_starts(footprints[(a - 1) * X + x, (b - 1) * Y + y], c, Z) != ZERO:
                    return True
    return False


@kernel
def keeps_room(
    boxes: Boxes,
    count: int,
    size: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    X: int,
    Y: int,
    Z: int,
) -> bool:
    """Tell whether a box of at least ``size`` nodes stays free beside a box; ``boxes`` lists maximal ones that
    large."""
    for at in range(count):
        if largest_beside(boxes, at, a, b, c, x, y, z, X, Y, Z) >= size:
            return True
    return False


@kernel
def best_box(
    s: State,
    rule: int,
    job: int,
    size: int,
    window: float,
    table: int,
    listed: int,
    count: int,
    shadow_count: int,
    head_size: int,
) -> int:
    """Return the packed free box of a size that a placement rule likes best, or NO_BOX.

    rule: code of the placement rule. window: the predictor's look-ahead, s. table: which table holds the candidates.
    listed, count: which list of maximal boxes, of how many, the MFP is counted on. If head_size > 0, only boxes beside
    which one of the ``shadow_count`` boxes of the reservation leaves head_size nodes are admissible.
    """
    if s.finder_data != 0:
        return _best_of_search(s, rule, job, size, window, table, listed, head_size)
    if rule == SCORED:
        return _best_scored_box(s, job, size, window, table, listed, count, shadow_count, head_size)
    return _best_of_footprints(s, rule, job, size, window, table, listed, count, shadow_count, head_size)


@kernel
def _best_of_search(
    s: State, rule: int, job: int, size: int, window: float, table: int, listed: int, head_size: int
) -> int:
    """Return the best box as ``best_box`` does, with another finder: every candidate's MFP is searched for."""
    predicted = predict(s, job, window) if rule != MFP else 0
    if predicted == 0 and rule != SCORED:
        rule = MFP
    before = s.boxes[listed, 0, 0]
    best, best_after, best_score, best_fails = NO_BOX, -1, np.inf, True
    score, fails = np.inf, True
    for at in range(ask(s, FIND, table, size)):
        box = ask(s, FOUND, at, 0)
        a, b, c, x, y, z = unpack_box(box)
        after = ask(s, BESIDE, listed, box)
        reported = reported_in(s, a, b, c, x, y, z) if predicted > 0 else 0
        if rule == SCORED:
            risk = failure_risk(s, reported)
            score = _score(s, job, after, before, size, reported, risk, a, b, c, x, y, z, window)
            if best != NO_BOX and not score < best_score:
                continue
        elif rule == BALANCING:
            score = (before - after) + s.job.requested[job] * failure_risk(s, reported)
            if score >= best_score:
                continue
        elif after < best_after or (after == best_after and (rule == MFP or not best_fails)):
            continue
        elif rule == TIE_BREAKING:
            fails = reported > 0
            if after == best_after and fails:
                continue
        if head_size > 0 and ask(s, BESIDE, ELSEWHEN, box) < head_size:
            continue
        best, best_after, best_score, best_fails = box, after, score, fails
    return best


@inlined
def _most_left(s: State, boxes: Boxes, a: int, b: int, c: int) -> int:
    """Return a bound on the MFP after any box of a shape: what it leaves of an empty torus, or the MFP before."""
    if boxes[0, 0] < s.nodes:
        return boxes[0, 0]
    return largest_beside(boxes, 0, a, b, c, 0, 0, 0, s.side_x, s.side_y, s.side_z)


@inlined
def _starts_beside_room(s: State, boxes: Boxes, count: int, size: int, a: int, b: int, c: int) -> Starts:
    """Return along each axis where a box of a shape can begin, so that one of a list of maximal boxes keeps room for
    ``size`` nodes; anywhere or nowhere on a torus with more columns along an axis than a word has bits."""
    if max(s.side_x, s.side_y) > 64:
        anywhere = ~ZERO if _most_left(s, boxes, a, b, c) >= size else ZERO
        return anywhere, anywhere, anywhere
    return (
        starts_with_room(boxes, count, size, 0, a, s.side_x),
        starts_with_room(boxes, count, size, 1, b, s.side_y),
        starts_with_room(boxes, count, size, 2, c, s.side_z),
    )


@inlined
def _starts(mask: np.uint64, c: int, Z: int, room: Starts, wins: Starts, x: int, y: int) -> np.uint64:
    """Return the mask of the z at which boxes of length c start in the free runs of a footprint at (x, y): those that
    leave room for the head of the queue, and that can win."""
    allowed = mask
    if (room[0] >> np.uint64(x & 63) | room[1] >> np.uint64(y & 63)) & ONE == ZERO:
        allowed &= room[2]
    if (wins[0] >> np.uint64(x & 63) | wins[1] >> np.uint64(y & 63)) & ONE == ZERO:
        allowed &= wins[2]
    if allowed == ZERO:
        return ZERO
    return run_starts(mask, c, Z) & allowed


@inlined
def _outdoes(
    s: State,
    rule: int,
    job: int,
    boxes: Boxes,
    count: int,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    best_after: int,
    best_score: float,
    best_fails: bool,
) -> tuple[bool, int, float, bool]:
    """Tell whether a rule likes a box more than the best so far; and the MFP after it, its score, and whether it is
    predicted to fail, as far as the rule asks."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    if rule == MFP:
        after = mfp_after(boxes, count, a, b, c, x, y, z, X, Y, Z, best_after)
        return after > best_after, after, np.inf, True
    if rule == BALANCING:
        failing = s.job.requested[job] * failure_risk(s, reported_in(s, a, b, c, x, y, z))
        if failing >= best_score:
            return False, -1, np.inf, True
        before = boxes[0, 0]
        floor = max(-1, int(before + failing - best_score) - 1) if best_score < np.inf else -1
        after = mfp_after(boxes, count, a, b, c, x, y, z, X, Y, Z, floor)
        score = (before - after) + failing
        return score < best_score, after, score, True
    after = mfp_after(boxes, count, a, b, c, x, y, z, X, Y, Z, best_after - 1)
    if after < best_after or (after == best_after and not best_fails):
        return False, after, np.inf, True
    fails = reported_in(s, a, b, c, x, y, z) > 0
    return after > best_after or not fails, after, np.inf, fails


@kernel
def _best_of_footprints(
    s: State,
    rule: int,
    job: int,
    size: int,
    window: float,
    table: int,
    listed: int,
    count: int,
    shadow_count: int,
    head_size: int,
) -> int:
    """Return the best box as ``best_box`` does; ``mfp`` only tries boxes that leave more than the best so far."""
    footprints, extents = s.footprints[table], s.extents[table]
    boxes, shadow_boxes = s.boxes[listed], s.boxes[ELSEWHEN]
    X, Y, Z = s.side_x, s.side_y, s.side_z
    wide = head_size > 0 and max(X, Y) > 64
    room = wins = (~ZERO, ~ZERO, ~ZERO)
    predicted = predict(s, job, window) if rule != MFP else 0
    if predicted == 0:
        rule = MFP
    before = boxes[0, 0]
    best, best_after, best_score, best_fails = NO_BOX, -1, np.inf, True
    for row in range(s.shape_first[size], s.shape_first[size + 1]):
        a, b, c = s.shapes[row, 0], s.shapes[row, 1], s.shapes[row, 2]
        if head_size > 0:
            room = _starts_beside_room(s, shadow_boxes, shadow_count, head_size, a, b, c)
        if rule == MFP and best != NO_BOX:
            wins = _starts_beside_room(s, boxes, count, best_after + 1, a, b, c)
        for x in range(X if a < X else 1):
            if wins[0] | wins[1] | wins[2] == ZERO:
                break
            if extents[(a - 1) * X + x] < b:
                continue
            for y in range(Y if b < Y else 1):
                mask = footprints[(a - 1) * X + x, (b - 1) * Y + y]
                starts = _starts(mask, c, Z, room, wins, x, y)
                while starts != ZERO:
                    z = lowest_bit(starts)
                    starts &= starts - ONE
                    is_better, after, score, fails = _outdoes(
                        s, rule, job, boxes, count, a, b, c, x, y, z, best_after, best_score, best_fails
                    )
                    if not is_better:
                        continue
                    if wide and not keeps_room(shadow_boxes, shadow_count, head_size, a, b, c, x, y, z, X, Y, Z):
                        continue
                    best, best_after, best_score, best_fails = pack_box(a, b, c, x, y, z), after, score, fails
                    if rule == MFP:
                        if after >= before:
                            return best
                        wins = _starts_beside_room(s, boxes, count, after + 1, a, b, c)
                        starts &= _starts(mask, c, Z, room, wins, x, y)
    return best


@kernel
def coin(key: int, node: int, job: int, restarts: int) -> float:
    """Return the predictor's coin in [0, 1): a hash of (seed, node, job, restarts), so it does not depend on how often
    it is asked.

    The finaliser of splitmix64 over a counter made of the four numbers.
    """
    h = np.uint64(key)
    for part in (node, job, restarts):
        h = (h ^ np.uint64(part)) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(30)
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(27)
        h *= np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
    return np.float64(h >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def predict(s: State, job: int, window: float) -> int:
    """Mark the nodes that are reported to fail in the open window (now, now + window) and return their number.

    The coin of (seed, node, job, restarts) is compared with the recall for a node that fails in the window, and with
    the rate of false positives for any other.
    """
    recall, false_rate = s.recall, false_positive_rate(s, window)
    own = s.own_predictor != 0
    if recall <= 0.0 and false_rate <= 0.0 and not own:
        return 0
    Y, Z = s.side_y, s.side_z
    marks = s.predicted
    marks[:] = ZERO
    if own:
        ask_own_predictor(s, job, window)
        for node in range(s.nodes):
            if s.own_reported[node] != 0.0:
                marks[node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)
    if false_rate > 0.0:
        for node in range(s.nodes):
            if coin(s.coin_key, node, job, s.job.restarts[job]) < false_rate:
                marks[node // (Y * Z) * Y + node // Z % Y] |= ONE << np.uint64(node % Z)
    end = s.now + window
    at = s.next_failure  # those of this instant have happened
    while not own and at < s.fail_time.shape[0] and s.fail_time[at] < end:
        node = int(s.fail_node[at])
        at += 1
        bit = ONE << np.uint64(node % Z)
        column = node // (Y * Z) * Y + node // Z % Y
        if recall >= 1.0 or coin(s.coin_key, node, job, s.job.restarts[job]) < recall:
            marks[column] |= bit
        else:
            marks[column] &= ~bit
    marked = 0
    for column in range(s.side_x * Y):
        marked += popcount(marks[column])
    return marked


@kernel
def ask_own_predictor(s: State, job: int, window: float) -> None:
    """Set ``own_reported`` of all nodes: whether a predictor of the user's reports them."""
    s.own_window = window
    call_own(s.own_predictor, s, job, 0, 0)


@kernel
def false_positive_rate(s: State, window: float) -> float:
    """Return the probability that a node without a failure in the window is reported: given, or by the precision.

    The base rate is the share of nodes and times with a failure of the node in the window: the sum of min(gap, window)
    over the times between failures of a node, divided by the node-seconds. At most 1: where the base rate is above the
    precision and the recall is high, no predictor is as imprecise as asked.
    """
    precision = s.precision
    if precision >= 1.0:
        return s.false_rate
    count = s.base_gaps
    low, below = 0, count  # gaps shorter than the window: below
    while low < below:
        middle = (low + below) // 2
        if s.base_gap[middle] < window:
            low = middle + 1
        else:
            below = middle
    shorter = s.base_sum[below - 1] if below > 0 else 0.0
    base_rate = (shorter + (count - below) * window) / s.node_seconds
    if base_rate >= 1.0:
        return 0.0
    return min(1.0, s.recall * base_rate / (1.0 - base_rate) * (1.0 - precision) / precision)


@kernel
def reported_in(s: State, a: int, b: int, c: int, x: int, y: int, z: int) -> int:
    """Return how many nodes of a box are marked as reported."""
    X, Y, Z = s.side_x, s.side_y, s.side_z
    run = ring_run(z, c, Z)
    marked = 0
    for dx in range(a):
        u = x + dx
        row = (u - X if u >= X else u) * Y
        for dy in range(b):
            v = y + dy
            marked += popcount(s.predicted[row + (v - Y if v >= Y else v)] & run)
    return marked


@kernel
def failure_risk(s: State, marked: int) -> float:
    """Return the predicted probability that a box with so many marked nodes fails: 1 - (1 - a)^k, or a if k > 0."""
    if marked == 0:
        return 0.0
    accuracy = s.accuracy
    if s.partition_failure == MAXIMUM:
        return accuracy
    survives = 1.0
    for _ in range(marked):
        survives *= 1.0 - accuracy
    return 1.0 - survives


@kernel
def _best_scored_box(
    s: State, job: int, size: int, window: float, table: int, listed: int, count: int, shadow_count: int, head_size: int
) -> int:
    """Return what ``best_box`` does, by the user's score: the lowest wins, and NaN is never better.

    Without its place a score has one answer for all boxes of a shape with as many reported nodes.
    """
    footprints, extents = s.footprints[table], s.extents[table]
    boxes, shadow_boxes = s.boxes[listed], s.boxes[ELSEWHEN]
    X, Y, Z, needs = s.side_x, s.side_y, s.side_z, s.score_needs
    wide, room = head_size > 0 and max(X, Y) > 64, (~ZERO, ~ZERO, ~ZERO)
    predicted = predict(s, job, window) if needs & NEEDS_PREDICTION != 0 else 0
    prunes, placed = needs & MONOTONE != 0, needs & NEEDS_PLACE != 0
    alike = predicted == 0 and not placed  # the boxes of a shape, but for what they leave
    before, best, best_after, best_score = boxes[0, 0], NO_BOX, 0, np.inf
    after, marked, risk, floor = 0, 0, 0.0, -1
    for row in range(s.shape_first[size], s.shape_first[size + 1]):
        a, b, c = s.shapes[row, 0], s.shapes[row, 1], s.shapes[row, 2]
        if head_size > 0:
            room = _starts_beside_room(s, shadow_boxes, shadow_count, head_size, a, b, c)
        bound = _most_left(s, boxes, a, b, c)
        asked, hopeless = -1, False  # ``hopeless`` and ``floor`` are of boxes with so many reported nodes
        for x in range(X if a < X else 1):
            if extents[(a - 1) * X + x] < b:
                continue
            for y in range(Y if b < Y else 1):
                mask = footprints[(a - 1) * X + x, (b - 1) * Y + y]
                starts = _starts(mask, c, Z, room, room, x, y)
                while starts != ZERO:
                    z = lowest_bit(starts)
                    starts &= starts - ONE
                    if predicted > 0:
                        marked = reported_in(s, a, b, c, x, y, z)
                        risk = failure_risk(s, marked)
                    if prunes and best != NO_BOX and (placed or asked != marked):
                        floor = _must_leave(
                            s, job, bound, best_after, best_score, before, size, marked, risk, a, b, c, x, y, z, window
                        )
                        hopeless, asked = floor == HOPELESS, marked
                    if hopeless:
                        if alike:
                            starts = ZERO
                        continue
                    if needs & NEEDS_MFP != 0:
                        after = mfp_after(boxes, count, a, b, c, x, y, z, X, Y, Z, floor)
                        if after <= floor:
                            continue
                    score = _score(s, job, after, before, size, marked, risk, a, b, c, x, y, z, window)
                    if best != NO_BOX and not score < best_score:
                        continue
                    if wide and not keeps_room(shadow_boxes, shadow_count, head_size, a, b, c, x, y, z, X, Y, Z):
                        continue
                    best, best_after, best_score = pack_box(a, b, c, x, y, z), after, score
                    asked = -1
                if hopeless and alike:
                    break
            if hopeless and alike:
                break
    return best


@inlined
def _must_leave(
    s: State,
    job: int,
    bound: int,
    best_after: int,
    best_score: float,
    before: int,
    size: int,
    reported: int,
    risk: float,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    window: float,
) -> int:
    """Return how many nodes a box must leave more than to win by a monotone score; HOPELESS if it cannot win.

    The score is asked what the box would get if it left all it can, and if it left as much as the best so far.
    """
    if not _score(s, job, bound, before, size, reported, risk, a, b, c, x, y, z, window) < best_score:
        return HOPELESS
    as_much = _score(s, job, best_after, before, size, reported, risk, a, b, c, x, y, z, window)
    return -1 if as_much < best_score else best_after


@inlined
def _score(
    s: State,
    job: int,
    after: int,
    before: int,
    size: int,
    reported: int,
    risk: float,
    a: int,
    b: int,
    c: int,
    x: int,
    y: int,
    z: int,
    window: float,
) -> float:
    """Return the user's score of a box."""
    requested = s.job.requested[job]
    inputs = (after, before, requested, size, reported, risk, a, b, c, x, y, z, window, s.now)
    return call_score(s.score, inputs, s.own_score_values)
