"""Load the page's script and style sheet, bundled from ``web/``."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path

from foci.errors import FociError

FOLDER = Path(__file__).parent / "bundle"
CODE, STYLE = "report.js", "report.css"


@dataclass(frozen=True)
class Bundle:
    """Script and style sheet of a page, to be embedded unescaped.

    Attributes:
        code: Content of the script element.
        style: Content of the style element.
    """

    code: str
    style: str

    @property
    def policy(self) -> str:
        """Content-Security-Policy that allows this script and style, and no request at all."""
        return (
            f"default-src 'none'; script-src {_source(self.code)}; "
            f"style-src {_source(self.style)}; base-uri 'none'; form-action 'none'"
        )


def load_bundle(folder: Path = FOLDER) -> Bundle:
    """Read the files that ``npm run build`` has made."""
    missing = [name for name in (CODE, STYLE) if not (folder / name).is_file()]
    if missing:
        fix = "run python3 dev.py run ... , or npm ci and npm run build in web/"
        raise FociError(folder / missing[0], "is not built", fix)
    code, style = ((folder / name).read_text(encoding="utf-8") for name in (CODE, STYLE))
    for name, text in ((CODE, code), (STYLE, style)):
        if "</script" in text.lower() or "</style" in text.lower() or "<!--" in text:
            raise FociError(folder / name, "would end its own element", "build it again")
    return Bundle(code, style)


def _source(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"
