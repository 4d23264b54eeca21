"""Audit a frozen classifier on a cohort: curves, numbers and answers in one folder."""

from foci.audits.analysis.summary import Summary
from foci.audits.audit import StoredAudit
from foci.audits.config import AuditConfiguration
from foci.audits.folder.curves import CurveTable
from foci.audits.folder.manifest import Manifest
from foci.audits.folder.slides import AuditedSlide
from foci.audits.folder.tile_scores import RankedTiles
from foci.audits.settings import AuditSettings
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
