"""What a job cannot import is one sentence at submission."""

from __future__ import annotations

import sys

import pytest
from faultsweep.cluster.imports import JOB_MODULES, check_imports, imported_modules

from faultsweep.errors import InputError


def test_modules_that_a_program_imports_at_its_start(tmp_path):
    program = tmp_path / "my.py"
    text = "import os, json as j\nfrom my_rules import rule\nfrom . import beside\ndef later():\n    import slow\n"
    program.write_text(text)
    assert imported_modules(program) == ["os", "json", "my_rules"]


def test_what_a_job_imports_is_here():
    check_imports(None, JOB_MODULES)


def test_a_module_beside_the_program_is_found_and_others_are_told(tmp_path):
    (tmp_path / "my_rules.py").write_text("import absent_module\n")
    with pytest.raises(InputError, match="the job cannot import my_rules: ModuleNotFoundError: No module"):
        check_imports(None, ["json", "my_rules"], tmp_path)
    (tmp_path / "my_rules.py").write_text("1 / 0\n")
    with pytest.raises(InputError, match="my_rules: ZeroDivisionError"):
        check_imports(sys.executable, ["my_rules"], tmp_path)
    (tmp_path / "my_rules.py").write_text("")
    check_imports(None, ["my_rules"], tmp_path)


def test_a_python_that_only_the_nodes_have_is_not_asked(tmp_path):
    check_imports(str(tmp_path / "python"), ["absent_module"])
