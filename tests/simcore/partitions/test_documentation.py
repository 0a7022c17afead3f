"""The examples of the page about finders give what the page shows."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_examples_of_the_page():
    page = Path(__file__).resolve().parents[3] / "docs" / "finders.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0
