"""Plain data: workloads, machines and failure traces."""
