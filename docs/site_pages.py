"""Pages of the site that are made from the program itself, so that they cannot lag behind it.

The hooks of mkdocs (mkdocs.yml names this file): every command with its options, every parameter and metric, and the
list of what Python offers; notebooks with what they showed; and the figures and tables outside of docs/ that pages link
to.
"""

from __future__ import annotations

import base64
import json
import re
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
PYTHON: dict[str, tuple[str, tuple[str, ...]]] = {
    "Simulate one configuration": (
        "Jobs and parameters go in, metrics and per-job results come out.",
        ("simcore.simulate.simulate", "simcore.simulate.Run", "simcore.engine.event_trace.EventTrace"),
    ),
    "Get jobs and failures": (
        "Logs and models by name, files of your own, or arrays.",
        (
            "sweeps.logs.load_workload",
            "simcore.model.workload.Workload",
            "simcore.workloads.swf.read_swf",
            "simcore.workloads.swf.write_swf",
            "simcore.model.failure_trace.FailureTrace",
        ),
    ),
    "Sweep parameters": (
        "A grid of the simulator or of a function of your own, into a store.",
        (
            "sweeps.sweep.Sweep",
            "sweeps.outputs.Output",
            "sweeps.stream.Result",
            "sweeps.target.FunctionTarget",
            "sweeps.rerun.rerun",
            "cluster.connect.connect",
        ),
    ),
    "Open results": (
        "A store as an xarray Dataset, from a folder, a file or a URL.",
        ("sweeps.open.open_results", "sweeps.accessor.SweepAccessor", "sweeps.open.open_jobs"),
    ),
    "Draw results": ("Any figure in one line.", ("analysis.plot.plot", "analysis.plot.Plot")),
    "Say which policy is best": (
        "One sentence and a table, or the numbers behind them.",
        (
            "analysis.verdict.compare_policies",
            "analysis.pareto.pareto_front",
            "analysis.ranking.rank",
            "analysis.regions.best_policies",
            "analysis.statistics.mean_interval",
            "analysis.statistics.paired_difference",
            "analysis.statistics.saturation",
        ),
    ),
    "Say which parameter matters": (
        "Main effects, shares of variance, Sobol indices.",
        ("analysis.effects.main_effect", "analysis.effects.variance_shares", "analysis.sensitivity.sobol_indices"),
    ),
    "Leave the warm-up out": (
        "Means of the steady state, from per-job results.",
        ("analysis.warmup.steady_means", "analysis.warmup.without_warm_up", "analysis.warmup.unsteady"),
    ),
    "Look inside a run": (
        "The replay of an event trace, as a picture or a page.",
        (
            "analysis.view.replay.replay",
            "analysis.view.replay.Pauses",
            "analysis.view.content.make_content",
            "analysis.view.png.draw_png",
            "analysis.view.html.draw_html",
        ),
    ),
    "Write pages": (
        "A report to read, a notebook to begin with.",
        ("analysis.report.write_report", "analysis.notebook.write_notebook"),
    ),
    "Share and compare stores": (
        "One file to pass on, and back.",
        (
            "sweeps.store.pack.pack",
            "sweeps.store.pack.unpack",
            "sweeps.store.merge.merge",
            "analysis.compare.compare",
        ),
    ),
    "Handle errors": ("What a user got wrong is one of these.", ("errors.InputError", "extras.MissingExtraError")),
}
"""Task -> one sentence about it, and what stands under it on the page of the Python interface."""
MEMBERS: dict[str, list[str]] = {"sweeps.outputs.Output": [], "sweeps.target.FunctionTarget": ["__init__"]}
"""Classes most of whose members serve the program alone -> those of a user."""


