"""Links the views: what is selected in one is selected in all, in the browser, and told to the server once it rests.

Each source has a column ``cell``, the configuration that a row stands for; views of other shapes share nothing else.
``link_selections`` of HoloViews asks the server for every step of a brush and draws each view anew; this does neither.

The browser also tells which parts of the page are on the screen: others are neither drawn nor brushed until they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJS
from numpy.typing import NDArray

_NOTHING = [-1]
"""Selected in a view that has none of the selected cells: Bokeh takes an empty selection for none at all."""
_APPLY = """
const put = (s, rows) => { s.put = rows; s.selected.indices = rows; };
const spread = (cells, except) => {
  for (const s of hub.document._all_models.values()) {
    if (s.type !== 'ColumnDataSource' || !s.tags.includes('linked') || except.has(s)) continue;
    if (!seen.data.part.includes(s.tags[1])) continue;
    let rows = [];
    if (cells) {
      const own = s.data.cell, n = own.length;
      for (let i = 0; i < n; i++) if (cells.has(own[i])) rows.push(i);
      if (!rows.length) rows = [-1];
    }
    if (rows.length || s.selected.indices.length) put(s, rows);
  }
};
const spreadAll = () => spread(hub.data.cell.length ? new Set(hub.data.cell) : null, new Set());
"""
"""Callbacks of Bokeh's run later than what they are told of: what was put there is known by being the same array."""
_BRUSHED = f"""
if (source.selected.indices === source.put) return;
if (window.brushed) {{ window.brushed.add(source); return; }}
window.brushed = new Set([source]);
queueMicrotask(() => {{
  const changed = window.brushed;
  window.brushed = null;
  if (!hub.document) return;
  {_APPLY}
  const cells = new Set();
  for (const s of changed) for (const i of s.selected.indices) if (i >= 0) cells.add(s.data.cell[i]);
  // the view with the brush follows at once; the others when there is time, or the brush would wait for them
  window.toSpread = () => {{
    window.toSpread = null;
    spread(cells.size ? cells : null, cells.size ? changed : new Set());
    if (cells.size) for (const s of changed) if (!s.selected.indices.length) put(s, [-1]);
  }};
  if (!window.spreading) window.spreading = setTimeout(() => {{
    window.spreading = null;
    if (window.toSpread) window.toSpread();
  }}, 200);
  // tips under the mouse would take as long as the frame
  const point = on => {{
    for (const m of hub.document._all_models.values()) if (m.type === 'HoverTool') m.active = on;
  }};
  if (!window.toTell) point(false);
  clearTimeout(window.toTell);
  window.toTell = setTimeout(() => {{
    window.toTell = null;
    point(true);
    hub.own = Array.from(cells);
    hub.data = {{cell: hub.own}};
  }}, 120);
}});
"""
_TOLD = f"""
if (!hub.document || hub.data.cell === hub.own && cb_obj === hub) return;
{_APPLY}
spreadAll();
"""
_RENEWED = f"""
if (!hub.document || !(hub.data.cell.length || source.selected.indices.length)) return;
{_APPLY}
spreadAll();
"""


class Links:
    """What is selected, and what is on the screen.

    Attributes
    ----------
    cells : the selected configurations, none if nothing is.
    hub : the Bokeh model that carries them.
    seen : the Bokeh model that carries the names of the parts that are on the screen.
    """

    def __init__(self, told: Callable[[NDArray[np.int64]], None], scrolled: Callable[[set[str]], None]) -> None:
        """Call ``told`` when the user has selected other configurations, ``scrolled`` when other parts are seen."""
        self.cells = np.zeros(0, np.int64)
        self.hub = ColumnDataSource({"cell": []}, tags=["hub"])
        self.seen = ColumnDataSource({"part": []}, tags=["seen"])
        self._known = {"hub": self.hub, "seen": self.seen}
        for source in (self.hub, self.seen):
            source.js_on_change("data", CustomJS(args=self._known, code=_TOLD))
        self._told = told
        self.hub.on_change("data", self._changed)
        self.seen.on_change("data", lambda attribute, old, new: scrolled({str(part) for part in new["part"]}))

    def _changed(self, attribute: str, old: Any, new: Any) -> None:
        cells = np.asarray(new["cell"], float)
        self.cells = np.unique(cells[np.isfinite(cells)].astype(np.int64))
        self._told(self.cells)

    def choose(self, cells: NDArray[np.int64]) -> None:
        """Select configurations from here, with the lock of the page: what calls this may not have it."""
        change = partial(setattr, self.hub, "data", {"cell": np.asarray(cells, float)})
        if self.hub.document is None:
            change()
        else:
            self.hub.document.add_next_tick_callback(change)

    def add(self, part: str, sources: Iterable[Any]) -> None:
        """Link the sources of a part of the page; they have a column ``cell``."""
        for source in sources:
            source.tags = ["linked", part]
            source.selected.syncable = False  # the hub tells the server, once the brush rests
            if len(self.cells):
                rows = np.flatnonzero(np.isin(np.asarray(source.data["cell"]), self.cells))
                source.selected.indices = rows.tolist() or _NOTHING
            known = {**self._known, "source": source}
            source.selected.js_on_change("indices", CustomJS(args=known, code=_BRUSHED))
            source.js_on_change("data", CustomJS(args=known, code=_RENEWED))
