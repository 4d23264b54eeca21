"""Tables that replace the figures when JavaScript is off."""

from __future__ import annotations

from dataclasses import dataclass

from foci.audits.analysis.summary import CurveBand, MeanDrops, Summary, Survival
from foci.reports.data.models import AuditPayload
from foci.reports.text.wording import fixed, tiles

MOST_ROWS = 100


@dataclass(frozen=True)
class PlainTable:
    """A titled table of text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plain_tables(summary: Summary, data: AuditPayload) -> list[PlainTable]:
    """Tables of the reveal, Kaplan-Meier and deletion curves, and of the hardest slides."""
    by_ranking = summary.views[summary.first_view]
    head = ("K", *by_ranking)
    curves = [_by_count(n.mean_curve) for n in by_ranking.values()]
    drops = [_by_count(n.drops) for n in by_ranking.values()]
    counts = [2**i for i in range(summary.k_max.bit_length())]
    open_after = tuple(
        (str(k), *(fixed(_held(n.km, k)) for n in by_ranking.values())) for k in counts
    )
    return [
        PlainTable("Mean probability of the target after K tiles", head, _rows(counts, curves)),
        PlainTable("Share of slides that need more than K tiles", head, open_after),
        PlainTable("Mean drop after deleting K tiles", head, _rows(sorted(drops[0]), drops)),
        _slides(data),
    ]


def _by_count(curve: CurveBand | MeanDrops) -> dict[int, float | None]:
    return dict(zip(curve.ks, curve.mean, strict=True))


def _rows(counts: list[int], columns: list[dict[int, float | None]]) -> tuple[tuple[str, ...], ...]:
    measured = [k for k in counts if any(k in column for column in columns)]
    return tuple((str(k), *(fixed(column.get(k)) for column in columns)) for k in measured)


def _held(km: Survival, k: int) -> float:
    """Value of the Kaplan-Meier curve (a right-continuous step function) at a count."""
    reached = [left for at, left in zip(km.ks, km.survival, strict=True) if at <= k]
    return float(reached[-1])


def _slides(data: AuditPayload) -> PlainTable:
    slides, classes = data.slides, data.classes
    measures = slides.measures["prediction"]
    needed = [k or 0.0 for k in measures[data.headline].k]
    hardest = sorted(range(len(needed)), key=lambda i: -needed[i])
    rows = hardest[:MOST_ROWS]
    cut = f" (the {MOST_ROWS} hardest; tables/slides.csv has all)" * (len(hardest) > MOST_ROWS)
    return PlainTable(
        f"Tiles needed per slide, hardest first{cut}",
        ("slide", "patient", "predicted", *(f"K {name}" for name in measures)),
        tuple(
            (
                slides.id[i],
                slides.case[i],
                classes[slides.predicted[i]],
                *(tiles(own.k[i]) for own in measures.values()),
            )
            for i in rows
        ),
    )
