"""Run the notebooks of ``docs/notebooks`` and renew the outputs that they store.

    python -m tools.notebook

Their cells are plain Python, so they run here without Jupyter, whose kernel would bring some thirty
packages into every test environment. Each notebook runs in an empty folder.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "notebooks"
FRAME = "<iframe"
"""Where the page of a result begins; too large to store, and another with every build."""

Output = dict[str, Any]
Notebook = dict[str, Any]


def read(path: Path) -> Notebook:
    """A notebook as its JSON."""
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells that run, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def execute(notebook: Notebook, folder: Path) -> list[list[Output]]:
    """Run all cells in one namespace, in a folder; what each of them would show in Jupyter."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    with _inside(folder):
        return [_run(cell, scope, number) for number, cell in enumerate(code_cells(notebook), 1)]


def renewed(notebook: Notebook, outputs: list[list[Output]]) -> Notebook:
    """The notebook with other outputs."""
    fresh = iter(enumerate(outputs, 1))
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            number, shown = next(fresh)
            cell = {**cell, "execution_count": number, "outputs": shown}
        cells.append(cell)
    return {**notebook, "cells": cells}


def text_of(outputs: list[Output]) -> str:
    """What the outputs of a cell say, as plain text."""
    parts = [one["text"] if one["output_type"] == "stream" else one["data"] for one in outputs]
    return "\n".join(
        "".join(part if isinstance(part, list) else part["text/plain"]).rstrip() for part in parts
    )


def as_markdown(notebook: Notebook) -> str:
    """The notebook as a page: its text, its code, and below the code what it shows."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for one in cell["outputs"]:
            html = one.get("data", {}).get("text/html")
            text = "".join(html) if html else f"```text\n{text_of([one])}\n```"
            parts.append(text)
    return "\n\n".join(parts) + "\n"


def _run(cell: dict[str, Any], scope: dict[str, Any], number: int) -> list[Output]:
    """Run one cell; its printed lines, and its last expression as Jupyter would show it."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, f"cell {number}", "exec"), scope)  # noqa: S102 - our own notebook
        if isinstance(last, ast.Expr):
            expression = compile(ast.Expression(last.value), f"cell {number}", "eval")
            value = eval(expression, scope)  # noqa: S307
    outputs: list[Output] = []
    if said.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(said.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_().partition(FRAME)[0])
        outputs.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def main() -> None:
    """Run every notebook and write its outputs into it."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["FOCI_CACHE"] = str(Path(folder) / ".cache")
            notebook = read(path)
            fresh = renewed(notebook, execute(notebook, Path(folder)))
        text = json.dumps(fresh, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
