"""Pack the curves and tile orders of single slides for the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from foci.audits import AuditedSlide, Curve, RankedTiles
from foci.audits.analysis.slides.per_slide import MeasuredSlides
from foci.audits.folder.names import column
from foci.audits.settings import View
from foci.metrics.curve.sufficiency import sufficient_steps
from foci.metrics.inputs import Floats, Integers
from foci.reports.data.models import RandomBand, SlideDetail, ViewDetail
from foci.reports.data.packing import COARSE, EXACT_P, FINE, pack, pack_probabilities
from foci.reports.data.placement import EXACT, FINEST, place
from foci.reports.data.rounding import cut_to

RANDOM = "random"


class SlideDetails:
    """Pack slides of one audit: tile positions, orders and curves.

    Args:
        measured: Curves and metrics of every slide.
        slides: The audited slides.
        ks: Counts of the longest curve; a slide with the same counts does not repeat them.
        kappa: Operating confidence.
        whole: Keep every tile of the orders, exact positions and finer probabilities, for a
            reader that need not save bytes.
    """

    def __init__(
        self,
        measured: MeasuredSlides,
        slides: Sequence[AuditedSlide],
        ks: Integers,
        kappa: float,
        *,
        whole: bool = False,
    ) -> None:
        self.measured = measured
        self.whole = whole
        self.slides = {slide.slide_id: slide for slide in slides}
        self.ks = ks
        self.kappa = kappa
        self.columns = dict(_ordered(measured))

    def columns_of(self, ranking: str) -> list[str]:
        """Columns of a ranking, one per seed; none for random orders."""
        return [name for name, (owner, _) in self.columns.items() if owner == ranking]

    def bytes_of(self, row: int) -> int:
        """Estimate the bytes of a packed slide, rather too low than too high."""
        n = int(self.measured.views["prediction"].n_tiles[row])
        steps = min(len(self.ks), n)
        curves = len(self.columns) * FINE + 3 * COARSE
        orders = len(self.columns) * max(n - 1, 1).bit_length()
        bits = steps * (curves * len(self._views(row)) + orders) + n * 2 * 5
        return bits // 6

    def pack(self, row: int, tiles: RankedTiles) -> SlideDetail:
        """Pack one slide: tile positions, orders, and curves in every view that differs."""
        slide = self.slides[tiles.slide_id]
        ks = self._counts(row)
        shared = np.array_equal(ks, self.ks[: len(ks)])
        all_kept = np.array_equal(tiles.tiles, np.arange(len(tiles)))
        finest = EXACT if self.whole else FINEST
        end = len(tiles) if self.whole else ks[-1]
        return SlideDetail(
            ks=None if shared else ks.tolist(),
            unit=slide.unit,
            placement=(
                None if tiles.coords is None else place(tiles.coords, slide.patch_size, finest)
            ),
            tiles=None if all_kept else pack(tiles.tiles),
            orders={
                name: pack(tiles.order(name)[:end], max(len(tiles) - 1, 1).bit_length())
                for name in self.columns
                if name in tiles.scores
            },
            views={view: self._view(row, view) for view in self._views(row)},
        )

    def _views(self, row: int) -> list[View]:
        """Views of a slide: prediction, and label if that is another class."""
        everyone = self.measured.views["prediction"]
        label = everyone.labels[row]
        differs = label >= 0 and label != everyone.targets[row]
        return ["prediction", "label"] if differs else ["prediction"]

    def _view(self, row: int, view: View) -> ViewDetail:
        group = self.measured.views[view]
        place = int(np.flatnonzero(group.rows == row)[0])
        target = int(group.targets[place])
        msk, stable, falls_back = {}, {}, {}
        for name, (ranking, seed) in self.columns.items():
            at = self.measured.curves.seeds(ranking).index(seed)
            own = self.measured.metrics[view][ranking]
            msk[name] = _whole(own.msk[at, place])
            stable[name] = _whole(own.stable[at, place])
            falls_back[name] = falls_back_at(
                self._curve(row, ranking, seed), target, self.kappa, msk[name]
            )
        ks, bits = self._counts(row), EXACT_P if self.whole else FINE
        return ViewDetail(
            full=cut_to(float(group.full[place, target]), 5),
            curves={
                name: pack_probabilities(
                    _drawn_at(ks, self._curve(row, ranking, seed), target), bits
                )
                for name, (ranking, seed) in self.columns.items()
            },
            random=self._band(row, target, ks),
            msk=msk,
            stable=stable,
            falls_back=falls_back,
        )

    def _band(self, row: int, target: int, ks: Integers) -> RandomBand | None:
        if RANDOM not in self.measured.curves.rankings:
            return None
        orders: Floats = np.stack(
            [_drawn_at(ks, own[row], target) for own in self.measured.curves.every_seed(RANDOM)]
        )
        return RandomBand(
            low=pack_probabilities(orders.min(axis=0), COARSE),
            mean=pack_probabilities(orders.mean(axis=0), COARSE),
            high=pack_probabilities(orders.max(axis=0), COARSE),
        )

    def _counts(self, row: int) -> Integers:
        """Every count at which one of the drawn columns was computed on the slide."""
        counts = [self._curve(row, ranking, seed).ks for ranking, seed in self.columns.values()]
        every: Integers = np.unique(np.concatenate(counts))
        return every

    def _curve(self, row: int, ranking: str, seed: int | None) -> Curve:
        return self.measured.curves.get(ranking, seed)[row]


def falls_back_at(curve: Curve, target: int, kappa: float, first: int | None) -> int | None:
    """First count after the first sufficient one that does not suffice; None where all do."""
    if first is None:
        return None
    lost = (curve.ks > first) & ~sufficient_steps(curve.probs, target, kappa)
    return int(curve.ks[lost][0]) if lost.any() else None


def _whole(count: float) -> int | None:
    return None if np.isnan(count) else int(count)


def _drawn_at(ks: Integers, curve: Curve, target: int) -> Floats:
    """A curve at the counts of its slide; a straight line where it has none of its own."""
    probs = curve.probs[:, target]
    return probs if np.array_equal(ks, curve.ks) else np.interp(ks, curve.ks, probs)


def _ordered(measured: MeasuredSlides) -> Iterator[tuple[str, tuple[str, int | None]]]:
    """Columns of the rankings whose orders are stored, one per seed."""
    for ranking in measured.curves.rankings:
        if ranking != RANDOM:
            for seed in measured.curves.seeds(ranking):
                yield column(ranking, seed), (ranking, seed)
