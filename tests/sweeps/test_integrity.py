"""A store proves itself: what is lost or changed of its files is named, and what is run again is equal to the bit."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from faultsweep.sweeps.check import print_check, repair_store, seal_store
from faultsweep.sweeps.open import open_all_jobs, open_jobs, open_results
from faultsweep.sweeps.status import print_status, read_status
from faultsweep.sweeps.store.manifest import (
    COPIES,
    MANIFEST,
    SECOND,
    is_sealed,
    manifest_size,
    note,
    replace_file,
    verify,
)
from faultsweep.sweeps.store.merge import merge
from faultsweep.sweeps.store.opener import read_root
from faultsweep.sweeps.store.pack import pack, unpack
from faultsweep.sweeps.store.repair import check, repair
from faultsweep.sweeps.store.statuses import DAMAGED
from faultsweep.sweeps.store.store import Store, commit, run_folder
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError
from tests.sweeps import functions

OLD = Path(__file__).parent.parent / "fixed" / "store-1.zarr.zip"
OUTPUTS = ["y", "z"]


def sweep(a=(1, 2, 3, 4), mode=("x", "y"), **more):
    settings = {"keep_jobs": True, "function": functions.with_everything, "outputs": OUTPUTS, **more}
    return Sweep(axes={"a": list(a), "mode": list(mode)}, **settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory, client):
    """A store that has grown, so that it has files of two runs."""
    path = tmp_path_factory.mktemp("integrity") / "s.zarr"
    sweep(a=(1, 2)).run(path, cluster=client, progress=False)
    sweep().run(path, cluster=client, progress=False)
    return path


@pytest.fixture
def store(made, tmp_path):
    """A store that may be damaged."""
    return Path(shutil.copytree(made, tmp_path / "s.zarr"))


def results(path):
    """All that a store says of its cells but what is measured."""
    data = xr.open_zarr(path, chunks=None).load()
    jobs = open_all_jobs(open_results(path)).load()
    rows = {}
    for name in jobs.data_vars:
        for cell in np.ndindex(data["status"].shape):
            first, length = int(data["jobs_offset"].values[cell]), int(data["jobs_length"].values[cell])
            rows[name, cell] = jobs[name].values[first : first + length].tobytes() if first >= 0 else b""
    values = {
        name: repr(data[name].values.tolist()) if data[name].dtype.kind not in "if" else data[name].values.tobytes()
        for name in data.variables
        if name not in ("wall_s", "jobs_offset")
    }
    return values, rows


def all_files(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def flip(file, bit):
    content = bytearray(file.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)


def test_a_whole_store_is_sound(store, capsys):
    found = check(store)
    assert found.is_sound
    assert found.verifiable
    assert found.files == len(all_files(store)) - 2
    assert not found.older
    assert print_check(store, mend=False, seal=False, logs=None, workers=None) == 0
    assert "sound" in capsys.readouterr().out


def test_every_flipped_bit_of_every_file_is_seen_and_names_the_file(store):
    """Not in metrics alone: in coordinates, status, per-job results, metadata and in the manifest itself, too."""
    rng = random.Random(5)
    names = set()
    for file in all_files(store):
        name = file.relative_to(store).as_posix()
        content = file.read_bytes()
        for bit in {0, 8 * len(content) - 1, *(rng.randrange(8 * len(content)) for _ in range(4))}:
            flip(file, bit)
            found = verify(store)
            assert name in {damage.name for damage in found.damage}, (name, bit)
            file.write_bytes(content)
        names.add(name.partition("/")[0])
    assert names >= {"y", "z", "status", "error", "wall_s", "a", "jobs", "jobs_offset", "integrity", "zarr.json"}
    assert verify(store).damage == []


def test_other_readers_see_a_flipped_bit_of_a_chunk(store):
    """Every chunk has a checksum that any reader of Zarr compares: many bits with the plain one, a few with xarray."""
    for name in ("y", "z", "wall_s", "a", "jobs_length"):
        [chunk] = all_files(store / name / "c")
        array, content = zarr.open_array(store / name, mode="r"), chunk.read_bytes()
        for bit in range(0, 8 * len(content), 7):
            flip(chunk, bit)
            with pytest.raises((ValueError, RuntimeError)):
                array[...]
            if bit % 13 == 0:
                with pytest.raises((ValueError, RuntimeError)):
                    xr.open_zarr(store, chunks=None)[name].load()
            chunk.write_bytes(content)
        array[...]


def rename(file):
    file.rename(file.with_name(f"{file.name}.bak"))


HOWS = {
    "flipped": lambda file: flip(file, 4 * file.stat().st_size),
    "removed": Path.unlink,
    "renamed": rename,
    "torn": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"\0"),
}
EACH = ("y/c/0/0/0", "y/zarr.json", "a/c/0", "status/c/0/0/0", "error/zarr.json", "jobs/zarr.json", "jobs/size/c/0")
EACH += ("integrity/manifest", "integrity/copies/status/c/0/0/0", "integrity/copies/zarr.json", "zarr.json")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.sampled(2)
def test_every_file_is_named_and_heals_to_the_bit(store, made, how, every, client):
    """By ``run`` itself; the store that comes out is the one that was."""
    expected = results(made)
    names = [file.relative_to(made).as_posix() for file in all_files(made)]
    assert set(EACH) <= set(names)
    for name in names if every else EACH:
        shutil.rmtree(store)
        shutil.copytree(made, store)
        HOWS[how](store / name)
        assert name in {one["name"] for one in read_status(store)["damage"]["files"]}, name
        with pytest.raises(InputError):
            pack(store, store.parent / "no.zarr.zip")
        sweep().run(store, cluster=client, progress=False)
        assert check(store).is_sound, name
        assert results(store) == expected, name
    assert not (store.parent / "no.zarr.zip").exists()


def test_one_file_after_another_heals(store, made, client):
    """What one repair leaves is the start of the next."""
    expected = results(made)
    for name in EACH:
        if not (store / name).exists():  # per-job results stand elsewhere now
            continue
        (store / name).unlink()
        done = repair(store)
        assert name in done.restored or done.lost == [name] or name in (MANIFEST, SECOND), (name, done)
        if done.cells:
            assert read_status(store)["damage"]["cells"] == done.cells
            sweep().run(store, cluster=client, progress=False)
        assert check(store).is_sound, name
        assert results(store) == expected, name


@pytest.mark.parametrize("name", ["y", "status", "a", "jobs", "error", "integrity/copies"])
def test_a_folder_that_is_gone_heals(store, made, client, name):
    shutil.rmtree(store / name)
    named = [one["name"] for one in read_status(store)["damage"]["files"]]
    assert any(each.startswith(f"{name}/") for each in named)
    sweep().run(store, cluster=client, progress=False)
    assert results(store) == results(made)
    assert check(store).is_sound


def test_a_lost_root_hides_no_other_loss(store):
    for name in ("zarr.json", "y/c/0/0/0", "status/c/0/0/0"):
        (store / name).unlink()
    named = {one["name"] for one in read_status(store)["damage"]["files"]}
    assert {"zarr.json", "y/c/0/0/0", "status/c/0/0/0"} <= named


def test_only_the_cells_that_were_lost_run_again(tmp_path, client, monkeypatch):
    path = tmp_path / "s.zarr"
    monkeypatch.setattr("faultsweep.sweeps.store.store.CHUNK_CELLS", 4)
    calls = tmp_path / "calls"
    calls.mkdir()
    big = Sweep(
        axes={"a": list(range(10)), "folder": [str(calls)]},
        function=functions.leaves_a_file,
        outputs=["y"],
        replicates=1,
    )
    big.run(path, cluster=client, progress=False)
    before = xr.open_zarr(path, chunks=None)["y"].values.tobytes()
    assert len(list(calls.iterdir())) == 10
    store = Store(path, mode="r")
    assert store.chunks.num > 2
    (path / "y" / "c" / "1" / "0" / "0").unlink()
    lost = len(store.chunks.cells(1))
    for file in calls.iterdir():
        file.unlink()
    assert read_status(path)["damage"]["files"] == [{"name": "y/c/1/0/0", "what": "absent"}]
    big.run(path, cluster=client, progress=False)
    assert len(list(calls.iterdir())) == lost
    assert xr.open_zarr(path, chunks=None)["y"].values.tobytes() == before
    assert check(path).is_sound


def test_damaged_cells_that_a_spec_does_not_ask_for_are_not_forgotten(store, made, client):
    next(iter(all_files(store / "y" / "c"))).unlink()
    sweep(a=(1, 2)).run(store, cluster=client, progress=False)
    assert results(store) == results(made)


def test_a_lost_chunk_is_an_error_to_a_reader(store):
    [chunk] = all_files(store / "y" / "c")
    chunk.unlink()
    with pytest.raises(InputError, match=r"y/c/0/0/0 is absent; faultsweep check"):
        open_results(store)["y"].load()


def test_status_names_what_is_wrong(store, capsys):
    next(iter(all_files(store / "z" / "c"))).unlink()
    flip(next(iter(all_files(store / "wall_s" / "c"))), 100)
    assert print_status(store) == 7
    said = capsys.readouterr().out
    assert "z/c/0/0/0: absent" in said
    assert "wall_s/c/0/0/0: damaged" in said
    assert "faultsweep check --repair" in said
    assert print_check(store, mend=False, seal=False, logs=None, workers=None, as_json=True) == 7
    assert {"name": "z/c/0/0/0", "what": "absent"} in json.loads(capsys.readouterr().out)["damage"]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 1.0])
def test_a_partial_copy_heals(store, made, share, client):
    """What a copy that was interrupted has: the files up to one, or a purge that took some."""
    files = all_files(store)
    random.Random(share).shuffle(files)
    kept = {MANIFEST, "zarr.json"}
    for file in files[: int(share * len(files))]:
        if file.relative_to(store).as_posix() not in kept:
            file.unlink()
    assert check(store).damage
    sweep().run(store, cluster=client, progress=False)
    assert results(store) == results(made)
    assert check(store).is_sound


def test_a_purge_of_what_was_written_first_heals(store, made, client):
    """Labels, their copies and the metadata of arrays have one age; the root, which is written last, has them again."""
    first = [file for file in all_files(store) if file.parent != store and file.name == "zarr.json"]
    for axis in ("a", "mode"):
        first += [*all_files(store / axis / "c"), *all_files(store / "integrity" / "copies" / axis)]
    for file in first:
        file.unlink()
    removed = {file.relative_to(store).as_posix() for file in first}
    assert {"mode/c/0", "integrity/copies/mode/c/0", "mode/zarr.json", "y/zarr.json"} <= removed
    assert removed <= {one["name"] for one in read_status(store)["damage"]["files"]}
    sweep().run(store, cluster=client, progress=False)
    assert check(store).is_sound
    assert results(store) == results(made)


def test_labels_are_restored_without_a_run(store, made):
    for axis in ("a", "mode"):
        shutil.rmtree(store / axis)
        shutil.rmtree(store / "integrity" / "copies" / axis)
    assert print_check(store, mend=True, seal=False, logs=None, workers=1) == 0
    assert check(store).is_sound
    assert results(store) == results(made)


@pytest.mark.parametrize("labels", ["{", "[1]", '{"a/c/0": 7}', '{"a/c/0": "="}', '{"a/c/0": "QUJD"}', "[" * 100_000])
def test_other_labels_in_the_root_restore_nothing(store, labels):
    root = json.loads((store / "zarr.json").read_text())
    root["attributes"]["label_files"] = labels
    replace_file(store, "zarr.json", json.dumps(root).encode())
    assert check(store).is_sound
    for name in ("a/c/0", "integrity/copies/a/c/0"):
        (store / name).unlink()
    with pytest.raises(InputError, match="a/c/0 and its copy are damaged"):
        repair(store)


def test_the_root_keeps_no_more_labels_than_are_small(tmp_path, client):
    """The files of many labels are in two places only, and their loss in both is told."""
    path = tmp_path / "s.zarr"
    names = tuple(f"{random.Random(n).getrandbits(400):x}" for n in range(1500))
    exclude = [{"mode": list(names[1:])}]
    sweep(a=(1,), mode=names, keep_jobs=False, exclude=exclude).run(path, cluster=client, progress=False)
    assert (path / "mode" / "c" / "0").stat().st_size > 65_536
    assert list(json.loads(read_root(path)["attributes"]["label_files"])) == ["a/c/0"]
    for name in ("mode/c/0", "integrity/copies/mode/c/0"):
        (path / name).unlink()
    with pytest.raises(InputError, match="mode/c/0 and its copy are damaged"):
        repair(path)


def test_a_store_without_a_manifest_is_not_believed(store, client):
    shutil.rmtree(store / "integrity")
    assert not is_sealed(store)
    assert [damage.what for damage in check(store).damage] == ["absent"]
    for action in (
        lambda: sweep().run(store, cluster=client, progress=False),
        lambda: pack(store, store.parent / "x.zarr.zip"),
        lambda: merge([store, store], store.parent / "m.zarr"),
    ):
        with pytest.raises(InputError, match="manifest"):
            action()
    seal_store(store)
    assert check(store).is_sound
    flip(next(iter(all_files(store / "y" / "c"))), 9)
    shutil.rmtree(store / "integrity")
    with pytest.raises(InputError, match=r"y/c/0/0/0: is damaged"):
        seal_store(store)


@pytest.mark.parametrize("array", ["y", "z", "status", "wall_s", "jobs_offset", "jobs_length", "jobs/wait_s", "error"])
def test_what_may_be_lost_without_a_manifest_is_run_again(store, made, client, array):
    """An empty chunk has no file: nothing but the manifest tells it from one that is lost."""
    before = results(made)
    shutil.rmtree(store / "integrity")
    shutil.rmtree(store / array / "c")
    seal_store(store)
    found = check(store)
    assert found.damage == []
    assert found.cells > 0
    sweep().run(store, cluster=client, progress=False)
    assert check(store).is_sound
    assert results(store) == before


@pytest.mark.parametrize("axis", ["a", "mode"])
@pytest.mark.parametrize("is_kept", [True, False])
def test_labels_that_are_lost_with_the_manifest_are_sealed_if_the_root_has_them(store, made, axis, is_kept):
    if not is_kept:
        root = json.loads((store / "zarr.json").read_text())
        del root["attributes"]["label_files"]
        (store / "zarr.json").write_text(json.dumps(root))
    shutil.rmtree(store / "integrity")
    shutil.rmtree(store / axis / "c")
    if is_kept:
        seal_store(store)
        assert check(store).is_sound
        assert results(store) == results(made)
    else:
        with pytest.raises(InputError, match=f"{axis}/c/0: is absent; restore it from a copy"):
            seal_store(store)


def test_a_backup_that_is_put_back_beside_new_journals_is_named_and_grows_again(tmp_path, made, client):
    path = tmp_path / "s.zarr"
    sweep(a=(1, 2)).run(path, cluster=client, progress=False)
    backup = shutil.copytree(path, tmp_path / "backup.zarr")
    sweep().run(path, cluster=client, progress=False)
    (run_folder(path) / "journals" / "0123-1.journal").write_bytes(b"of the later run")
    shutil.rmtree(path)
    shutil.move(backup, path)
    found = check(path)
    assert found.older
    assert found.is_sound
    assert "older than what its last run has left" in found.sentences(path)[0]
    sweep().run(path, cluster=client, progress=False)
    assert results(path) == results(made)
    assert not check(path).older


def test_old_files_laid_over_a_later_store_are_named_and_healed(tmp_path, made, client):
    path = tmp_path / "s.zarr"
    sweep(a=(1, 2)).run(path, cluster=client, progress=False)
    backup = shutil.copytree(path, tmp_path / "backup.zarr")
    sweep().run(path, cluster=client, progress=False)
    shutil.copy(backup / "y" / "c" / "0" / "0" / "0", path / "y" / "c" / "0" / "0" / "0")
    assert ("y/c/0/0/0", "of an earlier time") in [(one.name, one.what) for one in check(path).damage]
    sweep().run(path, cluster=client, progress=False)
    assert results(path) == results(made)
    shutil.copytree(backup, path, dirs_exist_ok=True)  # of the later store the files stay that the older one lacks
    sweep().run(path, cluster=client, progress=False)
    assert results(path) == results(made)
    assert check(path).is_sound


def test_a_kill_between_the_line_and_the_file_is_no_damage(store, made, client):
    """The line is written first; the file is then what an earlier line says."""
    commit(store, {"open_runs": "[]"})
    root = (store / "zarr.json").read_bytes()
    status = next(iter(all_files(store / "status" / "c")))
    before = status.read_bytes()
    opened = Store(store)
    opened.write_block("status", 0, np.full(8, DAMAGED, dtype=np.int8))
    status.write_bytes(before)
    assert check(store).damage == []
    commit(store, {"title": "another"})
    (store / "zarr.json").write_bytes(root)
    assert check(store).damage == []


def test_a_store_of_the_earlier_format_opens_is_sealed_and_keeps_its_results(tmp_path, capsys):
    path = tmp_path / "s.zarr"
    unpack(OLD, path)
    before = xr.open_zarr(path, chunks=None).load()
    assert not check(path).verifiable
    assert print_check(path, mend=False, seal=False, logs=None, workers=None) == 6
    assert "of an earlier format" in capsys.readouterr().out
    assert open_results(path).attrs["faultsweep_format"] == 1
    assert print_check(path, mend=False, seal=True, logs=None, workers=None) == 0
    after = xr.open_zarr(path, chunks=None).load()
    assert after.attrs["faultsweep_format"] == 2
    xr.testing.assert_equal(before, after)
    for file in all_files(path):
        content = file.read_bytes()
        flip(file, 3)
        assert check(path).damage, file
        file.write_bytes(content)
    with pytest.raises(InputError, match="has a manifest already"):
        seal_store(path)


def as_format_1(path, compressed):
    """Make a store one of format 1: no manifest, no checksums, labels of any length; maybe not compressed, either."""
    values = {name: np.array(array[...]) for name, array in Store(path, mode="r").arrays.items()}
    root = json.loads((path / "zarr.json").read_text())
    shutil.rmtree(path / "integrity")
    members = root["consolidated_metadata"]["metadata"]
    for name, node in members.items():
        if node["node_type"] != "array":
            continue
        node["codecs"] = [codec for codec in node["codecs"] if codec["name"] != "crc32c"]
        if not compressed:
            node["codecs"] = [codec for codec in node["codecs"] if codec["name"] != "zstd"]
        if isinstance(node["data_type"], dict):
            node |= {"data_type": "string", "codecs": [{"name": "vlen-utf8"}, *node["codecs"][1:]]}
        (path / name / "zarr.json").write_text(json.dumps(node))
        for file in list(all_files(path / name / "c")):
            file.unlink()
    root["attributes"]["faultsweep_format"] = 1
    del root["attributes"]["manifest"], root["attributes"]["label_files"]
    (path / "zarr.json").write_text(json.dumps(root))
    group = zarr.open_group(path, mode="r+", use_consolidated=False)
    for name, array in values.items():
        group[name][...] = array.astype(object) if array.dtype.kind == "U" else array
    for name, array in zarr.open_group(made_from(path), mode="r")["jobs"].arrays():
        group["jobs"][name][...] = array[...]


def made_from(path):
    """Return the copy that ``as_format_1`` was not let loose on."""
    return path.with_name("whole.zarr")


@pytest.fixture(params=[True, False], ids=["zstd", "plain"])
def old_store(request, made, tmp_path):
    """A store of format 1 with per-job results, compressed or not."""
    path = tmp_path / "s.zarr"
    shutil.copytree(made, made_from(path))
    shutil.copytree(made, path)
    as_format_1(path, request.param)
    assert not is_sealed(path)
    return path


def test_a_store_of_format_1_keeps_its_results_when_it_is_sealed(old_store, made):
    before = results(old_store)
    seal_store(old_store)
    assert results(old_store) == before == results(made)


def test_a_store_of_format_1_is_sealed_before_it_grows(old_store, tmp_path, client):
    grown = sweep(a=(1, 2, 3, 4, 5), mode=("x", "y", "a long name"))
    data = grown.run(old_store, cluster=client, progress=False)
    assert check(old_store).is_sound
    assert data.attrs["faultsweep_format"] == 2
    again = grown.run(tmp_path / "new.zarr", cluster=client, progress=False)
    for name in ("y", "z", "status"):
        assert np.array_equal(data[name].values, again[name].values, equal_nan=True), name


def test_what_a_store_of_format_1_may_have_lost_is_told(old_store, capsys):
    """Nothing tells an absent chunk from an empty one; but labels are all different, so theirs is lost."""
    for axis in ("a", "mode"):
        shutil.move(old_store / axis / "c", old_store.parent / "kept")
        with pytest.raises(InputError, match=f"{axis}/c/0: is absent; restore it"):
            seal_store(old_store)
        shutil.move(old_store.parent / "kept", old_store / axis / "c")
    shutil.rmtree(old_store / "y" / "c")
    assert print_check(old_store, mend=False, seal=True, logs=None, workers=None) == 0
    assert "y/c/0/0/0: is absent; the results of 7 cells are all nan, or were lost" in capsys.readouterr().out


def test_open_results_names_a_damaged_file(store):
    [chunk] = all_files(store / "y" / "c")
    flip(chunk, 8 * chunk.stat().st_size // 2)
    with pytest.raises(InputError, match=r"s\.zarr: y/c/0/0/0 is damaged; faultsweep check"):
        open_results(store).y.load()


def test_damage_of_a_store_of_format_1_is_not_sealed(old_store, client):
    """Each chunk is decoded, and has the size that its array says; what is refused stays as it is."""
    for file in all_files(old_store):
        if file.name == "zarr.json":
            continue
        content = file.read_bytes()
        for damaged in (content[:-1], content[:-8], content[: len(content) // 2], b"", content + b"\0" * 8):
            if damaged == content or (content[:4] == b"\x28\xb5\x2f\xfd" and len(damaged) > len(content)):
                continue  # what follows a frame of zstd is no part of it
            file.write_bytes(damaged)
            before = {each: each.read_bytes() for each in all_files(old_store)}
            with pytest.raises(InputError, match=re.escape(file.relative_to(old_store).as_posix())):
                seal_store(old_store)
            assert {each: each.read_bytes() for each in all_files(old_store)} == before
            assert not is_sealed(old_store)
        if "/y/" in file.as_posix():  # growing it seals it, too
            with pytest.raises(InputError, match=re.escape(file.relative_to(old_store).as_posix())):
                sweep(a=(1, 2, 3, 4, 5)).run(old_store, cluster=client, progress=False)
        file.write_bytes(content)
    seal_store(old_store)


def test_an_archive_is_sealed_as_the_store_is(store, tmp_path):
    pack(store, tmp_path / "s.zarr.zip")
    unpack(tmp_path / "s.zarr.zip", tmp_path / "u.zarr")
    assert check(tmp_path / "u.zarr").is_sound
    flip(next(iter(all_files(tmp_path / "u.zarr" / "y" / "c"))), 50)
    assert not check(tmp_path / "u.zarr").is_sound


def test_the_simulator_heals_from_the_command_line(tmp_path, capsys):
    """``check --repair`` needs nothing but the store."""
    path = tmp_path / "s.zarr"
    axes = {"scheduler": ["fcfs", "backfill"], "load_scale": [0.8, 1.2]}
    fixed = {"log": "sdsc-model", "num_jobs": 60, "failures": "mtbf", "mtbf_h": 50}
    Sweep(axes=axes, fixed=fixed, replicates=2).run(path, workers=1, progress=False)
    before = xr.open_zarr(path, chunks=None).load().drop_vars("wall_s")
    measured = [name for name in before.data_vars if "scheduling" in str(name)]
    for name in ("mean_wait_s", "utilisation"):
        flip(next(iter(all_files(path / name / "c"))), 77)
    assert print_check(path, mend=True, seal=False, logs=None, workers=1) == 0
    assert "mean_wait_s/c/0/0/0: damaged" in capsys.readouterr().out
    after = xr.open_zarr(path, chunks=None).load().drop_vars("wall_s")
    xr.testing.assert_equal(after.drop_vars(measured), before.drop_vars(measured))


def test_a_repair_that_is_killed_goes_on(store, made, client, monkeypatch):
    """Whatever a kill leaves, the next run ends with the same results."""
    from faultsweep.sweeps.store import repair as module

    steps = ["_restore_copies", "_forget", "rewrite", "settle"]
    for step in steps:
        for file in all_files(store / "y" / "c"):
            flip(file, 40)
        flip(store / "integrity" / "manifest", 40)
        real = getattr(module, step)

        def killed(*given, real=real, **more):
            real(*given, **more)
            raise KeyboardInterrupt

        monkeypatch.setattr(module, step, killed)
        with contextlib.suppress(KeyboardInterrupt):
            repair(store)
        monkeypatch.setattr(module, step, real)
        sweep().run(store, cluster=client, progress=False)
        assert results(store) == results(made), step
        assert check(store).is_sound, step


def test_per_job_results_are_read_after_healing(store, client):
    chunk = next(file for file in all_files(store / "jobs") if file.name != "zarr.json")
    os.truncate(chunk, 10)
    assert repair_store(store).cells == 7
    sweep().run(store, cluster=client, progress=False)
    assert open_jobs(open_results(store), a=2, mode="x")["size"].values.tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    "lines",
    [
        [("jobs/../../0", b"x")],
        [("../other", None), (f"{COPIES}/../other", b"x"), ("jobs/../../0", b"x")],
        [(f"{COPIES}/../../../0", b"x"), ("../../../0", None)],
    ],
)
def test_a_strangers_manifest_reaches_no_file_outside_its_store(store, lines):
    (store.parent / "0").write_text("precious")
    note(store, lines)
    replace_file(store, "zarr.json", (store / "zarr.json").read_bytes())
    assert [damage.name for damage in check(store).damage] == [MANIFEST, SECOND]
    repair(store)
    assert (store.parent / "0").read_text() == "precious"
    assert check(store).is_sound


def test_a_repair_follows_no_link_out_of_the_store(store):
    other = store.parent / "other"
    shutil.move(store / "jobs", other)
    (store / "jobs").symlink_to(other)
    before = all_files(other)
    with pytest.raises(InputError, match="is outside the store, behind a link"):
        repair(store)
    assert all_files(other) == before


@pytest.mark.parametrize("text", [b"x y z w", b"1 2 \xff \xff", b"9" * 5000 + b" 1 - a", b"1 2 - a\x1b"])
def test_a_line_of_a_manifest_that_says_nothing_is_damage(store, text):
    for name in (MANIFEST, SECOND):
        with (store / name).open("ab") as file:
            file.write(f"{zlib.crc32(text):08x} ".encode() + text + b"\n")
    assert [damage.name for damage in check(store).damage] == [MANIFEST, SECOND]
    assert open_results(store).sizes["a"] == 4


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("consolidated_metadata metadata y fill_value", "x"),
        ("consolidated_metadata metadata y chunk_key_encoding configuration", None),
        ("consolidated_metadata metadata status attributes flag_values", [0, 1]),
        ("consolidated_metadata metadata status attributes flag_meanings", None),
        ("consolidated_metadata metadata status codecs", [{"name": "bytes"}]),
        ("consolidated_metadata metadata wall_s", ...),
        ("attributes metrics", ...),
        ("attributes name", ...),
    ],
)
def test_odd_metadata_is_a_sentence(store, place, value):
    root = json.loads((store / "zarr.json").read_text())
    shutil.rmtree(store / "integrity")
    *parts, last = place.split()
    table = root
    for part in parts:
        table = table[part]
    table[last] = value
    if value is ...:
        del table[last]
    (store / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(InputError):
        open_results(store).load()
    with contextlib.suppress(InputError):  # it may read what is sound
        read_status(store)


def resumed(path, times):
    """Write what so many resumed runs would write into the manifest of a store, which is settled after each."""
    store = Store(path)
    for _ in range(times):
        chunks = [file for file in all_files(path / "status") if file.name != "zarr.json"]
        status = [(file.relative_to(path).as_posix(), file.read_bytes()) for file in chunks]
        for _ in range(20):
            note(path, status * 5)
        store.commit(open_runs="[]")
        store.compact()


def test_the_manifest_does_not_grow_without_bound(store, made, client, monkeypatch):
    monkeypatch.setattr("faultsweep.sweeps.store.manifest._SHORT_BYTES", 0)
    files = len(all_files(store))
    resumed(store, 15)
    size = (store / MANIFEST).stat().st_size
    assert size == (store / SECOND).stat().st_size
    assert size < 5 * 100 * files, "more than a few lines a file"
    assert manifest_size(store) > 10 * size
    assert check(store).is_sound
    sweep().run(store, cluster=client, progress=False)
    assert results(store) == results(made)


def test_runs_that_resume_bound_the_manifest(tmp_path, client):
    """With real runs, and the length that a manifest has to have before it is written anew."""
    path = tmp_path / "s.zarr"
    sizes = []
    for number in range(1, 5):
        sweep(a=range(5, 5 + number), keep_jobs=False).run(path, cluster=client, progress=False)
        resumed(path, 5)
        sizes.append((path / MANIFEST).stat().st_size)
    assert manifest_size(path) > 2 * max(sizes)
    assert max(sizes) < 2 * 65_536
    assert check(path).is_sound


@pytest.mark.parametrize("step", range(8))
def test_a_kill_while_the_manifest_is_written_anew(store, made, client, monkeypatch, step):
    """Before and after each of the two is replaced, and the root that follows."""
    monkeypatch.setattr("faultsweep.sweeps.store.manifest._SHORT_BYTES", 0)
    opened = Store(store)
    note(store, [("zarr.json", (store / "zarr.json").read_bytes())] * 3000)
    opened.commit(open_runs="[]")
    calls = []
    real = os.replace

    def killed(*names):
        calls.append(names)
        if len(calls) == step // 2 + 1:
            if step % 2:
                real(*names)
            raise KeyboardInterrupt
        real(*names)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        opened.compact()
    monkeypatch.setattr(os, "replace", real)
    assert check(store).damage == []
    [chunk] = all_files(store / "y" / "c")
    content = chunk.read_bytes()
    chunk.unlink()
    with pytest.raises(InputError, match=r"y/c/0/0/0 is absent"):
        open_results(store)["y"].load()
    chunk.write_bytes(content)
    sweep(a=(1, 2, 3, 4, 6)).run(store, cluster=client, progress=False)
    assert check(store).is_sound
    assert (store / MANIFEST).read_bytes() == (store / SECOND).read_bytes()
    assert np.array_equal(open_results(store)["y"].sel(a=[1, 2, 3, 4]), open_results(made)["y"], equal_nan=True)


def test_damage_is_seen_and_healed_behind_a_manifest_that_was_written_anew(store, made, client, monkeypatch):
    monkeypatch.setattr("faultsweep.sweeps.store.manifest._SHORT_BYTES", 0)
    backup = shutil.copytree(store, store.parent / "backup.zarr")
    resumed(store, 2)
    assert manifest_size(backup) < manifest_size(store)
    for file in all_files(store):
        content = file.read_bytes()
        for bit in (3, 8 * (len(content) // 2), 8 * len(content) - 1):
            flip(file, bit)
            assert file.relative_to(store).as_posix() in {one.name for one in verify(store).damage}
        file.write_bytes(content)
    run_folder(store).mkdir(exist_ok=True)
    Store(store).commit(title="later")
    shutil.rmtree(store)
    shutil.copytree(backup, store)
    assert check(store).older
    for name in (MANIFEST, SECOND):  # both have lost their beginning
        file = store / name
        file.write_bytes(b"\n".join(file.read_bytes().split(b"\n")[2:]))
    assert MANIFEST in {one.name for one in check(store).damage}
    sweep().run(store, cluster=client, progress=False)
    assert results(store) == results(made)
    assert check(store).is_sound
