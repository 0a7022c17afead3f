"""Programs that the tests start, disturb and kill: a run of a sweep, a scheduler, its workers.

python script.py run STORE [SETTINGS as JSON]; python script.py scheduler FOLDER; python script.py workers FOLDER;
python script.py clock STORE; python script.py grow STORE
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from faultsweep.sweeps.runner.watch import SweepStoppedError  # noqa: E402
from faultsweep.sweeps.store import store as store_module  # noqa: E402
from faultsweep.sweeps.sweep import Sweep  # noqa: E402

from faultsweep.errors import InputError  # noqa: E402
from tests.sweeps import functions  # noqa: E402

CHUNK_CELLS = 40
"""So small that the sweeps here have several chunks."""
GROWTH = ((4, 1), (8, 2), (12, 2))
"""Rows and replicates of a sweep that grows."""


def long_sweep(
    rows: int = 12,
    replicates: int = 2,
    sleep_s: float = 0.01,
    gate: str = "",
    metrics: Sequence[str] = ("sum", "product"),
    keep_jobs: bool = False,
) -> Sweep:
    """A sweep of about a second of work, with copies; it hurries once the file ``gate`` is gone, if one is named."""
    return Sweep(
        name="long",
        axes={"a": [float(i) for i in range(rows)], "b": [i / 7 for i in range(10)]},
        fixed={"sleep_s": sleep_s, "gate": gate},
        replicates=replicates,
        function=functions.slow,
        outputs=["sum", "product"],
        metrics=list(metrics),
        keep_jobs=keep_jobs,
        inert={
            "replicate": lambda config: config["a"] == 3,
            "sleep_s": lambda config: True,
            "gate": lambda config: True,
        },
    )


async def serve(kind: str, folder: Path) -> None:
    """Be a scheduler, or two workers of it, until killed."""
    import distributed
    from faultsweep.cluster.credentials import read_credentials, write_credentials

    if kind == "scheduler":
        security = write_credentials(folder / "tls.json")
        options = {"host": "127.0.0.1", "protocol": "tls://", "dashboard": False, "dashboard_address": ":0", "port": 0}
        async with distributed.Scheduler(security=security, **options) as scheduler:
            draft = folder / "draft.json"
            draft.write_text(json.dumps({"address": scheduler.address}))
            draft.rename(folder / "scheduler.json")
            await scheduler.finished()
    else:
        security = read_credentials(folder / "tls.json")
        address = json.loads((folder / "scheduler.json").read_text())["address"]
        options = {"nthreads": 1, "security": security, "death_timeout": 30}
        async with distributed.Nanny(address, **options) as first, distributed.Nanny(address, **options) as second:
            await asyncio.gather(first.finished(), second.finished())


def run_while_the_clock_jumps(store: Path) -> None:
    """Run while this process, which holds the client and the scheduler, sees a day ahead, and then a day back."""
    clock, shift, seen = time.time, 0, []
    time.time = lambda: clock() + shift

    def jump() -> None:
        nonlocal shift
        marks = store.with_name(store.name + ".run") / "marks"
        while not list(marks.glob("*.mark")):
            time.sleep(0.01)
        for shift in (86_400, -86_400):
            time.sleep(0.5)
            seen.append(shift)

    thread = threading.Thread(target=jump, daemon=True)
    thread.start()
    long_sweep(sleep_s=0.02).run(store, workers=2)
    assert seen == [86_400, -86_400], "the run was over before the clock had jumped"


def run_and_grow(store: Path) -> None:
    """Run a sweep, and the same with more rows and replicates, twice."""
    from faultsweep.cluster.connect import connect

    with connect("local", 2) as client:
        for rows, replicates in GROWTH:
            long_sweep(rows, replicates).run(store, cluster=client)


if __name__ == "__main__":
    store_module.CHUNK_CELLS = CHUNK_CELLS
    try:
        if sys.argv[1] == "run":
            settings = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
            options = {key: settings.pop(key) for key in ("workers", "cluster", "time_limit_s") if key in settings}
            long_sweep(**settings).run(sys.argv[2], **{"workers": 2, **options})
        elif sys.argv[1] == "grow":
            run_and_grow(Path(sys.argv[2]))
        elif sys.argv[1] == "clock":
            run_while_the_clock_jumps(Path(sys.argv[2]))
        else:
            asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
    except (InputError, SweepStoppedError) as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(getattr(error, "exit_code", 2))