PICTURES = {
    "docs/demo.png": ("What a torus and FCFS cost", "faultsweep figure demo"),
    "docs/readings.png": (
        "Which claims hold under which reading",
        "faultsweep reproduce --readings --figure readings.png",
    ),
    "benchmarks/results/finders.png": ("Time of one search for a free box", "python -m benchmarks.finders --cap 4"),
    "benchmarks/results/laws.png": ("Time of a simulated job", "python -m benchmarks.laws"),
    "benchmarks/results/grid.png": ("What a cell of a large sweep costs", "python -m benchmarks.grid"),
}
"""Picture in the repository -> its title and the command that makes it."""
OTHERS = {
    "One run: who held which nodes when, queue, lost capacity": "faultsweep view STORE --select ...",
    "A store in a browser, every axis a knob": "faultsweep dashboard STORE",
    "A store on one page": "faultsweep report STORE",
    "A sweep of your own": "faultsweep figure SPEC",
    "Which policy is best, by region": "faultsweep best SPEC",
    "Where two policies cross": "faultsweep refine SPEC",
    "What a job log is like": "faultsweep logs describe LOG --picture FILE.png",
    "What a failure log is like": "faultsweep failures describe FILE --picture FILE.png",
    "The partitions of a site": "faultsweep site describe SITE.toml --picture FILE.png",
    "Real waits beside simulated ones": "faultsweep validate LOG --picture FILE.png",
}
"""What else can be drawn -> the command."""


def on_config(config: Any) -> Any:
    """Put pages that the navigation of mkdocs.yml does not name behind all others, so that none is lost."""
    named = set(re.findall(r"[\w-]+\.md", str(config.nav)))
    rest = sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name not in named)
    if rest:
        config.nav = [*config.nav, {"More": rest}]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made, and the files outside of docs/ that pages show."""
    made = {"commands": _commands(), "parameters": _parameters(), "python": _python(), "gallery": gallery()}
    for name, text in made.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for book in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        files.append(File.generated(config, f"notebooks/{book.stem}.md", content=notebook_page(book)))
    for name in sorted(_outside() | {name for name in PICTURES if not name.startswith("docs/")}):
        files.append(File.generated(config, f"outside/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Show the name of a file above its content; point links to files outside of docs/ at their copies in the site."""
    if page.file.src_uri.startswith(("reference/", "notebooks/")):
        return markdown
    markdown = re.sub(r"<!-- file: (\S+) -->\n```(\w+)\n", r'```\2 title="\1"\n', markdown)
    return re.sub(r"\]\(\.\./([^)#]+)", r"](outside/\1", markdown)


