"""How Numba compiles kernels, in one place. It is imported by what must compile (``jit.py``), and only then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from faultsweep.simcore.engine.machine_code import MachineCode, cache_dir, is_cache_writable, kernel_hash
from llvmlite import ir
from numba import types
from numba.core import cgutils, codegen
from numba.core import config as _untyped_config
from numba.core.caching import UserProvidedCacheLocator
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np import arrayobj as _untyped_arrayobj

from faultsweep.errors import InputError

# Numba's annotations know neither its settings nor all options of its compiler.
numba_config: Any = _untyped_config
_compile: Any = numba.njit
_cfunc: Any = numba.cfunc
arrayobj: Any = _untyped_arrayobj

if numba_config.DISABLE_JIT:  # by its file of settings, or by a script that has set it
    raise InputError("Numba was told otherwise not to compile: set NUMBA_DISABLE_JIT=1 in the environment instead")

_ROOT = Path(__file__).resolve().parents[1]

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

_KINDS: dict[type, Any] = {int: types.int64, float: types.float64}

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


def begin() -> Any:
    """Let LLVM know what compiled kernels call of Numba."""
    return cpu_target.target_context


def type_of(made: Any) -> Any:
    """Return the type of what kernels call."""
    context: Any = cpu_target.typing_context
    context.refresh()  # it may have been made a moment ago
    return context.resolve_value_type(made)


def inner_kernel(function: Callable[..., Any], forceinline: bool) -> Any:
    """Compile a function that only kernels call, on its own or into its callers."""
    compiled = _compile(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=forceinline, **_OPTIONS)(function)
    resolve = compiled.get_call_template

    def resolve_without_literals(args: Any, kws: Any) -> Any:
        plain = {name: types.unliteral(kind) for name, kind in dict(kws).items()}
        return resolve(tuple(types.unliteral(kind) for kind in args), plain)

    compiled.get_call_template = resolve_without_literals
    _mark(compiled, inner=True)
    return compiled


def machine_code_of(function: Callable[..., int]) -> MachineCode:
    """Compile a function of (pointer to int64, int64) -> int64 with all that it calls."""
    compiled = _compile(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)(function)
    _mark(compiled, inner=False)
    arguments = types.CPointer(types.int64), types.int64
    compiled.compile(types.int64(*arguments))
    result = compiled.overloads[arguments]
    _, _, (code, _) = result.library.serialize_using_object_code()
    declared = {one.name for one in result.library._final_module.functions if one.is_declaration}
    needs = sorted(name for name in declared if not name.startswith("llvm."))
    return MachineCode(result.fndesc.llvm_func_name, " ".join(needs), code)


def counted(function: Callable[..., Any]) -> Any:
    """Compile a function that makes views of arrays, which count references."""
    return _compile(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")(function)


def callback(function: Callable[..., int]) -> Any:
    """Compile a function of (pointer to int64, int64, int64, int64) -> int64 for ``make_caller``, once per machine."""
    whole = types.int64
    signature = whole(types.CPointer(whole), whole, whole, whole)
    return _cfunc(signature, cache=is_cache_writable(), error_model="numpy")(function)


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


def score_callback(function: Callable[..., float], kinds: tuple[type, ...], cache: bool) -> Any:
    """Compile a function of numbers of some kinds and a pointer to float64, which gives a float64."""
    arguments = (*map(_KINDS.__getitem__, kinds), types.CPointer(types.float64))
    return _cfunc(types.float64(*arguments), cache=cache and is_cache_writable(), error_model="numpy")(function)


def make_score_caller(kinds: tuple[type, ...]) -> Any:
    """Return what calls, within kernels, a ``score_callback``: (address, numbers, data address) -> float64."""
    numbers = types.Tuple([_KINDS[kind] for kind in kinds])

    @intrinsic
    def call(_context: Any, _address: Any, _values: Any, _data: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            address, values, data = arguments
            pointer = ir.DoubleType().as_pointer()
            forms = [context.get_value_type(one) for one in numbers]
            function = builder.inttoptr(address, ir.FunctionType(ir.DoubleType(), [*forms, pointer]).as_pointer())
            return builder.call(function, [*cgutils.unpack_tuple(builder, values), builder.inttoptr(data, pointer)])

        return types.float64(types.int64, numbers, types.int64), generate

    return call


def array_of_pointers() -> Any:
    """Return what makes, within kernels, an array of a pointer and a shape."""
    return numba.carray


def make_bit_count(operation: str) -> Any:
    """Return what counts, within kernels, the set bits of a uint64 (ctpop), the clear ones below its lowest set bit
    (cttz) or those above its highest one (ctlz), as int64, in one instruction where the processor has it."""

    @intrinsic
    def count(_context: Any, _mask: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            nonzero = () if operation == "ctpop" else (ir.Constant(ir.IntType(1), 1),)
            return getattr(builder, operation)(*arguments, *nonzero)

        return types.int64(types.uint64), generate

    return count


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


def entry_kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls: one of this package is cached on disk together with all that it calls."""
    # Where the directory cannot be written, Numba would cache beside the sources; and a function from elsewhere under
    # the date of its own file. Both would run stale code after an edit.
    cached = _is_ours(function.__code__.co_filename) and is_cache_writable()
    compiled = _compile(cache=cached, no_cfunc_wrapper=True, **_OPTIONS)(function)
    _mark(compiled, inner=False)
    cache: Any = getattr(compiled, "_cache", None)
    if hasattr(cache, "_load_overload") and hasattr(cache, "_guard_against_spurious_io_errors"):
        cache.load_overload = partial(_load, cache)
    return compiled


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
