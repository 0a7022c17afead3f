"""Results of a sweep one by one, while it runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.sweeps.grid import Grid
from faultsweep.sweeps.outputs import Output
from faultsweep.sweeps.store.collector import Results
from faultsweep.sweeps.store.statuses import FAILED, STATUS_NAMES

_LEAVE_S = 600.0
"""A loop that is left waits for so long, at most, until the run has saved what there is."""


@dataclass(frozen=True)
class Result:
    """One result.

    Attributes
    ----------
    labels : of its cell, by axis.
    status : done, truncated or failed.
    values : by the names of the outputs: numbers, text, or arrays; times are NumPy's. None of them if it failed.
    error : why it failed.
    wall_s : duration of the run, s.
    """

    labels: dict[str, Any]
    status: str
    values: dict[str, Any]
    error: str
    wall_s: float


class Listener:
    """Takes results from a run in another thread; ``leave`` lets that stop."""

    def __init__(self) -> None:
        """Prepare."""
        self.results: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
        self._gone = threading.Event()

    def leave(self) -> None:
        """Want no more results."""
        self._gone.set()

    def is_gone(self) -> bool:
        """Tell whether no more results are wanted."""
        return self._gone.is_set()

    def tell(self, grid: Grid, outputs: Sequence[Output], results: Results) -> None:
        """Take results of simulated cells."""
        for place, cell in enumerate(results.cells.tolist()):
            status = int(results.status[place])
            values = {} if status == FAILED else _values(outputs, results, place)
            error, wall_s = results.errors.get(place, ""), float(results.wall_s[place])
            self.results.put(Result(grid.labels(cell), STATUS_NAMES[status], values, error, wall_s))


def _values(outputs: Sequence[Output], results: Results, place: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    start = first = 0
    for out in outputs:
        if out.dtype == "text" and results.texts is not None:
            part = np.array(results.texts[place, first : first + out.texts], dtype=object).reshape(out.shape)
        else:
            part = out.decode(results.values[place : place + 1, start : start + out.width])[0]
        if out.dtype in ("datetime", "timedelta"):
            part = np.asarray(part).view("M8[ns]" if out.dtype == "datetime" else "m8[ns]")
        start, first = start + out.width, first + out.texts
        values[out.name] = part if out.shape else np.asarray(part)[()]
    return values


def stream(run: Callable[..., Any]) -> Iterator[Result]:
    """Yield the results of ``run(listener=...)``, which goes on in a thread meanwhile, and raise what it raises."""
    listener = Listener()
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run(listener=listener)
        except BaseException as error:
            raised.append(error)
        finally:
            listener.results.put(None)

    thread = threading.Thread(target=work, name="sweep", daemon=True)
    thread.start()
    try:
        while (result := listener.results.get()) is not None:
            yield result
    except GeneratorExit:
        listener.leave()
        thread.join(_LEAVE_S)
        return
    except BaseException:
        listener.leave()
        thread.join(_LEAVE_S)
        raise
    thread.join()
    if raised:
        raise raised[0]
