"""Choose the readout of an audit on its validation slides: evidence, or the trained selector."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from foci.audits.jobs import mean_rank
from foci.audits.manifest import Manifest
from foci.audits.records import AxisComparison, Measure, Readout, ReadoutRow
from foci.audits.settings import AUTO, AnalysisSettings, AuditSettings
from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Cohort
from foci.metrics import compare_areas, compare_orders
from foci.metrics.compare import DIFFERENT_CASES
from foci.progress import track
from foci.rankings import EmbeddedBag, Ranking, score
from foci.reveal import Revealer
from foci.selectors import FittedSelector
from foci.selectors.criterion import OrderReading, read_orders

_LOG = logging.getLogger(__name__)

EVIDENCE, SELECTOR = "evidence", "selector"
RULE = (
    "the selector only where it is clearly better than evidence on the decided validation slides: "
    "by decisive K or, where that is open, by the loss when its first tiles are deleted; never "
    "where it clearly needs more tiles to suffice. Clearly: the interval excludes 0 and at least "
    f"{DIFFERENT_CASES} patients differ. Otherwise evidence, which needs no training"
)


def choose_readout(
    backbone: Backbone,
    fitting: Cohort | None,
    settings: AuditSettings,
    selectors: Mapping[int, FittedSelector],
) -> Readout | None:
    """The ranking that wins on the decided validation slides; no audited slide is read.

    See :func:`selector_wins` for the rule.

    Args:
        backbone: The frozen classifier.
        fitting: Slides with splits ``train`` and ``val``; None if no selector is fitted.
        settings: With ``readout``; whatever is not ``"auto"`` is taken as it is.
        selectors: The fitted selectors by seed; their mean rank is judged.

    Returns:
        The choice and its table; None where there is nothing to choose from.
    """
    if settings.readout != AUTO or fitting is None or EVIDENCE not in settings.rankings:
        return None
    rankers: dict[str, Callable[[EmbeddedBag], Ranking]] = {
        EVIDENCE: lambda bag: score(EVIDENCE, backbone, bag),
        SELECTOR: lambda bag: mean_rank(
            [score(SELECTOR, backbone, bag, selector=one) for one in selectors.values()]
        ),
    }
    readings: dict[str, list[OrderReading]] = {name: [] for name in rankers}
    cases: list[str] = []
    revealer = Revealer(backbone, recheck=())
    for slide in track(fitting.split("val").slides, "choosing the readout"):
        bag = revealer.open(fitting.store.bag(slide))
        with frozen(backbone):
            full = bag.full().numpy()
            if len(bag) < 2 or full.max() < settings.kappa:
                continue
            bag = bag.with_target(int(full.argmax()))
            orders = [torch.from_numpy(rank(bag).order.copy()) for rank in rankers.values()]
            found = read_orders(bag, orders, bag.target, kappa=settings.kappa)
        cases.append(slide.case_id)
        for name, reading in zip(rankers, found, strict=True):
            readings[name].append(reading)
    if not cases:
        return None
    return judged(readings[EVIDENCE], readings[SELECTOR], cases, settings)


def judged(
    evidence: Sequence[OrderReading],
    selector: Sequence[OrderReading],
    cases: Sequence[str],
    settings: AnalysisSettings,
) -> Readout:
    """Choose by the numbers of the same slides under both orders.

    Args:
        evidence: One reading per slide.
        selector: The same slides.
        cases: The patient of every slide.
        settings: Bootstrap draws and coverage of the intervals.
    """
    orders = {EVIDENCE: evidence, SELECTOR: selector}
    found = {name: _comparisons(own, evidence, cases, settings) for name, own in orders.items()}
    rows = [_row(name, own, evidence, found[name]) for name, own in orders.items()]
    comparisons = found[SELECTOR]
    return Readout(
        chosen=SELECTOR if selector_wins({c.measure: c for c in comparisons}) else EVIDENCE,
        rule=RULE,
        n_slides=len(cases),
        n_cases=len(set(cases)),
        rows=rows,
        comparisons=comparisons,
    )


def selector_wins(by_measure: Mapping[Measure, AxisComparison]) -> bool:
    """Whether the selector is clearly better than evidence.

    Decisive K decides where it is clear, the deletion area where it is not; a clear loss in the
    tiles that suffice forbids the selector. The simpler order wins whatever stays open.

    Args:
        by_measure: The selector against evidence; the area may be missing.
    """
    found = {measure: one.result for measure, one in by_measure.items()}
    if found["MSK"] == "worse":
        return False
    if found["decisive K"] in ("better", "worse"):
        return found["decisive K"] == "better"
    return found.get("deletion area") == "better"


def with_readout(
    manifest: Manifest,
    backbone: Backbone,
    fitting: Cohort | None,
    selectors: Mapping[int, FittedSelector],
) -> Manifest:
    """The manifest with the readout settled; a run that goes on keeps its choice."""
    made = manifest.readout or choose_readout(backbone, fitting, manifest.settings, selectors)
    if made is None:
        return manifest
    for line in in_words(made):
        _LOG.info(line)
    settings = manifest.settings.model_copy(update={"readout": made.chosen})
    return manifest.model_copy(update={"readout": made, "settings": settings})


def in_words(readout: Readout | None) -> list[str]:
    """The choice as a sentence for terminal and report; none without one."""
    if readout is None:
        return []
    trained = next(row for row in readout.rows if row.ranking == SELECTOR)
    clear = "is" if readout.chosen == SELECTOR else "is not"
    return [
        f"readout: {readout.chosen}, chosen on {readout.slides_in_words}, where the selector "
        f"{clear} clearly better than evidence; its decisive sets were smaller on {trained.fewer} "
        f"and larger on {trained.more}"
    ]


def _comparisons(
    own: Sequence[OrderReading],
    base: Sequence[OrderReading],
    cases: Sequence[str],
    settings: AnalysisSettings,
) -> list[AxisComparison]:
    """Both orders by decisive K, deletion area and MSK; no area where no slide has one."""
    draws: dict[str, Any] = {"n_boot": settings.n_boot, "level": settings.level}
    decisive = compare_orders([r.decisive for r in own], [r.decisive for r in base], cases, **draws)
    area = compare_areas([r.area for r in own], [r.area for r in base], cases, **draws)
    enough = compare_orders([r.msk for r in own], [r.msk for r in base], cases, **draws)
    areas = [AxisComparison.of("necessity", "deletion area", area)] if area.n_slides else []
    return [
        AxisComparison.of("necessity", "decisive K", decisive),
        *areas,
        AxisComparison.of("sufficiency", "MSK", enough),
    ]


def _row(
    name: str,
    own: Sequence[OrderReading],
    base: Sequence[OrderReading],
    comparisons: Sequence[AxisComparison],
) -> ReadoutRow:
    decisive, sufficient = comparisons[0], comparisons[-1]
    a, b = (
        np.nan_to_num(np.array([r.decisive for r in group]), nan=np.inf) for group in (own, base)
    )
    return ReadoutRow(
        ranking=name,
        decisive=float(np.median(a)),
        share=float(np.isfinite(a).mean()),
        fewer=int((a < b).sum()),
        more=int((a > b).sum()),
        d=decisive.d,
        low=decisive.low,
        high=decisive.high,
        d_sufficiency=sufficient.d,
        area=float(np.mean([0.0 if np.isnan(r.area) else r.area for r in own])),
    )
