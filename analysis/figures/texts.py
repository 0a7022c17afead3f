"""Texts of a store, which a stranger may have written, as matplotlib and Bokeh are to take them: no formulas."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

_POLICY = (
    '<meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; script-src 'nonce-{}' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'\">"
)
"""Of a page: only the scripts that stand in it from the start may run, and nothing is fetched."""


def _changed(value: Any, change: Callable[[str], str]) -> Any:
    """Return a text, or all that holds texts, with each of them changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_changed(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{part.name: _changed(getattr(value, part.name), change) for part in fields(value)})
    return value


def without_math(value: Any) -> Any:
    """Return texts, such as those of a figure, in which matplotlib takes no dollar sign for the begin of a formula."""
    return _changed(value, lambda text: text.replace("$", r"\$"))


def without_tex(value: Any) -> Any:
    """Return texts, such as those of a figure, in which Bokeh finds no formula: one may hold a link that is a script.

    A space of no width stands within each delimiter.
    """
    return _changed(value, lambda text: re.sub(r"(\$|\\)(?=[$(\[])", "\\1\u200b", text))


def guarded(page: str) -> str:
    """Return a page in which only the scripts that it has now may run."""
    nonce = hashlib.sha256(page.encode()).hexdigest()[:32]  # the same page for the same figure; no text in it knows it
    page = page.replace("<script", f"<script nonce={nonce}")
    return page.replace("<head>", "<head>" + _POLICY.format(nonce), 1)
