"""Small functions to sweep over: they add, sleep, raise, hang, or end their process."""

from __future__ import annotations

import datetime
import os
import signal
import time
import uuid
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import xarray as xr
from faultsweep.sweeps.target import Config, FunctionTarget, Outcome


def add(a: float = 0, b: float = 0, mode: str = "x", replicate: int = 0, seed: int = 0) -> dict[str, float]:
    """Numbers that depend on everything, and are not round."""
    random = np.random.default_rng([seed, replicate, len(mode)]).random()
    return {"sum": a + b + random, "product": a * b / 3}


def slow(a: float, b: float = 0, replicate: int = 0, sleep_s: float = 0.01, gate: str = "") -> dict[str, Any]:
    """The same, with jobs, but it takes its time: only as long as the file ``gate`` is there, if one is named."""
    end = time.monotonic() + sleep_s
    while (left := end - time.monotonic()) > 0 and (not gate or Path(gate).exists()):
        time.sleep(min(left, 0.05))
    return {**add(a, b, replicate=replicate), "jobs": {"a": [a] * (int(a) + 1)}}


def tallied(a: int, folder: str = "", sleep_s: float = 0.0) -> dict[str, float]:
    """Leave a file for every call, and take so long."""
    (Path(folder) / f"{a}-{uuid.uuid4().hex}").touch()
    time.sleep(sleep_s)
    return {"y": a / 7}


def opened(gate: str) -> None:
    """Keep a worker busy until there is a file."""
    while not Path(gate).exists():
        time.sleep(0.02)


def zero(a: float, b: float = 0, replicate: int = 0, sleep_s: float = 0, gate: str = "") -> dict[str, float]:
    """Nothing at all."""
    return {"sum": 0.0, "product": 0.0}


def noop(a: float, b: float, c: float) -> float:
    """Nothing to do."""
    return a


def counted(a: float, b: float, calls: str) -> float:
    """Note every call in a file."""
    with Path(calls).open("a") as file:
        file.write(f"{a} {b}\n")
    return a * 10 + b


def moody(a: int, what: str) -> float:
    """Do something bad at a = 3."""
    if a == 3:
        if what == "raise":
            raise ValueError("three is not liked")
        if what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "exit":
            os._exit(7)
        if what == "hang":
            while True:
                time.sleep(0.01)
    return a * 2.0


