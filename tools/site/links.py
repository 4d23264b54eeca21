"""Check a built site: every link leads somewhere, and no page asks for anything elsewhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "srcset", "link": "href"}
"""What a browser fetches by itself, and the attribute that says from where."""
ONLY_NAMES = {"canonical", "prev", "next", "alternate"}
"""Kinds of ``<link>`` that a browser does not fetch."""


@dataclass
class Page(HTMLParser):
    """Anchors, links and loaded files of one page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag names, links to or loads."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        named = set(given.get("rel", "").split()) & ONLY_NAMES
        if tag in LOADS and LOADS[tag] in given and not named:
            self.loads.append(given[LOADS[tag]])


def problems(site: Path, live: str = "gallery/") -> list[str]:
    """One line per broken link, missing file and load from elsewhere.

    Args:
        site: Folder of the built site.
        live: Folder of pages that FOCI wrote; others may link to them, they are not read.
    """
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    pages = {p: page for p, page in pages.items() if not _below(p, site / live)}
    found = [one for path, page in pages.items() for one in _of_page(path, page, site, pages)]
    return found + [one for sheet in sorted(site.rglob("*.css")) for one in _of_sheet(sheet, site)]


def _of_sheet(sheet: Path, site: Path) -> list[str]:
    addresses = re.findall(r"url\(\s*['\"]?(https?:[^)'\"]+)", sheet.read_text(encoding="utf-8"))
    return [f"{sheet.relative_to(site)}: loads {address}" for address in addresses]


def _of_page(path: Path, page: Page, site: Path, pages: dict[Path, Page]) -> list[str]:
    here = path.relative_to(site)
    found = [f"{here}: loads {one}" for one in page.loads if urlsplit(one).netloc]
    for address in (*page.links, *page.loads):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        start = site if parts.path.startswith("/") else path.parent
        target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            found.append(f"{here}: {address} is missing")
        elif parts.fragment and target in pages and not _has(pages[target], parts.fragment):
            found.append(f"{here}: {address} has no such heading")
    return found


def _has(page: Page, fragment: str) -> bool:
    return unquote(fragment) in page.anchors or fragment.startswith("__")


def _below(path: Path, folder: Path) -> bool:
    return folder in path.parents


def _read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
