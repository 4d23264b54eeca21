"""Names of files and columns in an audit folder."""

from __future__ import annotations

from pathlib import Path

FORMAT = 3
"""Of the folder; a reader refuses a newer one. 2: deletion at the counts that decisive K needs.
3: a curve has the counts that its slide needs, and the selector is the mean rank of its seeds."""

MANIFEST = "manifest.json"
SLIDES = "slides.parquet"
CURVES = "curves.parquet"
RANKINGS = "rankings.parquet"
SUMMARY = "summary.json"
TABLES = "tables"
TABLE_FILES = ("rankings.csv", "slides.csv", "deletion.csv", "agreement.csv", "skipped.csv")
SELECTORS = "selectors"
REPORT = "report.html"
PARTS = "parts"
"""Partial results of a run; removed once the files above are complete."""


def column(ranking: str, seed: int | None) -> str:
    """Name of a ranking with its seed, as in table columns and partial results.

    >>> column("native", None), column("selector", 2)
    ('native', 'selector-2')
    """
    return ranking if seed is None else f"{ranking}-{seed}"


def seed_folder(folder: Path, seed: int) -> Path:
    """Folder of the selector with this seed."""
    return folder / SELECTORS / f"seed-{seed}"
