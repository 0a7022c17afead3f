"""Queue disciplines, one file each. A scheduling pass starts what may start now; ``schedule`` dispatches by integer
code."""
