"""Menus of partitions: reading, what conflicts with what, and the ready menu of Intrepid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from faultsweep.simcore.model.machines import parse_machine, round_up
from faultsweep.simcore.model.menus import menu_hash, menu_of_text, named_menu, row_menu
from faultsweep.simcore.simulate import simulate
from faultsweep.simcore.workloads.models import generate

from faultsweep.errors import InputError

HEAD = "midplanes = 4\npartitions = ["
SMALL = (
    HEAD
    + '{ name = "a", midplanes = "0-1", wires = ["x"] }, { name = "b", midplanes = [2, 3], wires = ["x"] }, '
    + '{ name = "c", midplanes = "3, 0" }, { name = "all", midplanes = "0-3" }, { name = "one", midplanes = [2] }]'
)


def test_the_ready_menu_is_that_of_the_rule_with_the_names_of_the_racks():
    ready, ruled = named_menu(80), row_menu(80)
    assert [p.midplanes for p in ready.partitions] == [p.midplanes for p in ruled.partitions]
    assert dict(zip(*np.unique(512 * ready.sizes, return_counts=True), strict=True)) == {
        512: 80,
        1024: 40,
        2048: 20,
        4096: 10,
        8192: 5,
        16384: 4,
        32768: 2,
        40960: 1,
    }
    names = {p.name: p.midplanes for p in ready.partitions}
    assert len(names) == 162
    assert names["R47-M1"] == (79,)
    assert names["R10-R11"] == (16, 17, 18, 19)
    assert names["R00-R47"] == tuple(range(80))


def test_two_partitions_conflict_if_they_share_a_midplane_or_a_wire():
    menu = menu_of_text(SMALL, "m.toml")
    assert [p.name for p in menu.partitions] == ["one", "a", "b", "c", "all"]
    sets = [set(p.midplanes) | set(p.wires) for p in menu.partitions]
    expected = [[bool(one & other) for other in sets] for one in sets]
    assert menu.conflicts.tolist() == expected
    assert menu.conflicts[1, 2], "by the wire alone"


def test_racks_and_half_rows_of_intrepid_need_the_cables_of_their_neighbours():
    """As in its partition table: the torus of a rack closes through the other rack of its pair, that of half a row
    through the other half; a midplane, a pair of racks and a row need no cable but their own."""
    ready = named_menu(80)
    assert [p.midplanes for p in ready.partitions] == [p.midplanes for p in row_menu(80).partitions]

    def expected(one, other):
        if set(one.midplanes) & set(other.midplanes):
            return True
        size, first, second = len(one.midplanes), one.midplanes[0], other.midplanes[0]
        return len(other.midplanes) == size and size in (2, 8) and first // (2 * size) == second // (2 * size)

    assert ready.conflicts.tolist() == [[expected(p, q) for q in ready.partitions] for p in ready.partitions]
    by_wire = {
        (p.name, q.name)
        for p, conflicts in zip(ready.partitions, ready.conflicts, strict=True)
        for q, conflict in zip(ready.partitions, conflicts, strict=True)
        if conflict and not {*p.midplanes} & {*q.midplanes}
    }
    assert len(by_wire) == 2 * (20 + 5)
    assert ("R20", "R21") in by_wire
    assert ("R40-R43", "R44-R47") in by_wire


def test_a_second_rack_of_a_pair_waits_for_the_cable_and_a_midplane_does_not():
    jobs = generate("intrepid-model", 63)
    size = np.array([1024] * 20 + [1024] + [512] * 40 + [4096, 512])
    jobs = replace(
        jobs, submit_s=np.arange(63.0), run_s=np.full(63, 1000.0), requested_s=np.full(63, 1000.0), size=size
    )
    run = simulate(jobs, machine="midplanes:80", scheduler="backfill", debug=True)
    waits = np.flatnonzero(run.jobs["wait_s"] > 0).tolist()
    assert waits == [20, 61, 62], "the 21st rack, half a row, and the 41st midplane"
    assert run.jobs["start_s"][20] == 1000


@pytest.mark.parametrize("midplanes", [1, 2, 5, 16, 33, 80])
def test_menus_by_the_rule_use_every_midplane_in_every_size(midplanes):
    menu = row_menu(midplanes)
    sizes = sorted(set(menu.sizes.tolist()))
    assert sizes[-1] == midplanes
    assert all(size & (size - 1) == 0 for size in sizes[:-1])
    assert {p.midplanes for p in menu.partitions if len(p.midplanes) == 1} == {(n,) for n in range(midplanes)}
    rounded = round_up(parse_machine(f"midplanes:{midplanes}"), np.arange(1, midplanes + 1))
    assert rounded.tolist() == [min(s for s in sizes if s >= n) for n in range(1, midplanes + 1)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("midplanes = 4", "a menu needs partitions"),
        ("midplanes = 0\npartitions = []", "midplanes = 0 is not valid"),
        ("midplanes = ", "not valid TOML"),
        (f'{HEAD}{{ name = "a", midplanes = "0-4" }}]', r"partition 1 \(a\): midplane 4 is not one of 0 to 3"),
        (f'{HEAD}{{ name = "a", midplanes = "0,0" }}]', "or one twice"),
        (f'{HEAD}{{ name = "a", midplanes = "0-9999999999" }}]', "more than"),
        (f'{HEAD}{{ name = "a", midplanes = "-1" }}]', "neither a list of numbers"),
        (f'{HEAD}{{ name = "a", midplanes = [1.5] }}]', "neither a list of numbers"),
        (f'{HEAD}{{ name = "a" }}]', "neither a list of numbers"),
        (f"{HEAD}{{ midplanes = [1] }}]", "partition 1: needs a name"),
        (f'{HEAD}{{ name = "a", midplanes = [1], wire = "x" }}]', "unknown entry 'wire'"),
        (f'{HEAD}{{ name = "a", midplanes = [1], wires = "x" }}]', "is not a list of names"),
        (
            f'{HEAD}{{ name = "a", midplanes = [1] }}, {{ name = "a", midplanes = [2] }}]',
            "two partitions are called 'a'",
        ),
        (f"{HEAD}3]", "partition 1: expected"),
        (f'nodes = 3\n{HEAD}{{ name = "a", midplanes = [1] }}]', "unknown entry 'nodes'"),
    ],
)
def test_what_is_wrong_in_a_menu_is_one_sentence(text, problem):
    with pytest.raises(InputError, match=problem):
        menu_of_text(text, "m.toml")


def test_a_menu_in_a_file_is_a_machine(tmp_path):
    path = tmp_path / "m.toml"
    path.write_text(SMALL, encoding="utf-8-sig")  # as editors on Windows mark it
    machine = parse_machine(str(path))
    assert (machine.nodes, machine.largest, machine.node_size) == (4, 4, 512)
    jobs = generate("intrepid-model", 40)
    run = simulate(jobs, machine=str(path), size_map="clip", events=True, debug=True)
    allowed = {p.midplanes for p in machine.menu.partitions}
    assert {tuple(nodes) for _, kind, _, _, nodes in run.events.rows() if kind == "start"} <= allowed
    before = menu_hash(machine.menu)
    path.write_text(SMALL.replace('"c"', '"d"') + "\n# not the same names\n")
    assert menu_hash(parse_machine(str(path)).menu) != before
    with pytest.raises(InputError, match="cannot be read"):
        parse_machine(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match=r"job \d+ needs \d+ nodes and the machine has 4"):
        simulate(jobs, machine=str(path))
    path.write_text(f'{HEAD}{{ name = "a", midplanes = "0-1" }}]')
    with pytest.raises(InputError, match="and the machine has 2"):
        simulate(jobs, machine=str(path))


@pytest.mark.parametrize("name", ["midplanes:0", "midplanes:5000", "midplanes:x"])
def test_there_is_no_such_machine(name):
    with pytest.raises(InputError, match="machine: "):
        parse_machine(name)


def test_sizes_of_logs_are_nodes_and_become_midplanes():
    jobs = generate("intrepid-model", 100)
    run = simulate(jobs, machine="midplanes:80")
    midplanes = -(-jobs.size // 512)
    assert run.jobs["requested_size"].tolist() == midplanes.tolist()
    scaled = simulate(jobs, machine="midplanes:80", size_map="scale")
    assert scaled.jobs["requested_size"].tolist() == midplanes.tolist()
    allowed = named_menu(80).sizes
    assert run.jobs["size"].tolist() == [int(allowed[allowed >= n][0]) for n in midplanes]
