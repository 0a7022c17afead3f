"""Substitutes of job logs that are not on this machine: another log, or the model that was calibrated to it.

Results of a substitute never go into the store of the log that it replaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faultsweep.sweeps.built_in import SIMULATOR, built_in_target, check_target
from faultsweep.sweeps.runner.prepare import values_of
from faultsweep.sweeps.spec import experiments, find_spec, load_spec, read_spec
from faultsweep.sweeps.store.store import check_format
from faultsweep.sweeps.sweep import Sweep

from faultsweep.errors import InputError

SUBSTITUTES = {
    "nasa": ("nasa-model",),
    "sdsc-sp2": ("sdsc-model",),
    "llnl-t3d": ("llnl-atlas", "atlas-model"),
    "anl-intrepid": ("anl-intrepid-1200", "intrepid-model"),
}
"""Log -> its substitutes: the first log that is here, or else the workload model."""
SUBSTITUTE_REPLICATES = 5


def is_shipped(spec_or_name: str | Path) -> bool:
    """Tell whether a spec is one of the experiments that come with the package."""
    return find_spec(spec_or_name) in experiments().values()


def with_substitutes(
    spec_or_name: str | Path,
    logs: Path | None,
    store: Path | None,
    folder: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
) -> tuple[Sweep, Path, dict[str, str]]:
    """Return the sweep of a spec, its store, and the substitutes of logs of it.

    A store that exists decides which logs it has.

    Parameters
    ----------
    spec_or_name : a TOML file or a shipped experiment.
    logs : folder with job logs, looked into first.
    store : its store. If not given it is in ``folder``, and its name has those of substitutes in it.
    folder : the working directory if not given.
    fixed : parameters that are held at other values than the spec says.
    """
    from faultsweep.sweeps.logs import is_model

    path = find_spec(spec_or_name)
    raw = load_spec(path)
    if fixed:
        raw["fixed"] = {**raw.get("fixed", {}), **fixed}
    check_target(raw, str(path))
    place = store if store is not None else (folder or Path()) / f"{raw['name']}.zarr"
    pins = _pins(place)
    substitutes: dict[str, str] = {}
    changed = replace_logs(raw, logs, substitutes, pins)
    if any(is_model(other) for other in substitutes.values()) and isinstance(raw.get("replicates", 1), int):
        changed["replicates"] = max(raw.get("replicates", 1), SUBSTITUTE_REPLICATES)
    if substitutes and not pins and store is None:
        place = place.with_name(f"{'-'.join([str(raw['name']), *dict.fromkeys(substitutes.values())])}.zarr")
        pins = _pins(place)
    target = built_in_target(raw.get("target", SIMULATOR), logs, [path.parent], pins)
    return Sweep.of(read_spec(changed, target, where=str(path))), place, substitutes


def describe_substitutes(name: str, place: Path, substitutes: Mapping[str, str]) -> list[str]:
    """Return a sentence for each log that has a substitute."""
    return [f"{name}: {other} is the substitute of the log {log} in {place}" for log, other in substitutes.items()]


def lacks_results(sweep: Sweep, place: Path) -> bool:
    """Tell whether something has to run; raise InputError if it cannot, because a log of the store's is not here."""
    plan = sweep.plan(place, measure=False)
    absent = sweep.spec.target.absent(values_of(sweep.spec))
    if plan.missing and absent:
        raise InputError(
            f"{place}: {plan.missing:,} of {plan.simulations:,} simulations are missing, and their inputs are not on "
            f"this machine: {', '.join(absent)}; name the folder that has it by --logs DIR"
        )
    return plan.missing + plan.journalled > 0


def _pins(place: Path) -> dict[str, str]:
    """Return the content hashes of the logs that a store has; nothing if there is no store yet."""
    return dict(json.loads(check_format(place)["pins"])) if place.exists() else {}


def replace_logs(
    part: Any, logs: Path | None, substitutes: dict[str, str], pins: Mapping[str, str], key: str = ""
) -> Any:
    """Return a part of a raw spec with each log that is absent replaced by its substitute, noted in ``substitutes``."""
    if isinstance(part, Mapping):
        return {name: replace_logs(value, logs, substitutes, pins, name) for name, value in part.items()}
    if isinstance(part, list):
        return [replace_logs(value, logs, substitutes, pins, key) for value in part]
    if key == "log" and isinstance(part, str) and (other := _other_than(part, logs, pins)):
        substitutes[part] = other
        return other
    return part


def _other_than(log: str, logs: Path | None, pins: Mapping[str, str]) -> str | None:
    """Return the substitute of a named log: what the store has, or else what there is if the log is not here."""
    from faultsweep.sweeps.logs import NAMED_LOGS, find, is_model, named_log

    try:
        named = named_log(log)
    except InputError:
        return None
    others = SUBSTITUTES.get(next(name for name, entry in NAMED_LOGS.items() if entry is named), ())
    if pins:
        return None if f"log {log}" in pins else next((other for other in others if f"log {other}" in pins), None)
    if find(named, logs):
        return None
    return next((other for other in others if is_model(other) or find(NAMED_LOGS[other], logs)), None)
