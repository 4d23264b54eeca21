"""HTML reports: one page per audit, one that compares audits, one that shows a study.

Names are loaded on first use: the viewer shares parts of the report and needs no study.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from foci.registry import lazy_names

if TYPE_CHECKING:
    from foci.reports.report import write_comparison, write_report
    from foci.reports.study import write_study_page

__all__ = ["write_comparison", "write_report", "write_study_page"]

_HOMES = {
    "write_comparison": "foci.reports.report",
    "write_report": "foci.reports.report",
    "write_study_page": "foci.reports.study",
}

__getattr__, __dir__ = lazy_names("foci.reports", _HOMES)
