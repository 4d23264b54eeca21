"""Fit the selectors of an audit: one per seed, each in its own folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci import selectors
from foci.audits.folder import seed_folder
from foci.audits.manifest import SelectorRecord
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.hashes import file_digest
from foci.selectors import FittedSelector
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.saved import METADATA, STATE, WEIGHTS, SelectorMetadata, read_metadata

_LOG = logging.getLogger(__name__)


def fit_selectors(
    backbone: Backbone,
    cohort: Cohort | None,
    settings: AuditSettings,
    folder: Path,
) -> dict[int, FittedSelector]:
    """Fit one selector per seed; load those that an earlier run has finished.

    Args:
        backbone: The frozen classifier.
        cohort: With splits ``train`` and ``val``, all readable; None where all are there already.
        settings: Recipe, fit target, seeds.
        folder: The audit folder.
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


# Take selectors that are fitted already, instead of fitting them in the audit.


@dataclass(frozen=True)
class PretrainedSelectors:
    """Fitted selectors, one per seed of the audit.

    Attributes:
        folders: By seed.
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
