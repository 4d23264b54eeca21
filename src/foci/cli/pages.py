"""Check the file name of an HTML page."""

from __future__ import annotations

from pathlib import Path

from foci.errors import FociError


def page(out: Path | None) -> Path | None:
    """The given file, if its name is that of an HTML page, so that no other file is overwritten.

    >>> page(Path("summary.json"))
    Traceback (most recent call last):
    foci.errors.FociError: --out summary.json: is not an HTML file; give a name that ends in .html
    """
    if out is not None and (out.suffix.lower() not in (".html", ".htm") or out.is_dir()):
        fix = "give a name that ends in .html"
        raise FociError(f"--out {out}", "is not an HTML file", fix)
    return out
