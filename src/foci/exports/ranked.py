"""The first tiles of a slide under one ranking, with what the audit measured of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foci.audits import AuditedSlide, RankedTiles, StoredAudit
from foci.audits.annotations import Marks
from foci.audits.folder.names import column
from foci.errors import SlideError
from foci.exports.chosen import Column, count_of, measured_count
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class RankedColumn:
    r"""First K tiles of one ranking.

    Attributes:
        name: Ranking, with its seed.
        order: ``[K]`` positions in the bag.
        revealed: ``[K]`` probability of the predicted class from the tiles up to this one.
        delta_p: ``[K]`` :math:`\Delta p(r) = p(\text{full}) - p(\text{without the first } r)`.
        msk: Minimum Sufficient K; None where not reached.
        as_asked: False where the count asked for does not exist, and another was taken.

    Both arrays hold NaN at counts that the audit did not measure.
    """

    name: str
    order: NDArray[np.int64]
    revealed: NDArray[np.float64]
    delta_p: NDArray[np.float64]
    msk: int | None
    as_asked: bool

    def __len__(self) -> int:
        return len(self.order)


@dataclass(frozen=True, eq=False)
class RankedSlide:
    """One slide with its rankings.

    Attributes:
        slide: The audited slide.
        tiles: Its tiles and scores.
        columns: The rankings.
        predicted: Predicted class.
        p: Its probability on the full bag.
        witness: ``[N]`` bool, annotated tiles; None where nothing is annotated.
    """

    slide: AuditedSlide
    tiles: RankedTiles
    columns: tuple[RankedColumn, ...]
    predicted: str
    p: float
    witness: NDArray[np.bool_] | None

    @property
    def corners(self) -> NDArray[np.int64]:
        """``[N, 2]`` top-left corners in level-0 pixels; an error where there are none."""
        if self.tiles.coords is None or self.slide.unit != "px" or self.slide.patch_size is None:
            what = "has no tile positions in level-0 pixels"
            raise SlideError(self.slide.slide_id, what, "audit features that store coordinates")
        return self.tiles.coords

    @property
    def side(self) -> int:
        """Side of a tile in level-0 pixels."""
        return self.slide.patch_size or 1


def ranked_slides(
    audit: StoredAudit,
    slide_ids: Sequence[str],
    columns: Sequence[Column],
    k: str,
    marks: Marks | None = None,
) -> Iterator[RankedSlide]:
    """The slides, in the order of the audit.

    Args:
        audit: A finished audit.
        slide_ids: Slides.
        columns: Rankings.
        k: See :func:`foci.exports.chosen.count_of`.
        marks: Annotated tiles.
    """
    measured, wanted = audit.measured(), set(slide_ids)
    row_of = {name: row for row, name in enumerate(measured.curves.slide_ids)}
    by_id = {slide.slide_id: slide for slide in audit.slides}
    everyone = measured.views["prediction"]
    for tiles in audit.tiles(wanted):
        row = row_of[tiles.slide_id]
        target = int(everyone.targets[row])
        mask = None if marks is None else marks.get(tiles.slide_id)
        yield RankedSlide(
            slide=by_id[tiles.slide_id],
            tiles=tiles,
            columns=tuple(_column(audit, tiles, row, target, one, k) for one in columns),
            predicted=audit.manifest.classes[target],
            p=float(everyone.full[row, target]),
            witness=None if mask is None else mask[tiles.tiles],
        )


def _column(
    audit: StoredAudit, tiles: RankedTiles, row: int, target: int, chosen: Column, k: str
) -> RankedColumn:
    measured = audit.measured()
    count, as_asked = count_of(measured, row, chosen, k)
    name = column(*chosen)
    insert = measured.curves.get(*chosen)[row]
    delete = measured.curves.deletions(*chosen)
    full = insert.full[target]
    return RankedColumn(
        name=name,
        order=tiles.order(name)[:count],
        revealed=_at(insert, target, count),
        delta_p=full - _at(delete[row], target, count) if delete else np.full(count, np.nan),
        msk=measured_count(measured, row, chosen, "msk"),
        as_asked=as_asked,
    )


def _at(curve: Curve, target: int, count: int) -> NDArray[np.float64]:
    """Probability of the target at the counts 1 to ``count``; NaN where not measured."""
    values = np.full(count, np.nan)
    inside = (curve.ks >= 1) & (curve.ks <= count)
    values[curve.ks[inside] - 1] = curve.probs[inside, target]
    return values
