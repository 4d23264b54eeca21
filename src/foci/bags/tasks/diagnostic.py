"""Select the diagnostic slides (DX) among TCGA files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from foci.bags.cohort.slide import Slide
from foci.bags.cohort.tcga import Barcode, parse_barcode


def tcga_slide(slide_id: str, barcode: Barcode, label: str, features: Path | None = None) -> Slide:
    """A slide with the patient and hospital of its barcode."""
    return Slide(slide_id, barcode.case, label, site=barcode.site, feature_path=features)


def diagnostic_barcode(slide_id: str) -> Barcode | str:
    """The barcode of a diagnostic tumour slide, or for any other file the plural of what it is.

    >>> diagnostic_barcode("TCGA-05-4244-01A-01-TS1")
    'frozen sections'
    >>> diagnostic_barcode("TCGA-05-4244-01Z-00-DX1")
    Barcode(case='TCGA-05-4244', site='05', sample_type='01', slide='DX1')
    """
    barcode = parse_barcode(slide_id)
    if barcode is None or barcode.slide is None:
        return "files without the barcode of a slide"
    if not barcode.is_diagnostic:
        return "frozen sections"
    return "slides of normal tissue" if barcode.is_normal else barcode


def left_out_notes(path: Path, reasons: Iterable[str]) -> tuple[str, ...]:
    """One line per reason, with the number of files left out for it."""
    reasons = list(reasons)
    return tuple(
        f"{path.name}: {reasons.count(reason)} {reason} are left out"
        for reason in sorted(set(reasons))
    )
