"""The first cell of a function that declares no outputs: it is run before all others, and tells what they give."""

from __future__ import annotations

import pickle
import time
import uuid
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

import numpy as np
from faultsweep.sweeps.outputs import Output, infer_attributes
from faultsweep.sweeps.runner.progress import format_seconds
from faultsweep.sweeps.runner.runner import FETCH_S
from faultsweep.sweeps.runner.task import beginning, describe_error
from faultsweep.sweeps.runner.watch import IDLE_S, MOST_IDLE, QUIET_S, SweepStoppedError, Watch
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


def run_first(packed: bytes, config: Config, run_id: str) -> First | str:
    """Run one configuration in a worker; returns what went wrong, as a text, if something did."""
    with beginning(run_id, 0):
        return _run_first(packed, config)


def _run_first(packed: bytes, config: Config) -> First | str:
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

    run_id, packed = uuid.uuid4().hex, dumps(target)

    def submit() -> Any:
        return client.submit(run_first, packed, dict(config), run_id, pure=False)

    try:
        first = _wait(submit, run_id, Watch(client, local), labels, time_limit_s, say)
    except KilledWorker:
        raise _no_outputs(labels, "it ended its process") from None
    except TimeoutError:
        raise SweepStoppedError("the result of the first cell did not arrive") from None
    except (CancelledError, ClosedClientError, CommClosedError):
        raise SweepStoppedError("the scheduler has ended") from None
    except (InputError, SweepStoppedError):
        raise
    except Exception as error:  # whatever loading the function on a worker raises
        raise SweepStoppedError(f"the workers cannot run this: {describe_error(error)}") from None
    if isinstance(first, str):
        raise _no_outputs(labels, first)
    return first


def _wait(
    submit: Callable[[], Any],
    run_id: str,
    watch: Watch,
    labels: str,
    time_limit_s: float,
    say: Callable[[str], None],
) -> First | str:
    """Return what the call gives that ``submit`` makes; one that runs for long is no error, a lost one is repeated."""
    call = submit()
    start = told = asked = time.monotonic()
    looked, workers, idle = -_LOOK_S, 1, 0
    try:
        while not call.done():
            time.sleep(_PAUSE_S)
            watch.check_scheduler()
            if time.monotonic() - looked > _LOOK_S:
                looked, workers = time.monotonic(), len(watch.threads())
                watch.mend()
                if not workers:
                    watch.say_absence(say)
                if watch.local or watch.had_workers:
                    watch.check_absence()
            now = time.monotonic()
            if not workers:  # that time is not the function's
                start = told = asked = now
            is_late = 0 < time_limit_s < now - start
            if is_late or now - asked > IDLE_S:
                begun, is_sure = watch.tasks_begun(run_id)
                spent_s = begun.get(0, 0.0 if is_sure else now - start)
                if is_late and spent_s > time_limit_s:
                    raise _no_outputs(labels, f"it exceeded the time limit of {time_limit_s:g} s")
                start = now - spent_s  # it may have waited behind other work
                if now - asked > IDLE_S:
                    asked = now
                    idle = 0 if begun or not is_sure else idle + 1
                    if idle and not call.done():
                        if watch.local and idle >= MOST_IDLE:
                            raise SweepStoppedError(
                                f"no worker has begun the first cell for {format_seconds(MOST_IDLE * IDLE_S)}"
                            )
                        call.release()
                        call = submit()
            if now - told > QUIET_S:
                told = now
                what = "begun: the workers are busy, or stopped" if idle else "ended"
                say(f"after {format_seconds(QUIET_S)} the first cell ({labels}) has not {what}")
        result: First | str = call.result(FETCH_S)
        return result
    finally:
        call.release()


def _no_outputs(labels: str, why: str) -> InputError:
    return InputError(f"outputs: the first cell ({labels}) has to show what the function gives, but: {why}")
