"""What a first answer costs: ``faultsweep simulate`` of 1,000 jobs, its kernels compiled before, as one process.

``python -m benchmarks.start``: processor time and memory of whole processes, medians of interleaved rounds, beside the
floor, which is Python that imports NumPy and LLVM, and beside Numba, which only compiling needs. The exit code is 1 if
the target is missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

ROUNDS = 9
MOST_S, MOST_BYTES = 0.9, 160e6
PLAIN = "import sys; sys.modules['coverage'] = None  # of the tests: Numba imports it where it is\n"
COMMAND = PLAIN + "sys.argv[0] = 'faultsweep'; from faultsweep.__main__ import main; main()"
COMMANDS = {
    "import numpy, llvmlite": ("import numpy, llvmlite.binding",),
    "import numba": (PLAIN + "import numba",),
    "faultsweep --help": (COMMAND, "--help"),
    "faultsweep simulate": (COMMAND, "simulate", "--log", "sdsc-model", "--num-jobs", "1000", "--machine", "flat:128"),
}
NORMAL = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The environment; byte code is kept, as it is for people."""


def cost(arguments: tuple[str, ...]) -> tuple[float, float]:
    """Return processor time, s, and the most memory, bytes, of a Python process."""
    process = subprocess.Popen([sys.executable, "-P", "-c", *arguments], stdout=subprocess.DEVNULL, env=NORMAL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024.0


def main() -> int:
    """Print a table; return whether ``simulate`` needs more than it may."""
    for arguments in COMMANDS.values():
        cost(arguments)  # compiles what is not compiled yet
    found = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            found[name].append(cost(arguments))
    print(f"{'process':24} {'processor time':>15} {'from':>7} {'to':>7} {'memory':>9}")
    for name, costs in found.items():
        seconds, memory = zip(*costs, strict=True)
        print(
            f"{name:24} {statistics.median(seconds):13.2f} s {min(seconds):7.2f} {max(seconds):7.2f}"
            f" {statistics.median(memory) / 1e6:6.0f} MB"
        )
    seconds, memory = map(statistics.median, zip(*found["faultsweep simulate"], strict=True))
    print(f"wanted: {MOST_S} s and {MOST_BYTES / 1e6:.0f} MB")
    return int(seconds > MOST_S or memory > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
