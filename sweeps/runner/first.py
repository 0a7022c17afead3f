"""The first cell of a function that declares no outputs: it is run before all others, and tells what they give."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.sweeps.outputs import Output
from faultsweep.sweeps.runner.progress import LOG, format_seconds
from faultsweep.sweeps.runner.runner import QUIET_S, SweepStoppedError
from faultsweep.sweeps.runner.task import describe_error
from faultsweep.sweeps.target import Config, FunctionTarget
from numpy.typing import NDArray

from faultsweep.errors import InputError

_LOOK_S = 0.02


@dataclass(frozen=True)
class First:
    """What the first cell gave, and the outputs that this shows."""

    outputs: tuple[Output, ...]
    values: NDArray[np.float64]
    texts: list[str]
    wall_s: float


def run_first(packed: bytes, config: Config) -> First | str:
    """Run one configuration in a worker; returns what went wrong, as a text, if something did."""
    target: FunctionTarget = pickle.loads(packed)  # noqa: S301 - the client's own bytes, as every Dask task
    start = time.perf_counter()
    try:
        result = target.call(config)
        wall_s = time.perf_counter() - start
        outputs = target.infer(result)
        values, texts = target.with_outputs(outputs).lay_out(result)
    except BaseException as error:  # whatever a run raises, sys.exit() too
        return describe_error(error)
    return First(outputs, np.asarray(values, dtype=np.float64), list(texts), wall_s)


def find_first(client: Any, target: FunctionTarget, config: Config, labels: str, time_limit_s: float) -> First:
    """Return what the first cell gives.

    Raises
    ------
    InputError
        It gives nothing that a store could hold, raises, ends its process, or takes longer than ``time_limit_s``.
    SweepStoppedError
        The scheduler is gone.
    """
    from distributed import KilledWorker
    from distributed.protocol.pickle import dumps

    call = client.submit(run_first, dumps(target), dict(config), pure=False)
    start = told = time.monotonic()
    while not call.done():
        time.sleep(_LOOK_S)
        if client.status == "closed":
            raise SweepStoppedError("the scheduler is gone")
        if time_limit_s and time.monotonic() - start > time_limit_s:
            call.cancel()
            raise _no_outputs(labels, f"it exceeded the time limit of {time_limit_s:g} s")
        if time.monotonic() - told > QUIET_S:
            told = time.monotonic()
            LOG.info("the first cell (%s) has run for %s", labels, format_seconds(told - start))
    try:
        first = call.result(QUIET_S)
    except KilledWorker:
        raise _no_outputs(labels, "it ended its process") from None
    except TimeoutError:
        raise SweepStoppedError("the result of the first cell did not arrive") from None
    if isinstance(first, str):
        raise _no_outputs(labels, first)
    return first


def _no_outputs(labels: str, why: str) -> InputError:
    return InputError(f"outputs: the first cell ({labels}) has to show what the function gives, but: {why}")
