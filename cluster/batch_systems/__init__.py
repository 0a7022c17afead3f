"""Batch systems: one module each, with the functions that the rest asks for. ``find`` returns one by its name.

A site's own is a Python file that the site's settings name (``system = "/path/flux.py"``). It has

- TITLE, the system's name in sentences; JOB_VARIABLE, the environment variable that has a job's number in it; OPTIONS,
  the key of the site's settings that holds more options of its submit command; LOOK and END, the commands that show a
  user's jobs and end one;
- at submission: ``partitions``, ``check_options``, ``directives``, ``test``, ``submit``, ``describe_refusal``,
  ``name_of``;
- later: ``job_state``, ``explain``, ``cancel``;
- in a job: ``restarts``, ``seconds_left``, ``nodes_of_job``, ``on_each_node``, ``requeue``;
- for worker jobs (``--elastic``): ``worker_cluster``, ``jobs_named``, ``cancel_named``.

``slurm`` and ``pbs`` are two examples; docs/batch-systems.md says what each function gets and returns.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import platformdirs

from faultsweep.errors import InputError, unknown_name

SYSTEMS = {"slurm": "sbatch", "pbs": "qsub"}
"""The systems that are known here, each with the command that submits a job."""
SYSTEM_VARIABLE = "FAULTSWEEP_BATCH_SYSTEM"
"""Environment variable that names the system to what runs in a job."""
CONSTANTS = ("TITLE", "JOB_VARIABLE", "OPTIONS", "LOOK", "END")
FUNCTIONS = (
    *("partitions", "check_options", "directives", "test", "submit", "describe_refusal", "name_of"),
    *("job_state", "explain", "cancel", "restarts", "seconds_left", "nodes_of_job", "on_each_node", "requeue"),
    *("worker_cluster", "jobs_named", "cancel_named"),
)
"""What a module has to have."""


def default_system() -> str:
    """Return the system of this machine: that of the job it runs in, or whose commands are here; slurm if none is."""
    here = os.environ.get(SYSTEM_VARIABLE)
    return here or next((name for name, command in SYSTEMS.items() if shutil.which(command)), "slurm")


def own_job() -> str:
    """Return the number of the batch job that this process belongs to, "" if it belongs to none."""
    name = os.environ.get(SYSTEM_VARIABLE)
    return os.environ.get(find(name).JOB_VARIABLE if name else "SLURM_JOB_ID", "")


def find(name: str) -> ModuleType:
    """Return the module of a batch system: of a known name, or a site's own file.

    Raises
    ------
    InputError
        There is none, it cannot be loaded, or it lacks functions.
    """
    if name in SYSTEMS:
        return importlib.import_module(f"{__name__}.{name}")
    if not name.endswith(".py"):
        raise unknown_name("batch system", name, [*SYSTEMS, "a FILE.py of the site"], where="system")
    path = Path(os.path.expanduser(name)).resolve()
    module = sys.modules.get(f"faultsweep_site_{path.stem}")
    if module is None or getattr(module, "__file__", None) != str(path):
        module = _load(path)
    absent = [known for known in (*CONSTANTS, *FUNCTIONS) if not hasattr(module, known)]
    if absent:
        raise InputError(f"{path}: lacks {', '.join(absent)}, which a batch system must define")
    return module


def remember(name: str) -> None:
    """Note that this user has submitted a job by a site's own file: what stands beside a store may name it from now on.

    What cannot be written is left; then the environment variable has to name the file.
    """
    if name in SYSTEMS or name in _remembered():
        return
    with contextlib.suppress(OSError):
        _memory().parent.mkdir(parents=True, exist_ok=True)
        with _memory().open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")


def check_recorded(name: str) -> str:
    """Return a name that stands beside a store, after checking that nothing of a stranger's is loaded by it.

    Raises
    ------
    InputError
        It is a file by which this user has submitted no job.
    """
    if name.endswith(".py") and name != os.environ.get(SYSTEM_VARIABLE) and name not in _remembered():
        raise InputError(
            f"{name}: you have submitted no job with this batch system from here, so its file is not executed; if you "
            f"trust it, set {SYSTEM_VARIABLE} to it"
        )
    return name


def _memory() -> Path:
    return Path(platformdirs.user_state_dir("faultsweep")) / "batch_systems"


def _remembered() -> list[str]:
    try:
        return _memory().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"faultsweep_site_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: no such file; system is one of {', '.join(SYSTEMS)}, or a Python file of the site")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the file is the site's own code, which may raise anything
        raise InputError(f"{path}: cannot be loaded ({type(error).__name__}: {error})") from None
    sys.modules[spec.name] = module
    return module
