"""The files of the viewer's page, read once: HTML, script and style sheet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from foci.errors import FociError

FOLDER = Path(__file__).parent
BUNDLE = FOLDER / "bundle"
TYPES = {
    "index.html": "text/html; charset=utf-8",
    "viewer.js": "text/javascript; charset=utf-8",
    "viewer.css": "text/css; charset=utf-8",
    "LICENCES.txt": "text/plain; charset=utf-8",
}
"""Every file that is served, with its media type: no other is ever opened."""


@dataclass(frozen=True)
class PageFile:
    """Content and media type."""

    content: bytes
    media_type: str


def load_page(bundle: Path = BUNDLE) -> dict[str, PageFile]:
    """Read the page, and what ``npm run build`` has made for it, by file name."""
    found = {}
    for name, media_type in TYPES.items():
        path = FOLDER / name if name == "index.html" else bundle / name
        if not path.is_file():
            fix = "run python3 dev.py run ... , or npm ci and npm run build in web/"
            raise FociError(path, "is not built", fix)
        found[name] = PageFile(path.read_bytes(), media_type)
    return found
