"""Placement on the torus: which free box a job gets."""
