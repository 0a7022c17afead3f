"""The ``faultsweep`` command; ``python -m faultsweep`` is the same."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from typing import NoReturn

_INTERRUPTED = 130
_THREADS = "OPENBLAS_NUM_THREADS"
"""NumPy's library of linear algebra, which no command needs, starts a thread on each other processor, and each is busy
for 0.1 s at first."""
_COLLECT_AFTER = 50_000
"""New objects between two collections: Python's 700 to 2,000 are a tenth of the time of a short command, which makes
most of its objects as it imports modules."""


def main() -> None:
    """Run the command line; Ctrl-C at any moment is one word, no traceback.

    Everything is imported here: Ctrl-C may come meanwhile, and worker processes import this module and need none of it.
    """
    _open_streams()
    os.environ.setdefault(_THREADS, "1")
    gc.set_threshold(_COLLECT_AFTER)
    atexit.register(gc.freeze)  # else Python looks through all that was imported for garbage before it ends
    try:
        from faultsweep.cli import main

        main()
    except BaseException as error:
        if isinstance(error, SystemExit) or not _is_interrupt(error):
            raise
        sys.stderr.write("stopped\n")
        _leave()


def _open_streams() -> None:
    """Open the null device in place of streams that the caller has closed: a file that is opened would take the number
    of one, and get what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))


def _leave() -> NoReturn:
    """End the process; at once if compiled code of the engine still runs, which reads what an orderly end frees.

    Another Ctrl-C changes nothing now: it would end the process by a signal, with another exit code.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    engine = sys.modules.get("faultsweep.simcore.engine.interruptible")
    if engine is not None and engine.is_abandoned():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_INTERRUPTED)
    sys.exit(_INTERRUPTED)


def _is_interrupt(error: BaseException | None) -> bool:
    """Tell whether Ctrl-C is behind an error: one that comes while a compiled module is imported becomes another."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


if __name__ == "__main__":
    main()
