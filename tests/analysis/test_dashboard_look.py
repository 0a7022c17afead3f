"""How the dashboard looks in a real browser: in narrow windows, in the dark, and with large numbers."""

from __future__ import annotations

import io

import numpy as np
import pytest
from faultsweep.analysis.figures import page as pages
from PIL import Image

from .serving import Served, wait_for, watched
from .stores import make_results, write_results

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

AXES = {
    "policy": ["never", "daly", "young"],
    "load_scale": [0.5, 1.0, 1.5],
    "machine": ["flat:128", "torus:4x4x8"],
    "checkpoint_interval_s": [3600.0, 14400.0],
    "repair_time_s": [600.0, 3600.0],
    "prediction_accuracy": [0.5, 0.9],
}
QUERY = "&metric=mean_wait_s&second=work_done&third=utilisation&heat_x=load_scale&heat_y=policy&log_y=true"
MODELS = "Bokeh.documents.flatMap(d => [...d._all_models.values()])"
PARALLEL = f"{MODELS}.find(m => m.type === 'Figure' && m.fitted_names)"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A store of six axes, whose metrics are small and large."""
    rng = np.random.default_rng(3)
    shape = (*map(len, AXES.values()), 3)
    spread = np.array([0.2, 1.0, 30.0])[None, :, None, None, None, None, None]
    wait = rng.gamma(3, 100, shape) * spread
    metrics = {"mean_wait_s": wait, "work_done": wait * 3e6, "utilisation": rng.random(shape), "far": wait * 1e40}
    results = make_results(AXES, metrics, None, 3, name="wide")
    results["mean_wait_s"].attrs.update(units="s", better="lower")
    served = Served(write_results(tmp_path_factory.mktemp("look") / "wide.zarr", results))
    yield served
    served.stop()


@pytest.fixture(scope="module")
def opened(served, browser):
    context = browser.new_context(viewport={"width": 400, "height": 6500})
    page, page_complaints = watched(context, served)
    page.complaints = page_complaints
    page.goto(served.link + QUERY)
    for view in ("#overview", ".curves", ".heat", ".parallel", ".pareto"):
        page.locator(f"{view} canvas").first.wait_for()
    page.wait_for_function(f"() => {PARALLEL}")
    yield page
    context.close()


@pytest.fixture
def page(opened):
    opened.emulate_media(color_scheme="light")
    opened.set_viewport_size({"width": 400, "height": 6500})
    opened.wait_for_timeout(500)  # plots are laid out anew
    yield opened
    assert opened.complaints == []


def picture(page, view):
    """Return what stands in a view, as rows of pixels with red, green and blue."""
    return np.asarray(Image.open(io.BytesIO(page.locator(view).screenshot())).convert("RGB")).astype(int)


def test_all_is_reached_at_400_px(page):
    """Nothing is wider than the window but tables that can be scrolled, and no control is cut or under another one."""
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    hidden = page.evaluate("""() => inside(document.body)
      .filter(e => e.matches('select, button, input, [role=slider], .bk-tool-icon, summary, nav a'))
      .filter(e => e.checkVisibility() && !e.closest('.tabulator'))
      .map(e => [e, e.getBoundingClientRect()]).filter(([, box]) => box.width > 0)
      .filter(([e, box]) => {
        if (box.left < 0 || box.right > 400) return true;
        const wanted = (box.left + box.right) / 2, top = (box.top + box.bottom) / 2;
        let found = document.elementFromPoint(wanted, top);
        for (let inner = found; inner;) {
          found = inner;
          const next = inner.shadowRoot?.elementFromPoint(wanted, top);
          inner = next === inner ? null : next;
        }
        return !(e.contains(found) || found?.contains(e) || e.getRootNode() === found?.getRootNode());
      }).map(([e, box]) => e.outerHTML.slice(0, 80) + [box.left, box.right])""")
    assert hidden == []


def test_pictures_have_most_of_a_narrow_window(page):
    """Scales of colours stand below heat maps there, not beside them."""
    widths = page.evaluate("""() => Object.values(Bokeh.index).flatMap(v => [...v.children()])
      .flatMap(function inner(v) { return [v, ...[...(v.children ? v.children() : [])].flatMap(inner)]; })
      .filter(v => v.model?.type === 'Figure').map(v => [v.model.inner_width, v.model.outer_width])""")
    assert len(widths) >= 6
    assert all(inner >= 0.65 * outer for inner, outer in widths), widths
    bars = page.evaluate(f"() => {MODELS}.filter(m => m.type === 'ColorBar' && m.visible).map(m => m.title)")
    assert sorted(bars) == ["Mean wait (h)", "Utilisation"]


def test_nothing_is_left_of_what_parallel_coordinates_were_before(page):
    """A slanted name that the edge cuts leaves a mark that Bokeh does not wipe out when it is drawn upright."""
    box = page.locator(".parallel canvas").first.bounding_box()
    view = page.locator(".parallel").bounding_box()
    left = round(box["x"] - view["x"])
    first = picture(page, ".parallel")[round(box["y"] - view["y"]) + 250 :, left : left + 4]
    assert (first[:-8].min(axis=(0, 2)) > 200).all(), "the first pixels are white below the axis"


@pytest.mark.parametrize("width", [400, 800, 1440, 1920])
def test_names_and_labels_of_parallel_coordinates_stay_within_the_picture(page, width):
    """Names are slanted to where there is room, or upright; numbers keep their size, however little room there is."""
    page.set_viewport_size({"width": width, "height": 3000 if width > 820 else 6500})
    page.wait_for_timeout(1000)
    found = page.evaluate(f"""() => {{
      const plot = {PARALLEL}, axis = plot.below[0];
      return {{angle: axis.major_label_orientation, each: plot.inner_width / (plot.x_range.end - plot.x_range.start),
        text: [...plot.fitted_labels.text], x: [...plot.fitted_labels.x]}}; }}""")
    assert found["angle"] == (pytest.approx(np.pi / 2) if found["each"] < 110 else -0.4)
    work = [text for x, text in zip(found["x"], found["text"], strict=True) if x == 7]
    assert [text[-1] for text in work] == ["M", "G", "G"]
    assert [len(text) <= 6 for text in work] == [True] * 3 or width >= 800


def test_ticks_are_numbers_that_people_read(page):
    """In every view, light or dark: 40 G and not 4.000e+10."""
    formats = page.evaluate(f"""() => {MODELS}.filter(m => ['LinearAxis', 'LogAxis', 'ColorBar'].includes(m.type))
      .filter(m => m.visible && m.ticker.type !== 'FixedTicker').map(m => [m.type, m.formatter.type])""")
    assert len(formats) >= 7
    assert {kind for kind, _ in formats} == {"LinearAxis", "LogAxis", "ColorBar"}
    assert {own for _, own in formats} == {"CustomJSTickFormatter"}


@pytest.mark.parametrize(
    ("code", "numbers", "texts"),
    [
        (pages._LINEAR_TICK, [0, 2e10, 4e10], ["0", "20 G", "40 G"]),
        (pages._LINEAR_TICK, [-500, 0, 1500], ["−500", "0", "1,500"]),
        (pages._LINEAR_TICK, [1e-9, 2e-9], ["1 × 10⁻⁹", "2 × 10⁻⁹"]),
        (pages._LINEAR_TICK, [0, 5e43, 1e44], ["0", "5 × 10⁴³", "1 × 10⁴⁴"]),
        (pages._LOG_TICK, [0.01, 1, 1e4, 1e6, 1e300], ["0.01", "1", "10,000", "1 M", "10³⁰⁰"]),
        (pages._LOG_TICK, [1e-300, 2e-5], ["10⁻³⁰⁰", "2 × 10⁻⁵"]),
    ],
)
def test_a_tick_is_written(page, code, numbers, texts):
    assert page.evaluate(f"ticks => ticks.map((tick, index) => {{ {code} }})", numbers) == texts


def test_a_number_under_the_mouse_is_written(page):
    numbers, texts = [0, 1e-300, -1234.5678, 4.72e10], ["0", "1 × 10⁻³⁰⁰", "−1,234.6", "47.2 G"]
    assert page.evaluate(f"values => values.map(value => {{ {pages._VALUE} }})", numbers) == texts


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0.0108, 2.7, 5, [0.03, 0.1, 0.3, 1]),
        (1e4, 4e10, 5, [1e4, 1e6, 1e8, 1e10]),
        (0.5, 9.0, 12, [0.5, 1, 2, 5]),
        (1e-300, 1e300, 12, None),
    ],
)
def test_ticks_of_logarithmic_scales_are_few_and_spread(page, low, high, most, ticks):
    found = page.evaluate(f"([cb_data, most]) => {{ {pages._LOG_TICKS} }}", [{"start": low, "end": high}, most])
    assert found == pytest.approx(ticks) if ticks else 6 <= len(found) <= 12


def colours_of(pixels):
    """Return the colours of a picture that are no grey, as rows of red, green and blue."""
    own = pixels.reshape(-1, 3)
    return own[own.max(axis=1) - own.min(axis=1) > 60]


def test_the_pareto_front_has_the_colours_of_its_scale_in_the_dark(page):
    """Points pass the filter as the scale does; the darkest of them is lighter than the page."""
    inside = f"""() => {{ const plot = {MODELS}.find(m => m.type === 'Figure'
      && m.right.some(r => r.type === 'ColorBar') && m.renderers.some(r => r.glyph.type === 'ImageRGBA'));
      const hex = colour => typeof colour === 'string' ? colour : '#' + (colour >>> 8).toString(16).padStart(6, '0');
      return {{scale: [...plot.right.find(r => r.type === 'ColorBar').color_mapper.palette].map(hex),
        image: [...plot.renderers.find(r => r.glyph.type === 'ImageRGBA').data_source.data.image[0]]
          .filter(own => own >>> 24 > 100).map(own => own & 0xffffff)}}; }}"""

    def seen():
        found = page.evaluate(inside)
        return {int(own[5:7] + own[3:5] + own[1:3], 16) for own in found["scale"]}, set(found["image"])

    light, points = seen()
    assert points
    assert points <= light
    page.emulate_media(color_scheme="dark")
    wait_for(page, lambda: seen()[0] != light and seen()[1] <= seen()[0])
    assert not points & seen()[1], "no point has kept the colour of the light"
    darkest = page.evaluate("undone('#440154')")
    assert int(darkest[5:7] + darkest[3:5] + darkest[1:3], 16) not in seen()[0], "it could not be seen on a dark page"
    pixels = colours_of(picture(page, ".pareto"))
    assert len(pixels) > 100
    assert pixels.max(axis=1).min() > 80, "no point is as dark as the page"
    lines = colours_of(picture(page, ".parallel"))
    assert len(lines) > 100
