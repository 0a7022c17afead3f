"""What reaches a terminal: text of stores and logs, which a stranger may have written, never controls it."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 100_000
"""Of a console whose rows are one line each."""
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, those that reverse or hide text, and what is no character."""


def plain(text: object) -> str:
    """Return text whose control characters stand as ``\\x1b`` and the like, so that a terminal shows them."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def make_console(**options: Any) -> Console:
    """Return a console of rich, with these options of its own, that prints all text through ``plain``.

    It is as wide as the terminal; in a pipe or a file, each row of a table is one line.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:  # all strings that are printed pass here, in tables too
            return super().render_str(plain(text), **options)

    stream = sys.stderr if options.get("stderr") else sys.stdout
    return PlainConsole(**options if stream.isatty() else {"width": PIPE_WIDTH, **options})


def print_json(values: Mapping[str, Any]) -> None:
    """Print JSON; numbers that JSON does not have are null."""
    sys.stdout.write(json.dumps(_plain(values), indent=1) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, timedelta):
        return value.total_seconds()
    return value.isoformat() if isinstance(value, date) else value
