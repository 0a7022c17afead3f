"""Links the views: what is selected in one is selected in all, in the browser, and told to the server once it rests.

Each source has a column ``cell``, the configuration that a row stands for; views of other shapes share nothing else.
``link_selections`` of HoloViews asks the server for every step of a brush and draws each view anew; this does neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NOTHING = [-1]
"""Selected in a view that has none of the selected cells: Bokeh takes an empty selection for none at all."""
_APPLY = """
const spread = (cells, except) => {
  for (const s of hub.document._all_models.values()) {
    if (s.type !== 'ColumnDataSource' || !s.tags.includes('linked') || except.has(s)) continue;
    let rows = [];
    if (cells) {
      const own = s.data.cell, n = own.length;
      for (let i = 0; i < n; i++) if (cells.has(own[i])) rows.push(i);
      if (!rows.length) rows = [-1];
    }
    if (rows.length || s.selected.indices.length) s.selected.indices = rows;
  }
};
"""
_BRUSHED = f"""
if (window.linking) return;
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
    window.linking = true;
    spread(cells.size ? cells : null, cells.size ? changed : new Set());
    if (cells.size) for (const s of changed) if (!s.selected.indices.length) s.selected.indices = [-1];
    window.linking = false;
  }};
  if (!window.spreading) window.spreading = setTimeout(() => {{
    window.spreading = null;
    if (window.toSpread) window.toSpread();
  }}, 80);
  clearTimeout(window.toTell);
  window.toTell = setTimeout(() => {{
    window.telling = true;
    hub.data = {{cell: Array.from(cells)}};
    window.telling = false;
  }}, 120);
}});
"""
_TOLD = f"""
if (window.telling || !hub.document) return;
{_APPLY}
window.linking = true;
spread(hub.data.cell.length ? new Set(hub.data.cell) : null, new Set());
window.linking = false;
"""
_RENEWED = f"""
if (!hub.document || !(hub.data.cell.length || source.selected.indices.length)) return;
{_APPLY}
window.linking = true;
spread(hub.data.cell.length ? new Set(hub.data.cell) : null, new Set());
window.linking = false;
"""


class Links:
    """What is selected.

    Attributes
    ----------
    cells : the selected configurations, none if nothing is.
    hub : the Bokeh model that carries them.
    """

    def __init__(self, told: Callable[[NDArray[np.int64]], None]) -> None:
        """Call ``told`` with the configurations when the user has selected others."""
        from bokeh.models import ColumnDataSource, CustomJS

        self.cells = np.zeros(0, np.int64)
        self.hub = ColumnDataSource({"cell": []}, tags=["hub"])
        self.hub.js_on_change("data", CustomJS(args={"hub": self.hub}, code=_TOLD))
        self._told = told
        self.hub.on_change("data", self._changed)

    def _changed(self, attribute: str, old: Any, new: Any) -> None:
        cells = np.asarray(new["cell"], float)
        self.cells = np.unique(cells[np.isfinite(cells)].astype(np.int64))
        self._told(self.cells)

    def choose(self, cells: NDArray[np.int64]) -> None:
        """Select configurations from here."""
        self.hub.data = {"cell": np.asarray(cells, float)}

    def add(self, sources: Iterable[Any]) -> None:
        """Link sources that have a column ``cell``."""
        from bokeh.models import CustomJS

        for source in sources:
            source.tags = ["linked"]
            source.selected.syncable = False  # the hub tells the server, once the brush rests
            if len(self.cells):
                rows = np.flatnonzero(np.isin(np.asarray(source.data["cell"]), self.cells))
                source.selected.indices = rows.tolist() or _NOTHING
            known = {"hub": self.hub, "source": source}
            source.selected.js_on_change("indices", CustomJS(args=known, code=_BRUSHED))
            source.js_on_change("data", CustomJS(args=known, code=_RENEWED))
