"""HTML reports: one page per audit, one that compares audits, one that shows a study."""

from foci.reports.comparison import write_comparison
from foci.reports.report import write_report
from foci.reports.study import write_study_page

__all__ = ["write_comparison", "write_report", "write_study_page"]
