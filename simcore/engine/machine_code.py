"""The machine code of kernels: where it is kept, by what it means, and how a process runs it without the compiler.

Numba's disk cache does not notice a change in a function that a cached kernel calls from another file: it silently
runs the old code. So the name of a kernel's directory is a hash of what its module reaches (``meaning.py``), of Numba's
version, of the processor type and of how Numba is set up (it ignores a changed setting on a cache hit, too).

An event loop is a file of its own there, which LLVM loads: Numba, which made it, takes longer to import than most runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import platformdirs
from faultsweep.simcore.engine.meaning import meaning_of

from faultsweep import errors

ENTRIES = ("faultsweep.simcore.engine.loop", "faultsweep.simcore.engine.clusters.loop")
"""The modules of the kernels that run a configuration: on clusters, the second."""
_COMPILER = "faultsweep.simcore.engine.state_types"
"""The module that is imported for compiling, and all that it reaches."""
_OF_C = {"numba_nextafter": "nextafter"}
"""What Numba has of its own and the C library, too."""
_SETTINGS = re.compile("NUMBA_(BOUNDSCHECK|CPU_|DEBUGINFO|DISABLE_INTEL|ENABLE_AVX|LLVM_REF|LOOP_|OPT|SLP_)")
"""Variables that decide to what Numba compiles a function."""
_SETTINGS_FILE = Path(".numba_config.yaml")
"""Where Numba looks for them, too: in the folder at hand."""
_HASH = re.compile("[0-9a-f]{64}")
_CODE = (".py", ".pyc")  # the latter where a module has no source
_DIGEST = 32  # bytes at the begin of a file


def is_set(flag: str) -> bool:
    """Tell whether a flag of Numba's is set in the environment, without Numba."""
    value = os.environ.get(f"NUMBA_{flag}", "").strip()
    return value.isdecimal() and int(value) != 0


def has_bmi2() -> bool:
    """Tell whether the processor that is compiled for moves bits to those of a mask in one instruction.

    LLVM ends the process where it has been told of a processor that does not.
    """
    told = _settings()
    if _SETTINGS_FILE.name in told:
        return False
    features = told.get("NUMBA_CPU_FEATURES", "" if told.get("NUMBA_CPU_NAME", "").lower() == "generic" else None)
    return bool(llvm.get_host_cpu_features().get("bmi2")) if features is None else "+bmi2" in features.split(",")


def _settings() -> dict[str, str]:
    """Return what the user tells Numba of how to compile."""
    told = {name: value for name, value in os.environ.items() if _SETTINGS.match(name)}
    with contextlib.suppress(OSError, UnicodeDecodeError):
        told[_SETTINGS_FILE.name] = _SETTINGS_FILE.read_text()
    return told


def kernel_hash(*modules: str) -> str:
    """Return the hash of everything that decides what the compiled kernels of these modules do."""
    processor = f"{llvm.get_host_cpu_name()} {sorted(llvm.get_host_cpu_features().items())}"
    parts = (*map(_meaning, (*modules, _COMPILER)), _numba_version(), processor, str(sorted(_settings().items())))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@lru_cache
def _numba_version() -> str:
    """Return what tells one version of Numba from another, without importing it."""
    numba = find_spec("numba")
    folder = Path(numba.origin or "").parent if numba else Path()
    return (folder / "_version.py").read_text()


@lru_cache
def _meaning(module: str) -> str:
    """Return the meaning of a module, which takes 0.1 s to find: it is kept as long as no source changes."""
    sources = _sources()
    if not sources:
        return meaning_of(module)
    path = cache_dir() / "meanings" / hashlib.sha256(f"{module} {sources}".encode()).hexdigest()[:16]
    with contextlib.suppress(OSError, ValueError):
        if _HASH.fullmatch(kept := path.read_text()):  # a power cut may have left another text
            return kept
    meaning = meaning_of(module)
    if _read_sources() != sources:  # edited since this process has imported them: the meaning is of other kernels
        return hashlib.sha256(sources.encode()).hexdigest()
    _write(path, meaning.encode())
    return meaning


@lru_cache
def _sources() -> str:
    """Return the sources as they were when this module was imported, before those of kernels."""
    return _read_sources()


def _read_sources() -> str:
    """Return the sizes, dates and hashes of all sources that a kernel may reach; "" if they are no files.

    By sizes and dates Python knows what it has compiled, but it keeps that beside the sources: here one folder serves
    all copies, and copies of two versions may have files of one size and date, as a container's or an archive's do.
    """
    core, base = os.path.dirname(os.path.dirname(__file__)), os.path.dirname(errors.__file__)
    folders = [*os.walk(core), *islice(os.walk(base), 1)]
    files = [os.path.join(folder, name) for folder, _, names in folders for name in names if name.endswith(_CODE)]
    found = [_of_file(path) for path in sorted(files) if os.path.basename(os.path.dirname(path)) != "__pycache__"]
    return f"{sys.version} {found}" if found else ""


