"""The page of Python names, made from the signatures and docstrings of the public names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

_TOP = """\
# Python

```python
import foci

cohort = foci.Cohort.read("features", "labels.csv")
audit = foci.audit("model", cohort, "AUDIT")
```

This page is made from the code. It lists every public name, package by package.
"""
PACKAGES = (
    "bags", "backbones", "testing", "reveal", "metrics", "selectors", "rankings", "audits",
    "reports", "demo",
)  # fmt: skip
TOP_NAMES = {"audit": "api", "Audit": "api", "FociError": "errors"}
"""Names of ``foci`` itself and the modules that they live in; the others belong to a package."""
WIDEST = 88
"""Characters of a signature on one line."""


def python_page(source: Path) -> str:
    """Every public name with its signature and docstring, as Markdown."""
    library: Any = griffe.load("foci", search_paths=[source], docstring_parser="google")
    lines = [_TOP, "## foci", ""]
    for name, home in TOP_NAMES.items():
        lines += _entry(f"foci.{name}", library[home][name])
    for package in PACKAGES:
        module = library[package]
        lines += [f"## foci.{package}", "", *_docstring(module), ""]
        for name in sorted(_public(module), key=str.lower):
            lines += _entry(f"foci.{package}.{name}", _resolved(module[name]))
    return "\n".join(lines)


def _public(module: Any) -> list[str]:
    return [str(name) for name in module.exports or []]


def _resolved(item: Any) -> Any:
    return item.final_target if item.is_alias else item


def _entry(path: str, item: Any) -> list[str]:
    """One name: heading, signature, docstring, and the methods of a class."""
    if item.is_module:
        return [f"### {path}", "", *_docstring(item), ""]
    lines = [f"### {path}", ""]
    if item.is_function or item.is_class:
        lines += ["```python", _signature(path, item), "```", ""]
    lines += [*_docstring(item), ""]
    if item.is_class:
        for name, member in item.members.items():
            if not name.startswith("_") and not member.is_alias and member.has_docstring:
                lines += _member(f"{path.rpartition('.')[2]}.{name}", member)
    return lines


def _member(path: str, member: Any) -> list[str]:
    if not member.is_function:
        first = member.docstring.value.strip().splitlines()[0]
        return [f"**`{path}`** {_plain(first)}", ""]
    return [f"**`{_signature(path, member)}`**", "", *_docstring(member), ""]


def _signature(path: str, item: Any) -> str:
    kept = [one for one in item.parameters if one.name not in ("self", "cls")]
    parts, starred = [], False
    for one in (one for one in kept if not one.name.startswith("_")):
        keyword = one.kind == griffe.ParameterKind.keyword_only
        parts += ["*"] if keyword and not starred else []
        starred = starred or keyword or one.kind == griffe.ParameterKind.var_positional
        parts.append(_parameter(one))
    joined = f"{path}({', '.join(parts)})"
    if len(joined) > WIDEST and path.startswith("foci."):
        return f"{path}(\n    " + ",\n    ".join(parts) + ",\n)"
    return joined


def _parameter(one: Any) -> str:
    if one.kind == griffe.ParameterKind.var_positional:
        return f"*{one.name}"
    if one.kind == griffe.ParameterKind.var_keyword:
        return f"**{one.name}"
    return one.name if one.default is None else f"{one.name}={one.default}"


def _docstring(item: Any) -> list[str]:
    if not item.docstring:
        return []
    return [line for section in item.docstring.parse("google") for line in _section(section)]


def _section(section: Any) -> Iterator[str]:
    kind = section.kind.value
    if kind == "text":
        yield from (_prose(section.value), "")
    elif kind == "examples":
        yield from (_prose("\n\n".join(text for _, text in section.value)), "")
    elif kind in ("parameters", "attributes", "other parameters"):
        yield from ("| name | |", "|---|---|")
        for one in section.value:
            yield f"| `{one.name}` | {_plain(' '.join(one.description.split()))} |"
        yield ""
    elif kind in ("returns", "yields", "raises"):
        listed = "; ".join(_one_line(kind, one) for one in section.value)
        yield from (f"*{kind.capitalize()}:* {listed}", "")


def _prose(text: str) -> str:
    """Paragraphs as Markdown; those that begin with a prompt as code."""
    paragraphs = (part.strip("\n") for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(
        f"```python\n{part}\n```" if part.lstrip().startswith(">>>") else _plain(part)
        for part in paragraphs
    )


def _one_line(kind: str, one: Any) -> str:
    text = _plain(" ".join(one.description.split()))
    return f"`{one.annotation}`: {text}" if kind == "raises" else text


def _plain(text: str) -> str:
    r"""Docstring markup as Markdown.

    >>> _plain("a :class:`~foci.Bag` of ``N`` tiles")
    'a `Bag` of `N` tiles'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text).replace("|", r"\|")
