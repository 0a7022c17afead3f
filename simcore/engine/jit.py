"""How kernels are compiled, in one place.

Numba's disk cache does not notice a change in a function that a cached kernel calls from another file: it silently
runs the old code. So the name of a kernel's directory is a hash of what its module reaches (``meaning.py``), of Numba's
version, of the processor type and of the bounds-check flag (Numba ignores a changed flag on a cache hit, too).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import llvmlite.binding as llvm
import numba
import platformdirs
from faultsweep.simcore.engine.meaning import meaning_of
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.core import config as _untyped_config
from numba.core.caching import UserProvidedCacheLocator
from numba.core.environment import lookup_environment
from numba.extending import intrinsic
from numba.np import arrayobj as _untyped_arrayobj

# Numba's annotations know neither its settings nor all options of its compiler.
numba_config: Any = _untyped_config
_compile: Any = numba.njit
arrayobj: Any = _untyped_arrayobj


ENTRIES = ("faultsweep.simcore.engine.loop", "faultsweep.simcore.engine.clusters.loop")
"""The modules of the kernels that run a configuration: on clusters, the second."""

_P = ParamSpec("_P")
_R = TypeVar("_R")

_ROOT = Path(__file__).resolve().parents[1]


def kernel_hash(*modules: str) -> str:
    """Return the hash of everything that decides what the compiled kernels of these modules do."""
    processor = f"{llvm.get_host_cpu_name()} {sorted(llvm.get_host_cpu_features().items())}"
    parts = (*map(meaning_of, modules), numba.__version__, processor, str(numba_config.BOUNDSCHECK))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def cache_dir() -> Path:
    """Return the directory of compiled kernels (under FAULTSWEEP_CACHE_DIR or the user's cache)."""
    base = os.environ.get("FAULTSWEEP_CACHE_DIR") or platformdirs.user_cache_dir("faultsweep")
    return Path(base) / "kernels"


numba_config.CACHE_DIR = str(cache_dir())


class KernelCacheLocator(UserProvidedCacheLocator):
    """Where Numba keeps a compiled kernel: by the meaning of what it can reach, not by its place or its time.

    So all copies of one version share what one of them has compiled, and an edit of a text compiles nothing.
    """

    def __init__(self, py_func: Any, py_file: str) -> None:
        """Find the place of a kernel."""
        super().__init__(py_func, py_file)
        self._hash = kernel_hash(py_func.__module__)

    def get_cache_path(self) -> str:
        """Return the folder of a kernel."""
        return str(Path(numba_config.CACHE_DIR) / self._hash)

    def get_source_stamp(self) -> Any:
        """Return what is another if the kernel must be compiled again."""
        return self._hash

    def get_disambiguator(self) -> str:
        """Return what tells kernels of one name in a module apart; Numba takes the line, and there are none."""
        return "kernel"

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return where a kernel is kept; None for a function that is not of this package."""
        return super().from_function(py_func, py_file) if _is_ours(py_file) else None


def _is_ours(path: str) -> bool:
    return Path(path).resolve().is_relative_to(_ROOT)


def _share_kernels() -> None:
    ours = f"{__name__}.{KernelCacheLocator.__name__}"
    theirs = numba_config.CACHE_LOCATOR_CLASSES or "UserProvidedCacheLocator,InTreeCacheLocator,UserWideCacheLocator"
    if ours not in theirs:
        numba_config.CACHE_LOCATOR_CLASSES = f"{ours},{theirs}"


_share_kernels()

_OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": False, "error_model": "numpy", "_nrt": False}

_compiling = threading.local()


def _generate_once() -> None:
    """Optimise and generate the code of entry kernels only.

    Numba links everything that a function calls into it, optimises the whole and generates its machine code, again at
    every level of calls: measured, two thirds of the time to compile the engine. The code of an inner kernel is only
    ever used linked into an entry kernel, so it is optimised and generated there, as a part of it: left visible to
    the linker, the kernel of one name in two entry kernels would be one.
    """
    library: Any = codegen.CPUCodeLibrary
    targets: Any = codegen.JITCPUCodegen
    optimise = getattr(library, "_optimize_final_module", None)
    finish = getattr(library, "_finalize_final_module", None)
    if optimise is None or finish is None or not hasattr(targets, "set_env"):  # another Numba: slower, same code
        return
    set_environment = targets.set_env

    def optimise_entries(self: Any) -> None:
        if not _is_inner():
            for function in self._final_module.functions:
                if function.linkage == llvm.Linkage.linkonce_odr:
                    function.linkage = llvm.Linkage.internal
            optimise(self)

    def finish_entries(self: Any) -> None:
        if _is_inner():
            self._finalized = True
            return
        finish(self)
        for variable in self._final_module.global_variables:
            environment = lookup_environment(variable.name)
            if environment is not None:
                set_environment(self._codegen, variable.name, environment)

    def set_of_entries(self: Any, name: str, environment: Any) -> None:
        if not _is_inner():
            set_environment(self, name, environment)

    library._optimize_final_module, library._finalize_final_module = optimise_entries, finish_entries
    targets.set_env = set_of_entries


def _is_inner() -> bool:
    """Tell whether what is being compiled in this thread is an inner kernel."""
    return getattr(_compiling, "inner", False)


def _mark(compiled: Any, inner: bool) -> None:
    """Note whether a kernel is an inner one while it is being compiled, which another's compilation may be in."""
    compile_for = compiled.compile

    def compile_marked(signature: Any) -> Any:
        outer, _compiling.inner = _is_inner(), inner
        try:
            return compile_for(signature)
        finally:
            _compiling.inner = outer

    compiled.compile = compile_marked


_generate_once()


def _count_from_zero() -> None:
    """Take the indices of kernels as they are: none counts from the end of an array.

    Numba asks of each signed index whether it is negative, which is a quarter of the work of an inner loop, and keeps
    loops from being done with vectors. Other functions are compiled as ever: a user's score, those of Numba itself.
    """
    ours = "10faultsweep7simcore"  # in the name that Numba gives to the code of a function of that module
    fix = arrayobj.fix_integer_index

    def index(context: Any, builder: Any, kind: Any, value: Any, size: Any) -> Any:
        if ours in builder.function.name:
            return context.cast(builder, value, kind, types.intp)
        return fix(context, builder, kind, value, size)

    arrayobj.fix_integer_index = index


_count_from_zero()


def kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that other kernels call, and only they.

    It has no wrapper for calls from Python, constants among its arguments do not make a version of their own, and it
    neither allocates nor counts references. Without the word about inlining Numba passes on that of the caller: what a
    kernel calls that is compiled into its callers, would be, too, and so on to the last (seen: one function of 117,000
    instructions, and two minutes to compile it).
    """
    return _inner_kernel(function, forceinline=False)


def inlined(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a kernel into its callers: for small functions of inner loops, where passing the state would cost more
    than the work."""
    return _inner_kernel(function, forceinline=True)


def _inner_kernel(function: Callable[..., Any], **options: Any) -> Any:
    compiled = _compile(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options, **_OPTIONS)(function)
    if numba_config.DISABLE_JIT:
        return compiled
    resolve = compiled.get_call_template

    def resolve_without_literals(args: Any, kws: Any) -> Any:
        plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return resolve(tuple(types.unliteral(kind) for kind in args), plain)

    compiled.get_call_template = resolve_without_literals
    _mark(compiled, inner=True)
    return compiled


def is_cache_writable() -> bool:
    """Tell whether compiled kernels can be kept in their directory."""
    folder = Path(numba_config.CACHE_DIR)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def is_interpreted() -> bool:
    """Tell whether the kernels run as plain Python."""
    return bool(numba_config.DISABLE_JIT)


def counted(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that a ``callback`` calls; it may make views of arrays, which count references."""
    return _compile(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function)


def callback(function: Callable[..., int]) -> Any:
    """Compile a function of (pointer to int64, int64, int64, int64) -> int64 for ``make_caller``, once per machine."""
    whole = types.int64
    signature = whole(types.CPointer(whole), whole, whole, whole)
    return numba.cfunc(signature, cache=is_cache_writable(), error_model="numpy")(function)


def make_caller() -> Any:
    """Return what calls, within kernels, a ``callback`` by its address: (address, data address, a, b, c) -> int64."""

    @intrinsic
    def call(_context: Any, address: Any, data: Any, a: Any, b: Any, c: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            whole = ir.IntType(64)
            kind = ir.FunctionType(whole, [whole.as_pointer(), whole, whole, whole])
            function = builder.inttoptr(arguments[0], kind.as_pointer())
            return builder.call(function, [builder.inttoptr(arguments[1], whole.as_pointer()), *arguments[2:]])

        return types.int64(*[types.int64] * 5), generate

    return call


def make_bit_counts() -> tuple[Any, Any, Any]:
    """Return what counts, within kernels, the set bits of a uint64, the clear ones below its lowest set bit and those
    above its highest one; all as int64, in one instruction where the processor has it."""

    @intrinsic
    def count(_context: Any, _mask: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.int64(types.uint64), generate

    @intrinsic
    def trailing(_context: Any, _mask: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), generate

    @intrinsic
    def leading(_context: Any, _mask: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 1))

        return types.int64(types.uint64), generate

    return count, trailing, leading


def has_deposit() -> bool:
    """Tell whether kernels are compiled for a processor that moves bits to those of a mask in one instruction."""
    return not is_interpreted() and bool(llvm.get_host_cpu_features().get("bmi2"))


def make_deposit() -> Any:
    """Return what moves, within kernels, the lowest bits of a uint64 to the set bits of another one (PDEP)."""
    word = ir.IntType(64)

    @intrinsic
    def deposit(_context: Any, _bits: Any, _mask: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(word, [word, word])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.bmi.pdep.64")
            return builder.call(function, arguments)

        return types.uint64(types.uint64, types.uint64), generate

    return deposit


def entry_kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that Python calls: one of this package is cached on disk together with all that it calls."""
    # Where the directory cannot be written, Numba would cache beside the sources; and a function from elsewhere under
    # the date of its own file. Both would run stale code after an edit.
    cached = _is_ours(function.__code__.co_filename) and is_cache_writable()
    compiled = _compile(cache=cached, no_cfunc_wrapper=True, **_OPTIONS)(function)
    if not numba_config.DISABLE_JIT:
        _mark(compiled, inner=False)
    cache: Any = getattr(compiled, "_cache", None)
    if hasattr(cache, "_load_overload") and hasattr(cache, "_guard_against_spurious_io_errors"):
        cache.load_overload = partial(_load, cache)
    return compiled


def outermost_kernel(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile a function that Python calls and no kernel does: on disk is what runs, without what could be compiled
    into others. Measured on the event loop: 27 MB less in each process."""
    compiled = entry_kernel(function)
    cached: Any = getattr(getattr(compiled, "_cache", None), "_impl", None)
    if hasattr(cached, "reduce"):
        reduce = cached.reduce

        def reduce_to_names(result: Any) -> Any:
            (name, kind, (code, bitcode)), *rest = reduce(result)
            return (name, kind, (code, _names_of(bitcode))), *rest

        cached.reduce = reduce_to_names
    return compiled


def _names_of(bitcode: bytes) -> bytes:
    """Return a module that defines what another one does, by which Numba finds its compiled code, and does nothing."""
    module = llvm.parse_bitcode(bitcode)
    defined = [one for one in (*module.functions, *module.global_variables) if not one.is_declaration]
    seen = [one for one in defined if one.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)]
    lines = [
        f'define void @"{one.name}"() {{ unreachable }}' if one.is_function else f'@"{one.name}" = global i8 0'
        for one in seen
    ]
    return bytes(llvm.parse_assembly("\n".join(lines)).as_bitcode())


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """Load a compiled kernel from the disk, as Numba's own method does, without what only a compilation needs.

    Numba imports its linear algebra first, and SciPy's with it: measured, 0.3 s of each process that simulates.
    """
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)
    return None


def make_clock() -> Any:
    """Return what gives, within kernels, the time of the monotonic clock as int64, ns."""
    word = ir.IntType(64)

    @intrinsic
    def clock_ns(_context: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            number = ir.IntType(32)
            kind = ir.FunctionType(number, [number, word.as_pointer()])
            function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
            parts = cgutils.alloca_once(builder, word, size=2)  # a timespec: seconds, nanoseconds
            builder.call(function, [ir.Constant(number, time.CLOCK_MONOTONIC), parts])
            seconds = builder.load(parts)
            rest = builder.load(builder.gep(parts, [ir.Constant(number, 1)]))
            return builder.add(builder.mul(seconds, ir.Constant(word, 1_000_000_000)), rest)

        return types.int64(), generate

    return clock_ns


def is_compiled(clusters: bool = False) -> bool:
    """Tell whether the engine of this version, or that of clusters, has been compiled on this machine before."""
    entry = "loop._advance_clusters-*.nbc" if clusters else "loop._advance-*.nbc"
    folder = Path(numba_config.CACHE_DIR) / kernel_hash(ENTRIES[clusters])
    if not is_cache_writable():
        return bool(numba_config.DISABLE_JIT)
    return bool(numba_config.DISABLE_JIT) or any(folder.glob(entry))
