"""Random streams: each depends on seed, replicate and purpose alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice

import numpy as np
import pytest
from faultsweep.simcore.streams import Kept, round_ms, stream, stream_that_spawns


def test_streams_are_pinned():
    """A changed stream changes every stored result: this must only fail together with a new model version."""
    assert stream(0, 0, "jobs").random(3).tolist() == [0.9021892527437545, 0.6775604086475494, 0.4206597016761534]
    assert stream(2**70, 5, "failures").random(1).tolist() == [0.869199389779752]


def test_streams_differ_in_every_part_of_their_name():
    names = [(0, 0, "a"), (1, 0, "a"), (0, 1, "a"), (0, 0, "b"), (2**32, 0, "a"), (0, 2**32, "a"), (1, 2**32, "a")]
    draws = {stream(*name).random() for name in names}
    assert len(draws) == len(names)


def test_streams_that_a_user_spawns_from_are_the_same_each_time():
    name = (3, 1, "own failures/of gaps")
    assert stream_that_spawns(*name).random() == stream(*name).random()
    spawned = [[each.random() for each in stream_that_spawns(*name).spawn(2)] for _ in range(2)]
    assert spawned[0] == spawned[1]
    assert spawned[0][0] != spawned[0][1]


def test_round_ms():
    assert round_ms(1.23449) == 1.234
    assert round_ms(np.array([0.0004, 7.0, 1e9 + 0.0006])).tolist() == [0.0, 7.0, 1e9 + 0.001]


@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_kept_items_are_made_once_and_those_behind_them_anew(most):
    begun = []

    def squares():
        begun.append(0)
        for number in count():
            begun[-1] += 1
            yield number * number

    kept = Kept(squares, most)
    for length in (3, 8, 0, 2, 8):
        assert list(islice(kept, length)) == [number * number for number in range(length)]
    assert begun[0] == min(most, 8)
    assert (len(begun) == 1) == (most >= 8)


def test_threads_that_take_the_kept_items_at_once_get_the_same():
    kept = Kept(lambda: iter(count()), 500)
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: list(islice(kept, 600)), range(8)))
    assert taken == [list(range(600))] * 8


def test_items_are_the_same_after_one_was_interrupted():
    """Ctrl-C may come while an item is made, or after that and before it is kept."""
    interrupted = [3, 5]

    def numbers():
        for number in count():
            if interrupted and number == interrupted[0]:
                del interrupted[0]
                raise KeyboardInterrupt
            yield number

    kept = Kept(numbers, 8)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            list(islice(kept, 10))
    assert list(islice(kept, 10)) == list(range(10))
