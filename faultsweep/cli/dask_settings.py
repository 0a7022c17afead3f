"""Settings of Dask that cannot be used: those of the user's files and environment variables, as one sentence."""

from __future__ import annotations

import os
import traceback

_READ_BY = {("dask.config", "_load_config_file"), ("dask.utils", "parse_timedelta"), ("dask.utils", "parse_bytes")}


def describe_settings(error: BaseException | None) -> str:
    """Return what is said of a setting that Dask could not read, which is behind an error; "" for any other error."""
    while error is not None:
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        if frames and (frames[-1].f_globals.get("__name__"), frames[-1].f_code.co_name) in _READ_BY:
            said = " ".join(str(error.args[0] if error.args else error).split())
            where = f"a file in {_folders()}, or a variable DASK_..."
            return f"a setting of Dask cannot be used: {said:.200} (it is from {where})"
        error = error.__cause__ or error.__context__
    return ""


def _folders() -> str:
    """Return where Dask looks for files."""
    home = os.path.join(os.path.expanduser("~"), ".config", "dask")
    return os.environ.get("DASK_CONFIG") or home
