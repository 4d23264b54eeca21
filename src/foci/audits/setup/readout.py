"""Choose the readout of an audit on its validation slides: evidence, or the trained selector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch

from foci.audits.compute.jobs import mean_rank
from foci.audits.folder.manifest import Manifest
from foci.audits.records import Readout, ReadoutRow
from foci.audits.settings import AUTO, AuditSettings
from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Cohort
from foci.metrics import compare_orders
from foci.progress import Progress
from foci.rankings import EmbeddedBag, Ranking, score
from foci.reveal import Revealer
from foci.selectors import FittedSelector
from foci.selectors.evidence.net_gain import OrderReading, net_gain, read_orders

EVIDENCE, SELECTOR = "evidence", "selector"
RULE = (
    "smaller decisive sets than evidence on more validation slides than larger ones, no loss of "
    "sufficiency; then the larger deletion area"
)


def choose_readout(
    backbone: Backbone,
    fitting: Cohort | None,
    settings: AuditSettings,
    selectors: Mapping[int, FittedSelector],
    progress: Progress,
) -> Readout | None:
    """The ranking that wins on the decided validation slides; no audited slide is read.

    See :func:`~foci.selectors.evidence.net_gain.net_gain` for the rule.

    Args:
        backbone: The frozen classifier.
        fitting: Slides with splits ``train`` and ``val``; None if no selector is fitted.
        settings: With ``readout``; whatever is not ``"auto"`` is taken as it is.
        selectors: The fitted selectors by seed; their mean rank is judged.
        progress: Progress bar over the validation slides.

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
    for slide in progress(fitting.split("val").slides, "choosing the readout"):
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
    gains = {name: net_gain(own, readings[EVIDENCE]) for name, own in readings.items()}
    chosen = SELECTOR if gains[SELECTOR] > gains[EVIDENCE] else EVIDENCE
    rows = [_row(name, own, readings[EVIDENCE], cases, settings) for name, own in readings.items()]
    return Readout(chosen=chosen, rule=RULE, n_slides=len(cases), rows=rows)


def with_readout(
    manifest: Manifest,
    backbone: Backbone,
    fitting: Cohort | None,
    selectors: Mapping[int, FittedSelector],
    progress: Progress,
    say: Callable[[str], None],
) -> Manifest:
    """The manifest with the readout settled; a run that goes on keeps its choice."""
    made = manifest.readout or choose_readout(
        backbone, fitting, manifest.settings, selectors, progress
    )
    if made is None:
        return manifest
    for line in in_words(made):
        say(line)
    settings = manifest.settings.model_copy(update={"readout": made.chosen})
    return manifest.model_copy(update={"readout": made, "settings": settings})


def in_words(readout: Readout | None) -> list[str]:
    """The choice as a sentence for terminal and report; none without one."""
    if readout is None:
        return []
    trained = next(row for row in readout.rows if row.ranking == SELECTOR)
    return [
        f"readout: {readout.chosen}, chosen on {readout.n_slides} decided validation slides; the "
        f"selector's decisive sets were smaller than those of evidence on {trained.fewer} of them "
        f"and larger on {trained.more}"
    ]


def _row(
    name: str,
    own: Sequence[OrderReading],
    base: Sequence[OrderReading],
    cases: Sequence[str],
    settings: AuditSettings,
) -> ReadoutRow:
    decisive, theirs = (np.array([r.decisive for r in group]) for group in (own, base))
    found = compare_orders(decisive, theirs, cases, n_boot=settings.n_boot, level=settings.level)
    enough = compare_orders(
        [r.msk for r in own], [r.msk for r in base], cases,
        n_boot=settings.n_boot, level=settings.level,
    )  # fmt: skip
    a, b = np.nan_to_num(decisive, nan=np.inf), np.nan_to_num(theirs, nan=np.inf)
    return ReadoutRow(
        ranking=name,
        decisive=float(np.median(a)),
        share=float(np.isfinite(a).mean()),
        fewer=int((a < b).sum()),
        more=int((a > b).sum()),
        d=found.d,
        low=found.low,
        high=found.high,
        d_sufficiency=enough.d,
        area=float(np.mean([0.0 if np.isnan(r.area) else r.area for r in own])),
    )
