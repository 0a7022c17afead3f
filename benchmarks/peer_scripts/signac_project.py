"""signac: a job for each point, whose document has the results, worked on by a pool of processes."""

from multiprocessing import get_context

import points


def run(task):
    """Run a function for one job, and write its document."""
    import signac

    folder, function, point = task
    job = signac.get_project(folder).open_job(point)
    job.init()
    job.doc.update({name: str(value) if name == "when" else value for name, value in function(**point).items()})


def sweep(function, names, a, b, folder):
    """Run all jobs without a result."""
    import signac

    project = signac.init_project(str(folder))
    known = {(job.sp["a"], job.sp["b"]) for job in project if names[0] in job.doc}
    tasks = [(str(folder), function, {"a": x, "b": y}) for x in a for y in b if (x, y) not in known]
    with get_context("spawn").Pool(points.WORKERS) as pool:
        pool.map(run, tasks, chunksize=max(1, min(50, len(tasks) // 16)))


def read(folder):
    """Make a Dataset of the documents, which is the user's to do."""
    import pandas as pd
    import signac

    rows = [{**dict(job.sp), **dict(job.doc)} for job in signac.get_project(str(folder))]
    return pd.DataFrame(rows).set_index(["a", "b"]).to_xarray()


def label(folder):
    """Write that Dataset."""
    read(folder).to_zarr(folder / "s.zarr", mode="w")


if __name__ == "__main__":
    points.main(sweep, read, label)
