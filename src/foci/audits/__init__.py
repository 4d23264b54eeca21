"""One run from a frozen classifier and a cohort to a folder of curves, numbers and a verdict."""

from foci.audits.audit import Audit
from foci.audits.curves import Curve, CurveTable
from foci.audits.settings import AuditConfiguration, AuditSettings
from foci.audits.slides import AuditedSlide
from foci.audits.tiles import RankedTiles

__all__ = [
    "Audit",
    "AuditConfiguration",
    "AuditSettings",
    "AuditedSlide",
    "Curve",
    "CurveTable",
    "RankedTiles",
]
