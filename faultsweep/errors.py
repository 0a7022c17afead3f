"""The errors a user can cause, each one clear sentence: what, where, and what would be valid."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_MOST_LISTED = 40


class InputError(Exception):
    """Something the user gave cannot be used. The command line prints it without a traceback and exits with a code."""

    exit_code = 2


class UnreachableError(InputError):
    """What is needed does not answer; the same may work a little later. The code is EX_TEMPFAIL of sysexits.h."""

    exit_code = 75


class InvariantError(AssertionError):
    """The simulator is wrong: an invariant of its state does not hold. One sentence: when, what, and which jobs."""

    exit_code = 70


def unknown_name(
    what: str, name: object, valid: Iterable[str], where: str = "", aliases: Iterable[str] = ()
) -> InputError:
    """Build the error for a name that is not one of ``valid``: it suggests the nearest, or the nearest alias, and lists
    them all, or says who lists them where a sentence would be too long."""
    choices = sorted(valid)
    near = get_close_matches(str(name), [*choices, *aliases], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    place = f"{where}: " if where else ""
    listing = {
        "parameter": "faultsweep list parameters",
        "metric": "faultsweep list metrics",
        "option": f"{where} --help",
    }
    if len(choices) > _MOST_LISTED and what in listing:
        alike = ", ".join(get_close_matches(str(name), choices, n=5, cutoff=0.5))
        known = f"{len(choices)} names{', among them ' if alike else ''}{alike}; '{listing[what]}' lists them"
    else:
        known = ", ".join(choices) or "none"
    return InputError(f"{place}unknown {what} {name!r}{hint} (valid: {known})")
