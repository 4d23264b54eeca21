"""Choose what is exported: slides, rankings, number of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from foci.audits import StoredAudit
from foci.audits.analysis.slides.per_slide import MeasuredSlides
from foci.audits.folder.names import column
from foci.errors import FociError
from foci.reports.data.chosen import by_interest

Column = tuple[str, int | None]
"""A ranking and its seed."""

MOST_TELLING = 6
"""Slides that are exported if none is named."""

WITHOUT_COUNT = 32
"""Tiles shown where a slide has no MSK, or no decisive K, under a ranking."""


def slides_to_export(
    audit: StoredAudit, named: Sequence[str] = (), most_telling: int = MOST_TELLING
) -> list[str]:
    """The named slides, or the most telling ones: hardest, most compact, and between, in turn.

    Args:
        audit: A finished audit.
        named: Slides.
        most_telling: How many the audit chooses if none is named.
    """
    known = audit.curves.slide_ids
    if named:
        lost = [name for name in named if name not in known]
        if lost:
            skipped = {slide.slide_id: slide.skipped for slide in audit.skipped}
            why = skipped.get(lost[0])
            what = f"was skipped ({why})" if why else f"is not in {audit.folder}"
            raise FociError(lost[0], what, f"slides: {', '.join(known[:3])}, ...")
        return list(dict.fromkeys(named))
    rows = by_interest(audit.measured().hardest_first)[:most_telling]
    return [known[row] for row in rows]


def read_names(path: Path) -> list[str]:
    """Slides of a list: one name per line, or the column ``slide_id`` of a CSV file."""
    if not path.is_file():
        raise FociError(path, "does not exist", "give a file with one slide per line")
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    rows = [line.split(",") for line in lines if line]
    at = rows[0].index("slide_id") if rows and "slide_id" in rows[0] else None
    names = [row[0] for row in rows] if at is None else [row[at] for row in rows[1:]]
    if not names:
        raise FociError(path, "names no slide", "write one slide per line")
    return names


def columns_to_export(measured: MeasuredSlides, named: Sequence[str] = ()) -> list[Column]:
    """Rankings whose orders are stored, the first seed of each; or those named.

    Args:
        measured: The audit's slides.
        named: ``"native"``, or with a seed ``"selector-1"``.
    """
    curves = measured.curves
    stored = {
        column(ranking, seed): (ranking, seed)
        for ranking in curves.rankings
        if ranking != "random"
        for seed in curves.seeds(ranking)
    }
    firsts = {ranking: (ranking, seed) for ranking, seed in reversed(stored.values())}
    if not named:
        return [firsts[ranking] for ranking in curves.rankings if ranking in firsts]
    lost = [name for name in named if name not in stored and name not in firsts]
    if lost:
        what = "is not a stored ranking of this audit"
        raise FociError(lost[0], what, f"known: {', '.join(stored)}")
    return [stored[name] if name in stored else firsts[name] for name in named]


def count_of(measured: MeasuredSlides, row: int, chosen: Column, k: str) -> tuple[int, bool]:
    """How many tiles are exported, and whether ``k`` could be had.

    Args:
        measured: The audit's slides.
        row: The slide.
        chosen: The ranking.
        k: ``"msk"``, ``"decisive"``, ``"all"`` or a number.
    """
    n = int(measured.views["prediction"].n_tiles[row])
    if k == "all":
        return n, True
    if k in ("msk", "decisive"):
        count = measured_count(measured, row, chosen, k)
        return (min(n, WITHOUT_COUNT), False) if count is None else (count, True)
    if not (k.isascii() and k.isdigit() and len(k) < 10) or int(k) < 1:
        raise FociError(f"--k {k}", "is no number of tiles", "give msk, decisive, all or a number")
    return min(int(k), n), True


def measured_count(measured: MeasuredSlides, row: int, chosen: Column, which: str) -> int | None:
    """MSK or decisive K of one slide under one ranking; None where there is none."""
    ranking, seed = chosen
    own = measured.metrics["prediction"][ranking]
    at = measured.curves.seeds(ranking).index(seed)
    counts = own.msk if which == "msk" else None if own.decisive is None else own.decisive.count
    value = np.nan if counts is None else counts[at, row]
    return None if np.isnan(value) else int(value)
