"""A picture of a site: what nodes it has, and which partition reaches which of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from faultsweep.analysis.pictures.picture import draw_panels
from faultsweep.simcore.sites.site import Site

from faultsweep.units import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#3a6ea5", "#e07b39", "#5a9367", "#a5506b", "#7a7a7a", "#c2a33a", "#6b5b95", "#4f9da6")
_MOST_ROWS = 25


def draw(site: Site, path: str | Path) -> None:
    """Write the picture to a file (.png, .pdf or .svg).

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    rows = min(_MOST_ROWS, max(2, len(site.partitions), len(site.nodes)))
    title = f"{site.name}: {counted(site.num_nodes, 'node')}, {counted(site.num_cores, 'core')}"
    draw_panels(path, site, [[_classes, _partitions]], (11, 2.2 + 0.45 * rows), title, grid="x")


def _classes(site: Site, axis: Axes) -> None:
    classes = site.nodes[:_MOST_ROWS]
    labels = []
    for place, of_class in enumerate(classes):
        axis.barh(place, of_class.count, color=COLOURS[place % len(COLOURS)])
        gpus = f", {of_class.gpus} GPUs" if of_class.gpus else ""
        memory = f", {of_class.memory_mb / 1024:,.0f} GiB" if of_class.memory_mb else ""
        labels.append(f"{of_class.name}\n{of_class.cores} cores{gpus}{memory}")
    axis.set_yticks(range(len(classes)), labels)
    axis.invert_yaxis()
    axis.set(title="Classes of nodes", xlabel="nodes")


def _partitions(site: Site, axis: Axes) -> None:
    colours = {of_class.name: COLOURS[place % len(COLOURS)] for place, of_class in enumerate(site.nodes)}
    partitions = site.partitions[:_MOST_ROWS]
    for place, partition in enumerate(partitions):
        left = 0
        for name, count in partition.nodes.items():
            axis.barh(place, count, left=left, color=colours[name])
            left += count
        hours = "no limit" if partition.max_time_s is None else f"{partition.max_time_s / 3600:g} h"
        axis.text(left, place, f" {hours}", va="center", fontsize=8)
    axis.set_yticks(range(len(partitions)), [partition.name for partition in partitions])
    axis.set_ylim(len(partitions) - 0.4 if partitions else 1, -0.6)
    axis.margins(x=0.15)
    axis.set(title="Partitions, with their longest time", xlabel="nodes")
