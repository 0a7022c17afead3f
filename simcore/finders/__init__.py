"""Finders of free rectangular partitions in a torus.

Every finder is a module with the same two functions, ``largest_free_box(free)`` and ``free_boxes(free, size)``, and
gives the same answers; they differ in how they search, and so in speed.
"""

from __future__ import annotations

from types import ModuleType

from faultsweep.simcore.finders import columns
from faultsweep.simcore.finders.papers import divisor, exhaustive, pop

FINDERS: dict[str, ModuleType] = {"columns": columns, "exhaustive": exhaustive, "pop": pop, "divisor": divisor}
"""The finders by the names of the parameter ``finder``."""
