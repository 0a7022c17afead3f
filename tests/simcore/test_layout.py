"""The state's arrays and the words by which kernels find them."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from faultsweep.simcore.engine.handle import make_state_at
from faultsweep.simcore.engine.jit import entry_kernel, is_interpreted
from faultsweep.simcore.engine.layout import Declared, FloatOfJob, FloatTable, GivenInt, IntOfJob, Template


class Example(Declared):
    """Scalars, rows of three tables, one of which no run changes, and an array of its own."""

    now: float
    size: GivenInt
    first: FloatOfJob
    second: FloatOfJob
    third: IntOfJob
    masks: FloatTable


example_at = make_state_at(Example)


def made(jobs: int, masks: int) -> Example:
    return Example.zeros(given_jobs=jobs, job_f=jobs, job_i=jobs, masks=(masks, 3))


def own_arrays(state: Example) -> list[np.ndarray]:
    return [array for name, array in state.arrays.items() if name != "given_jobs"]


def check(state: Example) -> None:
    for row, (name, array) in zip(state.words.tolist(), state.arrays.items(), strict=True):
        assert row == [array.ctypes.data, *array.shape, *[0] * (3 - array.ndim)], name


def test_words_are_the_addresses_and_sides_of_the_arrays():
    for state in (made(5, 2), made(5, 2), made(0, 7), made(5, 2)):
        check(state)
        assert not any(array.any() or array.ctypes.data % 64 for array in state.arrays.values())
        state.now, state.first[:], state.masks[:] = 1.0, 2.0, 3.0
        other = state.with_arrays(masks=np.zeros((9, 3)))
        check(other)
        other.second[:] = 4.0
        assert np.array_equal(state.second, other.second)
        with pytest.raises(TypeError, match=r"masks is float64 with 1 axes, expected float64 with 2"):
            state.with_arrays(masks=np.zeros(9))


def test_copies_of_a_state_have_each_of_its_bits_and_share_only_what_no_run_changes():
    state = made(5, 4)
    state.size[:] = [1, 0, 3, 0, 5]
    state.now, state.first[3], state.third[:] = -0.0, np.nan, 7
    state.masks[1, 2], state.masks[2, 0] = -0.0, 2.0
    template = Template(state)
    expected = {name: array.tobytes() for name, array in state.arrays.items()}
    state.second[:] = 1.0
    for _ in range(2):
        copy = template.copy()
        check(copy)
        assert {name: array.tobytes() for name, array in copy.arrays.items()} == expected
        assert copy.arrays["given_jobs"] is template.copy().arrays["given_jobs"]
        with pytest.raises(ValueError, match="read-only"):
            copy.size[0] = 9
        for array in own_arrays(copy):
            array[...] = 9


def test_a_copy_finds_the_same_arrays_before_and_after_it_has_made_all():
    """They are made when they are asked for, and a part of the state or a state with other arrays may ask first."""
    state = made(5, 4)
    other = state.with_arrays(masks=np.ones((2, 3)))
    other.second[:] = 7.0
    assert state.second.tolist() == [7.0] * 5
    assert state.arrays["masks"].shape == (4, 3)
    assert other.masks.shape == (2, 3)
    assert list(state.arrays) == list(Example.layout.tables)


@pytest.mark.parametrize(("jobs", "masks"), [(0, 0), (1, 0), (0, 1)])
def test_copies_of_a_state_without_jobs(jobs, masks):
    check(Template(made(jobs, masks)).copy())


@pytest.mark.parametrize("jobs", [60, 500, 512, 513, 5000])
def test_copies_of_a_state_are_right_wherever_its_zeros_are(jobs):
    """Spans of zeros are not kept, and the memory that a copy gets has other numbers in it."""
    rng = np.random.default_rng(jobs)
    for used in (0.0, 1e-4, 1e-3, 0.5):
        state = made(jobs, jobs)
        for array in state.arrays.values():
            array[rng.random(array.shape) < used] = 5
        template, expected = Template(state), {name: array.copy() for name, array in state.arrays.items()}
        for _ in range(3):
            copy = template.copy()
            for name, array in copy.arrays.items():
                assert np.array_equal(array, expected[name]), name
            for array in own_arrays(copy):
                array[...] = -1
            del copy, array


def test_threads_that_make_states_of_different_shapes_get_what_they_ask_for():
    """What is kept of the last shapes is kept in one step."""

    def make(jobs: int) -> None:
        for _ in range(300):
            state = made(jobs, jobs)
            assert state.first.shape == (jobs,)
            check(state)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(make, (1, 10, 100, 1000)))
    finally:
        sys.setswitchinterval(before)


@entry_kernel
def overwrite(table):
    """Write into what no run changes."""
    example_at(table).size[0] = 1


@entry_kernel
def read_size(table):
    """Read it; table: of ``Example``."""
    return example_at(table).size[0]


@pytest.mark.skipif(is_interpreted(), reason="only the compiler refuses it")
def test_no_kernel_writes_into_what_no_run_changes():
    state = made(3, 1)
    state.size[:] = 7
    assert read_size(state.words.reshape(-1)) == 7
    with pytest.raises(Exception, match="readonly array"):
        overwrite(state.words.reshape(-1))
