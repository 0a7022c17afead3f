"""Node choice: which free nodes of a flat machine a job gets (zhang2004, section V-D)."""
