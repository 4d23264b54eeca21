"""The selectors of an audit, one per seed, and the readout that the validation slides choose.

A selector is fitted here, or given. The readout is the order that answers "which tiles?": evidence,
or the trained selector where it is clearly better.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from foci import selectors
from foci.audits.folder import seed_folder
from foci.audits.jobs import mean_rank
from foci.audits.manifest import Manifest, SelectorRecord
from foci.audits.records import AxisComparison, Measure, Readout, ReadoutRow
from foci.audits.settings import AUTO, EVIDENCE, SELECTOR, AuditSettings
from foci.backbones import Backbone
from foci.backbones.freezing import frozen
from foci.bags import Cohort
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.hashes import file_digest
from foci.progress import track
from foci.rankings import EmbeddedBag, Ranking, score
from foci.reveal import Revealer
from foci.selectors import FittedSelector
from foci.selectors.criterion import OrderReading, read_orders
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.saved import METADATA, STATE, WEIGHTS, SelectorMetadata, read_metadata

_LOG = logging.getLogger(__name__)

RULE = (
    "the selector only where it is clearly better than evidence on the decided validation slides: "
    "by decisive K or, where that is open, by the loss when its first tiles are deleted; never "
    "where it clearly needs more tiles to suffice. Clearly: the sign-flip test over patients "
    "rejects, the net share of slides is at least 0.1, and the selector needs at least a tenth "
    "fewer tiles. Otherwise evidence, which needs no training"
)


def fit(
    backbone: Backbone,
    fitting: Cohort | None,
    settings: AuditSettings,
    pretrained: PretrainedSelectors | None,
    folder: Path,
    manifest: Manifest,
) -> tuple[dict[int, FittedSelector], Manifest]:
    """The selectors by seed, and the manifest with the readout; what a run has done is kept."""
    if pretrained is not None:
        pretrained.place(folder)
    fitted: dict[int, FittedSelector] = {}
    if pretrained is not None or fitting is not None:
        fitted = fit_selectors(backbone, fitting, settings, folder)
    for note in on_fitting(fitted):
        _LOG.info("note: %s", note)
    readout = manifest.readout or choose_readout(backbone, fitting, manifest.settings, fitted)
    if readout is None:
        return fitted, manifest
    for line in in_words(readout):
        _LOG.info(line)
    chosen = manifest.settings.model_copy(update={"readout": readout.chosen})
    return fitted, manifest.model_copy(update={"readout": readout, "settings": chosen})


def fit_selectors(
    backbone: Backbone,
    cohort: Cohort | None,
    settings: AuditSettings,
    folder: Path,
) -> dict[int, FittedSelector]:
    """Fit one selector per seed; load those that are there already, or all without a cohort."""
    fitted: dict[int, FittedSelector] = {}
    criterion = settings.chosen_by
    for seed in settings.seeds:
        own = seed_folder(folder, seed)
        if cohort is None or (own / METADATA).exists():
            fitted[seed] = selectors.load(own, backbone)
            (own / STATE).unlink(missing_ok=True)  # of a fit that was killed at its very end
            continue
        fitted[seed] = selectors.fit(
            backbone,
            cohort,
            settings.plan,
            seed=seed,
            target=settings.fitted_for,
            out=own,
            criterion=criterion,
            memory_gb=settings.memory_gb,
        )
        _LOG.info("selector of seed %d: %s", seed, _result(fitted[seed], criterion))
    return fitted


def on_fitting(fitted: Mapping[int, FittedSelector]) -> list[str]:
    """Notes on the fitted selectors, without duplicates."""
    return list(dict.fromkeys(note for selector in fitted.values() for note in selector.notes))


def described(fitted: FittedSelector, folder: Path) -> SelectorRecord:
    """Describe a fitted selector for the manifest."""
    weights = (seed_folder(folder, fitted.seed) / WEIGHTS).read_bytes()
    return SelectorRecord(
        seed=fitted.seed,
        site=fitted.site,
        recipe=fitted.recipe.name,
        best_epoch=fitted.best_epoch,
        weights_sha256=hashlib.sha256(weights).hexdigest(),
    )


def _result(fitted: FittedSelector, chosen_by: str) -> str:
    if not fitted.best_epoch:
        return f"{fitted.recipe.name}, no epoch of {len(fitted.history)} was better than its start"
    best = fitted.history[fitted.best_epoch - 1]
    score = {
        "aukc": f"validation AUKC {best.score:.3f}",
        "decisive": f"net gain over evidence {best.score:+.3f} on validation slides",
        "loss": f"validation loss {best.val_loss:.3f}",
    }[chosen_by]
    return f"{fitted.recipe.name}, best epoch {best.epoch} of {len(fitted.history)}, {score}"


@dataclass(frozen=True)
class PretrainedSelectors:
    """Fitted selectors, one per seed of the audit.

    Attributes:
        hashes: SHA-256 of the weights, by seed as text; they stand in the key of the run.
    """

    folders: Mapping[int, Path]
    hashes: Mapping[str, str]

    @classmethod
    def read(
        cls, folders: Sequence[Path], backbone: Backbone, settings: AuditSettings
    ) -> PretrainedSelectors | None:
        """Check that the selectors are of this classifier and these settings; None without any.

        Raises:
            FociError: If one is of another classifier, recipe, target or seed, or one is missing.
        """
        if not folders:
            return None
        found: dict[int, Path] = {}
        for folder in folders:
            metadata = read_metadata(folder / METADATA)
            metadata.backbone.check(backbone)
            _check(folder, metadata, settings)
            found[metadata.seed] = folder
        missing = [seed for seed in settings.seeds if seed not in found]
        if missing:
            what = f"no selector of seed {missing[0]} was given"
            raise FociError("selectors", what, "fit it, or leave the seed out")
        hashes = {str(seed): file_digest(found[seed] / WEIGHTS) for seed in settings.seeds}
        return cls({seed: found[seed] for seed in settings.seeds}, hashes)

    def place(self, audit: Path) -> None:
        """Copy the selectors into an audit folder, so that it stands on its own."""
        for seed, folder in self.folders.items():
            own = seed_folder(audit, seed)
            own.mkdir(parents=True, exist_ok=True)
            for name in (WEIGHTS, METADATA):  # the weights first: with METADATA it is complete
                write_whole(own / name, (folder / name).read_bytes())


def _check(folder: Path, metadata: SelectorMetadata, settings: AuditSettings) -> None:
    if _decided(metadata.recipe) != _decided(settings.plan):
        what = f"was fitted with the recipe {metadata.recipe.name}, not {settings.plan.name}"
        raise FociError(folder, what, "give its recipe, or fit it again")
    if metadata.target != settings.fitted_for:
        what = f"was fitted for the {metadata.target}, not the {settings.fitted_for}"
        raise FociError(folder, what, "give its fit_target, or fit it again")
    if metadata.seed not in settings.seeds:
        what = f"is of seed {metadata.seed}, which is not among {list(settings.seeds)}"
        raise FociError(folder, what, "give its seed in the settings")


def _decided(recipe: SelectorRecipe) -> dict[str, Any]:
    """The settings of a recipe without its name, which a variation writes in its own way."""
    own = recipe.hash_fields()
    return {name: value for name, value in own.items() if name not in ("name", "note")}


# The readout


def choose_readout(
    backbone: Backbone,
    fitting: Cohort | None,
    settings: AuditSettings,
    selectors: Mapping[int, FittedSelector],
) -> Readout | None:
    """The ranking that wins on the decided validation slides; no audited slide is read.

    See :func:`selector_wins` for the rule. None where there is nothing to choose from.
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
    settings: AuditSettings,
) -> Readout:
    """Choose by the numbers of the same slides under both orders."""
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
    tiles that suffice forbids the selector. A gain must have a size. The simpler order wins
    whatever stays open.
    """
    found = {measure: one.evidence for measure, one in by_measure.items()}
    decisive, area = found["decisive K"], found.get("deletion area")
    if found["MSK"].clearly_worse or decisive.clearly_worse:
        return False
    if decisive.result == "better":
        return decisive.clearly_better and decisive.sized
    return area is not None and area.clearly_better and area.sized


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
    settings: AuditSettings,
) -> list[AxisComparison]:
    """Both orders by decisive K, deletion area and MSK; no area where no slide has one."""
    how = {"cases": cases, **settings.drawn}
    decisive, area, enough = (
        ([getattr(r, name) for r in own], [getattr(r, name) for r in base])
        for name in ("decisive", "area", "msk")
    )
    loss = AxisComparison.of("necessity", "deletion area", *area, **how)
    return [
        AxisComparison.of("necessity", "decisive K", *decisive, **how),
        *([loss] if loss.n_slides else []),
        AxisComparison.of("sufficiency", "MSK", *enough, **how),
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
