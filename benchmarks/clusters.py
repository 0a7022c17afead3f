"""Speed on clusters: ``python -m benchmarks.clusters``.

Simulated jobs per second of the compiled loop alone, per core, median over repeats: 10,000 jobs of the model of Lublin
and Feitelson on four clusters of 100 nodes, by meta-scheduler, queue discipline and agent.
"""

from __future__ import annotations

import argparse

from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate

JOBS = 10_000
TARGET = 50_000
"""Jobs per second with the agent."""
COMMON = {
    "machine": "clusters:100+100+100+100",
    "split": "overlay",
    "size_map": "scale",
    "target_utilisation": 0.7,
    "estimate_error_pct": 100.0,
}
CASES = (
    ("migration-only", "first-fit", "none"),
    ("naive", "first-fit", "none"),
    ("bandwidth-aware", "first-fit", "none"),
    ("bandwidth-aware", "first-fit", "ctmr"),
    ("bandwidth-aware", "first-fit", "naive"),
    ("bandwidth-aware", "fcfs", "ctmr"),
    ("bandwidth-aware", "backfill", "ctmr"),
)


def main(arguments: list[str] | None = None) -> dict[tuple[str, str, str], float]:
    """Print one line per case; return jobs per second by (meta-scheduler, scheduler, agent)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=JOBS)
    options = parser.parse_args(arguments)
    workload = generate("lublin", options.jobs)
    rates = {}
    for case in CASES:
        meta, scheduler, agent = case
        named = {"meta_scheduler": meta, "scheduler": scheduler, "agent": agent}
        run = simulate(workload, repeat=options.repeat, **named, **COMMON)
        rates[case] = len(workload) / run.elapsed_s
        reached = f"target >= {TARGET:,}: {'reached' if rates[case] >= TARGET else 'MISSED'}" if agent == "ctmr" else ""
        print(
            f"{meta:16} {scheduler:10} agent {agent:6} {rates[case]:12,.0f} jobs/s  {int(run.metrics['jobs_taken']):4} "
            f"checkpoints  {run.metrics['saturated_time_frac']:.2f} of the time saturated  {reached}"
        )
    return rates


if __name__ == "__main__":
    main()