class Uneven(FunctionTarget):
    """A target whose runs are done, truncated, or fail, by turns; ``calls`` is where they are noted."""

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Run the function, and cut it."""
        if config["a"] % 3 == 2 and not Path(f"{config['calls']}.mended").exists():
            raise ValueError("not this one")
        return Outcome(super().run(config).values, truncated=config["a"] % 3 == 1)


def deadly(a: int, calls: str) -> float:
    """Note the call, and end the process from a = 2 on; let it hang at a = 10."""
    with Path(calls).open("a") as file:
        file.write(f"{a}\n")
    if 2 <= a < 10:
        os._exit(7)
    while a == 10:
        time.sleep(0.01)
    time.sleep(0.05)
    return a * 2.0


def sleepy(a: int, calls: str) -> float:
    """Take a tenth of a second; end the process at a = 10."""
    if a == 10:
        os._exit(7)
    time.sleep(0.1)
    return a


def grumpy(a: int, calls: str) -> float:
    """Note the call, and fail at even a until somebody mends it."""
    with Path(calls).open("a") as file:
        file.write(f"{a}\n")
    if a % 2 == 0 and not Path(f"{calls}.mended").exists():
        raise ValueError("even numbers are odd")
    return float(a)


class SlowToStart(FunctionTarget):
    """A target that takes half a second to get ready."""

    preparing = "heating the oven"

    def warm(self, config: Config) -> None:
        """Get ready."""
        time.sleep(0.5)


def brittle(a: int, b: int = 0, calls: str = "") -> dict[str, Any]:
    """As ``with_jobs``, but from a = 3 on it fails once the file ``calls`` is there."""
    if a >= 3 and Path(calls).exists():
        raise ValueError("broken by now")
    return with_jobs(a, b)


class Cold(FunctionTarget):
    """A target whose runs take 3 s in a process that is not warm for such an ``a``; ``calls`` says who got warm."""

    compiled_by = ("a",)

    def preparation(self, config: Config) -> Hashable:
        """Return one of two kinds."""
        return config["a"] > 2

    def warm(self, config: Config) -> None:
        """Get warm, slowly."""
        with Path(config["calls"]).open("a") as file:
            file.write(f"{os.getpid()} {self.preparation(config)}\n")
        time.sleep(0.7)
        self.__dict__.setdefault("kinds", set()).add(self.preparation(config))

    def run(self, config: Config, keep_jobs: bool = False) -> Outcome:
        """Run the function."""
        if self.preparation(config) not in self.__dict__.get("kinds", ()):
            time.sleep(3)
        return super().run(config, keep_jobs)


def vector(a: float) -> dict[str, Any]:
    """A number and a vector."""
    return {"total": 3 * a, "parts": [a, 2 * a, 4 * a]}


def both(a: float, calls: str) -> dict[str, float]:
    """Two outputs; every call is noted."""
    with Path(calls).open("a") as file:
        file.write(f"{a}\n")
    return {"y": a, "z": 10 * a}


def with_jobs(a: int, b: int = 0) -> dict[str, Any]:
    """Two numbers, and per-job results of a length that depends on the parameters."""
    ids = np.arange(a + b + 1)
    return {"y": float(a), "double": 2.0 * a, "jobs": {"job_id": ids, "wait_s": ids / 7 + a}}


def with_many_jobs(a: int) -> dict[str, Any]:
    """Per-job results of a few thousand jobs that hardly compress."""
    return {"y": float(a), "jobs": {"wait_s": np.random.default_rng(a).random(3000)}}


WEIGHTS = np.ones(3)


class BrokenError(Exception):
    """An error whose text cannot be had."""

    def __str__(self) -> str:
        """Fail."""
        raise RuntimeError("no text")


def odd(a: int, weights: Any = WEIGHTS, method: str | None = None, limit: float = np.inf) -> Any:
    """Give, or raise, something else for every a; the defaults are what functions have."""
    errors = (
        SystemExit(3),
        KeyboardInterrupt("me"),
        BrokenError(),
        ValueError("half \ud800\x1b[31m"),
        ValueError("x" * 9999),
    )
    if a < len(errors):
        raise errors[a]
    results = (
        {"z": 1.0, "y": 2.0},
        pd.Series({"z": 1.0, "y": 2.0}),
        [2.0, 1.0],
        {"y": "2", "z": 1.0},
        None,
        {2.0, 1.0},
    )
    return (*results, {"y": 2.0, "z": object()})[a - len(errors)]


def odd_jobs(a: int) -> Any:
    """Give per-job results of every kind that no store can hold, and from a = 6 on some that one can."""
    jobs: tuple[Any, ...] = (
        *({"who": ["x"]}, {"id": [[1]]}, {"id": 3}, {}, {"id": [1], "w": [1, 2]}, {"../x": [1]}),
        *({"file": np.array([1], dtype="i4")}, pd.DataFrame({"file": [2**40]}), {"file": [0.5]}),
    )
    return {"y": a, "jobs": jobs[a]}


def everything(a: int, calls: str = "") -> dict[str, Any]:
    """A value of each type that a store has; negative ones raise."""
    if calls:
        with Path(calls).open("a") as file:
            file.write(f"{a}\n")
    if a < 0:
        raise ValueError("negative")
    return {
        "real": a / 7,
        "whole": 2**60 + 1 + a,
        "small": a,
        "flag": a % 2 == 0,
        "word": "äöü" * 3 if a == 3 else "a" * a,
        "when": datetime.date(2026, 1, 1) + datetime.timedelta(days=a),
        "lasts": np.timedelta64(a, "h"),
        "wave": complex(a, -1),
        "matrix": np.arange(1, 7).reshape(3, 2) * a,
    }


def field(a: int) -> xr.Dataset:
    """A Dataset with times and names along its dimensions."""
    times = np.array(["2026-01-01", "2026-01-02", "2026-01-03"], "M8[ns]")
    return xr.Dataset(
        {"temperature": (("time", "place"), a * np.arange(6.0).reshape(3, 2), {"units": "K", "long_name": "how warm"})},
        {"time": times, "place": ["here", "there"]},
    )


def with_everything(a, mode):
    """Results, a failure, per-job results, and numbers that no other cell has."""
    if a == 4 and mode == "y":
        raise ValueError("four is too much")
    jobs = {"wait_s": np.arange(3.0) * a + len(mode), "size": np.arange(3) + a}
    return {"y": a / 7 + len(mode) * 1e-3, "z": float(np.sin(a)), "jobs": jobs}


def leaves_a_file(a, folder):
    """A result, and a file for every call."""
    (Path(folder) / f"{a}-{uuid.uuid4().hex}").touch()
    return {"y": a / 3}


KEPT: list[bytes] = []


def keeps(a: int, most: int = 0) -> float:
    """Keep memory for as long as the process lives, until it has so much."""
    while psutil.Process().memory_info().rss < most:
        KEPT.append(b"x" * 10_000_000)
    return a / 7
