"""joblib and xarray: a function remembered on disk by joblib.Memory, its results gathered into a Zarr store."""

import points


def sweep(function, names, a, b, folder):
    """Call all that is not remembered, and write the Dataset."""
    import numpy as np
    import xarray as xr
    from joblib import Memory, Parallel, delayed

    remembered = Memory(folder / "memory", verbose=0).cache(function)
    rows = Parallel(n_jobs=points.WORKERS)(delayed(remembered)(x, y) for x in a for y in b)
    table = {name: (("a", "b"), np.array([row[name] for row in rows]).reshape(len(a), len(b))) for name in names}
    xr.Dataset(table, {"a": a, "b": b}).to_zarr(folder / "s.zarr", mode="w")


def read(folder):
    """Open it as plain xarray does."""
    import xarray as xr

    return xr.open_zarr(folder / "s.zarr", chunks=None)


if __name__ == "__main__":
    points.main(sweep, read)
