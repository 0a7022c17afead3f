"""``python -m benchmarks.accounting [ROWS]``: speed and memory of reading an accounting dump of 10^6 rows."""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from faultsweep.simcore.workloads.accounting.files import read_records
from faultsweep.simcore.workloads.accounting.write import write_records

ROWS = 1_000_000
LIMIT_S, LIMIT_GB = 20.0, 1.5
HEADER = (
    "JobID|User|Account|Partition|QOS|State|ExitCode|Submit|Eligible|Start|End|ElapsedRaw|Suspended|Timelimit|AllocNodes|"
    "AllocCPUS|AllocTRES|ReqNodes|ReqCPUS|ReqMem|ReqTRES|NodeList|Priority|Reservation"
)
STATES = ("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 70001", "NODE_FAIL")


def write_dump(path: Path, rows: int) -> None:
    """Write a dump as sacct does: half of the rows are steps, a tenth tasks of arrays, one in fifty never started."""
    draw = np.random.default_rng(0)
    jobs = rows // 2
    submit = np.sort(draw.integers(1_700_000_000, 1_730_000_000, jobs))
    start = submit + draw.exponential(4000, jobs).astype(np.int64)
    elapsed = draw.lognormal(7, 2, jobs).astype(np.int64) + 1
    stamps = [
        np.datetime_as_string(times.astype("datetime64[s]")).tolist() for times in (submit, start, start + elapsed)
    ]
    nodes = draw.integers(1, 17, jobs).tolist()
    first = draw.integers(1, 900, jobs).tolist()
    users, states = draw.integers(0, 800, jobs).tolist(), draw.integers(0, len(STATES), jobs).tolist()
    with path.open("w") as file:
        file.write(HEADER + "\n")
        for row in range(jobs):
            name = f"{row // 10 * 10}_{row % 10}" if row % 100 < 10 else str(row)
            count, cores = nodes[row], 64 * nodes[row]
            hosts = f"n[{first[row]:04d}-{first[row] + count - 1:04d}]" if count > 1 else f"n{first[row]:04d}"
            tres = f"billing={cores},cpu={cores},gres/gpu:a100={4 * count},mem={256 * count}G,node={count}"
            begin, end, state = stamps[1][row], stamps[2][row], STATES[states[row]]
            if row % 50 == 0:
                begin, hosts, state = "None", "None assigned", "CANCELLED by 70001"
            head = f"u{users[row]}|a{users[row] % 90}|batch|normal|{state}|0:0|{stamps[0][row]}|{stamps[0][row]}"
            size = f"{count}|{cores}|{tres}|{count}|{cores}|256Gn|{tres}|{hosts}|{row % 90_000}|"
            file.write(f"{name}|{head}|{begin}|{end}|{elapsed[row]}|00:00:00|1-00:00:00|{size}\n")
            step = f"|a{users[row] % 90}|||COMPLETED|0:0|{begin}|{begin}|{begin}|{end}|{elapsed[row]}|00:00:00|"
            file.write(f"{name}.batch|{step}|{count}|{cores}|{tres}|{count}|{cores}|||{hosts}||\n")


def read(path: str) -> None:
    """Read a dump and write it again, in a process of its own: print what that takes."""
    began, began_cpu = time.perf_counter(), time.process_time()
    jobs = read_records([path])
    read_s, read_cpu_s = time.perf_counter() - began, time.process_time() - began_cpu
    for suffix in (".swf.gz", ".parquet"):
        write_records(jobs, path + suffix)
    total_s = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(
        f"{jobs.report.rows:,} rows, {len(jobs):,} jobs: read in {read_s:.1f} s "
        f"({read_cpu_s:.1f} s of processor time), with writing {total_s:.1f} s, {peak:.2f} GB"
    )
    if jobs.report.rows >= ROWS:
        assert read_cpu_s <= LIMIT_S, read_cpu_s  # others may use the machine, too
        assert peak <= LIMIT_GB, peak


def main() -> None:
    """Run the benchmark."""
    if len(sys.argv) > 2:
        read(sys.argv[2])
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sacct.psv"
        write_dump(path, rows)
        print(f"{path.stat().st_size / 1e6:.0f} MB")
        subprocess.run([sys.executable, "-m", "benchmarks.accounting", "0", str(path)], check=True)


if __name__ == "__main__":
    main()
