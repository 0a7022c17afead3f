"""The texts beside a figure: its caption for Markdown and LaTeX, and the data sheet with the long facts."""

from __future__ import annotations

from pathlib import Path

from faultsweep.analysis.figures.figure import Figure
from faultsweep.analysis.figures.layout import caption_of

from faultsweep.files import writing

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\u00a0": "~",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "±": r"$\pm$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "⁶": r"$^6$",
    "−": r"$-$",
}
_MARKUP = "\\`*_{}[]<>#|"


def write_captions(figure: Figure, folder: Path) -> list[Path]:
    """Write ``NAME.md``, ``NAME.tex`` and, if there are facts, ``NAME-data.md`` into a folder; return their paths.

    ``NAME.tex`` is a figure environment to be read with LaTeX's input command; its picture is ``NAME`` without a
    suffix, so that LaTeX takes the PDF if there is one.
    """
    texts = {f"{figure.name}.md": markdown(figure), f"{figure.name}.tex": latex(figure)}
    if figure.facts or figure.table:
        texts[f"{figure.name}-data.md"] = data_sheet(figure)
    for name, text in texts.items():
        with writing(folder / name):
            (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


def markdown(figure: Figure) -> str:
    """Return the caption as Markdown."""
    return f"**{_plain(figure.title.rstrip('.'))}.** {' '.join(map(_plain, caption_of(figure)))}\n"


def latex(figure: Figure) -> str:
    """Return the picture with its caption as a figure environment of LaTeX."""
    text = _tex(" ".join([f"{figure.title.rstrip('.')}.", *caption_of(figure)]))
    return (
        "\\begin{figure}\n  \\centering\n"
        f"  \\includegraphics[width=\\linewidth]{{{figure.name}}}\n  \\caption{{{text}}}\n"
        f"  \\label{{fig:{figure.name}}}\n\\end{{figure}}\n"
    )


def data_sheet(figure: Figure) -> str:
    """Return all that is known of a figure beyond its caption, as Markdown."""
    lines = [f"# {_plain(figure.title)}", ""]
    lines += [f"After {_plain(figure.source)}.", ""] if figure.source else []
    if figure.table:
        lines += [_row(figure.table.header), "|" + " --- |" * len(figure.table.header)]
        lines += [*map(_row, figure.table.rows), ""]
    lines += [f"- {_plain(fact)}" for fact in figure.facts]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(map(_plain, cells)) + " |"


def _plain(text: str) -> str:
    """Return text, which a spec may have named, without markup of Markdown."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in " ".join(text.split(" ")))


def _tex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
