"""dask.delayed and xarray: a task for each point on local processes, gathered into a Zarr store at the end."""

import points


def sweep(function, names, a, b, folder):
    """Compute all, and write the Dataset."""
    import dask
    import numpy as np
    import xarray as xr
    from dask.distributed import Client

    with Client(n_workers=points.WORKERS, threads_per_worker=1, dashboard_address=None):
        rows = dask.compute(*(dask.delayed(function)(x, y) for x in a for y in b))
    table = {name: (("a", "b"), np.array([row[name] for row in rows]).reshape(len(a), len(b))) for name in names}
    xr.Dataset(table, {"a": a, "b": b}).to_zarr(folder / "s.zarr", mode="w")


def read(folder):
    """Open it as plain xarray does."""
    import xarray as xr

    return xr.open_zarr(folder / "s.zarr", chunks=None)


if __name__ == "__main__":
    points.main(sweep, read)
