"""Where node failures come from: logs, generators, and their fitting to a machine and a span."""
