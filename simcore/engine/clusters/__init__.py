"""Clusters joined by trunks: co-allocation under network contention, and the agent that mends it (akshitha2011)."""
