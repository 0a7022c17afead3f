"""The paper and its bibliography agree, and the paper has the sections that its journal asks for."""

from __future__ import annotations

import re
from pathlib import Path

PAPER = Path(__file__).resolve().parent.parent / "paper"
SECTIONS = ("Summary", "Statement of need", "State of the field", "Software design", "Research impact", "References")


def test_what_is_cited_is_listed_and_the_other_way_round():
    text = (PAPER / "paper.md").read_text("utf-8")
    cited = set(re.findall(r"@([a-z]+\d{4})", text))
    assert cited == set(re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text("utf-8"), re.M))


def test_it_has_its_sections_and_is_short():
    text = (PAPER / "paper.md").read_text("utf-8")
    assert [name for name in SECTIONS if f"\n# {name}\n" not in text] == []
    words = len(text.split("---", 2)[2].split())
    assert 750 < words < 1750
