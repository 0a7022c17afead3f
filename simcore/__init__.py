"""The simulator core: a pure function of workload, failures, machine and policy arrays (no Dask, no store, no command
line)."""
