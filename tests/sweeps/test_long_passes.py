"""Ctrl-C, SIGTERM and heartbeats while one scheduling pass of the compiled loop takes minutes."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest
from faultsweep.simcore import simulate as simulation
from faultsweep.sweeps.logs import load_workload
from faultsweep.sweeps.runner.task import MARK

ANSWER_S = 15.0  # of a process on a machine that does other things, too; alone it takes a tenth of a second
PARAMETERS = {"machine": "torus:16x16x16", "scheduler": "conservative"}
ROW = "{0} 0 -1 {1} {2} -1 -1 {2} -1 -1 1 1 1 1 1 1 -1 -1\n"


@pytest.fixture
def folder(tmp_path):
    """Write a log whose 20,000 jobs all wait at once: each gets a reservation on a large torus in the first pass."""
    rows = [ROW.format(job, 60 + 7919 * job % 86_400, 1 + 997 * job % 3000) for job in range(1, 20_001)]
    (tmp_path / "a.swf").write_text("; MaxNodes: 4096\n; MaxProcs: 4096\n" + "".join(rows))
    fixed = "".join(f'{name} = "{value}"\n' for name, value in {"log": "a.swf", **PARAMETERS}.items())
    (tmp_path / "s.toml").write_text(f'name = "s"\n[fixed]\n{fixed}[axes]\nload_scale = [1.0, 1.5]\n')
    return tmp_path


def start(folder, *command):
    """Start a process that takes Ctrl-C; tests may run in the background."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def assert_stops(process, *numbers):
    """Send signals to a process, and see that the last one ends it."""
    try:
        for number in numbers[:-1]:
            process.send_signal(number)
            time.sleep(1)
        process.send_signal(numbers[-1])
        _, said = process.communicate(timeout=ANSWER_S)
    finally:
        process.kill()
    assert said.splitlines()[-1].startswith("stopped")
    assert "Traceback" not in said
    assert process.returncode in (130, -signal.SIGINT)  # a shell shows both as 130


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.sampled(2)
def test_simulate_is_stopped(number, folder):
    options = [word for name, value in PARAMETERS.items() for word in (f"--{name}", value)]
    process = start(folder, "-m", "faultsweep", "simulate", "--log", "a.swf", *options)
    time.sleep(3)
    assert_stops(process, number)


def is_simulating(folder):
    """Tell whether a worker of a run says that it is at a configuration."""
    marks = [path.read_bytes() for path in folder.glob("s.zarr.run/marks/*.mark")]
    return any(len(content) == MARK.size and MARK.unpack(content)[0] > 0 for content in marks)


@pytest.mark.slow
def test_run_and_rerun_are_stopped(folder):
    """The second Ctrl-C ends a run, with its workers, and leaves a cell that rerun begins."""
    process = start(folder, "-m", "faultsweep", "run", "s.toml", "--workers", "1", "--quiet")
    end = time.monotonic() + 120
    while not is_simulating(folder) and time.monotonic() < end and process.poll() is None:
        time.sleep(0.1)
    time.sleep(2)
    assert_stops(process, signal.SIGINT, signal.SIGINT)
    process = start(folder, "-m", "faultsweep", "rerun", "s.zarr", "--select", "load_scale=1.5")
    time.sleep(3)
    assert_stops(process, signal.SIGTERM)


PROGRAM = f"""
    import os, signal, sys, threading, time
    from faultsweep.simcore.simulate import simulate
    from faultsweep.sweeps.logs import load_workload

    parameters = {PARAMETERS}
    log = load_workload("a.swf")
    simulate(log, num_jobs=10, **parameters)
    gaps, before = [], time.monotonic()

    def beat():
        global before
        while True:
            time.sleep(0.01)
            gaps.append(time.monotonic() - before)
            before += gaps[-1]

    class HeardError(Exception):
        pass

    def hear(*_):
        raise HeardError

    def work():
        simulate(log, **parameters)

    threading.Thread(target=beat, daemon=True).start()
    if sys.argv[1] == "thread":
        threading.Thread(target=work, daemon=True).start()
        time.sleep(3)
    else:
        signal.signal(signal.SIGALRM, hear)
        signal.alarm(3)
        began = time.monotonic()
        try:
            work()
        except HeardError:
            print("heard after", time.monotonic() - began, file=sys.stderr)
        simulate(log, num_jobs=10, **parameters)  # beside the pass that still goes on
    print(len(gaps), max(gaps), file=sys.stderr, flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("where", ["main", "thread"])
@pytest.mark.sampled(2)
def test_heartbeats_go_on_and_a_handler_is_heard(where, folder):
    """In the main thread, as simulate and rerun run, and in another, as workers do."""
    process = start(folder, "-c", textwrap.dedent(PROGRAM), where)
    try:
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    lines = said.splitlines()
    beats, longest_s = lines[-1].split()
    assert int(beats) > 20
    assert float(longest_s) < 2.0  # it was the whole pass, of minutes
    if where == "main":
        assert float(lines[-2].removeprefix("heard after")) < ANSWER_S


ALL_AT_ONCE = """
    import signal, time
    import numpy as np
    from faultsweep.simcore.model.workload import Workload
    from faultsweep.simcore.simulate import simulate

    class HeardError(Exception):
        pass

    def hear(*_):
        raise HeardError

    jobs = {jobs}
    number = np.arange(1, jobs + 1)
    size, run_s = 1 + 997 * number % {largest}, 1.0 + 7919 * number % 86_400
    log = Workload(number, 0.0 * number, run_s, np.full(jobs, np.nan), size, number % 50, name="log")
    run = {{"machine": "flat:4096", "scheduler": "conservative", "user_max_jobs": {most}}}
    simulate(log, num_jobs=10, **run)
    signal.signal(signal.SIGALRM, hear)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    began = time.monotonic()
    try:
        for _ in range(1_000):
            simulate(log, **run)
    except HeardError:
        print("heard after", time.monotonic() - began)
