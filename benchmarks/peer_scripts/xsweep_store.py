"""xsweep: a sweep into a Zarr store, on a pool of processes."""

import points


def made(name):
    """Return the sweep of a function; its outputs are named in a contract."""
    import xsweep

    function, names = points.FUNCTIONS[name]
    contract = f"loop(a, b) -> {', '.join(f'{each}()' for each in names)}"

    def point(a, b):
        return function(float(a), float(b))

    point.__module__, point.__name__, point.__qualname__ = "__main__", name, name
    return xsweep.sweep(contract, version="1")(point)


def sweep(function, names, a, b, folder):
    """Run what the store lacks."""
    import xarray as xr
    import xsweep

    space = xr.Dataset({"a": ("a", a), "b": ("b", b)})
    policy = xsweep.SweepPolicy(
        store=str(folder / "s.zarr"), executor="process", max_workers=points.WORKERS, on_error="nan", force_unlock=True
    )
    globals()[function.__name__](space, policy=policy)


def read(folder):
    """Open it as plain xarray does."""
    import xarray as xr

    return xr.open_zarr(folder / "s.zarr", chunks=None)


nothing, millisecond, noted, typed = map(made, points.FUNCTIONS)

if __name__ == "__main__":
    points.main(sweep, read)
