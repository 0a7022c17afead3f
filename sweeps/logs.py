"""Job logs by name: found in folders, or fetched once from the Parallel Workloads Archive, and checked by content."""

from __future__ import annotations

import gzip
import json
import logging
import lzma
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import platformdirs
from faultsweep.simcore.failure_sources import is_file
from faultsweep.simcore.model.workload import Workload
from faultsweep.simcore.parameters import PARAMETERS
from faultsweep.simcore.workloads.accounting.files import read_jobs, read_records
from faultsweep.simcore.workloads.accounting.records import JobRecords
from faultsweep.simcore.workloads.accounting.units import Zone
from faultsweep.simcore.workloads.models import DEFAULT_JOBS, MODELS, generate, is_model
from faultsweep.simcore.workloads.swf import check_on_error, read_swf
from faultsweep.simcore.workloads.transforms import span

from faultsweep.arguments import PATH, TEXT, takes
from faultsweep.errors import InputError, unknown_name

ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload"
DOWNLOAD_TIMEOUT_S = 60
LOGS_VARIABLE = "FAULTSWEEP_LOGS"
LOG = logging.getLogger("faultsweep.logs")


@dataclass(frozen=True)
class NamedLog:
    """A log of the Parallel Workloads Archive.

    Attributes
    ----------
    file : name in the archive without ``.swf.gz``; it ends with the version (``cln``: cleaned).
    folder : folder of the archive; empty for a file that it does not have.
    machine : what it ran on.
    thanks : whom the archive asks to acknowledge.
    sha256 : of the uncompressed content; empty where it is pinned at first use.
    aliases : other names; all are understood in small and capital letters.
    """

    file: str
    folder: str
    machine: str
    thanks: str
    sha256: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """Where the archive has it."""
        return f"{ARCHIVE_URL}/{self.folder}/{self.file}.swf.gz"


NAMED_LOGS: dict[str, NamedLog] = {
    "nasa": NamedLog(
        "NASA-iPSC-1993-3.1-cln",
        "l_nasa_ipsc",
        "NASA Ames iPSC/860, 128 nodes, 1993",
        "Bill Nitzberg",
        "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
        ("nasa-ipsc",),
    ),
    "sdsc-sp2": NamedLog(
        "SDSC-SP2-1998-4.2-cln",
        "l_sdsc_sp2",
        "San Diego Supercomputer Center IBM SP2, 128 nodes, 1998-2000",
        "Victor Hazlewood (JOBLOG data, Copyright 2000 The Regents of the University of California)",
        "2bb635f4b5793f52bd49ccb8fd913d95f9c5be6346925162cadcaf0117e28cf2",
        ("sdsc",),
    ),
    "llnl-t3d": NamedLog(
        "LLNL-T3D-1996-2", "l_llnl_t3d", "Lawrence Livermore Cray T3D, 256 nodes, 1996", "Moe Jette", "", ("llnl",)
    ),
    "llnl-atlas": NamedLog(
        "LLNL-Atlas-2006-2.1-cln",
        "l_llnl_atlas",
        "Lawrence Livermore Atlas, 1,152 nodes of 8 processors, 2006-2007",
        "Moe Jette",
        "8b3aaab739fa0bda8abaccc37c207d0b19d9d147b19e7f47a1641133a56fd07f",
        ("atlas",),
    ),
    "llnl-thunder": NamedLog(
        "LLNL-Thunder-2007-1.1-cln",
        "l_llnl_thunder",
        "Lawrence Livermore Thunder, 1,002 nodes of 4 processors, 2007",
        "Moe Jette",
        "aad5a3120a6adf0342d46fb4830e022121cdfbd3de9ecdd9cf10145b8864b6a5",
        ("thunder",),
    ),
    "anl-intrepid": NamedLog(
        "ANL-Intrepid-2009-1",
        "l_anl_int",
        "Argonne Blue Gene/P Intrepid, 40,960 nodes of 4 processors, 2009",
        "Susan Coghlan, Narayan Desai and Wei Tang",
        "",
        ("intrepid",),
    ),
    "anl-intrepid-1200": NamedLog(
        "ANL-Intrepid-2009-first1200.ppt-sched",
        "",
        "the first 1,200 jobs of anl-intrepid",
        "Susan Coghlan, Narayan Desai and Wei Tang",
        "594c102ef71415a9b7fe008d153ab1c7119e18986a3413dce30230546542a44f",
        ("intrepid-1200",),
    ),
    "ctc-sp2": NamedLog(
        "CTC-SP2-1996-3.1-cln",
        "l_ctc_sp2",
        "Cornell Theory Center IBM SP2, 1996-1997",
        "Dan Dwyer and Steve Hotovy",
        "",
        ("ctc",),
    ),
    "kth-sp2": NamedLog(
        "KTH-SP2-1996-2.1-cln",
        "l_kth_sp2",
        "Royal Institute of Technology IBM SP2, 100 nodes, 1996-1997",
        "Lars Malinowsky",
        "",
        ("kth",),
    ),
    "sdsc-blue": NamedLog(
        "SDSC-BLUE-2000-4.2-cln",
        "l_sdsc_blue",
        "San Diego Supercomputer Center Blue Horizon, 144 nodes of 8 processors, 2000-2003",
        "Travis Earheart and Nancy Wilkins-Diehr",
        "13892839f430583231a14bb811fd50a31b5b529eb37faacdbbefb71e73390e3e",
        ("blue",),
    ),
    "cea-curie": NamedLog(
        "CEA-Curie-2011-2.1-cln",
        "l_cea_curie",
        "CEA Curie, 5,544 nodes, 93,312 processors, 2011-2012",
        "Joseph Emeras",
        "b732a04aea71e2f154c8feee580be549d0bba1462bc91ec581944cb3dd6d442d",
        ("curie",),
    ),
}
CALIBRATED_TO = {
    "nasa-model": "nasa",
    "sdsc-model": "sdsc-sp2",
    "atlas-model": "llnl-atlas",
    "intrepid-model": "anl-intrepid",
}
"""Model -> the log that it was calibrated to, whose makers are thanked for it."""
_BY_NAME = {alias: name for name, log in NAMED_LOGS.items() for alias in (name, log.file.lower(), *log.aliases)}


