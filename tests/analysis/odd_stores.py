"""Stores as nobody expects them: of one cell, without a number, with numbers at the ends of what there is."""

from __future__ import annotations

import numpy as np

from .stores import STATUSES, make_results

RNG = np.random.default_rng(5)
LONG = "a policy whose name is so long that no legend, no axis and no table has room for all of it, " * 3


def one_cell():
    return make_results({"policy": ["fcfs"]}, {"mean_wait_s": np.array([[12.0]])})


def one_label():
    return make_results({"load": [1.0]}, {"mean_wait_s": RNG.random((1, 3)), "loss": RNG.random((1, 3))}, None, 3)


def ten_axes():
    axes = {f"axis_{n}": [0.5, 1.0] if n % 2 else [f"one {n}", f"two {n}"] for n in range(10)}
    shape = (2,) * 10 + (1,)
    return make_results(axes, {"mean_wait_s": RNG.gamma(3, 1e5, shape), "utilisation": RNG.random(shape)})


def nothing_but_nan():
    shape = (2, 3, 2)
    nothing = np.full(shape, np.nan)
    return make_results({"policy": ["a", "b"], "load": [1.0, 2.0, 3.0]}, {"wait_s": nothing, "loss": nothing}, None, 2)


def failed():
    shape = (2, 3, 2)
    status = np.full(shape, STATUSES.index("failed"), np.int8)
    axes = {"policy": ["a", "b"], "load": [1.0, 2.0, 3.0]}
    return make_results(axes, {"wait_s": np.full(shape, np.nan)}, status, 2)


def far_numbers():
    shape = (2, 4, 2)
    far = np.array([1e-300, 0.0, -1e300, 1e300])[None, :, None] * RNG.random(shape)
    metrics = {"far": far, "tiny": np.abs(far[:, :1]) * np.ones(shape), "below": -RNG.random(shape)}
    metrics |= {"zero": np.zeros(shape), "infinite": np.where(far > 0, np.inf, far), "large_s": np.abs(far) * 1e-3}
    results = make_results({"policy": ["a", "b"], "load": [0.0, 1e-300, 1.0, 1e300]}, metrics, None, 2)
    results["large_s"].attrs["units"] = "s"
    return results


def strange_names():
    axes = {"politique d’été": ["naïve", "先着順", LONG], "größe <b>x": ["&amp;", "<i>kursiv</i>", "$x^2$"]}
    shape = (3, 3, 2)
    metrics = {"wait <script>_s": RNG.random(shape), "größe_µ": RNG.random(shape)}
    results = make_results(axes, metrics, None, 2, name="nom <étrange>", title="<h1>título</h1>")
    results["größe_µ"].attrs.update(units="µs <b>", long_name="länge & <b>breite</b> " * 20)
    return results


MAKERS = (one_cell, one_label, ten_axes, nothing_but_nan, failed, far_numbers, strange_names)
