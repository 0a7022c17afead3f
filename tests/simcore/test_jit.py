"""The cache of compiled kernels: no miss in a second process, and no stale code after an edit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faultsweep.simcore.engine.jit import is_interpreted
from faultsweep.simcore.engine.meaning import meaning

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import numpy as np
from faultsweep.simcore.finders import FINDERS, columns
print(FINDERS["columns"].largest_free_box(np.ones((2, 2, 4), bool))[0])
stats = columns.largest_free_box_kernel.made.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""
LINEAR_ALGEBRA = "import sys; print('scipy.linalg' in sys.modules)"

pytestmark = pytest.mark.skipif(is_interpreted(), reason="without the compiler nothing is cached")


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


def ask(tree, cache=None, more="", first="", settings=""):
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": str(cache or tree / "cache"), "PYTHONPATH": str(tree)}
    environment |= [setting.split("=") for setting in settings.split() if "=" in setting]
    command = [sys.executable, "-c", first + ASK + more]
    answer = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True)
    size, counts, *said = answer.stdout.strip().splitlines()
    hits, misses = map(int, counts.split())
    return int(size), hits, misses, *said


def say(tree, program):
    """What a program prints that has the package of a tree."""
    environment = os.environ | {"FAULTSWEEP_CACHE_DIR": str(tree / "cache"), "PYTHONPATH": str(tree)}
    command = [sys.executable, "-c", program]
    answer = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()


@pytest.mark.sampled(1)
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


@pytest.mark.sampled(1)
def test_an_edit_after_the_import_is_not_taken_for_what_was_imported(compiled):
    """A notebook may be open for days before it simulates, while the package is upgraded."""
    edit = """
from pathlib import Path
from faultsweep.simcore.engine import bits
path = Path(bits.__file__)
path.write_text(path.read_text().replace("return _count(mask)", "return _count(mask) * 0 + 1"))
"""
    assert ask(compiled, first=f"import faultsweep.simcore.finders.columns\n{edit}") == (16, 0, 1)
    for hits in (0, 1):
        size, *counts = ask(compiled)
        assert size != 16
        assert counts == [hits, 1 - hits]


def test_an_editor_may_lock_a_source(compiled):
    for place in ("engine/.#bits.py", "policies/scheduling/.#easy.py"):
        (compiled / "simcore" / place).symlink_to("somebody@host.1:2")
    more = "from faultsweep.simcore.engine import machine_code as m\nprint(len(m.kernel_hash(*m.ENTRIES)))"
    assert ask(compiled, more=more) == (16, 1, 0, "16")


def test_an_edit_shows_that_leaves_size_and_date_of_a_file(compiled):
    """Archives and images of containers may have one date for all files."""
    bits = compiled / "simcore" / "engine" / "bits.py"
    before = bits.stat()
    bits.write_text(bits.read_text().replace("return _count(mask)", "return mask - mask").replace("\n\n\n", "\n\n", 1))
    text = bits.read_text()
    bits.write_text(text + "#" * (before.st_size - len(text.encode())))
    os.utime(bits, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert bits.stat().st_size == before.st_size
    for cached in compiled.rglob("bits.*.pyc"):
        cached.unlink()
    size, hits, _ = ask(compiled)
    assert (size == 16, hits) == (False, 0)


@pytest.mark.parametrize(
    "setting",
    [
        *(
            pytest.param(setting, marks=pytest.mark.slow)
            for setting in ("NUMBA_SLP_VECTORIZE=1", "NUMBA_CPU_FEATURES=+sse2")
        ),
        *("NUMBA_CPU_NAME=generic", "file"),
    ],
)
@pytest.mark.sampled(2)
def test_another_setting_of_numba_is_another_kernel(compiled, setting):
    """LLVM ends the process that compiles what the processor that it is told of cannot do."""
    more = "from faultsweep.simcore.engine import machine_code\nprint(machine_code.has_bmi2())"
    if setting == "file":
        (compiled / ".numba_config.yaml").write_text("cpu_name: generic\n")
    answers = [ask(compiled, more=more, settings=setting) for _ in range(2)]
    assert [answer[:3] for answer in answers] == [(16, 0, 1), (16, 1, 0)]
    assert answers[0][3] == "False" or "SLP" in setting


def test_who_tells_numba_itself_not_to_compile_is_told_how(tree):
    (tree / ".numba_config.yaml").write_text("disable_jit: 1\n")
    with pytest.raises(subprocess.CalledProcessError) as failed:
        ask(tree)
    assert failed.value.stderr.splitlines()[-1].endswith(": set NUMBA_DISABLE_JIT=1 in the environment instead")


def test_a_kernel_of_another_package_is_never_stale(tree):
    """Numba would keep it by the date of its own file, though what it calls changes."""
    (tree / "other.py").write_text(
        "from faultsweep.simcore.engine import bits\n"
        "from faultsweep.simcore.engine.jit import entry_kernel\n\n\n"
        "@entry_kernel\ndef count(mask):\n    return bits.popcount(mask)\n"
    )
    program = "import numpy, other; print(other.count(numpy.uint64(7)))"
    assert say(tree, program) == say(tree, program) == ["3"]
    path = tree / "simcore" / "engine" / "bits.py"
    path.write_text(path.read_text().replace("return _count(mask)", "return _count(mask) + 1"))
    assert say(tree, program) == ["4"]


def test_an_edit_of_text_compiles_nothing(compiled):
    for name in (
        "bits",
        "layout",
        "jit",
        "compiler",
        "state_types",
    ):  # the first two lines of a file are the beginning of its docstring
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


LOOP = """
import math
import sys
import numpy as np
from faultsweep.simcore.engine import jit, machine_code
from faultsweep.simcore.finders import columns

