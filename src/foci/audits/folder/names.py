"""Names of files and columns in an audit folder."""

from __future__ import annotations

from pathlib import Path

FORMAT = 1
"""Of the folder; any other is refused."""

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
