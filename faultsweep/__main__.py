"""``python -m faultsweep`` is the ``faultsweep`` command."""

from faultsweep.sweeps.cli import main

if __name__ == "__main__":
    main()
