"""What reaches a terminal: text of stores and logs, which a stranger may have written, never controls it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Control characters but newline and tab, those that reverse or hide text, and what is no character."""


def plain(text: object) -> str:
    """Return text whose control characters stand as ``\\x1b`` and the like, so that a terminal shows them."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), str(text))


def make_console(**options: Any) -> Console:
    """Return a console of rich, with these options of its own, that prints all text through ``plain``."""
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **options: Any) -> Any:  # all strings that are printed pass here, in tables too
            return super().render_str(plain(text), **options)

    return PlainConsole(**options)
