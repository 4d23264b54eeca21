"""Fit the selectors of an audit: one per seed, each in its own folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from foci import selectors
from foci.audits.folder.manifest import SelectorRecord
from foci.audits.folder.names import seed_folder
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.progress import Progress
from foci.selectors import FittedSelector
from foci.selectors.saved import METADATA, STATE, WEIGHTS


def fit_selectors(
    backbone: Backbone,
    cohort: Cohort | None,
    settings: AuditSettings,
    folder: Path,
    *,
    progress: Progress,
    say: Callable[[str], None],
) -> dict[int, FittedSelector]:
    """Fit one selector per seed; load those that an earlier run has finished.

    Args:
        backbone: The frozen classifier.
        cohort: With splits ``train`` and ``val``, all readable; None where all are there already.
        settings: Recipe, fit target, seeds.
        folder: The audit folder.
        progress: Progress bar over the steps of an epoch.
        say: Called with one line per selector.
    """
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
            progress=progress,
        )
        say(f"selector of seed {seed}: {_result(fitted[seed], criterion)}")
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
