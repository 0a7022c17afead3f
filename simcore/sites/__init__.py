"""Sites: the nodes, partitions, limits and rules of a machine, and how they are read from its scheduler."""
