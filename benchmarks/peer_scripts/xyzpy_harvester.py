"""xyzpy: a Harvester, which adds what a Runner gives to a Dataset on disk."""

import points


def numbers(function, **config):
    """Return what a function gives as a tuple."""
    return tuple(function(**config).values())


def sweep(function, names, a, b, folder):
    """Harvest all combinations that the Dataset lacks."""
    import functools

    import xyzpy

    runner = xyzpy.Runner(functools.partial(numbers, function), var_names=names, fn_args=["a", "b"])
    harvester = xyzpy.Harvester(runner, data_name=str(folder / "s.h5"), engine="h5netcdf")
    combos = {"a": a, "b": b}
    options = {"parallel": True, "num_workers": points.WORKERS, "verbosity": 0}
    if harvester.full_ds is not None:  # it runs all that it is given; what is missing is asked of the Dataset
        known = harvester.full_ds.reindex(a=a, b=b)
        missing = list(xyzpy.find_missing_cases(known))
        if missing:
            harvester.harvest_cases(missing, **options)
        return
    harvester.harvest_combos(combos, **options)


def read(folder):
    """Open it as plain xarray does."""
    import xarray as xr

    return xr.open_dataset(folder / "s.h5", engine="h5netcdf", invalid_netcdf=True)


if __name__ == "__main__":
    points.main(sweep, read)
