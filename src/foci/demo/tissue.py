"""Synthetic tissue map: coherent regions, with the witnesses inside the tumour."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.demo.connected import grow
from foci.demo.fields import smooth_field
from foci.demo.layout import Layout

KINDS = (
    "stroma",
    "fat",
    "lymphoid",
    "necrosis",
    "normal epithelium",
    "tumour",
    "pen",
    "fold",
)
"""What a tile can show; the last two are artefacts."""

TUMOUR, PEN, FOLD = (KINDS.index(kind) for kind in ("tumour", "pen", "fold"))

_FREQUENCY = np.array([0.7, 0.1, -0.2, -0.4, 0.1])
_REGION = 10.0
_TUMOUR_SHARE = (0.2, 0.4)
_WITNESS_SHARE = (0.02, 0.06)
_FEWEST_WITNESSES = 3
_DISTRACTOR_SHARE = 0.08
_ARTEFACTS = (2, 6)


@dataclass(frozen=True, eq=False)
class TissueMap:
    """What the tiles of one slide show.

    Attributes:
        kind: ``[N]`` int64, index into :data:`KINDS`.
        witness: ``[N]`` bool, the planted rationale: one connected cluster of tumour tiles.
        distractor: ``[N]`` bool, tumour tiles that hint at a class drawn at random.
    """

    kind: NDArray[np.int64]
    witness: NDArray[np.bool_]
    distractor: NDArray[np.bool_]


def map_tissue(rng: np.random.Generator, layout: Layout) -> TissueMap:
    r"""Assign a kind to every tile and choose witnesses, distractors and artefacts.

    - Benign tissue: :math:`\arg\max_t (f_t(u) + b_t)` over one smooth field per kind, with
      :math:`b_t` making stroma common and necrosis rare.
    - Tumour: 20 to 40 % of the tiles, grown in the largest piece from the peak of another field.
    - Witnesses: 2 to 6 % of the tiles, at least 3, grown around a random tumour tile.
    - Distractors: 8 % of the other tumour tiles, scattered.
    - Artefacts: 2 to 6 tiles anywhere but on witnesses and distractors, pen or fold.
    """
    n = len(layout)
    fields = [smooth_field(rng, layout.cells, _REGION) for _ in _FREQUENCY]
    kind = np.argmax(np.stack(fields, axis=1) + _FREQUENCY, axis=1)
    tumour = _tumour(rng, layout)
    kind[tumour] = TUMOUR
    witness = _witnesses(rng, layout, tumour)
    others = np.flatnonzero(tumour & ~witness)
    distractor = np.zeros(n, dtype=np.bool_)
    chosen = rng.choice(others, size=math.ceil(_DISTRACTOR_SHARE * len(others)), replace=False)
    distractor[chosen] = True
    free = np.flatnonzero(~witness & ~distractor)
    spoilt = rng.choice(free, size=rng.integers(*_ARTEFACTS, endpoint=True), replace=False)
    kind[spoilt] = rng.choice([PEN, FOLD], size=len(spoilt))
    return TissueMap(kind, witness, distractor)


def _tumour(rng: np.random.Generator, layout: Layout) -> NDArray[np.bool_]:
    largest = layout.piece == np.bincount(layout.piece).argmax()
    field = smooth_field(rng, layout.cells, 2 * _REGION)
    peak = int(np.argmax(np.where(largest, field, -np.inf)))
    size = round(rng.uniform(*_TUMOUR_SHARE) * len(layout))
    return grow(layout.touching, peak, field, size, largest)


def _witnesses(
    rng: np.random.Generator, layout: Layout, tumour: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    low, high = (share * len(layout) for share in _WITNESS_SHARE)
    size = int(rng.integers(max(_FEWEST_WITNESSES, math.ceil(low)), int(high), endpoint=True))
    seed = int(rng.choice(np.flatnonzero(tumour)))
    distance = np.hypot(*(layout.cells - layout.cells[seed]).T)
    return grow(layout.touching, seed, -distance, size, tumour)
