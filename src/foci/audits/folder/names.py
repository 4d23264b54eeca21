"""Names inside an audit folder."""

from __future__ import annotations

from pathlib import Path

from foci.selectors.fitting.fit import STATE
from foci.selectors.saved import METADATA, WEIGHTS

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


SELECTOR_FILES = (WEIGHTS, METADATA, STATE)
"""What a fit may leave in the folder of its seed."""


def seed_folder(folder: Path, seed: int) -> Path:
    """Where the selector of a seed is."""
    return folder / SELECTORS / f"seed-{seed}"
