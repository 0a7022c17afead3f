"""Looking inside a run: stays and their fates, exact shares, occupancy, and pages that work in a browser."""

from __future__ import annotations

import re
import shutil
from fractions import Fraction

import numpy as np
import pytest
from faultsweep.analysis.figures.layout import DARK, LIGHT
from faultsweep.analysis.view import content as content_module
from faultsweep.analysis.view import draw_html, draw_png, make_content, replay
from faultsweep.analysis.view.content import DOWN, FREE, RASTER
from faultsweep.analysis.view.replay import COUNTED, DELAYED, DESTROYED, PAUSED, Pauses
from faultsweep.simcore.engine.event_trace import EventTrace
from faultsweep.simcore.finders import FINDERS
from faultsweep.simcore.model.machines import parse_machine
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate

from faultsweep import cli
from faultsweep.errors import InputError
from tests.conftest import require

HEAD = "time_s,kind,job_id,attempt,nodes\n"
TRACE = """\
0,arrive,1,0,
0,schedule,1,0,0 1 4
10,start,1,0,0 1 4
20,arrive,2,0,
30,schedule,2,0,2
40,start,2,0,2
50,checkpoint,1,0,
60,migrate,1,0,5 6 7
70,fail,,,6
70,kill,1,0,
70,requeue,1,0,
80,finish,2,0,
100,repair,,,6
100,schedule,1,1,0 1 2
110,start,1,1,0 1 2
140,finish,1,1,
150,arrive,3,0,
160,schedule,3,0,0
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(HEAD + TRACE)
    return path


def read(path, machine="flat:8", sizes=None):
    return replay(EventTrace.read_csv(path), parse_machine(machine), sizes)


def test_stays_have_the_fate_that_the_trace_tells(trace):
    run = read(trace)
    stays = run.stays
    nodes = [stays.node[a:b].tolist() for a, b in zip(stays.first_node, stays.first_node[1:], strict=False)]
    rows = zip(
        stays.start_s.tolist(), stays.end_s.tolist(), stays.job_id.tolist(), stays.fate.tolist(), nodes, strict=True
    )
    assert list(rows) == [
        (0, 10, 1, DELAYED, [0, 1, 4]),
        (30, 40, 2, DELAYED, [2]),
        (10, 50, 1, COUNTED, [0, 1, 4]),
        (50, 60, 1, DESTROYED, [0, 1, 4]),  # unsaved, and lost on the nodes that it moved from as well
        (60, 70, 1, DESTROYED, [5, 6, 7]),
        (40, 80, 2, COUNTED, [2]),
        (100, 110, 1, DELAYED, [0, 1, 2]),
        (110, 140, 1, COUNTED, [0, 1, 2]),
    ]
    assert [part.tolist() for part in run.down] == [[6], [70.0], [100.0]]
    assert {kind: marks.time_s.tolist() for kind, marks in run.marks.items()} == {
        "failure": [70],
        "checkpoint": [50],
        "restart": [110],
        "migration": [60],
    }
    assert run.marks["checkpoint"].node.tolist() == [1]
    assert (run.begin_s, run.end_s) == (0, 140)
    assert dict(zip(run.queue_s.tolist(), run.queue_jobs.tolist(), strict=True)) == {
        0: 0, 20: 1, 30: 0, 70: 1, 100: 0, 150: 1, 160: 0,
    }  # fmt: skip


def test_a_trunk_fails_in_the_middle_of_its_cluster_and_no_node_is_down(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text(
        HEAD + "0,arrive,1,0,\n0,start,1,0,4 5\n2,fail,,,8\n3,repair,,,8\n5,fail,,,1\n6,repair,,,1\n9,finish,1,0,\n"
    )
    run = read(path, "clusters:3+4")
    assert run.marks["failure"].node.tolist() == [4.5, 1.0]
    assert [part.tolist() for part in run.down] == [[1], [5.0], [6.0]]
    with pytest.raises(InputError, match="the trace has node 8, and clusters:3 has nodes 0 to 2"):
        read(path, "clusters:3")


def test_shares_are_exact(trace):
    """Against the sum over pieces of time, in fractions."""
    share = make_content(read(trace), "t").curves.share
    whole = Fraction(140 * 8)
    expected = {
        "delayed": (10 * 3 + 10 * 1 + 10 * 3) / whole,
        "counted": (40 * 3 + 40 * 1 + 30 * 3) / whole,
        "destroyed": (10 * 3 + 10 * 3) / whole,
        "kept": Fraction(0),
        "paused": Fraction(0),
        "down": 30 / whole,
        "grown": Fraction(0),
        # job 2 waits from 20 to 30 for one of 5 free nodes, job 1 from 70 to 100 for three of 6 and then of 7
        "idle": (10 * 1 + 30 * 3) / whole,
    }
    expected["unused"] = 1 - sum(expected.values())
    assert share == pytest.approx({name: float(value) for name, value in expected.items()}, rel=1e-12)
    part = make_content(read(trace), "t", start_h=20 / 3600, stop_h=30 / 3600).curves.share
    assert part["idle"] == pytest.approx(1 / 8)
    known = make_content(read(trace, sizes={1: 2, 2: 1, 3: 1}), "t").curves.share
    assert known["grown"] == pytest.approx((40 + 30) / (140 * 8))


@pytest.fixture(scope="module")
def failing():
    """A run of real jobs with failures, start delays and growth, on a torus."""
    jobs = generate("sdsc-model", 250, 3, 0)
    settings = {"failures": "mtbf", "mtbf_h": 6.0, "down_time_s": 3600.0, "start_delay_s": 300.0}
    return simulate(jobs, machine="torus:4x4x8", scheduler="backfill", load_scale=0.9, events=True, **settings)


def replayed(run):
    sizes = dict(zip(run.jobs["job_id"].tolist(), run.jobs["requested_size"].tolist(), strict=True))
    return replay(run.events, parse_machine(run.config["machine"]), sizes)


def test_shares_are_the_metrics_of_the_run(failing):
    share, metrics = make_content(replayed(failing), "t").curves.share, failing.metrics
    assert metrics["restarts"] > 3
    pairs = {
        "counted": "utilisation",
        "grown": "lost_to_growth",
        "destroyed": "lost_to_failures",
        "delayed": "lost_to_delay",
        "kept": "lost_to_hold",
        "paused": "lost_to_overhead",
        "down": "lost_to_down_time",
        "idle": "lost_to_fragmentation",
        "unused": "unused_capacity",
    }
    assert [name for name in pairs.values() if not metrics[name] > 0] == ["lost_to_hold", "lost_to_overhead"]
    assert share == pytest.approx({name: metrics[metric] for name, metric in pairs.items()}, rel=1e-9)


def test_nodes_that_a_job_keeps_until_its_own_are_repaired_are_told_apart():
    """Recovery option C: no return to the queue, and healthy nodes stay idle."""
    jobs = generate("sdsc-model", 120, 3, 0)
    settings = {"failures": "mtbf", "mtbf_h": 4.0, "down_time_s": 7200.0, "recovery": "all-c"}
    for hold in (True, False):
        run = simulate(jobs, machine="torus:4x4x8", scheduler="fcfs", events=True, hold_nodes=hold, **settings)
        sizes = dict(zip(run.jobs["job_id"].tolist(), run.jobs["requested_size"].tolist(), strict=True))
        read_again = replay(run.events, parse_machine("torus:4x4x8"), sizes, hold)
        share, metrics = make_content(read_again, "t").curves.share, run.metrics
        assert (metrics["lost_to_hold"] > 0) == hold
        assert share["kept"] == pytest.approx(metrics["lost_to_hold"], rel=1e-9)
        assert share["idle"] == pytest.approx(metrics["lost_to_fragmentation"], rel=1e-9)
        assert share["unused"] == pytest.approx(metrics["unused_capacity"], rel=1e-9)
        assert read_again.queue_jobs.min() == 0
        assert sum(share.values()) == pytest.approx(1, rel=1e-12)


def replayed_with_pauses(run):
    sizes = dict(zip(run.jobs["job_id"].tolist(), run.jobs["requested_size"].tolist(), strict=True))
    return replay(run.events, parse_machine(run.config["machine"]), sizes, pauses=Pauses.of(run.config))


@pytest.mark.parametrize(
    ("machine", "settings", "kinds"),
    [
        (
            "torus:4x4x8",
            {"checkpoint": "periodic", "checkpoint_interval_s": 3600.0, "checkpoint_cost_s": 200.0, "mtbf_h": 5.0},
            {"checkpoint", "restart"},
        ),
        (
            "flat:128",
            {"node_choice": "lff", "move_threshold": 0, "move_cost_s": 900.0, "mtbf_h": 2.0},
            {"migration", "restart"},
        ),
    ],
)
def test_pauses_are_no_work_where_their_lengths_are_known(machine, settings, kinds):
    """A checkpoint that a failure cuts short is the one thing that no event tells."""
    more = {"failures": "mtbf", "start_delay_s": 60.0, "restart_cost_s": 400.0, "load_scale": 0.8}
    run = simulate(generate("sdsc-model", 120, 3, 0), machine=machine, events=True, **more, **settings)
    content = make_content(replayed_with_pauses(run), "t")
    share, metrics = content.curves.share, run.metrics
    assert {kind for kind, (times, _, _) in content.marks.items() if len(times)} >= kinds
    assert 0 < share["paused"] <= metrics["lost_to_overhead"] * (1 + 1e-9)
    lost = metrics["lost_to_overhead"] + metrics["lost_to_failures"]
    assert share["paused"] + share["destroyed"] == pytest.approx(lost, rel=1e-9)
    assert share["paused"] == pytest.approx(metrics["lost_to_overhead"], rel=0.05)
    assert share["counted"] == pytest.approx(metrics["utilisation"], rel=1e-9)
    assert share["grown"] == pytest.approx(metrics["lost_to_growth"], rel=1e-9)
    assert sum(share.values()) == pytest.approx(1, rel=1e-12)


def test_a_pause_begins_behind_the_one_before_it(tmp_path):
    """A migration inside the start delay is paid for after the restart."""
    path = tmp_path / "run.csv"
    path.write_text(
        HEAD + "0,arrive,1,0,\n0,schedule,1,1,0\n5,migrate,1,1,1\n10,start,1,1,1\n50,checkpoint,1,1,\n"
        "60,migrate,1,1,2\n70,migrate,1,1,3\n100,kill,1,1,\n100,requeue,1,1,\n"
    )
    run = replay(EventTrace.read_csv(path), parse_machine("flat:4"), None, True, Pauses(6.0, 15.0, 4.0))
    stays = run.stays
    found = {kind: [] for kind in (DELAYED, COUNTED, DESTROYED, PAUSED)}
    for start, end, fate in zip(stays.start_s.tolist(), stays.end_s.tolist(), stays.fate.tolist(), strict=True):
        found[fate].append((start, end))
    assert found == {
        DELAYED: [(0, 5), (5, 10)],
        COUNTED: [(29, 44)],
        DESTROYED: [(50, 60), (90, 100)],
        PAUSED: [(10, 29), (44, 50), (60, 70), (70, 75), (75, 90)],
    }


def test_several_clusters_with_an_agent_that_takes_jobs_off_their_nodes():
    busy = {"size_map": "scale", "target_utilisation": 0.9, "scheduler": "first-fit", "estimate_error_pct": 100.0}
    agent = {"agent": "ctmr", "cp_frac": 0.5, "overhead_s": 60.0, "ppbw_mbps": 400.0, "error_direction": "under"}
    failing = {"failures": "mtbf", "mtbf_h": 24.0, "restart_cost_s": 60.0}
    run = simulate(generate("lublin", 600, 1), machine="clusters:30+30+20", events=True, **busy, **agent, **failing)
    assert run.metrics["jobs_taken"] > 0
    assert run.metrics["restarts"] > 0
    content = make_content(replayed_with_pauses(run), "t")
    share, metrics = content.curves.share, run.metrics
    assert len(content.marks["checkpoint"][0]) > 0
    assert share["counted"] == pytest.approx(metrics["utilisation"] + metrics["lost_to_congestion"], rel=1e-6)
    assert share["paused"] == pytest.approx(metrics["lost_to_overhead"], rel=1e-6)
    assert share["destroyed"] == pytest.approx(metrics["lost_to_failures"], rel=1e-6)
    assert share["down"] == pytest.approx(metrics["lost_to_down_time"])
    assert share["idle"] == pytest.approx(metrics["lost_to_fragmentation"])
    assert share["unused"] == pytest.approx(metrics["unused_capacity"])


def test_occupancy_is_that_of_each_instant(failing):
    run = replayed(failing)
    frames = make_content(run, "t").frames
    starts, ends, stays = run.stays.start_s, run.stays.end_s, run.stays
    for k in range(0, len(frames.time_h), 37):
        at = run.begin_s + frames.time_h[k] * 3600
        holder = np.zeros(128, np.int32)
        for row in np.flatnonzero((starts <= at + 1e-6) & (ends > at + 1e-6)):
            holder[stays.node[stays.first_node[row] : stays.first_node[row + 1]]] = stays.job_id[row] + 1
        for node, since, until in zip(*run.down, strict=True):
            if since <= at + 1e-6 < until:
                holder[node] = DOWN
        assert (frames.holder[k] == holder).all()
        free = holder == FREE
        assert frames.free[k] == free.sum()
        assert frames.largest[k] == FINDERS["exhaustive"].largest_free_box(free.reshape(4, 4, 8))[0]
        assert free[frames.in_largest[k]].all()
    worst = frames.free[frames.worst] - frames.largest[frames.worst]
    assert worst == (frames.free - frames.largest)[frames.wanted > 0].max()


def test_frames_are_thinned_out_to_what_a_page_can_carry(failing, monkeypatch):
    run = replayed(failing)
    whole = make_content(run, "t").frames
    monkeypatch.setattr(content_module, "FRAME_NODES", 128 * 20)
    thin = make_content(run, "t").frames
    assert len(thin.time_h) == 20 < len(whole.time_h)
    rows = np.searchsorted(whole.time_h, thin.time_h)
    assert (whole.holder[rows] == thin.holder).all()


def test_rectangles_are_runs_of_neighbouring_nodes(trace):
    boxes = make_content(read(trace), "t").rectangles
    assert sorted(zip(boxes.low.tolist(), boxes.high.tolist(), strict=True)) == sorted(
        [(0, 1), (4, 4)] * 3 + [(2, 2)] * 2 + [(5, 7)] + [(0, 2)] * 2
    )


def test_beyond_the_limit_a_raster_has_the_share_of_each_pixels_time(tmp_path):
    """Job 1 fills its nodes for half of every pixel of the last quarter, job 2 all of the first half."""
    width = 1600.0
    rows = ["0,arrive,1,0,", "0,arrive,2,0,", "0,start,2,0,0 1", f"{width / 2},finish,2,0,"]
    for k in range(1200, 1600):
        rows += [f"{k},start,1,0,2 3", f"{k + 0.5},kill,1,0,", f"{k + 0.5},requeue,1,0,"]
    path = tmp_path / "run.csv"
    rows += [f"{width},arrive,3,0,", f"{width},start,3,0,0"]
    path.write_text(HEAD + "\n".join(rows) + "\n")
    run = read(path, "flat:4")
    run = type(run)(**{**run.__dict__, "end_s": width})
    content = make_content(run, "t", most_rectangles=10)
    assert content.rectangles is None
    assert content.raster.shape == (4, RASTER[0], 4)
    assert (content.raster[:2, :800, :3] == [0x00, 0x72, 0xB2]).all()
    assert content.raster[:2, :800, 3].min() >= 254
    assert (content.raster[:, 800:1200, 3] == 0).all()
    half = content.raster[2:, 1200:1600]
    assert (half[..., :3] == [0xD5, 0x5E, 0x00]).all()
    assert abs(half[..., 3].astype(int) - 128).max() <= 2
    assert "401 rectangles are summed up" in " ".join(content.caption)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n", "not an event trace; its first line is not time_s,kind,job_id,attempt,nodes"),
        (HEAD, "the trace has no events"),
        (HEAD + "0,arrive,1,0,\n5,begin,1,0,3\n", "line 3: not an event: '5,begin,1,0,3'"),
        (HEAD + "0,start,1,0,3 x\n", "line 2: not an event: '0,start,1,0,3 x'"),
        (HEAD + "5,arrive,1,0,\n4,arrive,2,0,\n", "line 3: an event without nodes, or earlier than the previous event"),
        (HEAD + "0,start,1,0,\n", "line 2: an event without nodes"),
        (HEAD + "0,start,1,0,9\n", "the trace has node 9, and flat:8 has nodes 0 to 7"),
        (HEAD + "0,start,1,0,-3\n", "has a node with a number below 0"),
        (HEAD + "0,finish,1,0,\n", "a finish of job 1 at 0 s, which holds no nodes then"),
        (HEAD + "0,start,1,0,1\n1,start,1,0,2\n", "the trace starts job 1 at 1 s, which holds nodes already"),
        (HEAD + "0,start,1,0,1\n1,preempt,1,0,\n", "the trace has a preempt of job 1, so it is of a site"),
        (HEAD + "0,start,1,0,1\n1,suspend,1,0,\n", "the trace has a suspend of job 1, so it is of a site"),
        (HEAD + f"0,arrive,{10**19},0,\n", "not an event"),
        (HEAD + f"0,start,1,0,{10**19}\n", "not an event"),
    ],
)
def test_what_is_not_a_trace_is_one_sentence(tmp_path, text, sentence):
    path = tmp_path / "run.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_trace_is_read_as_it_was_written(failing, tmp_path):
    failing.events.write_csv(tmp_path / "run.csv")
    again = EventTrace.read_csv(tmp_path / "run.csv")
    assert list(again.rows()) == [
        (time, kind, -1, -1, nodes) if kind in ("fail", "repair") else (time, kind, job, attempt, nodes)
        for time, kind, job, attempt, nodes in failing.events.rows()
    ]


def test_a_run_without_length_is_one_sentence(tmp_path):
    (tmp_path / "run.csv").write_text(HEAD + "0,arrive,1,0,\n")
    with pytest.raises(InputError, match="the trace has nothing to draw: it ends when it begins"):
        make_content(read(tmp_path / "run.csv"), "t")


def test_a_window_outside_of_the_run_is_one_sentence(trace):
    for window in ((5.0, None), (0.02, 0.01), (-1.0, None), (float("nan"), None)):
        with pytest.raises(InputError, match=r"expected 0 <= start < stop; the run has 0\.0388889 h"):
            make_content(read(trace), "t", None, *window)


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.argv", ["faultsweep", "view", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return end.value.code, printed.out, printed.err

    return run


def test_the_command_draws_a_trace(call, trace, tmp_path):
    (tmp_path / "jobs.csv").write_text("job_id,requested_size\n1,2\n2,1\n3,1\n")
    code, out, _ = call(trace, "--machine", "torus:2x2x2", "--jobs", tmp_path / "jobs.csv", "-o", "pictures")
    assert (code, out.split()) == (0, ["pictures/run.png", "pictures/run.html"])
    assert (tmp_path / "pictures" / "run.png").read_bytes()[:4] == b"\x89PNG"
    page = (tmp_path / "pictures" / "run.html").read_text()
    assert "nodes beyond the size asked for" in page
    assert "src=" not in re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.S)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no.csv"], "no.csv: no such file"),
        (["run.csv", "--select", "a=1"], "--select is for a store, and run.csv is none"),
        (["run.csv", "--machine", "ring:8"], "'ring:8' is not a machine"),
        (["run.csv", "--at-h", "1"], "--at-h is the time of a torus' occupancy, and this machine is flat"),
        (["run.csv", "--jobs", "run.csv"], "not a table of jobs (--jobs-out writes one"),
        (["x.zarr.zip"], "a packed store; unpack it first"),
    ],
)
def test_mistakes_are_one_sentence(call, trace, arguments, sentence):
    code, _, error = call(*arguments)
    assert code == 2
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.chromium
def test_the_page_works_in_a_browser_without_a_network(failing, tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        require("chromium", "there is no Chromium on this machine")
    sync_api = pytest.importorskip("playwright.sync_api")
    content = make_content(replayed(failing), "Backfilling with failures")
    draw_html(content, tmp_path / "run.html")
    draw_png(content, tmp_path / "run.png")
    frames = content.frames
    messages, requests = [], []
    with sync_api.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        context = chromium.new_context(offline=True)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((tmp_path / "run.html").as_uri())
        page.wait_for_selector("canvas", timeout=20_000)
        assert page.title() == "Backfilling with failures"
        assert page.evaluate(f"(() => {{ {_RECTANGLES} }})()") == len(content.rectangles.stay) + len(content.down[0])
        on_top = page.evaluate(f"(() => {{ {_ON_TOP} }})()")
        assert on_top == ["Scatter"] * sum(len(times) > 0 for times, _, _ in content.marks.values())
        shown = page.evaluate(f"(async () => {{ {_MOVE} }})()")
        for k, state in zip((0, len(frames.time_h) // 2), shown, strict=True):
            holder = frames.holder[k]
            assert [job == "free" for job in state["job"]] == (holder == FREE).tolist()
            assert [colour == "#000000" for colour in state["colour"]] == (holder == DOWN).tolist()
            assert state["line"] == pytest.approx(frames.time_h[k])
            assert f"{frames.free[k]} nodes free" in state["text"]
        assert shown[0]["colour"] != shown[1]["colour"]
        assert page.evaluate(_PAPER) == ["rgb(255, 255, 255)", LIGHT.ink]
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{_PAPER}[1] != '{LIGHT.ink}'")
        assert page.evaluate(_PAPER) == ["rgb(22, 24, 28)", DARK.ink]
        chromium.close()
    assert messages == []
    assert requests == [(tmp_path / "run.html").as_uri()]


@pytest.mark.chromium
@pytest.mark.slow
def test_a_torus_fits_a_narrow_window(failing, browser, tmp_path):
    """At 400 px nothing is cut, and the dots of the largest free box lie inside their cells."""
    draw_html(make_content(replayed(failing), "Backfilling with failures"), tmp_path / "run.html")
    page = browser.new_page(viewport={"width": 400, "height": 1600})
    page.goto((tmp_path / "run.html").as_uri())
    page.wait_for_selector("canvas", timeout=20_000)
    page.wait_for_timeout(500)
    dots = page.evaluate(f"(() => {{ {_DOTS} }})()")
    assert len(dots) > 3
    assert max(dots) <= 0.6, "of a cell"
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.close()


_DOTS = """
const inner = v => [v, ...[...(v.children ? v.children() : [])].flatMap(inner)];
const every = Object.values(Bokeh.index).flatMap(v => [...v.children()]).flatMap(inner);
const plot = every.find(v => v.model.type === 'Figure' && v.model.renderers.some(r => r.name === 'cells'));
const {x_scale, y_scale} = plot.frame, across = Math.abs(x_scale.compute(1) - x_scale.compute(0));
const up = Math.abs(y_scale.compute(1) - y_scale.compute(0));
const dots = plot.model.renderers.find(r => r.name !== 'cells'), glyph = dots.glyph, data = dots.data_source.data;
if (glyph.type === 'Ellipse') return [...data[glyph.width.field], ...data[glyph.height.field]].filter(own => own > 0);
return [...data[glyph.size.field]].filter(own => own > 0).map(own => own / Math.min(across, up));
"""
_PAPER = """[getComputedStyle(document.body).backgroundColor,
  [...Bokeh.documents[0]._all_models.values()].find((m) => m.type == "LinearAxis").axis_label_text_color]"""
_RECTANGLES = """
const quads = [...Bokeh.documents[0]._all_models.values()].filter((m) => m.glyph && m.glyph.type == "Quad");
return quads.reduce((sum, quad) => sum + quad.data_source.get_length(), 0);
"""
_ON_TOP = """
const gantt = [...Bokeh.documents[0]._all_models.values()].find((m) => m.type == "Figure");
const glyphs = gantt.renderers.map((m) => m.glyph.type);
return glyphs.slice(glyphs.lastIndexOf("Quad") + 1);
"""
_MOVE = """
const all = [...Bokeh.documents[0]._all_models.values()];
const slider = all.find((m) => m.type == "Slider");
const cells = all.find((m) => m.type == "GlyphRenderer" && m.name == "cells").data_source;
const line = all.find((m) => m.type == "Span");
const text = all.find((m) => m.type == "Div" && m.text.includes("Occupancy"));
const shown = [];
for (const k of [0, Math.floor((slider.end + 1) / 2)]) {
  const changed = new Promise((resolve) => cells.change.connect(resolve));
  slider.value = k;
  await changed;
  await new Promise((resolve) => setTimeout(resolve, 50));
  shown.push({job: [...cells.data.job], colour: [...cells.data.colour], line: line.location, text: text.text});
}
return shown;
"""


def test_a_job_that_restarts_on_its_own_nodes_was_not_in_the_queue():
    run = simulate(
        generate("intrepid-model", 25),
        machine="midplanes:80",
        failures="mtbf",
        mtbf_h=1.0,
        recovery="all-c",
        events=True,
    )
    assert run.metrics["restarts"] > 5
    read_again = replayed(run)
    assert read_again.queue_jobs.min() >= 0
    assert read_again.queue_jobs[-1] == 0
    share = make_content(read_again, "t").curves.share
    assert share["counted"] == pytest.approx(run.metrics["utilisation"])
    assert share["destroyed"] == pytest.approx(run.metrics["lost_to_failures"])


def test_marks_are_on_the_jobs_own_nodes(failing):
    """On a torus a job is in pieces along the nodes' numbers: the middle of all its nodes may be another's."""
    run = replayed(failing)
    marks, stays = run.marks["restart"], run.stays
    assert len(marks.time_s) > 3
    for time_s, node, job in zip(marks.time_s, marks.node, marks.job_id, strict=True):
        own = np.flatnonzero((stays.job_id == job) & (stays.start_s <= time_s) & (stays.end_s >= time_s))
        nodes = [stays.node[stays.first_node[k] : stays.first_node[k + 1]] for k in own]
        assert node in np.concatenate(nodes)


def test_an_axis_of_jobs_has_whole_numbers(failing, tmp_path):
    content = make_content(replayed(failing), "a run")
    from faultsweep.analysis.view.png import _queue
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas()
    axis = canvas.subplots()
    _queue(axis, content)
    ticks = [tick for one in canvas.axes for tick in one.get_yticks()]
    assert ticks
    assert all(tick == round(tick) for tick in ticks)
