"""Job logs and workload models, as arrays of jobs."""
