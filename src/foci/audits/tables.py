"""Write the numbers of an audit as CSV tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foci.audits.folder import OUTCOME_TABLE, AuditedSlide
from foci.audits.measure import MeasuredSlides
from foci.audits.numbers import GREEDY
from foci.audits.records import (
    CountQuartiles,
    DecidedNumbers,
    Interval,
    OrderComparison,
    PairAgreement,
    Paired,
    RankingNumbers,
    Summary,
    plain,
)
from foci.audits.settings import View
from foci.files.atomic import write_whole
from foci.metrics import seed_spread
from foci.metrics.inputs import defined_mean
from foci.words import csv_text

Row = dict[str, Any]

SPREADS = ("msk_cond", "restricted", "reach", "aukc", "faithfulness", "relevance_gain")
INTERVALS = (*SPREADS, "shi_native", "shi_random")
SINGLE = ("reach_correct", "reach_wrong", "stable_restricted", "fallback", "specific")
QUARTILES = ("msk", "stable", "decisive", "decisive_paper", "relative")
_COMPARISON = (
    "first", "second", "axis", "measure", "result", "d", "low", "high", "pvalue", "n_slides",
    "n_cases", "wins", "losses", "case_wins", "case_losses", "informative", "first_median",
    "second_median", "first_share", "second_share", "ratio", "n_ratio",
)  # fmt: skip
_NULL = ("d", "pvalue", "beaten", "n_maps", "n_slides")


def write_tables(
    folder: str | Path,
    summary: Summary,
    measured: MeasuredSlides,
    slides: Sequence[AuditedSlide],
    skipped: Sequence[AuditedSlide],
) -> None:
    """Write all CSV tables into a folder, made if need be; equal numbers give equal bytes."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    reasons = [{"slide_id": slide.slide_id, "reason": slide.skipped} for slide in skipped]
    tables: dict[str, tuple[Iterable[Row], Sequence[str]]] = {
        "rankings.csv": (_ranking_rows(summary), ()),
        "slides.csv": (_slide_rows(measured, slides, summary.classes), ()),
        "deletion.csv": (
            _deletion_rows(summary),
            ("view", "ranking", "k", "mean_drop", "n_slides"),
        ),
        "comparisons.csv": (
            [row for found in summary.answers.comparisons for row in _comparison_rows(found)],
            _COMPARISON,
        ),
        "carried.csv": (_carried_rows(summary), ("order", "k", "share", "low", "high", "n_slides")),
        "agreement.csv": (
            (pair.model_dump() for pair in summary.agreement),
            tuple(PairAgreement.model_fields),
        ),
        "skipped.csv": (reasons, ("slide_id", "reason")),
    }
    if outcome := list(_outcome_rows(summary)):
        tables[OUTCOME_TABLE] = (outcome, ())
    for name, (rows, header) in tables.items():
        write_whole(place / name, as_csv(rows, header))


def as_csv(rows: Iterable[Row], header: Sequence[str] = ()) -> str:
    """Format rows as CSV: an empty cell for None, floats with all digits.

    The columns are those of the header, or else the keys of the first row.

    >>> print(as_csv([{"slide": 'a "b", c', "msk": 2.0}, {"slide": "d", "msk": None}]), end="")
    slide,msk
    "a ""b"", c",2.0
    d,
    """
    lines = iter(rows)
    first = list(itertools.islice(lines, 1))
    columns = list(header or (first[0] if first else ()))
    cells = ([line.get(name) for name in columns] for line in itertools.chain(first, lines))
    return csv_text(itertools.chain([columns], cells))


def interval_columns(name: str, interval: Interval | None) -> Row:
    """An estimate and the ends of its interval; empty where there is none."""
    return {
        name: getattr(interval, "estimate", None),
        f"{name}_low": getattr(interval, "low", None),
        f"{name}_high": getattr(interval, "high", None),
    }


def _ranking_rows(summary: Summary) -> Iterator[Row]:
    """Headline numbers, one row per view and ranking, the first view first."""
    for view, ranking, numbers in _by_view(summary):
        row: Row = {"view": view, "ranking": ranking}
        for name in INTERVALS:
            row |= interval_columns(name, getattr(numbers, name))
        row |= {f"{name}_std": seed_std(getattr(numbers, f"{name}_seeds")) for name in SPREADS}
        row |= {name: getattr(numbers, name) for name in SINGLE}
        row["selected_only_auc"] = getattr(numbers.selected_only, "auc", None)
        row["adaptive_auc"] = getattr(numbers.selected_only, "adaptive_auc", None)
        row |= {
            f"paired_{name}": getattr(numbers.paired, name, None) for name in Paired.model_fields
        }
        row["wilcoxon_pvalue"] = getattr(numbers.wilcoxon, "pvalue", None)
        row |= _decided(numbers.decided)
        row |= {f"null_{name}": getattr(numbers.null, name, None) for name in _NULL}
        yield row | ({"captured": numbers.captured} if GREEDY in summary.rankings else {})


