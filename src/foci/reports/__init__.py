"""What people read: one HTML file per audit, and one that compares audits."""

from foci.reports.audited import Audited, audit
from foci.reports.comparison import write_comparison
from foci.reports.report import write_report

__all__ = ["Audited", "audit", "write_comparison", "write_report"]