def work(table, number):
    table[0] += 1
    if number == 0:
        raise IndexError("none is left")
    return int(math.{function}(number)) + table[0]

work.__module__, work.__name__ = columns.__name__, "{function}"
work.__code__ = work.__code__.replace(co_filename=columns.__file__)
loop, table = jit.event_loop(work), np.array([40])
print(loop(table, 2), table[0], "numba" in sys.modules)
try:
    loop(table, 0)
except IndexError as error:
    print(error, *error.__notes__)
"""


def run_loop(tree, function):
    return say(tree, LOOP.format(function=function))


def test_an_event_loop_is_compiled_once_and_runs_without_the_compiler(tree):
    (first, failed), (again, failed_again) = run_loop(tree, "log2"), run_loop(tree, "log2")
    assert (first, again) == ("42 41 True", "42 41 False")
    assert failed == failed_again
    assert re.fullmatch(r"none is left in \S*work, .*columns\.py:\d+", failed)


def test_an_event_loop_finds_what_only_numba_has(tree):
    """LLVM would end the process that misses it."""
    assert run_loop(tree, "gamma") == run_loop(tree, "gamma")
    assert run_loop(tree, "gamma")[0] == "42 41 True"


@pytest.mark.sampled(1)
def test_of_an_event_loop_that_is_not_whole_nothing_is_run(tree):
    run_loop(tree, "log2")
    [path] = (tree / "cache").rglob("log2.loop")
    whole = path.read_bytes()
    for broken in (whole[:-1], whole[:1000], b"", whole[:-100] + b"0" + whole[-99:]):
        path.write_bytes(broken)
        assert run_loop(tree, "log2")[0] == "42 41 True"
        assert path.read_bytes() == whole


def test_a_meaning_that_is_not_whole_is_found_again(tree):
    """An empty one would be that of all sources, and their old code would run."""
    run_loop(tree, "log2")
    meanings = list((tree / "cache").rglob("meanings/*"))
    whole = [path.read_bytes() for path in meanings]
    for broken in (b"", b"\xff\xfe", whole[0][:-1]):
        for path in meanings:
            path.write_bytes(broken)
        assert run_loop(tree, "log2")[0] == "42 41 False"
        assert [path.read_bytes() for path in meanings] == whole


def test_a_simulation_needs_no_compiler_once_there_is_a_loop(tmp_path):
    """Numba takes longer to import than a thousand jobs to simulate."""
    program = (
        "import sys\n"
        "from faultsweep.simcore.simulate import simulate\n"
        "from faultsweep.sweeps.logs import load_workload\n"
        "simulate(load_workload('sdsc-model', num_jobs=9), machine='flat:128', failures='weibull', debug=True)\n"
        "print({'numba', 'scipy', 'pandas'} & sys.modules.keys())"
    )
    for _ in range(2):
        said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert said == "set()\n"


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


def test_the_package_may_be_read_from_an_archive(tree):
    archive = shutil.make_archive(str(tree / "package"), "zip", tree)
    (tree / "nowhere").mkdir()
    program = f"""
import sys
sys.path.insert(0, {archive!r})
import faultsweep
faultsweep.__path__ = ({archive + "/faultsweep"!r}, {archive!r})
from faultsweep.simcore.engine import machine_code
print(machine_code.__file__.startswith({archive!r}), len(machine_code.kernel_hash(*machine_code.ENTRIES)))
"""
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=tree / "nowhere", capture_output=True, text=True, check=True)
    assert said.stdout == "True 16\n"
