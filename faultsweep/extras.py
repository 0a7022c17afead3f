"""Packages that only some features need: what a feature says where its package is not installed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from faultsweep.errors import InputError

EXTRAS = {
    "scipy": "stats",
    "SALib": "plot",
    "bokeh": "plot",
    "datashader": "plot",
    "matplotlib": "plot",
    "panel": "dashboard",
    "hvplot": "dashboard",
    "pyarrow": "parquet",
    "h5netcdf": "netcdf",
    "h5py": "netcdf",
    "dask_jobqueue": "slurm",
    "s3fs": "s3",
}
"""Package that is imported -> the extra of this project that installs it."""


class MissingExtraError(InputError):
    """A feature needs a package that is not installed."""


def missing(package: str, feature: str = "this") -> MissingExtraError:
    """Return the error for a package of ``EXTRAS`` that is not installed; ``feature`` is a noun."""
    name = package.replace("_", "-")
    return MissingExtraError(
        f"{feature} needs {name}, which is not installed: pip install 'faultsweep[{EXTRAS[package]}]'"
    )


def is_installed(package: str) -> bool:
    """Tell whether a package can be imported."""
    return importlib.util.find_spec(package) is not None


def require(feature: str, *packages: str) -> None:
    """Raise MissingExtraError if a package that a feature needs is not installed."""
    for package in packages:
        if not is_installed(package):
            raise missing(package, feature)


class OptionalModule:
    """A module of a package of ``EXTRAS``, imported when it is first used."""

    def __init__(self, module: str, feature: str) -> None:
        """Take the name of the module, and what is not possible without it."""
        self._module, self._feature = module, feature

    def __getattr__(self, name: str) -> Any:
        """Return what the module has under a name.

        Raises
        ------
        MissingExtraError
            The package is not installed.
        """
        package = self._module.partition(".")[0]
        try:
            value = getattr(importlib.import_module(self._module), name)
        except ModuleNotFoundError as error:
            if error.name != package:
                raise
            raise missing(package, self._feature) from None
        setattr(self, name, value)
        return value
