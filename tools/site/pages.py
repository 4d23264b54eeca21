"""Gather the pages of the site: ``docs/``, the papers of the repository, pages made from code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tools.architecture_picture import PICTURE, picture
from tools.notebook import as_markdown, read
from tools.site.commands import command_page
from tools.site.python_page import python_page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FROM_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
"""Pages that stand in the root folder of the repository, and their names on the site."""


def gather(pages: Path) -> None:
    """Write every page and picture of the site to a new folder."""
    if pages.exists():
        shutil.rmtree(pages)
    shutil.copytree(DOCS, pages)
    for path in pages.rglob("*.md"):
        path.write_text(linked_from_docs(path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in pages.glob("notebooks/*.ipynb"):
        path.with_suffix(".md").write_text(as_markdown(read(path)), encoding="utf-8")
    for name, page in FROM_ROOT.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (pages / page).write_text(linked_from_root(text), encoding="utf-8")
    (pages / PICTURE.relative_to(DOCS)).write_text(picture(), encoding="utf-8")
    (pages / "commands.md").write_text(command_page(), encoding="utf-8")
    (pages / "python.md").write_text(python_page(ROOT / "src"), encoding="utf-8")


def linked_from_docs(text: str) -> str:
    """Links of a page in ``docs/`` to pages in the root folder, as links within the site.

    >>> linked_from_docs("see [how](../CONTRIBUTING.md#a-new-metric)")
    'see [how](contributing.md#a-new-metric)'
    """
    for name, page in FROM_ROOT.items():
        text = text.replace(f"](../{name}", f"]({page}")
    return text


def linked_from_root(text: str) -> str:
    """Links of a page in the root folder, as links within the site.

    >>> linked_from_root("[metrics](docs/metrics.md) and [how](CONTRIBUTING.md)")
    '[metrics](metrics.md) and [how](contributing.md)'
    """
    text = re.sub(r"\]\(docs/", "](", text)
    for name, page in FROM_ROOT.items():
        text = text.replace(f"]({name}", f"]({page}")
    return text
