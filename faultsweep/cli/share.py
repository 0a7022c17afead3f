"""``faultsweep pack | unpack | compare | merge``: results that are passed on, and brought together again."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from faultsweep.cli.app import App
from faultsweep.cli.options import JsonOption, StoreArgument, unset
from faultsweep.cli.output import print_table
from faultsweep.terminal import PIPE_WIDTH, make_console, plain, print_json

if TYPE_CHECKING:
    from faultsweep.analysis.compare import Comparison, MetricDifference
    from faultsweep.sweeps.store.pack import Packed

app = App()

_DIFFERENT = 1


@app.command()
def pack(
    store: StoreArgument,
    archive: Annotated[Path, typer.Argument(metavar="OUT.zarr.zip", help="The file to write.")],
    licence: Annotated[str | None, unset("Terms of use, such as CC-BY-4.0.", "--licence", "--license")] = None,
    citation: Annotated[str | None, unset("How to cite the results. [default: made from the title]")] = None,
    json_: JsonOption = False,
) -> None:
    """Pack a store into one file that opens by path or URL, with checksums, citation, licence and acknowledgements."""
    from faultsweep.sweeps.store.pack import pack as pack_store

    _print_packed(pack_store(store, archive, licence=licence, citation=citation), "packed", json_)


@app.command()
def unpack(
    archive: Annotated[Path, typer.Argument(metavar="FILE.zarr.zip", help="A packed store.")],
    store: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER", help="The folder to write. [default: the file's name without .zip]", show_default=False
        ),
    ] = None,
    sha256: Annotated[str, typer.Option(metavar="HEX", help="Refuse an archive with another SHA-256.")] = "",
    json_: JsonOption = False,
) -> None:
    """Unpack a store that pack made, after checking that it is complete and safe."""
    from faultsweep.sweeps.store.pack import unpack as unpack_store

    target = store if store is not None else Path(archive.name.removesuffix(".zip"))
    if target == archive:
        target = target.with_name(f"{target.name}.zarr")
    _print_packed(unpack_store(archive, target, sha256=sha256), "unpacked", json_)


def _print_packed(packed: Packed, what: str, as_json: bool) -> None:
    from faultsweep.sweeps.runner.progress import format_bytes

    if as_json:
        print_json({**asdict(packed), "path": str(packed.path)})
        return
    typer.echo(f"{packed.path}: {what}, {packed.files:,} files, {format_bytes(packed.size_bytes)}")
    typer.echo(f"  sha256 of the archive: {packed.sha256}")
    if not packed.checked:
        typer.echo("  the archive has no checksums of its files, so it is unknown whether they are complete")
    typer.echo(f"  licence: {plain(packed.licence) or 'none is stated (pack --licence CC-BY-4.0 states one)'}")
    typer.echo(f"  to cite: {plain(packed.citation) or 'nothing is stated'}")
    if packed.acknowledgements:
        typer.echo(f"  {plain(packed.acknowledgements)}")


@app.command()
def merge(
    stores: Annotated[list[Path], typer.Argument(metavar="STORE STORE...", help="The stores to merge.")],
    output: Annotated[Path, unset("The store to write.", "--output", "-o")],
    json_: JsonOption = False,
) -> None:
    """Merge stores that were run in different places; if cells conflict, name them and write nothing."""
    from faultsweep.sweeps.status import print_status
    from faultsweep.sweeps.store.merge import merge as merge_stores

    merge_stores(stores, output)
    print_status(output, brief=True, as_json=json_)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="A store, a packed store, or the URL of either.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    metric: Annotated[list[str] | None, unset("Compare this metric only; may be repeated.")] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="Relative difference that counts as equal.")] = 0.0,
    json_: JsonOption = False,
) -> None:
    """Say which cells of two stores differ, in what, and by how much; the exit code is 1 if any do."""
    from faultsweep.analysis.compare import compare as compare_stores

    found = compare_stores(a, b, metrics=metric or (), tolerance=tolerance)
    if json_:
        print_json({**asdict(found), "same": found.same})
    else:
        _print_comparison(found)
    if not found.same:
        raise typer.Exit(_DIFFERENT)


def _print_comparison(found: Comparison) -> None:

    console = make_console(highlight=False, soft_wrap=True, markup=False, width=PIPE_WIDTH)
    console.print(f"A = {found.a}\nB = {found.b}")
    for name, (one, two) in found.settings.items():
        console.print(f"  {name}: {one!r} in A, {two!r} in B")
    for axis, only in found.rows.items():
        for place, labels in zip("AB", only, strict=True):
            if labels:
                console.print(f"  {axis}: {_some(labels)} only in {place}")
    for place, names in zip("AB", found.only_metrics, strict=True):
        if names:
            console.print(f"  metrics only in {place}: {_some(names)}")
    console.print(
        f"  {found.both:,} cells have a result in both, {found.only_a:,} only in A, {found.only_b:,} only in B"
    )
    console.print(f"  {found.equal:,} are equal, {found.both - found.equal:,} differ")
    if not found.metrics:
        return
    heads = ("metric", "cells", "mean B - A", "largest B - A", "relative", "unit", "where (A, B)")
    print_table(heads, map(_metric_row, found.metrics), right=range(1, 5))
    for cell in found.differing:
        at = {name: label for name, label in cell.items() if name not in ("metric", "a", "b")}
        console.print(f"  {_place(at)}: {cell['metric']} {cell['a']!r} in A, {cell['b']!r} in B")
    more = found.both - found.equal - len(found.differing)
    if more:
        console.print(f"  ... and {more:,} more")


def _metric_row(one: MetricDifference) -> tuple[str, ...]:
    amounts = (f"{one.mean:.4g}", f"{one.largest:.4g}", f"{100 * one.relative:.3g} %", one.unit)
    return one.metric, f"{one.cells:,}", *amounts, f"{_place(one.at)} ({_value(one.a)}, {_value(one.b)})"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def _place(labels: dict[str, Any]) -> str:
    return ", ".join(f"{name}={label}" for name, label in labels.items())


def _some(names: list[Any]) -> str:
    shown = ", ".join(map(str, names[:10]))
    return f"{shown} and {len(names) - 10:,} more" if len(names) > 10 else shown


@app.command()
def notebook(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A store, a packed store, or the URL of either.")],
    output: Annotated[
        Path | None, unset("The file. [default: the store's name]", "--output", "-o", metavar="FILE.ipynb")
    ] = None,
) -> None:
    """Write a Jupyter notebook to start from: cells with results, means with intervals, paired differences."""
    from faultsweep.analysis.notebook import write_notebook

    path = (
        output if output is not None else Path(f"{Path(store).name.removesuffix('.zip').removesuffix('.zarr')}.ipynb")
    )
    write_notebook(store, path)
    typer.echo(str(path))