def is_name(name: str) -> bool:
    """Return whether a job log is given by the name of a model or of a log, and not by a path."""
    return name.lower() in MODELS or name.lower() in _BY_NAME


@takes(name_or_path=PATH, logs_dir=PATH, on_error=TEXT, timezone=TEXT)
def load_workload(
    name_or_path: str | Path,
    logs_dir: str | Path | None = None,
    *,
    num_jobs: int = 0,
    seed: int = 0,
    replicate: int = 0,
    on_error: str = "raise",
    timezone: str = "",
) -> Workload:
    """Return the jobs of a named log, of a workload model or of a file with either.

    Parameters
    ----------
    name_or_path : a name of NAMED_LOGS or of MODELS, the path of a log in the Standard Workload Format, of an
        accounting dump, or of a model that ``faultsweep logs fit`` has written (.toml).
    logs_dir : folder that is searched first for a named log, with its subfolders; then come the folder in
        FAULTSWEEP_LOGS, the user's cache, and the archive on the network.
    num_jobs : number of jobs: the first ones of a log (0: all), or that many of a model (0: 10,000).
    seed, replicate : of the jobs of a model.
    on_error : what happens to malformed lines, see ``read_swf``.
    timezone : zone of times in an accounting dump that name none, such as Europe/Berlin; UTC if empty.

    Raises
    ------
    InputError
        There is no such log or zone, it cannot be fetched, its content is not that of the named log, it has fewer jobs,
        or one of the numbers is not valid.
    """
    num_jobs, seed, replicate = (
        int(PARAMETERS[name].check(value))
        for name, value in (("num_jobs", num_jobs), ("seed", seed), ("replicate", replicate))
    )
    check_on_error(on_error)
    workload = _load_whole(name_or_path, logs_dir, (num_jobs, seed, replicate), on_error, timezone)
    return span(workload, 0, 0 if is_model(str(name_or_path)) else num_jobs)


