"""Measurements of speed: ``python -m benchmarks.NAME`` from the root of the source tree."""

import sys
from pathlib import Path

# The folder faultsweep/ of the source tree holds only a part of the package, so the root must come after the place
# where the package is installed.
_ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _ROOT] + [str(_ROOT)]
