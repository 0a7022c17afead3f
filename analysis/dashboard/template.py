"""The frame of the page: where its parts stand, how they look, and the little that is scripted by hand.

Several roots: where a knob appears or goes, or a title needs another line, no picture is laid out anew. In the dark
everything is inverted but for the hue, which Panel's widgets and a live picture's colours both bear. Of Bokeh's scripts
those for formulas and for WebGL are left out, two megabytes that a browser would read before the first picture.
"""

from __future__ import annotations

PANE = """
:host { font: 15px/1.4 system-ui, sans-serif; color: #1a1a1a; max-width: 100% }
h1 { font-size: 20px; margin: 0 } h2 { font-size: 17px; margin: 2px 0; font-weight: 600 }
p { margin: 4px 0 } .verdict { font-size: 18px } .small { font-size: 13px; color: #505050 }
.alert { color: #A00000; font-size: 15px }
.wide { overflow-x: auto; max-width: 100% } table { border-collapse: collapse; font-size: 14px }
th, td { padding: 3px 9px; text-align: left; border-bottom: 1px solid #e2e2e2; vertical-align: top }
caption { text-align: left; font-size: 13px; color: #505050; padding-bottom: 4px }
td.n { text-align: right } table.shares { width: 100% } table.shares td:last-child { width: 45% }
.bar { display: block; height: 12px; background: #0072B2; min-width: 1px }
.key { display: flex; flex-wrap: wrap; gap: 2px 12px }
.key button { all: unset; cursor: pointer; display: inline-flex; align-items: center; gap: 6px; font-size: 14px }
.key button[aria-pressed=false] { opacity: .45; text-decoration: line-through }
button:focus-visible, a:focus-visible, .wide:focus-visible { outline: 2px solid #0072B2; outline-offset: 1px }
button.copy { font: inherit; font-size: 13px; padding: 1px 8px; cursor: pointer }
code { font-size: 12.5px; overflow-wrap: anywhere }
table.cells code { display: block; min-width: 18rem }
.swatch { display: inline-block; width: 18px; height: 10px; border-radius: 2px }
progress { width: 100%; height: 12px; accent-color: #0072B2 }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 24px }
.two > div { min-width: 0 }
"""
"""How text in a pane looks; each pane is a document of its own."""