def _outcome_rows(summary: Summary) -> Iterator[Row]:
    """How well a risk, a number or labels fit what was observed; none of a model of classes."""
    full = summary.full_bag
    for name in ("c_index", "r_squared", "spearman", "macro_auc"):
        found: Interval | None = getattr(full, name)
        if found is not None:
            yield {"measure": name, **found.model_dump(), "n_slides": full.n_scored}


def _comparison_rows(found: OrderComparison) -> Iterator[Row]:
    """One row per axis; the names of the rankings stand before their medians."""
    for axis in found.axes:
        own = axis.model_dump()
        medians = {"first_median": own.pop("first"), "second_median": own.pop("second")}
        yield {"first": found.first, "second": found.second, **own, **medians}


def _deletion_rows(summary: Summary) -> Iterator[Row]:
    """Mean deletion drops, one row per view, ranking and count."""
    for view, ranking, numbers in _by_view(summary):
        drops = numbers.drops
        for k, mean, n in zip(drops.ks, drops.mean, drops.n_slides, strict=True):
            yield {"view": view, "ranking": ranking, "k": k, "mean_drop": mean, "n_slides": n}


def _carried_rows(summary: Summary) -> Iterator[Row]:
    """Share of slides whose decision the first K tiles carry, one row per order and count."""
    chart = summary.carried
    if chart is None:
        return
    lines: dict[str, tuple[Sequence[float | None], ...]] = {
        name: (own.share, own.low, own.high) for name, own in chart.lines.items()
    }
    if chart.minimum is not None:
        empty = [None] * len(chart.ks)
        lines["proven minimum"] = (chart.minimum, empty, empty)
    for order, columns in lines.items():
        for k, share, low, high in zip(chart.ks, *columns, strict=True):
            ends = {"share": share, "low": low, "high": high}
            yield {"order": order, "k": k, **ends, "n_slides": chart.n_slides}


def _slide_rows(
    measured: MeasuredSlides, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> Iterator[Row]:
    """Metrics of every slide in the prediction view, averaged over seeds; one row per slide."""
    columns: dict[str, list[float | None]] = {}
    for name in measured.curves.rankings:
        own = measured.of(name)
        restricted, *others = own.averaged.items()
        values = {"msk": restricted[1], **dict(others)}
        if own.with_decisive is not None:
            values["decisive"] = own.with_decisive.decisive
            values["decisive_found"] = (~np.isnan(values["decisive"])).astype(np.float64)
        for key, table in values.items():
            columns[f"{key}:{name}"] = plain(defined_mean(table, axis=0))
    whole, by_id = measured.slides, {slide.slide_id: slide for slide in slides}
    for row, (name, predicted) in enumerate(zip(whole.ids, whole.predictions, strict=True)):
        yield {
            "slide_id": name,
            "case_id": by_id[name].case_id,
            "label": by_id[name].label,
            "predicted": classes[predicted],
            "p_predicted": float(whole.full[row, predicted]),
            "n_tiles": int(whole.n_tiles[row]),
            "k_star": by_id[name].k_star,
            "k_star_kind": by_id[name].k_star_kind,
            **{column: each[row] for column, each in columns.items()},
        }


def _by_view(summary: Summary) -> Iterator[tuple[View, str, RankingNumbers]]:
    """Iterate over views and rankings, the first view first."""
    for view in sorted(summary.views, key=lambda name: name != summary.first_view):
        for ranking in summary.rankings:
            yield view, ranking, summary.views[view][ranking]


def seed_std(values: Sequence[float | None]) -> float | None:
    """Population standard deviation over seeds, as the paper prints it; None for one seed."""
    known = [value for value in values if value is not None]
    return seed_spread(known) if len(known) == len(values) > 1 else None


def _decided(numbers: DecidedNumbers | None) -> Row:
    """Columns over decided slides; an infinite count is ``beyond`` (K_max) or ``none``."""
    row: Row = {"n_decided": None if numbers is None else numbers.n_slides}
    for name in QUARTILES:
        quartiles: CountQuartiles | None = getattr(numbers, name, None)
        for end in ("low", "median", "high"):
            count = None if quartiles is None else getattr(quartiles, end)
            row[f"{name}_{end}"] = None if count is None else count.missing or count.value
    row |= {
        name: getattr(numbers, name, None) for name in ("decisive_share", "deciding", "flips_back")
    }
    row |= interval_columns("efficiency", getattr(numbers, "efficiency", None))
    for name in ("efficiency_n", "efficiency_beyond", "excess", "excess_max"):
        row[name] = getattr(numbers, name, None)
    return row
