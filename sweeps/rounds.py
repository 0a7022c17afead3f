"""Rounds of replicates: how many each configuration needs, by the precision or the selection that a spec asks for."""

from __future__ import annotations

import numpy as np
from faultsweep.sweeps import best, precision
from faultsweep.sweeps.spec import Spec
from faultsweep.sweeps.store.store import Store
from numpy.typing import NDArray


def replicates_wanted(
    store: Store, spec: Spec, asked: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many replicates each configuration has of those that it needs, and how many it needs.

    Both have the shape of the store's axes but for ``replicate``. ``asked``, shape (cells,), are the cells that the
    spec asks for; configurations with none need no more.
    """
    if spec.best is not None:
        return best.replicates_wanted(store, spec.best, asked)
    if spec.precision is not None:
        return precision.replicates_wanted(store, spec.precision, asked)
    none = np.zeros(store.chunks.shape[:-1], np.int64)
    return none, none
