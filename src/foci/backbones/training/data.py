"""Describe the features of a training split: encoder, layout, tile size, fingerprints."""

from __future__ import annotations

from collections import Counter

from foci.backbones.saved import TrainingData
from foci.bags import Cohort


def training_data(cohort: Cohort) -> TrainingData:
    """Read every bag of a training split once more, for ``backbone.json``.

    Args:
        cohort: The slides that the model was trained on, all readable.
    """
    encoders, layouts, sizes = Counter[str](), Counter[str](), Counter[str]()
    fingerprints, width = {}, 0
    for bag in cohort.bags():
        origin = bag.provenance
        encoders.update([origin.encoder] if origin.encoder else [])
        layouts.update([origin.layout])
        sizes.update([f"{bag.patch_size} {bag.unit}"] if bag.patch_size else [])
        fingerprints[bag.slide_id] = bag.fingerprint()
        width = bag.width
    return TrainingData(
        width=width,
        encoders=dict(encoders),
        layouts=dict(layouts),
        tile_sizes=dict(sizes),
        fingerprints=fingerprints,
    )
