"""Parse TCGA barcodes: patient, hospital, sample type and slide.

``TCGA-05-4244-01Z-00-DX1`` reads: project, tissue source site, patient, sample type and vial,
portion, slide. Files of the GDC carry a ``.<UUID>`` behind it; many tools cut it off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_BARCODE = re.compile(
    r"TCGA-(?P<site>[A-Z0-9]{2})-[A-Z0-9]{4}"
    r"(?:-(?P<sample>\d{2})[A-Z]?(?:-\d{2}(?:-(?P<slide>[A-Z]{2}[A-Z0-9]*))?)?)?"
    r"(?![A-Z0-9])",
    re.IGNORECASE,
)
_UUID = re.compile(r"\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


@dataclass(frozen=True)
class Barcode:
    """The parts of a TCGA barcode.

    Attributes:
        case: The patient, the first 12 characters.
        site: Tissue source site, the hospital.
        sample_type: ``"01"`` primary tumour, ``"06"`` metastasis, ``"11"`` normal tissue, or None.
        slide: ``"DX1"`` diagnostic (paraffin); ``"TS1"``, ``"MS1"``, ``"BS1"`` frozen; or None.
    """

    case: str
    site: str
    sample_type: str | None
    slide: str | None

    @property
    def is_diagnostic(self) -> bool:
        """A paraffin section, the kind a pathologist diagnoses from."""
        return self.slide is not None and self.slide.startswith("DX")

    @property
    def is_normal(self) -> bool:
        """Sample types 10 to 19 are normal tissue."""
        return self.sample_type is not None and self.sample_type.startswith("1")


def parse_barcode(slide_id: str) -> Barcode | None:
    """Parse a slide name that begins with a TCGA barcode; None for any other.

    >>> parse_barcode("TCGA-05-4244-01Z-00-DX1.svs")
    Barcode(case='TCGA-05-4244', site='05', sample_type='01', slide='DX1')
    >>> parse_barcode("patient-7")
    """
    found = _BARCODE.match(slide_id)
    if found is None:
        return None
    slide = found["slide"]
    return Barcode(
        case=slide_id[:12].upper(),
        site=found["site"].upper(),
        sample_type=found["sample"],
        slide=None if slide is None else slide.upper(),
    )


def case_of(slide_id: str) -> str:
    """The patient of a TCGA slide; any other slide counts as its own patient.

    >>> case_of("TCGA-05-4244-01Z-00-DX1"), case_of("slide 7")
    ('TCGA-05-4244', 'slide 7')
    """
    barcode = parse_barcode(slide_id)
    return slide_id if barcode is None else barcode.case


def without_uuid(slide_id: str) -> str:
    """A TCGA slide name without its trailing ``.<UUID>``; other names stay as they are.

    >>> without_uuid("TCGA-05-4244-01Z-00-DX1.d4ff32cd-38cf-40ea-8213-45c2b100ac01")
    'TCGA-05-4244-01Z-00-DX1'
    >>> without_uuid("scan.d4ff32cd-38cf-40ea-8213-45c2b100ac01")
    'scan.d4ff32cd-38cf-40ea-8213-45c2b100ac01'
    """
    return _UUID.sub("", slide_id) if parse_barcode(slide_id) else slide_id
