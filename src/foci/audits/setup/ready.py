"""Take selectors that are fitted already, instead of fitting them in the audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foci.audits.folder.names import seed_folder
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.digest import file_digest
from foci.selectors.metadata import SelectorMetadata, read_metadata
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.saved import METADATA, WEIGHTS


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
    own = recipe.decided_by()
    return {name: value for name, value in own.items() if name not in ("name", "note")}
