"""The ``faultsweep`` command; ``python -m faultsweep`` is the same."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C at any moment is one word, no traceback.

    Everything is imported here: Ctrl-C may come meanwhile, and worker processes import this module and need none of it.
    """
    try:
        from faultsweep.sweeps.cli import main

        main()
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
