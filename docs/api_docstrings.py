"""Docstrings as Markdown, for the page of the Python interface (an extension of griffe; mkdocs.yml names it).

What stands behind the colon of a parameter here says in words what it is, where griffe expects a type and would show
the sentence as one. The types are those of the signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from griffe import Extension

_LISTS = ("Parameters", "Attributes", "Raises")
_TEXTS = ("Returns", "Yields", "Notes", "Examples")


class Docstrings(Extension):
    """Rewrites the docstring of every object that is documented."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Take an object that griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(docstring: str) -> str:
    """Return a docstring with its sections (a heading underlined by dashes) as bold words and lists.

    Parameters
    ----------
    docstring : text without the indentation of the code.
    """
    parts = []
    for heading, lines in _sections(docstring.splitlines()):
        text = "\n".join(lines).strip("\n")
        if heading in _LISTS:
            text = "\n".join(_items(lines))
        parts.append(f"**{heading}**\n\n{text}" if heading else text)
    return "\n\n".join(parts)


def _sections(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each section: its heading, "" for what stands before the first one, and its lines."""
    heading, found = "", []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line in (*_LISTS, *_TEXTS) and re.fullmatch("-{3,}", following):
            yield heading, found
            heading, found = line, []
        elif not re.fullmatch("-{3,}", line):
            found.append(line)
    yield heading, found


def _items(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a list: a name begins an item, and what is indented belongs to it."""
    for line in lines:
        if line[:1].isspace():
            yield line
        elif line:
            names, colon, words = line.partition(" : ")
            quoted = ", ".join(f"`{name}`" for name in re.split(r",\s*", names))
            yield f"- {quoted}: {words}".rstrip() if colon else f"- {quoted}:"
