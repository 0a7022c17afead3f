"""Times as users of batch systems write them."""

from __future__ import annotations

import math
import re

from faultsweep.errors import InputError

_NUMBER = r"(\d{1,9})"
_TIME = "(?:N-N(?::N)?(?::N)?)|N(?::N)?(?::N)?".replace("N", _NUMBER)


def parse_time(text: str, where: str = "--time") -> float:
    """Return a time in seconds: minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS or UNLIMITED, as SLURM has them."""
    if text.strip().upper() in ("UNLIMITED", "INFINITE"):
        return math.inf
    match = re.fullmatch(_TIME, text.strip())
    if not match:
        raise InputError(f"{where}: expected minutes, HH:MM:SS or D-HH:MM:SS, got {text!r:.80}")
    days, hours, minutes, seconds, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1] is not None:
        total = 86_400 * days + 3600 * hours + 60 * minutes + seconds
    elif match[7] is not None:
        total = 3600 * first + 60 * second + third
    else:
        total = 60 * first + second
    if total <= 0:
        raise InputError(f"{where}: expected more than 0, got {text!r:.80}")
    return float(total)
