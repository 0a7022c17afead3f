"""The first cell of a function that declares no outputs: it is run before all others, and tells what they give."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.sweeps.outputs import Output, infer_attributes
from faultsweep.sweeps.runner.progress import format_seconds
from faultsweep.sweeps.runner.runner import FETCH_S, QUIET_S
from faultsweep.sweeps.runner.task import describe_error
from faultsweep.sweeps.runner.watch import SweepStoppedError, Watch
from faultsweep.sweeps.target import Config, FunctionTarget
from numpy.typing import NDArray

from faultsweep.errors import InputError

_PAUSE_S = 0.02
_LOOK_S = 1.0


@dataclass(frozen=True)
class First:
    """What the first cell gave, and the outputs, and the attributes of all results, that this shows."""

    outputs: tuple[Output, ...]
    attributes: dict[str, Any]
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
    return First(outputs, infer_attributes(result), np.asarray(values, dtype=np.float64), list(texts), wall_s)


def find_first(
    client: Any,
    target: FunctionTarget,
    config: Config,
    labels: str,
    time_limit_s: float,
    local: bool,
    say: Callable[[str], None],
) -> First:
    """Return what the first cell gives; ``say`` tells the user what is waited for.

    Raises
    ------
    InputError
        It gives nothing that a store could hold, raises, ends its process, or takes longer than ``time_limit_s``.
    SweepStoppedError
        The scheduler is gone, or there is no worker.
    """
    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError
    from distributed.protocol.pickle import dumps

    call = None
    try:
        call = client.submit(run_first, dumps(target), dict(config), pure=False)
        _wait(call, Watch(client, local), labels, time_limit_s, say)
        first = call.result(FETCH_S)
    except KilledWorker:
        raise _no_outputs(labels, "it ended its process") from None
    except TimeoutError:
        raise SweepStoppedError("the result of the first cell did not arrive") from None
    except (CancelledError, ClosedClientError, CommClosedError):
        raise SweepStoppedError("the scheduler is gone") from None
    except (InputError, SweepStoppedError):
        raise
    except Exception as error:  # whatever loading the function on a worker raises
        raise SweepStoppedError(f"the workers cannot run this: {describe_error(error)}") from None
    finally:
        if call is not None:
            call.release()
    if isinstance(first, str):
        raise _no_outputs(labels, first)
    return first


def _wait(call: Any, watch: Watch, labels: str, time_limit_s: float, say: Callable[[str], None]) -> None:
    """Wait until the call is over; one that runs for long is no error."""
    start = told = time.monotonic()
    looked, workers = -_LOOK_S, 1
    while not call.done():
        time.sleep(_PAUSE_S)
        watch.check_scheduler()
        if time.monotonic() - looked > _LOOK_S:
            looked, before = time.monotonic(), workers
            workers = len(watch.threads())
            watch.mend()
            if not workers and before:
                say("waiting for workers (Ctrl-C stops)")
            if watch.local:
                watch.check_absence()
        if not workers:  # that time is not the function's
            start = told = time.monotonic()
        if time_limit_s and time.monotonic() - start > time_limit_s:
            raise _no_outputs(labels, f"it exceeded the time limit of {time_limit_s:g} s")
        if time.monotonic() - told > QUIET_S:
            told = time.monotonic()
            say(f"the first cell ({labels}) has not ended after {format_seconds(told - start)}")


def _no_outputs(labels: str, why: str) -> InputError:
    return InputError(f"outputs: the first cell ({labels}) has to show what the function gives, but: {why}")
