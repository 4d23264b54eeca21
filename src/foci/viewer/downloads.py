"""Files of one slide as it is on the screen: figure for print, GeoJSON for QuPath, table."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from foci.errors import FociError
from foci.exports.run import export
from foci.viewer.catalogue import Catalogue

TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "geojson": "application/geo+json",
    "csv": "text/csv; charset=utf-8",
}
_DRAWING = threading.Lock()
"""Figures take memory and matplotlib's settings are global: one at a time."""


def download(
    catalogue: Catalogue, number: int, kind: str, rankings: Sequence[str], k: str
) -> tuple[str, bytes]:
    """Name and content of one file.

    Args:
        catalogue: The audit with its slides.
        number: The slide.
        kind: Of :data:`TYPES`.
        rankings: Rankings, with or without a seed; GeoJSON holds the first of them.
        k: Number of tiles, as ``foci export --k`` takes it.

    Raises:
        FociError: If there is no such ranking or count, or the image cannot be read.
    """
    if kind not in TYPES:
        raise FociError(kind, "is no format", f"known: {', '.join(TYPES)}")
    name = catalogue.slide_id(number)
    chosen = list(rankings)[:1] if kind == "geojson" else rankings
    with tempfile.TemporaryDirectory(prefix="foci-") as folder, _DRAWING:
        done = export(
            catalogue.audit,
            folder,
            [kind],
            [name],
            rankings=chosen,
            k=k,
            images=catalogue.paths,
            slide_mpp=catalogue.slide_mpp,
        )
        if not done.files:
            raise FociError(name, f"cannot be exported ({done.skipped[name]})", "see the reason")
        path = Path(done.files[0])
        return path.name, path.read_bytes()