def _load_whole(
    name_or_path: str | Path,
    logs_dir: str | Path | None,
    drawn: tuple[int, int, int],
    on_error: str,
    timezone: str,
) -> Workload:
    """Return the jobs of a log, all of them, or of a model those of ``drawn``: number of jobs, seed and replicate."""
    if timezone:
        Zone(timezone)  # what is no zone is said of every log, also of one that needs none
    list(_folders(logs_dir))  # a folder that is not there is said for every log, so that nobody trusts in it
    name = str(name_or_path)
    if not name:
        raise InputError("log: no job log is given (the name of a log or model, or the path of an SWF file)")
    if is_model(name):
        return generate(name.lower() if name.lower() in MODELS else name, *drawn)
    if name.lower() in _BY_NAME:
        log = NAMED_LOGS[_BY_NAME[name.lower()]]
        return _checked(log, find(log, logs_dir) or fetch(log), on_error)
    path = Path(name)
    if path.suffix in (".swf", ".gz", ".xz") or os.path.exists(path) or path.name != name:
        return read_jobs(path, on_error=on_error, timezone=timezone)
    raise unknown_name("log", name, [*NAMED_LOGS, *MODELS, "the path of an SWF file"], where="log")


def load_records(
    name_or_path: str, logs_dir: str | Path | None = None, timezone: str = "", on_error: str = "raise"
) -> JobRecords:
    """Return all that a named log, an accounting dump or an extended workload knows of its jobs; malformed rows are an
    error, or left out and counted (``on_error="skip"``).

    Raises
    ------
    InputError
        If there is no such log, or it is a model, which has no real schedule.
    """
    if is_model(name_or_path):
        raise InputError(f"{name_or_path}: a model has no real schedule (valid: a log, or an accounting dump)")
    if name_or_path.lower() in _BY_NAME:
        log = NAMED_LOGS[_BY_NAME[name_or_path.lower()]]
        return read_records([find(log, logs_dir) or fetch(log)])
    return read_records([name_or_path], timezone=timezone, on_error=on_error)


def load_configured(config: Mapping[str, Any], logs_dir: str | Path | None = None, on_error: str = "raise") -> Workload:
    """Return the jobs that a resolved configuration needs: a log whole, of a model as many as its span reaches over.

    A file keeps the name that the user gave it by, for sentences about its jobs.
    """
    reach = config["offset"] + (config["num_jobs"] or DEFAULT_JOBS)
    drawn = (reach, config["seed"], config["replicate"])
    workload = _load_whole(config["log"], logs_dir, drawn, on_error, config["timezone"])
    return workload if is_name(config["log"]) else replace(workload, name=config["log"])


def named_log(name: str) -> NamedLog:
    """Return the log of a name or alias, or raise InputError with the valid names."""
    if name.lower() not in _BY_NAME:
        raise unknown_name("log", name, NAMED_LOGS)
    return NAMED_LOGS[_BY_NAME[name.lower()]]


def acknowledgements(
    logs: Sequence[str], failures: Sequence[str] = (), folders: Sequence[str | Path] = ()
) -> list[str]:
    """Return sentences that thank whom the makers of job and failure logs ask to thank, as their terms require.

    A model stands for the log that it was calibrated to. What a file says is read where it is in one of ``folders``.
    """
    known = [CALIBRATED_TO.get(log.lower(), log) for log in logs]
    thanks = dict.fromkeys(NAMED_LOGS[_BY_NAME[log.lower()]].thanks for log in known if log.lower() in _BY_NAME)
    said = [f"Logs of the Parallel Workloads Archive, with thanks to {'; '.join(thanks)}."] if thanks else []
    for log in dict.fromkeys(log for log in known if not is_name(log)):
        places = (Path(folder) / log for folder in folders)
        lines = next((_acknowledge_lines(place) for place in places if place.is_file()), [])
        says = "; ".join(lines) or "its makers' terms hold"
        said.append(f"Jobs of {Path(log).name}: {says.rstrip('.')}.")
    for name in dict.fromkeys(name for name in failures if is_file(name)):
        said.append(f"Failures of {Path(name).name}: its makers' terms hold.")
    return said


def _acknowledge_lines(log: Path) -> list[str]:
    """Return what the header of a log in the Standard Workload Format, or of a fitted model, says of whom to thank."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(log.suffix, open)
    with opener(log, "rb") as file:
        head = file.read(20_000).decode("utf-8", errors="replace")
    return [line.strip() for line in re.findall(r"Acknowledge:([^\n\"]+)", head)]


def cache_folder() -> Path:
    """Return the folder of fetched logs in the user's cache."""
    return platformdirs.user_cache_path("faultsweep") / "logs"


