"""Audit a frozen classifier on a cohort: curves, numbers and answers in one folder."""

from foci.audits.audit import StoredAudit
from foci.audits.folder import AuditedSlide, CurveTable, RankedTiles
from foci.audits.manifest import Manifest
from foci.audits.records import Summary
from foci.audits.settings import AuditConfiguration, AuditSettings
from foci.reveal import Curve

__all__ = [
    "AuditConfiguration",
    "AuditSettings",
    "AuditedSlide",
    "Curve",
    "CurveTable",
    "Manifest",
    "RankedTiles",
    "StoredAudit",
    "Summary",
]