TEMPLATE = """
{% extends base %}
{% block preamble %}<meta name="viewport" content="width=device-width, initial-scale=1">{% endblock %}
{% block js_resources %}{% endblock %}
{% block contents %}
<style>
html { background: #fff; scroll-behavior: smooth; scroll-padding-top: 8px }
body { font: 15px/1.4 system-ui, sans-serif; color: #1a1a1a; background: #fff; min-height: 100vh; margin: 0 }
@media (prefers-color-scheme: dark) {
  html { background: #16181c }
  body { filter: invert(.91) hue-rotate(180deg) }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto } }
.skip { position: absolute; left: -999px } .skip:focus { left: 8px; top: 8px; background: #fff; z-index: 9 }
header, main { padding: 8px 12px; max-width: 1800px; margin: 0 auto; box-sizing: border-box }
header { display: flex; flex-wrap: wrap; gap: 4px 24px; align-items: center; border-bottom: 1px solid #e2e2e2 }
header > div { flex: 1 1 320px; min-width: 0 }
nav a { margin-right: 14px; color: #005a8f } nav a:focus-visible, summary:focus-visible { outline: 2px solid #0072B2 }
h2.part { font-size: 17px; margin: 14px 0 6px }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 24px }
.two > div, .views > div { min-width: 0 }
[data-part]:has(> div:empty) { min-height: 420px }
.scroll { overflow-x: auto }
.work { display: grid; grid-template-columns: 320px minmax(0, 1fr); gap: 12px; align-items: start }
.views { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 460px), 1fr)); gap: 10px 16px }
.views[data-large] { grid-template-columns: minmax(0, 1fr) }
.views[data-large] > .view { display: none }
.views[data-large='curves'] > .curves, .views[data-large='heat map'] > .heat,
.views[data-large='parallel coordinates'] > .parallel, .views[data-large='Pareto front'] > .pareto,
.views[data-large='distribution'] > .jobs { display: block }
.view { border: 1px solid #e2e2e2; border-radius: 4px; padding: 6px; overflow: hidden }
@media (max-width: 820px) { .work { grid-template-columns: minmax(0, 1fr) } header, main { padding: 6px } }
details > summary { cursor: pointer; font-weight: 600; padding: 4px 0 }
</style>
{{ embed(roots.location) }}
<a class="skip" href="#explore">To the views</a>
<header>
  <div>{{ embed(roots.head) }}</div>
  <nav aria-label="Parts of the page">
    <a href="#overview">Overview</a><a href="#explore">Explore</a><a href="#cells">Cells</a>
    {% if compared %}<a href="#compare">Compare</a>{% endif %}<a href="#take">Take away</a>
  </nav>
</header>
<main>
  <section id="overview" aria-label="Overview">
    <div id="early"><template shadowrootmode="open"><style>{{ pane }}</style>{{ early }}</template></div>
    <div id="said">
      {{ embed(roots.verdict) }}
      <div class="two">
        <div>{{ embed(roots.regions) }}</div>
        <div>{{ embed(roots.shares) }}<div data-part="first">{{ embed(roots.first) }}</div></div>
      </div>
    </div>
  </section>
  <section id="explore" aria-label="Explore">
    <h2 class="part">Explore</h2>
    {{ embed(roots.heading) }}
    <div class="work">
      <details open><summary>Choose</summary>{{ embed(roots.knobs) }}</details>
      <div class="views" {% if large %}data-large="{{ large }}"{% endif %}>
        <div class="view curves" data-part="curves">
          {{ embed(roots.key) }}{{ embed(roots.picture) }}{{ embed(roots.words) }}</div>
        <div class="view heat" data-part="heat">{{ embed(roots.heat_words) }}{{ embed(roots.heat) }}</div>
        <div class="view parallel" data-part="parallel">
          {{ embed(roots.parallel_words) }}{{ embed(roots.parallel) }}</div>
        <div class="view pareto" data-part="pareto">{{ embed(roots.pareto_words) }}{{ embed(roots.pareto) }}</div>
        {% if jobs %}<div class="view jobs" data-part="jobs">
          {{ embed(roots.jobs_words) }}{{ embed(roots.jobs) }}</div>{% endif %}
      </div>
    </div>
  </section>
  <section id="cells" aria-label="Cells">
    <h2 class="part">Cells</h2>
    {{ embed(roots.chosen) }}
    <div data-part="table">{{ embed(roots.table) }}</div>
    <div class="scroll">{{ embed(roots.run) }}</div>
  </section>
  {% if compared %}
  <section id="compare" aria-label="Compare"><h2 class="part">Compare</h2>{{ embed(roots.compared) }}</section>
  {% endif %}
  <section id="take" aria-label="Take away"><h2 class="part">Take away</h2>{{ embed(roots.take) }}</section>
</main>
<script>
const inside = (root) => [...root.querySelectorAll('*')]
  .flatMap(e => e.shadowRoot ? [e, ...inside(e.shadowRoot)] : [e]);
const models = () => Bokeh.documents.flatMap(d => [...d._all_models.values()]);
document.addEventListener('click', event => {
  const button = event.composedPath().find(e => e.tagName === 'BUTTON');
  if (!button) return;
  if (button.dataset.copy !== undefined) {
    const said = button.textContent;
    navigator.clipboard.writeText(button.dataset.copy).then(
      () => { button.textContent = 'Copied'; setTimeout(() => { button.textContent = said; }, 1500); },
      () => { button.textContent = 'The browser does not let pages copy here'; });
  }
  if (button.dataset.name !== undefined) {
    const on = button.getAttribute('aria-pressed') !== 'true';
    button.setAttribute('aria-pressed', on);
    const mine = m => m.type === 'GlyphRenderer' && m.name === button.dataset.name;
    models().filter(mine).forEach(m => { m.visible = on; });
  }
});
// names for those who do not see: Bokeh gives handles of sliders, canvases and tool buttons none
const labelled = [['.curves', 'Curves'], ['.heat', 'Heat map'], ['.parallel', 'Parallel coordinates'],
  ['.pareto', 'Pareto front'], ['.jobs', 'Distribution over jobs'], ['#overview', 'Overview'], ['#cells', 'One run']];
const nameAll = () => {
  inside(document).filter(e => e.getAttribute('role') === 'slider').forEach(e => {
    const own = e.getRootNode(), words = own.host?.previousElementSibling?.shadowRoot?.querySelector('.bk-clearfix');
    e.setAttribute('aria-label', (words ?? own.querySelector('.bk-slider-title'))?.innerText || 'Value');
  });
  for (const [place, words] of labelled) for (const part of document.querySelectorAll(place)) {
    inside(part).filter(e => e.classList.contains('bk-Canvas')).forEach(e => {
      e.setAttribute('role', 'img'); e.setAttribute('aria-label', words + ', as a picture; the table has its numbers');
    });
  }
};
// what the filter of the dark makes of a colour, undone
const hue = [[-.574, 1.43, .144], [.426, .43, .144], [.426, 1.43, -.856]];
const undone = colour => {
  const own = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16) / 255);
  const parts = hue.map(row => (.91 - row.reduce((sum, part, n) => sum + part * own[n], 0)) / .82);
  const hex = part => Math.round(255 * Math.min(1, Math.max(0, part))).toString(16).padStart(2, '0');
  return '#' + parts.map(hex).join('');
};
const scheme = window.matchMedia('(prefers-color-scheme: dark)'), palettes = new WeakMap();
const keepColours = () => {
  for (const one of models().filter(m => m.tags.includes('keeps its colours'))) {
    const hex = colour => typeof colour === 'string' ? colour : '#' + (colour >>> 8).toString(16).padStart(6, '0');
    if (!palettes.has(one)) palettes.set(one, {light: [...one.palette].map(hex), dark: false});
    const known = palettes.get(one), turned = known.dark !== scheme.matches;
    known.dark = scheme.matches;
    // the darkest of lines and points could not be seen on a dark page
    const seen = one.tags.includes('on paper') ? known.light.map((_, n, all) => all[64 + Math.floor(n * .75)])
      : known.light;
    if (turned) one.palette = scheme.matches ? seen.map(undone) : known.light;
  }
};
scheme.addEventListener('change', keepColours);
// under a finger a drag moves the page, until one of the tools of a plot is chosen
const coarse = window.matchMedia('(pointer: coarse)'), freed = new WeakSet();
const freeDrags = () => {
  for (const one of coarse.matches ? models().filter(m => m.type === 'Toolbar' && !freed.has(m)) : []) {
    freed.add(one);
    for (const tool of one.tools) if (tool.active && tool.event_types?.includes('pan')) tool.active = false;
  }
};
setInterval(() => {
  if (!window.Bokeh || window.toTell) return;
  nameAll();
  keepColours();
  freeDrags();
}, 1000);
// what the page said before these scripts were there gives way to what follows the store
const early = document.getElementById('early'), said = document.getElementById('said');
const settle = () => {
  if (inside(said).some(e => e.tagName === 'P' || e.tagName === 'TABLE')) early.remove();
  else setTimeout(settle, 50);
};
settle();
// views are drawn once they are on the screen
const seen = new Set();
const tell = () => {
  const carrier = window.Bokeh && models().find(m => m.type === 'ColumnDataSource' && m.tags.includes('seen'));
  if (!carrier) return setTimeout(tell, 30);
  if (carrier.data.part.join() !== [...seen].join()) carrier.data = {part: [...seen]};
};
const watcher = new IntersectionObserver(entries => {
  for (const entry of entries) seen[entry.isIntersecting ? 'add' : 'delete'](entry.target.dataset.part);
  tell();
}, {rootMargin: '100px'});
document.querySelectorAll('[data-part]').forEach(part => watcher.observe(part));
</script>
{% for line in bokeh_js.splitlines() if 'bokeh-mathjax' not in line and 'bokeh-gl' not in line %}{{ line }}
{% endfor %}
{% endblock %}
"""

WAITING = """
{% extends base %}
{% block preamble %}<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="2">{% endblock %}
{% block contents %}<main>{{ embed(roots.words) }}</main>{% endblock %}
"""
"""What stands where there is no store yet."""
