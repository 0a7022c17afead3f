"""``python -m benchmarks``: every benchmark, one after another, as ``make bench`` runs them."""

import subprocess
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "measure", "plain_easy", "peers"}
"""Parts of others, and what installs other packages: ``python -m benchmarks.peers``."""


def main() -> int:
    """Run each benchmark in a process of its own; return how many failed."""
    failed = 0
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in NOT_BENCHMARKS:
            print(f"\n== {path.stem}", flush=True)
            failed += subprocess.run([sys.executable, "-m", f"benchmarks.{path.stem}"], check=False).returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
