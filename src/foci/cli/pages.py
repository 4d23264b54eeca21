"""Where a command may write a page."""

from __future__ import annotations

from pathlib import Path

from foci.errors import FociError


def page(out: Path | None) -> Path | None:
    """The file given, if it is one that a browser opens; so nothing else is ever replaced.

    >>> page(Path("summary.json"))
    Traceback (most recent call last):
    foci.errors.FociError: --out summary.json: is not an HTML file; give a name that ends in .html
    """
    if out is not None and (out.suffix.lower() not in (".html", ".htm") or out.is_dir()):
        fix = "give a name that ends in .html"
        raise FociError(f"--out {out}", "is not an HTML file", fix)
    return out