def find(log: NamedLog, logs_dir: str | Path | None = None) -> Path | None:
    """Return where a log already is on this machine, or None."""
    for folder in _folders(logs_dir):
        for suffix in (".swf", ".swf.gz", ".swf.xz"):
            found = min(folder.rglob(log.file + suffix), default=None)
            if found:
                return found
    return None


def _folders(logs_dir: str | Path | None) -> Iterator[Path]:
    for name, source in ((logs_dir, "--logs"), (os.environ.get(LOGS_VARIABLE), LOGS_VARIABLE)):
        if name:
            if not Path(name).is_dir():
                raise InputError(f"{source}: {name} is not a folder")
            yield Path(name)
    yield cache_folder()


def fetch(log: NamedLog) -> Path:
    """Download a log into the user's cache and return its path; one that is there already is not fetched again.

    Raises
    ------
    InputError
        If it cannot be fetched, saying what to do without a network.
    """
    import pooch
    import requests

    if not log.folder:
        raise InputError(
            f"{log.file}: is not in the Parallel Workloads Archive; put {log.file}.swf into a folder and name that by "
            f"--logs DIR or {LOGS_VARIABLE}"
        )
    pooch.get_logger().setLevel(logging.WARNING)
    try:
        downloader = pooch.HTTPDownloader(timeout=DOWNLOAD_TIMEOUT_S)
        # the archive gives no checksums of its compressed files; the content is checked when it is read
        return Path(pooch.retrieve(log.url, None, f"{log.file}.swf.gz", cache_folder(), downloader=downloader))
    except requests.exceptions.Timeout:
        problem = f"no answer in {DOWNLOAD_TIMEOUT_S:g} s"
    except requests.exceptions.ConnectionError:
        problem = "no connection"
    except requests.exceptions.RequestException as error:
        answer = error.response
        problem = f"the server says {answer.status_code} {answer.reason}" if answer is not None else str(error)
    except OSError as error:
        problem = error.strerror or str(error)
    raise InputError(
        f"{log.file}: cannot be fetched from {log.url} ({problem}); put {log.file}.swf.gz into a folder and name "
        f"that by --logs DIR or {LOGS_VARIABLE}, or use a workload model, which needs no network: {', '.join(MODELS)}"
    )


def _checked(log: NamedLog, path: Path, on_error: str) -> Workload:
    """Read a log and compare its content with the pinned hash; pin it if there is none."""
    try:
        workload = read_swf(path, on_error=on_error)
    except InputError:
        _forget(path)
        raise
    expected = log.sha256 or _pins().get(log.file, "")
    actual = workload.content_hash.removeprefix("sha256:")
    if not expected:
        _pin(log, actual)
    elif actual != expected:
        _forget(path)
        raise InputError(
            f"{path}: the content is not that of {log.file} (sha256 {actual}, expected {expected}); "
            "fetch it again, or give the path instead of the name to use this file"
        )
    return workload


def _forget(path: Path) -> None:
    """Remove a bad file from the cache, so that it is fetched again; files of the user are left alone."""
    if path.parent == cache_folder():
        path.unlink(missing_ok=True)


def _pins_file() -> Path:
    return cache_folder() / "pins.json"


def _pins() -> dict[str, str]:
    try:
        pins = json.loads(_pins_file().read_text("utf-8"))
    except OSError:
        return {}
    except ValueError:
        pins = None
    if not isinstance(pins, dict):
        raise InputError(f"{_pins_file()}: is damaged; remove it, and logs are pinned anew at their next use")
    return pins


def _pin(log: NamedLog, sha256: str) -> None:
    LOG.warning("%s: pinned at first use, sha256 %s", log.file, sha256)
    pins = _pins() | {log.file: sha256}
    temporary = _pins_file().with_name(f"pins.{os.getpid()}")
    try:
        temporary.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(json.dumps(pins, indent=1), "utf-8")
        temporary.replace(_pins_file())
    except OSError as error:  # a run must not fail because the cache is read-only
        LOG.warning("%s: cannot be written (%s); the log stays without a pin", _pins_file(), error.strerror)
