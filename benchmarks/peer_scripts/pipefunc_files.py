"""pipefunc: a pipeline of one function, mapped over two axes, with a file for each result."""

from concurrent.futures import ProcessPoolExecutor

import points


def make(function):
    """Return the pipeline."""
    from pipefunc import PipeFunc, Pipeline

    return Pipeline([PipeFunc(function, output_name="y", mapspec="a[i], b[j] -> y[i, j]")])


def sweep(function, names, a, b, folder):
    """Map, going on with the folder if it is there."""
    number = len(a) * len(b)
    options = {"storage": "file_array", "show_progress": False, "error_handling": "continue"}
    options["chunksizes"] = max(1, min(200, number // (8 * points.WORKERS)))
    if (folder / "run").exists():
        options["resume"] = True
    with ProcessPoolExecutor(points.WORKERS) as pool:
        make(function).map({"a": a, "b": b}, run_folder=folder / "run", executor=pool, **options)


def read(folder):
    """Open it by its own function; results are dictionaries."""
    import numpy as np
    import xarray as xr
    from pipefunc.map import load_xarray_dataset

    data = load_xarray_dataset(run_folder=folder / "run")
    rows = data["y"].values
    names = next(iter(value for value in rows.ravel() if isinstance(value, dict)))
    table = {}
    for name in names:
        values = [value[name] if isinstance(value, dict) else np.nan for value in rows.ravel()]
        table[name] = (("a", "b"), np.array(values).reshape(rows.shape))
    return xr.Dataset(table, {"a": data["a"].values, "b": data["b"].values})


def label(folder):
    """Write that Dataset."""
    read(folder).to_zarr(folder / "s.zarr", mode="w")


if __name__ == "__main__":
    points.main(sweep, read, label)
