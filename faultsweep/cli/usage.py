"""What typer finds wrong with a command line, as one sentence like all others: what, where, what is valid."""

from __future__ import annotations

import re
from typing import Any

from faultsweep.errors import unknown_name


def describe_usage(error: Any) -> str:
    """Return the sentence for a usage error of typer."""
    context, text = error.ctx, " ".join(error.format_message().split()).rstrip(".")
    command = context.command_path if context is not None else "faultsweep"
    if text.startswith("No such option"):
        options = [name for parameter in context.command.params for name in parameter.opts if name[:2] == "--"]
        return str(unknown_name("option", error.option_name, options, where=command))
    if text.startswith("No such command"):
        name = re.search("'(.*?)'", text)
        return str(unknown_name("command", name[1] if name else "", context.command.commands, where=command))
    if text.startswith("Missing"):
        meaning = " ".join((getattr(error.param, "help", None) or "").split()).rstrip(".")
        return f"{command}: {_start_small(text)}" + (f" ({meaning})" if meaning else "")
    value = re.match("Invalid value for '?(.*?)'?: (.*)", text)
    if value:
        wanted = re.sub("^Value error, |, unable to parse.*$", "", value[2]).replace("Input should be", "expected")
        return f"{command}: {value[1].split(' / ')[0]}: {_start_small(wanted)}"
    return f"{command}: {_start_small(text)}; '{command} --help' says what is valid"


def _start_small(text: str) -> str:
    return text[0].lower() + text[1:]
