"""Names inside an audit folder."""

from __future__ import annotations

FORMAT = 1
"""Of the folder; a reader refuses a newer one."""

MANIFEST = "manifest.json"
SLIDES = "slides.parquet"
CURVES = "curves.parquet"
RANKINGS = "rankings.parquet"
SUMMARY = "summary.json"
TABLES = "tables"
SELECTORS = "selectors"
REPORT = "report.html"
PARTS = "parts"
"""What a run has finished so far; gone once the tables above are whole."""


def column(ranking: str, seed: int | None) -> str:
    """A ranking and its seed in one word, as columns and parts are named.

    >>> column("native", None), column("selector", 2)
    ('native', 'selector-2')
    """
    return ranking if seed is None else f"{ranking}-{seed}"
