"""HTML reports: one page per audit, and one that compares audits."""

from foci.reports.comparison import write_comparison
from foci.reports.report import write_report

__all__ = ["write_comparison", "write_report"]
