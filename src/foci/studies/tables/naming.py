"""Names of backbones, cohorts and rows as readers know them."""

from __future__ import annotations

from collections.abc import Iterable

SHOWN = {
    "transmil": "TransMIL",
    "abmil": "ABMIL",
    "clam-sb": "CLAM-SB",
    "clam-mb": "CLAM-MB",
    "attrimil": "AttriMIL",
    "acmil": "ACMIL",
    "asmil": "ASMIL",
    "mhim-mil": "MHIM-MIL",
    "nsclc": "NSCLC",
    "brca": "BRCA",
    "panda": "PANDA",
}
"""Names as the paper writes them; any other name is shown as it is."""

PRIMARY = "transmil"
WITH = "+ FOCI"


def shown(name: str) -> str:
    """A backbone or cohort as readers know it.

    >>> shown("mhim-mil"), shown("our-model")
    ('MHIM-MIL', 'our-model')
    """
    return SHOWN.get(name, name)


def primary(backbones: Iterable[str]) -> str:
    """The backbone of the paper's single-backbone tables: TransMIL, or else the first.

    >>> primary(["abmil", "transmil"]), primary(["abmil", "acmil"])
    ('transmil', 'abmil')
    """
    names = list(backbones)
    return PRIMARY if PRIMARY in names else names[0]
