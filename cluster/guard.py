"""Whether a script starts workers where it must: under ``if __name__ == "__main__":``."""

from __future__ import annotations

import ast
import multiprocessing
import sys
from pathlib import Path
from types import FrameType

from faultsweep.errors import InputError


def check_script() -> None:
    """Raise InputError if the script that is running asks for workers outside of ``if __name__ == "__main__":``.

    The worker processes import the script again, and each of them would ask for workers of its own.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit(0)
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    frame = _frame_of(getattr(main, "__dict__", None))
    if frame is None or file is None or not Path(file).is_file() or frame.f_code.co_filename != file:
        return
    if not _is_guarded(Path(file), frame.f_lineno):
        raise InputError(
            f'{file}, line {frame.f_lineno}: put this under `if __name__ == "__main__":`, because the worker'
            " processes import this script, and would start it again"
        )


def _frame_of(names: dict[str, object] | None) -> FrameType | None:
    """Return the frame of the module with these names if it is still running; else None."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is names):
        frame = frame.f_back
    return frame


def _is_guarded(script: Path, line: int) -> bool:
    """Tell whether a line of a script is in a statement that asks for ``__name__``, or in none."""
    for node in ast.parse(script.read_bytes()).body:
        if node.lineno <= line <= (node.end_lineno or node.lineno):
            asked = ast.walk(node.test) if isinstance(node, ast.If) else ()
            return any(isinstance(part, ast.Name) and part.id == "__name__" for part in asked)
    return True
