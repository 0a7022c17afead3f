"""Turns every control of a dashboard in a real browser, as somebody does who tries all that there is."""

from __future__ import annotations

from typing import Any

TURN_SELECTS = """async pause => {
  const shown = e => e.checkVisibility() && !e.disabled, rest = () => new Promise(r => setTimeout(r, pause));
  let turned = 0;
  const every = () => inside(document).filter(e => e.tagName === 'SELECT' && shown(e));
  for (let n = 0; n < every().length; n++) {
    const wanted = [...every()[n].options].map(option => option.value);
    for (const value of new Set([wanted.at(-1), wanted.at(1), wanted.at(0)])) {
      const select = every()[n];
      if (value === undefined || !select || ![...select.options].some(o => o.value === value)) continue;
      select.value = value;
      select.dispatchEvent(new Event('change'));
      turned += 1;
      await rest();
    }
  }
  return turned;
}"""
SWITCH = """async pause => {
  const rest = () => new Promise(r => setTimeout(r, pause));
  const every = () => inside(document).filter(e => e.matches('input[type=checkbox]') && e.checkVisibility());
  for (let turn = 0; turn < 2; turn++) for (let n = 0; n < every().length; n++) { every()[n]?.click(); await rest(); }
  return every().length;
}"""
PRESS = """async pause => {
  const rest = () => new Promise(r => setTimeout(r, pause));
  const wanted = '.key button, button.copy, .bk-tool-icon, .tabulator-col-sorter';
  const every = inside(document).filter(e => e.matches(wanted) && e.checkVisibility());
  for (const one of every) { one.click(); await rest(); one.isConnected && one.click(); }
  return every.length;
}"""
SORT = """async pause => {
  for (const one of inside(document).filter(e => e.matches('.tabulator-col-title') && e.checkVisibility())) {
    one.click();
    await new Promise(r => setTimeout(r, pause));
  }
}"""
DOWNLOADS = ("(PNG)", "(SVG)", "(PDF)", "(HTML)", "(CSV)", "(Parquet)", "Notebook")


def drive(page: Any, pause_ms: int = 150) -> dict[str, int]:
    """Turn all selects, sliders, switches and buttons; tap and brush each picture; filter and choose in the table.

    Returns how many of each there were; what goes wrong is in the console and in the log of the server.
    """
    done = {"selects": page.evaluate(TURN_SELECTS, pause_ms), "switches": page.evaluate(SWITCH, pause_ms)}
    sliders = page.locator("[role=slider]:visible")
    done["sliders"] = 0
    while done["sliders"] < sliders.count():  # what a busy server still had to do may have taken some away
        for key in ("End", "Home", "ArrowRight"):
            sliders.nth(done["sliders"]).press(key)
            page.wait_for_timeout(pause_ms)
        done["sliders"] += 1
    page.get_by_label("Find a metric").fill("wai")
    page.get_by_label("Find a metric").fill("")
    done["pictures"] = _touch(page, pause_ms)
    done["rows"] = _use_table(page, pause_ms)
    done["buttons"] = page.evaluate(PRESS, pause_ms)
    done["files"] = _take_away(page)
    for view in page.get_by_label("View", exact=True).locator("option").all_text_contents():
        page.get_by_label("View", exact=True).select_option(view)
        page.wait_for_timeout(pause_ms)
    page.get_by_label("View", exact=True).select_option("all views")
    page.wait_for_timeout(1500)  # what comes late
    return done


def _box(canvas: Any) -> dict[str, float]:
    """Return where a picture is once it is in view; it may be drawn anew just then, so that it is another one."""
    from playwright.sync_api import Error

    for _ in range(5):
        try:
            canvas.scroll_into_view_if_needed()
        except Error:
            continue
        if box := canvas.bounding_box():
            return dict(box)
    raise AssertionError("a picture is drawn anew all the time")


def _touch(page: Any, pause_ms: int) -> int:
    """Tap each picture in the middle, and draw a box over it."""
    count = 0
    for view in ("curves", "heat", "parallel", "pareto", "jobs"):
        canvas = page.locator(f".{view} canvas").first
        if not canvas.count() or not canvas.is_visible():
            continue
        box = _box(canvas)
        across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.click(across, down)
        page.wait_for_timeout(pause_ms)
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.2 * box["height"])
        page.mouse.down()
        page.mouse.move(across + 40, down + 40, steps=4)
        page.mouse.up()
        page.wait_for_timeout(3 * pause_ms)
        clear = page.get_by_role("button", name="Clear the selection")
        if clear.is_visible():
            clear.click()
            page.wait_for_timeout(pause_ms)
        count += 1
    return count


def _use_table(page: Any, pause_ms: int) -> int:
    """Sort by each column, filter, and choose a row, which shows one run with its replicates."""
    page.evaluate(SORT, pause_ms)
    fields = page.locator(".tabulator-header-filter input:visible")
    if fields.count():
        fields.last.fill("1")
        page.wait_for_timeout(3 * pause_ms)
        fields.last.fill("")
        page.wait_for_timeout(3 * pause_ms)
    rows = page.locator(".tabulator-row").count()
    if rows:
        page.locator(".tabulator-row").first.locator(".tabulator-cell").nth(1).click()
        page.get_by_role("heading", name="One run").wait_for()
        page.wait_for_timeout(2 * pause_ms)
        again = page.get_by_label("Replicate", exact=True)
        if again.is_visible():
            again.select_option(index=again.locator("option").count() - 1)
    return rows


def _take_away(page: Any) -> int:
    """Press each button that gives a file, for each view that there is to take; returns how many files came."""
    views = page.get_by_label("Take away the view")
    files = 0
    for number, view in enumerate(views.locator("option").all_text_contents()):
        views.select_option(view)
        page.wait_for_timeout(150)
        for words in DOWNLOADS if number == 0 else ("(SVG)", "(HTML)", "(CSV)"):
            with page.expect_download(timeout=60_000) as found:
                page.get_by_text(words).click()
            assert found.value.failure() is None, (view, words)
            files += 1
    return files
