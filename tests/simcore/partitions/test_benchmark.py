"""The measurement of the finders runs, and its fit finds the exponent of an exact power law."""

from __future__ import annotations

import csv

import pytest

from benchmarks import finders


def test_exponent_of_an_exact_power_law():
    timings = [finders.Timing("largest", "empty", "pop", side, 3e-9 * side**5) for side in finders.SIDES]
    (fit,) = finders.fit_exponents(timings)
    assert fit[:5] == ("largest", "empty", "pop", finders.SMALLEST_FITTED, finders.SIDES[-1])
    assert (fit.exponent, fit.low, fit.high) == pytest.approx((5, 5, 5))
    assert finders.fit_exponents(timings[:3]) == []


def test_expected_time_goes_on_as_the_last_two_sides():
    assert finders.expected_time([(4, 1.0)], 8) == 0
    assert finders.expected_time([(2, 1.0), (4, 8.0)], 8) == pytest.approx(64)


@pytest.mark.parametrize("kind", finders.OCCUPANCIES)
def test_occupancies_are_as_full_as_they_say(kind):
    free = finders.draw_occupancy(kind, 8, 0)
    low, high = {"empty": (1, 1), "jobs": (0.2, 0.3), "random": (0.4, 0.6)}[kind]
    assert low <= free.mean() <= high


def test_measure_write_and_draw(tmp_path):
    timings = list(finders.measure(cap_s=1.0, sides=(2, 3), least_s=0.0))
    assert len(timings) == len(finders.SEARCHES) * len(finders.OCCUPANCIES) * len(finders.FINDERS) * 2
    assert all(timing.seconds >= 0 for timing in timings)
    finders.write_csv(tmp_path / "times.csv", timings)
    with (tmp_path / "times.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(timings)
    finders.draw(timings, []).savefig(tmp_path / "times.png", dpi=30)
    assert (tmp_path / "times.png").read_bytes().startswith(b"\x89PNG")
