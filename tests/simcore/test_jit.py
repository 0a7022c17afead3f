"""The cache of compiled kernels: no miss in a second process, and no stale code after an edit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faultsweep.simcore.engine.meaning import meaning
from numba.core import config

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import numpy as np
from faultsweep.simcore.finders import FINDERS, columns
print(FINDERS["columns"].largest_free_box(np.ones((2, 2, 4), bool))[0])
stats = columns.largest_free_box_kernel.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
LINEAR_ALGEBRA = "import sys; print('scipy.linalg' in sys.modules)"

pytestmark = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="without the compiler nothing is cached")


def copy_sources(folder):
    for part in ("faultsweep", "simcore"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def tree(tmp_path):
    """A copy of the sources, and of nothing compiled."""
    return copy_sources(tmp_path)


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A copy of the sources with what a first process has compiled."""
    tree = copy_sources(tmp_path_factory.mktemp("first"))
    # Numba imports SciPy's linear algebra for it
    assert ask(tree, more=LINEAR_ALGEBRA) == (16, 0, 1, "True")
    return tree


@pytest.fixture
def compiled(first, tmp_path):
    """Such a copy of a test's own."""
    return shutil.copytree(first, tmp_path / "compiled")


def ask(tree, cache=None, more=""):
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": str(cache or tree / "cache"), "PYTHONPATH": str(tree)}
    answer = subprocess.run(
        [sys.executable, "-c", ASK + more], cwd=tree, env=environment, capture_output=True, text=True, check=True
    )
    size, counts, *said = answer.stdout.strip().splitlines()
    hits, misses = map(int, counts.split())
    return int(size), hits, misses, *said


def test_second_process_compiles_nothing_and_an_edit_shows(compiled):
    assert ask(compiled) == (16, 1, 0)
    bits = compiled / "simcore" / "engine" / "bits.py"
    text = bits.read_text()
    assert text.count("return _count(mask)") == 1
    # A callee in another file than the cached kernel: Numba alone would not notice.
    bits.write_text(text.replace("return _count(mask)", "return _count(mask) * 0 + 1"))
    size, hits, _ = ask(compiled)
    assert hits == 0
    assert size != 16


def test_a_kernel_of_another_package_is_never_stale(tree):
    """Numba would keep it by the date of its own file, though what it calls changes."""
    (tree / "other.py").write_text(
        "from faultsweep.simcore.engine import bits\n"
        "from faultsweep.simcore.engine.jit import entry_kernel\n\n\n"
        "@entry_kernel\ndef count(mask):\n    return bits.popcount(mask)\n"
    )
    more = "import other; print(other.count(np.uint64(7)))"
    assert ask(tree, more=more)[-1] == ask(tree, more=more)[-1] == "3"
    path = tree / "simcore" / "engine" / "bits.py"
    path.write_text(path.read_text().replace("return _count(mask)", "return _count(mask) + 1"))
    assert ask(tree, more=more)[-1] == "4"


def test_an_edit_of_text_compiles_nothing(compiled):
    for name in ("bits", "layout", "jit"):  # the first two lines of a file are the beginning of its docstring
        path = compiled / "simcore" / "engine" / f"{name}.py"
        path.write_text("# A comment above all.\n" + path.read_text().replace('"""', '"""Said anew. ', 1))
    columns = compiled / "simcore" / "finders" / "columns.py"
    text = columns.read_text()
    assert text.count("Write the first largest free box") == 1
    columns.write_text(text.replace("Write the first largest free box", "# Put down\n\n    the first largest free box"))
    unrelated = compiled / "simcore" / "workloads" / "swf.py"
    unrelated.write_text(unrelated.read_text() + "\nNEW = 1\n")
    assert ask(compiled) == (16, 1, 0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("def f(s):\n    return s + 1", "def f(s):\n    # why\n    return s + 1", True),
        ('def f(s):\n    """Text."""\n    return s + 1', 'def f(s):\n    """Other."""\n\n    return s + 1', True),
        ('"""Text."""\nA = 1', '"""Other."""\n\nA = 1', True),
        ('class A:\n    """Text."""\n\n    b: int', '\n\nclass A:\n    """Other."""\n\n    b: int', True),
        ("A = 1", "A = 2", False),
        ("A = 1", "A = 1.0", False),
        ("A = 0.0", "A = -0.0", False),
        ("def f(s):\n    return s + 1", "def f(s):\n    return s + 2", False),
        ("def f(s):\n    return s.a", "def f(s):\n    return s.b", False),
        ("class A:\n    b: int", "class A:\n    b: float", False),
        ("def f(s):\n    return 'x'", "def f(s):\n    return 'y'", False),
        ("f = lambda: 'x'", "f = lambda: 'y'", False),
    ],
)
def test_the_meaning_of_code_is_all_but_its_text(one, other, same):
    codes = [repr(meaning(compile(text, "file", "exec"))) for text in (one, other)]
    assert (codes[0] == codes[1]) == same


def test_what_is_compiled_is_loaded_without_what_only_compiling_needs(compiled):
    """Numba imports SciPy's linear algebra before it loads anything: as much time as all kernels take."""
    assert ask(compiled, more=LINEAR_ALGEBRA) == (16, 1, 0, "False")


OUTERMOST = """
from pathlib import Path
import pickle
import llvmlite.binding as llvm
from faultsweep.simcore.engine import jit

def count(mask):
    return mask + 1

count.__code__ = count.__code__.replace(co_filename=columns.__file__)
count.__module__ = columns.__name__
kernel = jit.outermost_kernel(count)
print(kernel(np.int64(6)), sum(kernel.stats.cache_hits.values()))
[path] = Path(jit.numba_config.CACHE_DIR).glob("*/columns.count-kernel.*.nbc")
(_, _, (_, bitcode)), *_ = pickle.loads(path.read_bytes())
functions = [one for one in llvm.parse_bitcode(bitcode).functions if not one.is_declaration]
print(len(functions), {step.opcode for one in functions for block in one.blocks for step in block.instructions})
"""


def test_of_an_outermost_kernel_is_kept_only_what_runs(compiled):
    first, again = ask(compiled, more=OUTERMOST)[3:], ask(compiled, more=OUTERMOST)[3:]
    assert first[0] == "7 0"
    assert again[0] == "7 1"
    assert int(first[1].split()[0]) >= 1
    assert first[1].endswith("{'unreachable'}")


def test_a_copy_elsewhere_uses_what_is_compiled(first, tree):
    assert ask(tree, cache=first / "cache") == (16, 1, 0)


def test_a_folder_that_cannot_be_written_is_named_and_nothing_is_cached_elsewhere(tree):
    (tree / "cache").write_text("a file where the folder should be")
    assert ask(tree) == ask(tree) == (16, 0, 1)
    assert not list(tree.rglob("*.nbi"))
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": str(tree / "cache"), "PYTHONPATH": str(tree)}
    program = "from faultsweep.cli.output import say_compiling; say_compiling()"
    for part in ("sweeps", "cluster"):
        shutil.copytree(ROOT / part, tree / part)
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True)
    assert f"each time, because {tree / 'cache' / 'kernels'} cannot be written" in said.stderr
