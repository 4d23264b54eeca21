"""The diagnostic slides among files of TCGA."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from foci.bags.slide import Slide
from foci.bags.tcga import Barcode, parse_barcode


def tcga_slide(slide_id: str, barcode: Barcode, label: str, features: Path | None = None) -> Slide:
    """A slide with the patient and hospital of its barcode."""
    return Slide(slide_id, barcode.case, label, site=barcode.site, feature_path=features)


def why_not(slide_id: str) -> str | None:
    """Why a file is not a diagnostic slide of a tumour, as a plural for a note; None if it is one.

    >>> why_not("TCGA-05-4244-01A-01-TS1")
    'frozen sections'
    >>> why_not("TCGA-05-4244-01Z-00-DX1")
    """
    barcode = parse_barcode(slide_id)
    if barcode is None or barcode.slide is None:
        return "files without the barcode of a slide"
    if not barcode.is_diagnostic:
        return "frozen sections"
    return "slides of normal tissue" if barcode.is_normal else None


def left_out_notes(path: Path, reasons: Iterable[str]) -> tuple[str, ...]:
    """One line per reason, with the number of files it took."""
    reasons = list(reasons)
    return tuple(
        f"{path.name}: {reasons.count(reason)} {reason} are left out"
        for reason in sorted(set(reasons))
    )
