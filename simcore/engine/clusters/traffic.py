"""What a job over several clusters puts on their trunks (akshitha2011, II.B): all-to-all and 2-D mesh traffic."""

from __future__ import annotations

from faultsweep.simcore.engine.clusters.state import ClusterState
from faultsweep.simcore.engine.jit import inlined, kernel


@kernel
def mesh_columns(size: int) -> int:
    """Return the columns of a job's mesh: its rows are the largest divisor of the size not above its square root."""
    rows = 1
    divisor = 1
    while divisor * divisor <= size:
        if size % divisor == 0:
            rows = divisor
        divisor += 1
    return size // rows


@inlined
def leaving_edges(size: int, columns: int, first: int, end: int) -> int:
    """Return how many edges of the mesh leave the ranks first .. end - 1, which are numbered row by row."""
    if first == end:
        return 0
    return _crossing(size, columns, first) + _crossing(size, columns, end) - 2 * _below(size, columns, first, end)


@inlined
def _crossing(size: int, columns: int, cut: int) -> int:
    """Return the edges between the ranks below ``cut`` and the others."""
    along_row = 1 if 0 < cut < size and cut % columns != 0 else 0
    return along_row + _below(size, columns, cut, cut)


@inlined
def _below(size: int, columns: int, first: int, end: int) -> int:
    """Return the edges between a rank below ``first`` and the rank under it, if that is ``end`` or above."""
    return max(0, min(first, size - columns) - max(0, end - columns))


@inlined
def demand_of(s: ClusterState, bandwidth: float, size: int, part: int, edges: int) -> float:
    """Return what a part of a job puts on its cluster's trunk, in the unit of ``bandwidth``."""
    mesh = s.mesh_share
    if part == 0 or part == size:
        return 0.0
    return (1.0 - mesh) * bandwidth * (part * (size - part)) / (size - 1) + mesh * bandwidth / 4.0 * edges


@inlined
def find_edges(s: ClusterState, size: int) -> None:
    """Fill row EDGES for the place in row PARTS: clusters take consecutive ranks in the order of their indices."""
    columns = mesh_columns(size)
    first = 0
    for c in range(s.capacity.shape[0]):
        end = first + s.parts_found[c]
        s.edges[c] = leaving_edges(size, columns, first, end)
        first = end
