"""The notebooks run, and show what they store."""

import json
from pathlib import Path
from typing import Any

import pytest
from tools.notebook import FOLDER, as_markdown, code_cells, execute, read, renewed, text_of
from tools.site.tutorial import differences

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cell(kind: str, source: str, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source.splitlines(keepends=True), **more}


class Shown:
    """Shows itself as HTML that ends in a page."""

    def __repr__(self) -> str:
        return "Shown"

    def _repr_html_(self) -> str:
        return "<p>words</p><iframe srcdoc='page'></iframe>"


MADE = {"cells": [
    cell("markdown", "# Title"),
    cell("code", "a = 2\nprint(a)\na + 1"),
    cell("code", "from tests.test_notebooks import Shown\nShown()"),
    cell("code", "open('file', 'w').close()"),
]}  # fmt: skip


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["first-audit.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_stores(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOCI_CACHE", str(tmp_path / "cache"))
    notebook = read(path)
    outputs = execute(notebook, tmp_path)
    again = "if that is meant: python -m tools.notebook"
    for one, shown in zip(code_cells(notebook), outputs, strict=True):
        assert differences(text_of(one["outputs"]), text_of(shown)) == [], again
    assert (tmp_path / "audit" / "report.html").stat().st_size > 100_000
    (page,) = [one["data"] for shown in outputs for one in shown if "text/html" in str(one)]
    assert "Can I believe the map? yes." in "".join(page["text/html"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_one_that_jupyter_opens(path: Path) -> None:
    notebook = read(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [one["id"] for one in notebook["cells"]]
    assert len(set(names)) == len(names)
    counts = [one["execution_count"] for one in code_cells(notebook)]
    assert counts == [*range(1, len(counts) + 1)]
    assert path.stat().st_size < 50_000, "the page of a result is not stored"
    links = [part.split(")")[0] for part in path.read_text(encoding="utf-8").split("](")[1:]]
    assert links
    assert all((path.parent / link).is_file() for link in links)


def test_outputs_are_those_of_jupyter(tmp_path: Path) -> None:
    before = Path.cwd()
    printed, shown, nothing = execute(MADE, tmp_path)
    assert printed == [
        {"name": "stdout", "output_type": "stream", "text": ["2\n"]},
        {
            "data": {"text/plain": ["3"]},
            "execution_count": 1,
            "metadata": {},
            "output_type": "execute_result",
        },
    ]
    data = {"text/plain": ["Shown"], "text/html": ["<p>words</p>"]}
    assert [one["data"] for one in shown] == [data]
    assert nothing == []
    assert ((tmp_path / "file").is_file(), Path.cwd()) == (True, before)
    assert [text_of(one) for one in (printed, shown, nothing)] == ["2\n3", "Shown", ""]


def test_a_notebook_as_a_page(tmp_path: Path) -> None:
    page = as_markdown(renewed(MADE, execute(MADE, tmp_path)))
    assert page.startswith("# Title\n\n```python\na = 2\nprint(a)\na + 1\n```\n\n```text\n2\n```\n")
    assert page.count("```text") == 2
    assert "\n\n<p>words</p>\n\n" in page


def test_an_error_in_a_cell_is_not_swallowed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        execute({"cells": [cell("code", "1 / 0")]}, tmp_path)
    with pytest.raises(json.JSONDecodeError):
        (tmp_path / "cut.ipynb").write_text("{")
        read(tmp_path / "cut.ipynb")
