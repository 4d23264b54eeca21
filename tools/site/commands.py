"""The page of commands, made from the command line itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import typer
from typer.main import get_command

from foci.cli import app

_TOP = """\
# Commands

```console
$ foci --help
```

This page is made from the commands themselves: it says what `foci COMMAND --help` says.
"""
_UNGROUPED = "Options"


def command_page() -> str:
    """All commands in the order in which ``foci --help`` lists them, as Markdown."""
    return "\n".join([_TOP, *_sections("foci", get_command(app))])


def _sections(name: str, command: Any) -> Iterator[str]:
    """One section per command, and per command of a group."""
    members = getattr(command, "commands", None)
    if members is None:
        yield _section(name, command)
    else:
        for member, under in members.items():
            yield from _sections(f"{name} {member}", under)


def _section(name: str, command: Any) -> str:
    context = typer.Context(command)
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one not in arguments and not one.hidden]
    usage = " ".join([name, *(_usage(one) for one in arguments), "[OPTIONS]"])
    lines = [f"## {name}", "", (command.help or "").strip(), "", "```text", usage, "```", ""]
    if arguments:
        lines += _table("argument", ((_usage(one), one.help or "") for one in arguments))
    for panel in dict.fromkeys(_panel(one) for one in options):
        members = [one for one in options if _panel(one) == panel]
        lines += [f"**{panel}**", ""]
        lines += _table("option", (one.get_help_record(context) for one in members))
    return "\n".join(lines)


def _panel(option: Any) -> str:
    return getattr(option, "rich_help_panel", None) or _UNGROUPED


def _usage(argument: Any) -> str:
    name = (argument.metavar or argument.name.upper()) + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _table(kind: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    lines = (f"| `{name}` | {' '.join(help_text.split())} |" for name, help_text in rows)
    return [f"| {kind} | |", "|---|---|", *lines, ""]
