"""What stands behind the numbers of one audit: slides, tiles, encoder, model, settings."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from foci.audits import StoredAudit
from foci.audits.analysis.slides.views import ViewSlides
from foci.metrics.inputs import Floats

KEPT = 32


@dataclass(frozen=True, eq=False)
class AuditFacts:
    """Facts of one audit that tables and their headers state.

    Attributes:
        n_slides: Audited slides.
        n_cases: Their patients.
        median_tiles: Median number of candidate tiles.
        share_of_32: Mean share of a bag that its first 32 tiles are.
        whole_at_32: Share of slides that have at most 32 tiles.
        encoder: Tile encoder that most feature files name; None if none does.
        fingerprint: Hash of the classifier's weights.
        full: Full-bag probabilities ``[S, C]``, in the order of the slides.
        slides: Names of the slides.
        classes: Class names.
        recipe: Of the selector.
        kappa: Operating confidence.
        k_max: Largest reveal count.
        epoch: Epoch of the selector that was kept; None without a selector.
    """

    n_slides: int
    n_cases: int
    median_tiles: float
    share_of_32: float
    whole_at_32: float
    encoder: str | None
    fingerprint: str | None
    full: Floats
    slides: tuple[str, ...]
    classes: tuple[str, ...]
    recipe: str
    kappa: float
    k_max: int
    epoch: int | None


def facts_of(audit: StoredAudit, slides: ViewSlides) -> AuditFacts:
    """Collect them."""
    manifest = audit.manifest
    named = Counter(slide.encoder for slide in audit.slides if slide.encoder is not None)
    selectors = manifest.selectors
    return AuditFacts(
        n_slides=len(slides),
        n_cases=len(set(slides.cases)),
        median_tiles=float(np.median(slides.n_tiles)),
        share_of_32=float((np.minimum(slides.n_tiles, KEPT) / slides.n_tiles).mean()),
        whole_at_32=float((slides.n_tiles <= KEPT).mean()),
        encoder=named.most_common(1)[0][0] if named else None,
        fingerprint=manifest.backbone.fingerprint,
        full=slides.full,
        slides=audit.curves.slide_ids,
        classes=tuple(manifest.classes),
        recipe=manifest.settings.recipe,
        kappa=manifest.settings.kappa,
        k_max=manifest.settings.k_max,
        epoch=selectors[0].best_epoch if selectors else None,
    )
