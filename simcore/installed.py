"""Policies that installed packages bring: entry points of the group ``faultsweep.policies``.

An entry point is named PARAMETER.NAME, such as ``queue_order.aged-area``, and is MODULE:FUNCTION. Only the metadata of
packages is read here; a module is executed when a run names the policy, as a file of the user's is.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from faultsweep.errors import InputError

GROUP = "faultsweep.policies"


def plain_name(name: str) -> str:
    """Return a name as built-in policies have theirs: in small letters, with dashes."""
    return name.lower().replace("_", "-")


@lru_cache
def _found() -> dict[tuple[str, str], list[EntryPoint]]:
    """Return the entry points by parameter and name; the parameter is "" where the name has none."""
    found: dict[tuple[str, str], list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        parameter, dot, name = point.name.partition(".")
        found.setdefault((parameter, name) if dot else ("", point.name), []).append(point)
    return found


def names(parameter: str) -> dict[str, str]:
    """Return the policies that packages bring for a parameter, each with a sentence."""
    return {
        name: f"Of {_packages(points)}: {points[0].value}."
        for (of, name), points in sorted(_found().items())
        if of == parameter
    }


def source(parameter: str, name: str) -> tuple[Path, str]:
    """Return the file and the function of a policy; nothing is executed.

    Raises
    ------
    InputError
        If two packages bring it, or its module is no file with source code.
    """
    points = _found().get((parameter, name), [])
    if not points:
        raise InputError(f"{parameter}: no installed package provides {name!r}")
    if len(points) > 1:
        raise InputError(f"{parameter}: {name!r} is in {_packages(points)}; uninstall one of them")
    module, function = points[0].module, points[0].attr
    path = _file_of(module)
    if path is None or not function:
        wrong = f"the module {module} has no source file" if function else "it names no function"
        raise InputError(
            f"{parameter}: {name!r} of {_packages(points)} is broken: {wrong} (valid: PARAMETER.NAME = MODULE:FUNCTION)"
        )
    return path, function


def problems(valid: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a sentence for each entry point that cannot be named; ``valid``: built-in names by parameter."""
    told = []
    for (parameter, name), points in sorted(_found().items()):
        if parameter not in valid:
            known = ", ".join(valid)
            told.append(
                f"{points[0].name}: of {_packages(points)}, names no parameter (valid: one of {known}, then .NAME)"
            )
        elif plain_name(name) in valid[parameter]:
            told.append(f"{parameter}: {name!r} of {_packages(points)} is left out, because it is built in")
        else:
            try:
                source(parameter, name)
            except InputError as error:
                told.append(str(error))
    return told


def _packages(points: Iterable[EntryPoint]) -> str:
    found = sorted({f"{point.dist.name} {point.dist.version}" if point.dist else "a package" for point in points})
    return f"the package{'s' * (len(found) > 1)} {' and '.join(found)}"


def _file_of(module: str) -> Path | None:
    """Return the source of a module; packages that it is in are not imported."""
    first, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(first)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if not rest:
        return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None
    folders = [Path(folder).joinpath(*rest) for folder in spec.submodule_search_locations or ()]
    places = [place for folder in folders for place in (folder.with_name(f"{folder.name}.py"), folder / "__init__.py")]
    return next((place for place in places if place.is_file()), None)
