"""Pictures stay as they were when somebody looked at them: every kind of panel, light and dark, wide and narrow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from faultsweep.analysis.figures.figure import LOOKS, Bars, Curve, Figure, Heat, Panel, Table
from faultsweep.analysis.figures.layout import DARK, LIGHT
from faultsweep.analysis.verdict import Verdict, verdict_figure
from faultsweep.sweeps.best import Best

from .picturing import MOST, check_kept, difference, drawn

X = np.array([1.0, 2.0, 4.0, 8.0])


def curve(number, factor, **more):
    y = factor * np.sqrt(X)
    return Curve(f"policy {number}", X, y, 0.8 * y, 1.25 * y, LOOKS[number], **more)


def verdict(regions):
    """The picture of a selection of three policies, one of them far worse, in so many regions."""
    columns = ("policy", "mean", "n", "worse", "worse_low", "worse_high", "result")
    rows = [
        {"Load scale": f"{0.6 + 0.3 * number:.1f}", **dict(zip(columns, row, strict=True))}
        for number in range(regions)
        for row in [
            ("EASY", 2.0, 40, 0.0, np.nan, np.nan, "best"),
            ("Conservative", 2.2, 40, 0.1 + 0.05 * number, -0.04, 0.3, "as good or worse"),
            ("FCFS", 30.0, 10, 14.0, 9.0 if number else 3.0, np.inf if number == 2 else 22.0, "worse"),
        ]
    ]
    table = pd.DataFrame(rows)
    shown = table if regions > 1 else table.drop(columns="Load scale")
    said = "EASY is best by mean wait, or within 5 % of the best"
    return verdict_figure("a", Best("scheduler", "w"), Verdict(said, shown, shown, 90, 30, "mean wait", "w"))


def figures():
    few = [curve(0, 1.0), curve(1, 2.0)]
    many = [curve(n, 1.0 + n) for n in range(5)]
    dots = curve(0, 1.0, replicates=np.sqrt(X)[:, None] * [0.85, 1.0, 1.2], flagged=X > 4)
    bars = [Bars(f"policy {n}", np.array([1.0, 2, 3]) + n, LOOKS[n], np.array([0.8, 1.8, 2.8]) + n,
                 np.array([1.2, 2.2, 3.2]) + n) for n in range(3)]  # fmt: skip
    shares = [Bars(name, np.full(3, share), LOOKS[n]) for n, (name, share) in enumerate([("used", 0.7), ("lost", 0.3)])]
    names = ["Even", "a long name of a policy", "All-B"]
    value = np.arange(12.0).reshape(3, 4)
    wide = [replace(bar, y=100.0 ** (bar.y - 3), low=None, high=None) for bar in bars]
    people = [f"policy {n}" for n in range(40)]
    crowd = Bars("wait", np.arange(1.0, 41.0), LOOKS[0])
    places = [str(10 * n) for n in range(11)]
    full = Heat(places, places[:3], np.full((3, 11), 1.82), np.zeros((3, 11)), np.ones((3, 11)), "turnaround (h)")
    heat = Heat(["0", "1", "2", "3"], ["a", "b", "c"], value - 5, value, value, "change (%)", centre=0.0)
    return {
        "bands": Figure("bands", "Two lines have bands", [], [Panel("one", "load", "wait (h)", few, log_x=True)]),
        "dodged": Figure("dodged", "Five lines, shared scale", [], [Panel(t, "load", "wait (h)", many) for t in "ab"]),
        "log": Figure("log", "A wide range", [], [Panel("", "load", "wait (h)", [curve(0, 1.0), curve(1, 100.0)])]),
        "dots": Figure("dots", "Replicates and a ring", [], [Panel("", "load", "wait (h)", [dots])]),
        "signed": Figure("signed", "Changes", [], [Panel("", "load", "change (%)", [curve(2, -3.0)], signed=True)]),
        "bars": Figure("bars", "Bars", [], [Panel("", "policy", "wait (h)", bars=bars, categories=names)]),
        "points": Figure("points", "Bars", [], [Panel("", "", "slowdown", bars=wide, categories=names, log_y=True)]),
        "crowd": Figure("crowd", "Many", [], [Panel("", "", "wait (h)", bars=[crowd], categories=people)]),
        "cells": Figure("cells", "A full map", [], [Panel("", "x", "y", heat=full)]),
        "stacked": Figure(
            "stacked", "Shares", [], [Panel("", "", "share", bars=shares, categories=names, stacked=True)]
        ),
        "heat": Figure("heat", "A map", [], [Panel("", "x", "y", heat=heat)]),
        "verdict": verdict(1),
        "regions": verdict(3),
        "table": Figure("table", "A table", [], table=Table(["what", "how much"], [["a", "1"], ["b", "2,000"]])),
    }


CASES = [(name, width, LIGHT) for name in figures() for width in (None,)]
CASES += [
    ("dodged", 4.0, LIGHT),
    ("cells", 4.0, LIGHT),
    ("dodged", None, DARK),
    ("bars", None, DARK),
    ("verdict", 4.0, DARK),
    ("regions", 4.0, DARK),
]


@pytest.mark.parametrize(("name", "width", "theme"), CASES)
@pytest.mark.sampled(8)
def test_a_picture_is_as_it_was(name, width, theme):
    kept = f"{name}{'-narrow' if width else ''}{'-dark' if theme is DARK else ''}"
    check_kept(drawn(figures()[name], width, theme), kept)


def test_another_picture_is_told_apart():
    """The limit is no empty one: another curve, another word, and a panel without its legend are seen."""
    few = figures()["dodged"]
    kept = drawn(few)
    others = [
        replace(few, panels=[replace(few.panels[0], y_label="slowdown"), *few.panels[1:]]),
        replace(few, panels=[replace(panel, curves=panel.curves[:4]) for panel in few.panels]),
        replace(few, panels=[replace(panel, curves=[*panel.curves[:4], curve(4, 3.0)]) for panel in few.panels]),
        replace(few, title="Another title"),
    ]
    assert difference(kept, drawn(few)) == 0
    assert all(difference(kept, drawn(other)) > MOST for other in others)
