"""What every peer runs, and what is asked of it: ``sweep FOLDER A B FUNCTION`` and ``read FOLDER``.

A script of a peer gives ``main`` two functions: ``sweep(function, names, a, b, folder)`` runs a function of two
arguments over the grid on two processes and leaves all in the folder, and goes on where there is something;
``read(folder)`` returns it as an xarray Dataset, in another process. Where what ``sweep`` leaves is no Dataset on the
disk, ``label(folder)`` writes one, which is part of what a sweep costs.
"""

import json
import os
import sys
import time
from pathlib import Path

METRICS = [f"m{i:02d}" for i in range(30)]
WORKERS = 2
POINT_S = 0.02


def nothing(a, b):
    """Return thirty numbers at once."""
    return dict.fromkeys(METRICS, a + b)


def millisecond(a, b):
    """Return thirty numbers after a millisecond of processor time."""
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
    return dict.fromkeys(METRICS, a + b)


def noted(a, b):
    """Return two numbers after a while, and note the call; fail at the point that ``FAILS`` names."""
    time.sleep(POINT_S)
    if os.environ.get("FAILS") == f"{int(a)} {int(b)}":
        raise ValueError("this point is not liked")
    with open(os.environ["CALLS"], "a") as file:
        file.write(f"{int(a)} {int(b)}\n")
    return {"y": 10.0 * a + b / 7, "z": a - b / 3}


def typed(a, b):
    """Return a whole number of 61 bits, a boolean, text and a time."""
    import numpy as np

    return {
        "whole": 2**60 + 1 + int(a),
        "flag": bool(a > b),
        "text": "ä" * (1 + int(b)),
        "when": np.datetime64("2026-01-01T00:00:00.000000001", "ns") + np.timedelta64(int(a), "D"),
    }


FUNCTIONS = {
    "nothing": (nothing, METRICS),
    "millisecond": (millisecond, METRICS),
    "noted": (noted, ["y", "z"]),
    "typed": (typed, ["whole", "flag", "text", "when"]),
}


def as_text(value):
    """Return a value of a Dataset so that JSON tells it from any other."""
    import numpy as np

    value = np.asarray(value)
    if value.dtype.kind == "M":
        return f"time {value.astype('M8[ns]').astype(np.int64)}"
    if value.dtype.kind == "b":
        return f"bool {bool(value)}"
    if value.dtype.kind in "iu":
        return f"int {int(value)}"
    if value.dtype.kind == "f":
        return f"float {float(value)!r}"
    return f"text {value.item()}" if isinstance(value.item(), str) else f"object {value.item()!r}"


def main(sweep, read, label=None):
    """Do what the command line says."""
    what, folder, *more = sys.argv[1:]
    if what == "sweep":
        function, names = FUNCTIONS[more[2]]
        a, b = ([float(i) for i in range(int(number))] for number in more[:2])
        sweep(function, names, a, b, Path(folder))
        if label and "LABELLED" in os.environ:
            label(Path(folder))
        return
    data = read(Path(folder))
    for extra in [dim for dim in data.dims if dim not in ("a", "b")]:
        data = data.isel({extra: 0})
    data = data.load()
    names = [name for name in data.data_vars if {"a", "b"} <= {*data[name].dims}]
    values = {
        f"{int(a)} {int(b)}": {str(name): as_text(data[name].sel(a=a, b=b).values) for name in names}
        for a in data.a.values
        for b in data.b.values
    }
    print(json.dumps(values))
