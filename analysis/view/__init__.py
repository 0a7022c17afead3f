"""Looking inside one run: from its event trace to a Gantt chart, curves over time, and the occupancy of a torus."""

from __future__ import annotations

from faultsweep.analysis.view.content import Content, make_content
from faultsweep.analysis.view.html import draw_html
from faultsweep.analysis.view.png import draw_png
from faultsweep.analysis.view.replay import Pauses, Replay, replay

__all__ = ["Content", "Pauses", "Replay", "draw_html", "draw_png", "make_content", "replay"]
