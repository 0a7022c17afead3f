"""Checkpoint policies: when a running job saves its work, and what that costs it (zhang2004, section V)."""