def _of_file(path: str) -> tuple[str, int, int, str]:
    try:
        with open(path, "rb") as file:
            stat = os.fstat(file.fileno())
            return path, stat.st_size, stat.st_mtime_ns, hashlib.sha256(file.read()).hexdigest()
    except OSError:  # such as the link to nowhere by which an editor locks a file
        return path, 0, 0, ""


_sources()


def _write(path: Path, content: bytes) -> None:
    """Write a file for other processes, whole or not at all, if that is possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            written = Path(folder, path.name)
            written.write_bytes(content)
            written.replace(path)
    except OSError:
        return


def cache_dir() -> Path:
    """Return the directory of compiled kernels (under FAULTSWEEP_CACHE_DIR or the user's cache)."""
    base = os.environ.get("FAULTSWEEP_CACHE_DIR") or platformdirs.user_cache_dir("faultsweep")
    return Path(base) / "kernels"


def is_cache_writable() -> bool:
    """Tell whether compiled kernels can be kept in their directory."""
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def is_compiled(clusters: bool = False) -> bool:
    """Tell whether the engine of this version, or that of clusters, has been compiled on this machine before."""
    return is_set("DISABLE_JIT") or any(_folder(ENTRIES[clusters]).glob("*.loop"))


class MachineCode(NamedTuple):
    """A kernel of (address, int64) -> int64 as an object file, its symbol there, and those that it needs from outside,
    in one line."""

    symbol: str
    needs: str
    code: bytes


def _folder(module: str) -> Path:
    return cache_dir() / kernel_hash(module)


def _path(module: str, name: str) -> Path:
    return _folder(module) / f"{name}.loop"


def keep(module: str, name: str, machine_code: MachineCode) -> None:
    """Keep the machine code of a kernel for other processes, if that is possible."""
    content = f"{machine_code.symbol}\n{machine_code.needs}\n".encode() + machine_code.code
    _write(_path(module, name), hashlib.sha256(content).digest() + content)


def kept(module: str, name: str) -> MachineCode | None:
    """Return what is kept of a kernel; None if that is nothing, or not whole."""
    try:
        file = _path(module, name).read_bytes()
    except OSError:
        return None
    digest, content = file[:_DIGEST], file[_DIGEST:]
    if hashlib.sha256(content).digest() != digest:
        return None
    symbol, needs, code = content.split(b"\n", 2)
    return MachineCode(symbol.decode(), needs.decode(), code)


class _Raised(ctypes.Structure):
    """What Numba tells of an exception: the pickled exception, its arguments and its place, as it compiled them."""

    _fields_ = (
        ("pickled", ctypes.c_void_p),
        ("size", ctypes.c_int32),
        ("hash", ctypes.c_void_p),
        ("unwrap", ctypes.c_void_p),
        ("dynamic", ctypes.c_int32),
    )


_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.POINTER(ctypes.c_int64),
    ctypes.POINTER(ctypes.POINTER(_Raised)),
    ctypes.c_void_p,
    ctypes.c_int64,
)
"""How Numba compiles a function: it gives a status; its result and its exception go where the first arguments say."""


def load(machine_code: MachineCode) -> Callable[[int, int], int]:
    """Return a kernel as a function of an address and a whole number; it runs without Python's lock."""
    _find(machine_code.needs.split())
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True, codemodel="jitdefault")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code.code))
    engine.finalize_object()
    function = _FUNCTION(engine.get_function_address(machine_code.symbol))

    def run(address: int, number: int, _in_memory: Any = engine) -> int:
        answer, raised = ctypes.c_int64(), ctypes.POINTER(_Raised)()
        if function(ctypes.byref(answer), ctypes.byref(raised), address, number) != 0:
            raise _exception(raised.contents)
        return answer.value

    return run


def _find(symbols: list[str]) -> None:
    """Let LLVM know what a kernel calls, or the process would end there: of the C library, or of Numba."""
    process = ctypes.CDLL(None)
    for name, same in _OF_C.items():
        llvm.add_symbol(name, ctypes.cast(getattr(process, same), ctypes.c_void_p).value)
    if not all(name in _OF_C or hasattr(process, name) for name in symbols):
        import_module(_COMPILER).begin()


def _exception(raised: _Raised) -> Exception:
    """Return what a kernel has raised, as one with bounds checks does."""
    kind, arguments, place = pickle.loads(ctypes.string_at(raised.pickled, raised.size))  # noqa: S301 - of Numba's own
    error: Exception = kind(*arguments)
    if place is not None:
        error.add_note(f"in {place[0]}, {place[1]}:{place[2]}")
    return error