"""


@pytest.mark.parametrize(("jobs", "largest", "most"), [(20_000, 4096, 0), (100_000, 4096, 0), (20_000, 8, 2)])
def test_a_handler_is_heard_where_all_jobs_come_at_once(jobs, largest, most, tmp_path):
    """The first instants of a short log are simulated in the thread that hears signals, those of a long one never, nor
    where reservations wait for limits: ``most`` jobs of a user run."""
    program = textwrap.dedent(ALL_AT_ONCE.format(jobs=jobs, largest=largest, most=most))
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(said.removeprefix("heard after")) < 5.0


LIMITED = {"user_max_jobs": 2, "num_users": 3}
BY_OPTION = {"failures": "weibull", "weibull_scale_s": 5000.0, "recovery": "all-d"}


@pytest.mark.parametrize(
    ("more", "visits", "begins_here"),
    [
        ({}, 1, True),
        (LIMITED, 1, False),
        (LIMITED, 40 * 32, True),
        (BY_OPTION, 1, True),
        (BY_OPTION | {"queue_order": "sjf"}, 1, False),
    ],
)
def test_where_starts_go_over_the_queue_again_a_long_run_begins_in_another_thread(
    more, visits, begins_here, monkeypatch
):
    """Limits of four owners take 6 s in one instant, for 20,000 jobs of one node on a machine of 4096."""
    calls = []
    monkeypatch.setattr(simulation, "_FEW_VISITS", visits)
    for name in ("_directly", "interruptible"):
        real = getattr(simulation, name)
        monkeypatch.setattr(
            simulation, name, lambda *given, name=name, real=real: calls.append((name, given[-1])) or real(*given)
        )
    simulation.simulate(load_workload("sdsc-model", num_jobs=40), machine="flat:32", size_map="clip", **more)
    first = next(
        name for name, budget in calls if budget == simulation.WITHOUT_LIMIT
    )  # the engine may be loaded before
    assert (first == "_directly") == begins_here


ALL_FAIL = """
    import os, signal, time
    import numpy as np
    from faultsweep.simcore.model.failure_trace import FailureTrace
    from faultsweep.simcore.model.workload import Workload
    from faultsweep.simcore.simulate import simulate

    class HeardError(Exception):
        pass

    def hear(*_):
        raise HeardError

    nodes = 100_000
    job, node = np.arange(1, 20_001), np.arange(nodes)
    ones = np.ones(len(job), np.int64)
    log = Workload(job, 0.0 * job, 1000.0 + job, np.full(len(job), np.nan), ones, 0 * job, name="log")
    failures = FailureTrace(np.full(nodes, 10.0), node, np.full(nodes, 100.0))
    simulate(log, num_jobs=10, machine="flat:64", node_choice="lff", failures="weibull")
    signal.signal(signal.SIGALRM, hear)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    began = time.monotonic()
    try:
        simulate(log, machine=f"flat:{nodes}", node_choice="lff", failures=failures)
    except HeardError:
        print("heard after", time.monotonic() - began, flush=True)
    os._exit(0)
"""


def test_a_handler_is_heard_where_all_nodes_of_a_large_machine_fail_at_once(tmp_path):
    """That takes 15 s, in one instant, however few the jobs are."""
    program = textwrap.dedent(ALL_FAIL)
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert float(said.removeprefix("heard after")) < 5.0
