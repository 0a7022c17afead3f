"""How the commands are declared: help as plain text that fits any width, with options in groups."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

ARGUMENTS, OPTIONS = "Arguments", "Options"
WIDEST = 100
"""Columns of help; longer lines are hard to read."""
_KINDS = {
    "<str>": "TEXT",
    "<path>": "PATH",
    "<int>": "N",
    "<int range>": "N",
    "<float>": "NUMBER",
    "<float range>": "NUMBER",
    "<list[str]>": "TEXT",
}
"""What typer shows for the type of a value, and what is shown instead."""


def _plain(record: tuple[str, str]) -> tuple[str, str]:
    """Return the help of one option with the type of its value in a word."""
    name, text = record
    if not name.startswith("-"):  # an argument, whose name says what it is
        return re.sub(r" <[^<>]*>$", "", name), text
    for kind, word in _KINDS.items():
        name = re.sub(re.escape(kind), word, name, flags=re.IGNORECASE)
    return name.rstrip(), text


_ClickFormatter: Any = typer.Context.formatter_class


class _Formatter(_ClickFormatter):
    """Help as wide as the terminal, up to what is good to read; click's own is never narrower than 50 columns."""

    def __init__(self) -> None:
        super().__init__(width=max(min(shutil.get_terminal_size().columns, WIDEST) - 2, 20))

    def write_dl(self, rows: Sequence[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and their sentences; names take a third of a narrow terminal, and those too long are wrapped."""
        widest = self.width - self.current_indent
        wrapped = [(f"\n{'':{self.current_indent + 4}}".join(_wrap(name, widest)), text) for name, text in rows]
        super().write_dl(wrapped, min(col_max, self.width // 3), col_spacing)


def _wrap(name: str, width: int) -> list[str]:
    return textwrap.wrap(name, width, break_long_words=False, break_on_hyphens=False)


class _Help:
    """What commands and groups of them have in common: how their help is laid out."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, as wide as the terminal is now."""
        formatter = _Formatter()
        self.format_help(ctx, formatter)  # type: ignore[attr-defined]  # of typer's class beside this one
        return str(formatter.getvalue().rstrip("\n"))


class HelpCommand(_Help, TyperCommand):
    """A command whose help lists its options under the headings that they name (``rich_help_panel``)."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the line of usage, arguments by their names alone; "..." is part of those that repeat."""
        return [
            re.sub(r"^\{(.*?)\}(\.\.\.)?$|^\[(\[.*\])\]\.\.\.$", r"\1\3", one)
            for one in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each heading, in the order of first use."""
        sections: dict[str, list[tuple[str, str]]] = {ARGUMENTS: [], OPTIONS: []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                heading = ARGUMENTS if param.param_type_name == "argument" else OPTIONS
                sections.setdefault(getattr(param, "rich_help_panel", None) or heading, []).append(_plain(record))
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


MakeOptions = Callable[[Sequence[str]], Mapping[str, tuple[Any, Any]]]


def _command_with(make_options: MakeOptions, function: Any) -> type[HelpCommand]:
    """Return the class of a command that calls a function; its options are made when they are first asked for."""

    class ParameterCommand(HelpCommand):
        _made: list[Any] | None = None

        @property
        def params(self) -> list[Any]:
            """The options."""
            if self._made is None:
                self._made = _options(make_options(()))
            return self._made

        @params.setter
        def params(self, own: list[Any]) -> None:
            self._made = None

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Read the arguments; which options there are may follow from them."""
            self._made = _options(make_options(args))
            return super().parse_args(ctx, args)

        def invoke(self, ctx: Any) -> Any:
            """Call the function; typer's own call takes no options but those of a signature."""
            return ctx.invoke(function, **ctx.params)

    return ParameterCommand


def _options(named: Mapping[str, tuple[Any, Any]]) -> list[Any]:
    """Return options as typer makes them for a function of keyword arguments."""

    def function(**options: Any) -> None:
        """Have options."""

    _sign(function, (_keyword(name, option, kind) for name, (kind, option) in named.items()))
    function.__annotations__ = {name: kind for name, (kind, _) in named.items()}
    app = typer.Typer(add_completion=False)
    app.command()(function)
    return list(typer.main.get_command(app).params)


def _ungrouped(function: Any) -> Any:
    """Return a function that takes each field of the dataclasses among its parameters as a parameter of its own."""
    own = inspect.signature(function, eval_str=True).parameters
    groups: dict[str, Any] = {name: one.annotation for name, one in own.items() if is_dataclass(one.annotation)}
    if not groups:
        return function

    @wraps(function)
    def call(**options: Any) -> Any:
        for name, group in groups.items():
            options[name] = group(**{field.name: options.pop(field.name) for field in fields(group)})
        return function(**options)

    parts = ([one] if name not in groups else _parameters_of(groups[name]) for name, one in own.items())
    _sign(call, (_keyword(one.name, one.default, one.annotation) for part in parts for one in part))
    return call


def _sign(function: Any, parameters: Iterable[inspect.Parameter]) -> None:
    """Give a function the signature that typer reads."""
    function.__signature__ = inspect.Signature(list(parameters))


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameters_of(group: Any) -> Iterable[inspect.Parameter]:
    return inspect.signature(group, eval_str=True).parameters.values()


class HelpGroup(_Help, TyperGroup):
    """A group of commands whose help has the whole first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a name and a sentence for each command, in the order in which they were added."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _sentence(command.help or "")) for name, command in found if command and not command.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def _sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


class App(typer.Typer):
    """A group of commands; all of them show their help alike."""

    def __init__(self, **options: Any) -> None:
        """Take the options of ``typer.Typer``."""
        super().__init__(**{"rich_markup_mode": None, "cls": HelpGroup, **options})

    def command(self, *names: Any, **options: Any) -> Any:
        """Add a command, as ``typer.Typer.command``; a parameter that is a dataclass stands for an option per field."""
        add = super().command(*names, **{"cls": HelpCommand, **options})

        def register(function: Any) -> Any:
            add(_ungrouped(function))
            return function

        return register

    def command_with(self, make_options: MakeOptions, *names: Any) -> Any:
        """Add a command, a function of keyword arguments; ``make_options`` gives the type and the option of each, of
        the arguments of the command line.

        They are made when they are first asked for: parameters of a run come from the policies, which import what
        compiles them, too much for the help of all commands.
        """

        def add(function: Any) -> Any:
            own = _command_with(make_options, function)
            function.__signature__ = inspect.Signature()  # typer makes no options
            return self.command(*names, cls=own)(function)

        return add