def notebook_page(path: Path) -> str:
    """Return a notebook as a page: its texts, its code and what that showed when it was run last."""
    book = json.loads(path.read_text("utf-8"))
    parts = []
    for cell in book["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += [_shown(output) for output in cell.get("outputs", [])]
    parts.append(f"[This page as a notebook]({path.name})")
    return "\n\n".join(filter(None, parts)) + "\n"


def _shown(output: dict[str, Any]) -> str:
    """Return what a cell showed: a picture, which follows the reader's light or dark, or text."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        picture = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        words = " ".join("".join(data.get("text/plain", "")).replace("\\", "").replace("*", "").split())
        return f'<img alt="{escape(words)}" src="data:image/svg+xml;base64,{picture}">'
    text = "".join(data.get("text/plain", output.get("text", "")))
    return f"```text\n{text}\n```" if text else ""


def gallery() -> str:
    """Return the page of all figures: those of the notebooks, the pictures of other pages, the shipped experiments."""
    from faultsweep.sweeps.spec import experiments, load_toml

    parts = [
        "# Gallery\n\nFor whoever looks for a certain kind of figure: all figures, each with the command that makes it."
        " A notebook draws a small version of a paper's figure in a minute or two; the command draws the whole.\n"
    ]
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        book = json.loads(path.read_text("utf-8"))
        title = book["cells"][0]["source"][0].strip("# \n")
        command = f"faultsweep figure {path.stem}" if "-" not in path.stem else "faultsweep best SPEC"
        parts.append(f"\n## {title}\n\n[Notebook](../notebooks/{path.stem}.md); `{command}`\n")
        shown = [output for cell in book["cells"] for output in cell.get("outputs", [])]
        parts += [_shown(output) for output in shown if "image/svg+xml" in output.get("data", {})]
    for name, (title, command) in PICTURES.items():
        place = f"../{name.removeprefix('docs/')}" if name.startswith("docs/") else f"../outside/{name}"
        parts.append(f"\n## {title}\n\n`{command}`\n\n![{title}]({place})\n")
    parts.append("\n## Shipped experiments\n\n| figure | command |\n| --- | --- |")
    for name, path in experiments().items():
        parts.append(f"| {_plain(load_toml(path)['title'])} | `faultsweep figure {name}` |")
    parts.append("\n## Of your own data\n\n| figure | command |\n| --- | --- |")
    parts += [f"| {title} | `{command}` |" for title, command in OTHERS.items()]
    return "\n".join(parts) + "\n"


def _outside() -> set[str]:
    """Return the files outside of docs/ that pages link to."""
    pages = (ROOT / "docs").glob("*.md")
    return {name for page in pages for name in re.findall(r"\]\(\.\./([^)#]+)", page.read_text("utf-8"))}


def _commands() -> str:
    """Return every command with its help and its options, from the command line itself."""
    import typer.main

    from faultsweep.cli import app

    parts = [
        "# Every option\n\nFor whoever looks for an option: all of them, as `--help` prints them."
        " [Command line](../command-line.md) shows their use.\n"
    ]
    parts += _describe_command(typer.main.get_command(app), "faultsweep")
    return "\n".join(parts)


def _describe_command(command: Any, path: str) -> list[str]:
    inner = getattr(command, "commands", {})
    if inner:
        return [part for name, each in sorted(inner.items()) for part in _describe_command(each, f"{path} {name}")]
    help_text = re.sub(r"\s*\n\s*(?!\n)", " ", (command.help or "").strip())
    rows = [_option_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    table = ["| option | meaning |", "| --- | --- |", *rows] if rows else []
    return [f"\n## {path}\n\n{_plain(help_text)}\n", *table]


def _option_row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
    else:
        name = ", ".join([*parameter.opts, *parameter.secondary_opts])
        name += f" {parameter.metavar}" if parameter.metavar and not parameter.is_flag else ""
    text = _plain(" ".join((getattr(parameter, "help", None) or "").split()))
    default = parameter.default
    if (
        isinstance(default, str | int | float)
        and not isinstance(default, bool)
        and default != ""
        and "default" not in text
    ):
        text += f" (default: {default})"
    return f"| `{name}` | {text} |"


def _parameters() -> str:
    """Return the tables of parameters and metrics."""
    from faultsweep.simcore.engine.metrics import METRICS
    from faultsweep.simcore.parameters import PARAMETERS

    parts = [
        "# Parameters and metrics\n\nFor whoever writes a spec or reads results."
        " Every parameter is an option of `simulate` (with dashes), a key of `[fixed]`, and"
        " can be an axis of a sweep. What they mean together is in [What a run means](../model.md).\n"
    ]
    for group in dict.fromkeys(parameter.group for parameter in PARAMETERS.values()):
        parts += [
            f"\n## {group.capitalize()}\n",
            "| parameter | default | unit | meaning |",
            "| --- | --- | --- | --- |",
        ]
        for name, parameter in PARAMETERS.items():
            if parameter.group == group:
                choices = (
                    f" One of {', '.join(f'`{choice}`' for choice in parameter.choices)}." if parameter.choices else ""
                )
                default = f"`{parameter.default}`" if parameter.default != "" else ""
                parts.append(f"| `{name}` | {default} | {parameter.unit} | {_plain(parameter.doc)}{choices} |")
    parts += ["\n## Metrics\n", "| metric | unit | meaning |", "| --- | --- | --- |"]
    parts += [f"| `{name}` | {metric.unit} | {_plain(metric.doc)} |" for name, metric in METRICS.items()]
    return "\n".join(parts)


def _python() -> str:
    """Return the page of the Python interface; mkdocstrings fills it from the docstrings."""
    parts = [
        "# Python, by task\n\nFor whoever writes programs. `import faultsweep as fs` has the names that most"
        " programs need, such as `fs.simulate` and `fs.Sweep`; import the others from their modules.\n"
    ]
    for heading, (sentence, names) in PYTHON.items():
        parts.append(f"\n## {heading}\n\n{sentence}\n")
        parts += [_docstring(name) for name in names]
    return "\n".join(parts)


def _docstring(name: str) -> str:
    """Return what mkdocstrings replaces by the docstring of an object, and of the members that users call."""
    members = f"      members: {json.dumps(MEMBERS[name])}\n" if name in MEMBERS else ""
    return f"::: faultsweep.{name}\n    options:\n      heading_level: 3\n{members}"


def _plain(text: str) -> str:
    """Return text in which nothing is markup."""
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")
