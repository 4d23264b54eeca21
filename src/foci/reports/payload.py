"""The data that the page of an audit embeds: slide table, curves and pictures within byte limits.

:func:`payload` collects it. Slides are chosen by interest, numbers are cut to the digits that a
page shows, and tile positions, orders and curves are packed (:class:`SlideDetails`).
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from foci.audits import AuditedSlide, Curve, RankedTiles, StoredAudit, Summary
from foci.audits.folder import stored_columns
from foci.audits.measure import MeasuredSlides, Threshold
from foci.audits.records import Carried, RankingNumbers, plain
from foci.audits.settings import RANDOM, AuditSettings, View
from foci.metrics.curve import count_or_none, followed
from foci.metrics.inputs import Floats, Integers, defined_mean
from foci.reports.models import (
    COARSE,
    EXACT_P,
    FINE,
    AuditPayload,
    DrawnNumbers,
    Fate,
    Gallery,
    RandomBand,
    RankingColumns,
    RemovedCurve,
    SlideColumns,
    SlideDetail,
    SlideMap,
    SlideMeasures,
    TilePlacement,
    TissuePicture,
    ViewDetail,
    pack,
    pack_probabilities,
)
from foci.reports.text import plain_name
from foci.slides.find import THUMBNAILS, read_thumbnails
from foci.words import ANY_FLOAT

DETAIL_BYTES = 1_650_000
"""Limit for the slide table and the curves of single slides; page and script come on top."""

LEAST_BYTES = 300_000
"""Limit for the curves of single slides, even if the slide table takes all the rest."""

PICTURE_BYTES = 2_700_000
"""Limit for pictures of tissue, beside that for curves: a page with pictures stays below 6 MB."""

MAP_BYTES = 1_200_000
"""Aimed at for the maps of all slides: the more slides, the coarser their maps."""

COARSEST, FINEST_MAP, LEVELS = 24, 96, 15
"""Pixels along the longer side of a map, at least and at most, and levels of its tiles."""

MOST_MAPS = 10_000
"""Slides of which the gallery has the map; beyond, they are spread evenly from worst to best."""

_FRAME = 60
"""Bytes of JSON around a picture."""

FINEST = 12
"""Bits of a position: 1/4096 of the slide's longer side is finer than any screen."""

EXACT = 31
"""Bits of a position that can be magnified."""


def payload(
    audit: StoredAudit,
    summary: Summary,
    settings: AuditSettings,
    limit: int = DETAIL_BYTES,
    picture_limit: int = PICTURE_BYTES,
) -> AuditPayload:
    """Collect everything that the figures, the table and the slides of a page need.

    Args:
        audit: A finished audit.
        summary: Its numbers, at the threshold and budget of ``settings``.
        settings: Threshold and budget.
        limit: Bytes for the slide table and the curves of single slides; slides whose curves do
            not fit keep their row in the table.
        picture_limit: Bytes for pictures of the slides, on top of that.
    """
    measured = audit.measured(settings)
    packer = SlideDetails(measured, audit.slides, settings.kappa)
    # the measures of single slides stand in tables/slides.csv; the page shows those of its gallery
    slides = slide_columns(measured, audit.slides)
    detail_limit = max(limit - len(to_json(slides)), min(limit, LEAST_BYTES))
    details, gallery = _of_slides(audit, summary, packer, detail_limit, picture_limit)
    numbers = {
        view: {name: _drawn(numbers) for name, numbers in by_ranking.items()}
        for view, by_ranking in summary.views.items()
    }
    return cohort_payload(
        audit, summary, packer, slides, numbers=numbers, details=details, gallery=gallery
    )


def cohort_payload(
    audit: StoredAudit,
    summary: Summary,
    packer: SlideDetails,
    slides: SlideColumns,
    *,
    numbers: Mapping[View, dict[str, DrawnNumbers]] = MappingProxyType({}),
    details: Mapping[str, SlideDetail] = MappingProxyType({}),
    gallery: Gallery | None = None,
) -> AuditPayload:
    """The cohort and the table of its slides; in a report also what its figures and slides need."""
    return AuditPayload(
        classes=summary.classes,
        kappa=summary.kappa,
        k_max=summary.k_max,
        first_view=summary.first_view,
        rankings=[
            RankingColumns(name=name, columns=packer.columns_of(name)) for name in summary.rankings
        ],
        headline=packer.measured.headline,
        map=summary.map,
        map_called=plain_name(summary.map, audit.manifest),
        carried=drawn_chart(summary.carried),
        gallery=gallery,
        level=summary.level,
        n_cases=summary.n_cases,
        numbers=dict(numbers),
        ks=packer.ks.tolist(),
        slides=slides,
        details=dict(details),
    )


def drawn_chart(chart: Carried | None) -> Carried | None:
    """The chart with the digits that a page shows."""
    return None if chart is None else Carried.model_validate(rounded(chart.model_dump(), 5))


def _drawn(numbers: RankingNumbers) -> DrawnNumbers:
    content = numbers.model_dump(include=set(DrawnNumbers.model_fields))
    return DrawnNumbers.model_validate(rounded(content, 5))


def _of_slides(
    audit: StoredAudit,
    summary: Summary,
    packer: SlideDetails,
    detail_limit: int,
    picture_limit: int,
) -> tuple[dict[str, SlideDetail], Gallery]:
    """Pack the map of every slide, and the curves of the most interesting, as many as fit.

    A low estimate of their sizes decides which slides are packed, the true size which are kept.
    """
    measured, chart = packer.measured, summary.carried
    names = measured.curves.slide_ids
    gallery = slide_gallery(measured, summary)
    own = packer.columns_of(summary.map)[:1]
    best = packer.columns_of(chart.best)[:1] if chart is not None and chart.best else []
    wanted = list(dict.fromkeys([*gallery.first, *by_interest(measured.hardest_first)]))
    sizes = [packer.bytes_of(row) for row in range(len(names))]
    estimated = set(within_bytes(wanted, sizes, detail_limit)) if packer.columns else set()
    row_of = {name: row for row, name in enumerate(names)}
    side = map_side(min(MOST_MAPS, len(names)))
    counts = gallery.counts.get(summary.map, [None] * len(names))
    packed: dict[int, SlideDetail] = {}
    maps: list[SlideMap | None] = [None] * len(names)
    shown = np.linspace(0, len(names) - 1, min(MOST_MAPS, len(names))).astype(np.int64)
    mapped = {*gallery.first, *np.array(gallery.order)[shown].tolist()} if own else set()
    for tiles in audit.tiles():
        row = row_of[tiles.slide_id]
        if row in mapped:
            maps[row] = slide_map(tiles, own[0], packer.slides[tiles.slide_id], counts[row], side)
        if row in estimated:
            packed[row] = packer.pack(row, tiles, removed=[*own, *best])
    weights = {row: len(to_json(detail)) for row, detail in packed.items()}
    kept = [row for row in wanted if row in packed]
    kept = within_bytes(kept, weights, detail_limit) if kept else []
    seen = list(dict.fromkeys([*gallery.first, *gallery.order]))
    _add_tissue(maps, seen, packer.slides, names, audit.folder, picture_limit)
    details = {str(row): packed[row] for row in sorted(kept)}
    return details, gallery.model_copy(update={"maps": maps})


def slide_gallery(measured: MeasuredSlides, summary: Summary) -> Gallery:
    """Which slides the map's first tiles carry, and in which order slides are shown; no maps yet.

    Sure slides on which the map fails come first, then those that need many of its tiles, then
    the slides that the model is not sure of. The first four are spread evenly over the sure ones.
    """
    chart, slides, n = summary.carried, measured.slides, len(measured.slides)
    fate: list[Fate] = []
    if chart is None:
        every, fate = list(range(n)), ["not measured"] * n
        return Gallery(order=every, first=every[:4], fate=fate, counts={}, removed=[0] * n, maps=[])
    threshold = Threshold(chart.relative or summary.kappa, relative=chart.relative is not None)
    sure = threshold.decided(slides) & (slides.n_tiles > 1)
    counts = {}
    for name in dict.fromkeys((chart.map, chart.best or chart.map)):
        own = measured.of(name).with_decisive
        if own is not None:
            found = own.at("decisive_at", threshold)[0]
            counts[name] = [count_or_none(k) if sure[row] else None for row, k in enumerate(found)]
    seed = measured.of(chart.map).orders[0][1]
    removed = []
    for row, curve in enumerate(measured.curves.deletions(chart.map, seed)):
        tried = (curve.ks >= 1) & (curve.ks < curve.n_tiles)
        seen = followed(curve.probs[tried], int(measured.targets["prediction"][row]))
        removed.append(int(curve.ks[tried].max(initial=0)))
        fate.append(
            "not sure" if not sure[row]
            else "carried" if counts[chart.map][row] is not None
            else "survives" if seen.kept.all()
            else "not enough"
        )  # fmt: skip
    rank: dict[Fate, int] = {"survives": 0, "not enough": 1, "carried": 2}
    order = sorted(
        range(n), key=lambda row: (rank.get(fate[row], 3), -(counts[chart.map][row] or 0), row)
    )
    best_first = [row for row in reversed(order) if sure[row]] or order
    steps = np.linspace(0, len(best_first) - 1, min(4, len(best_first)))
    first = [best_first[round(step)] for step in steps]
    return Gallery(order=order, first=first, fate=fate, counts=counts, removed=removed, maps=[])


def map_side(n_slides: int) -> int:
    """Pixels along the longer side of a map; a pixel takes about two thirds of a byte.

    >>> map_side(60), map_side(1000), map_side(10_000)
    (96, 42, 24)
    """
    return int(np.clip(np.sqrt(1.5 * MAP_BYTES / n_slides), COARSEST, FINEST_MAP))


def slide_map(
    tiles: RankedTiles, column: str, slide: AuditedSlide, deciding: int | None, side: int
) -> SlideMap:
    """The map of one slide, one pixel per tile where that is not finer than ``side`` pixels.

    Tiles without positions lie in rows, one after the other.

    Args:
        tiles: The slide.
        column: The map among its scores.
        slide: Names the side of a tile, if it is known.
        deciding: How many of the first tiles carry the decision.
        side: Pixels along the longer side, at most.
    """
    n, coords = len(tiles), tiles.coords
    if coords is None:
        across = max(1, round(float(np.sqrt(1.5 * n))))
        coords, tile = np.stack([np.arange(n) % across, np.arange(n) // across], axis=1), 1
    else:
        tile = slide.patch_size or _spacing(coords - coords.min(axis=0))
    corner, extent = coords.min(axis=0), np.ptp(coords, axis=0) + tile
    pixels = min(1.0, side * tile / int(extent.max())) / tile
    width = max(1, round(float(extent[0] * pixels)))
    shades = map_raster(tiles.scores[column].astype(np.float64), coords, tile, width)
    levels = -(-shades.astype(np.int64) * LEVELS // TOP)
    if deciding:
        first = np.zeros(n)
        first[tiles.order(column)[:deciding]] = 1
        levels[map_raster(first, coords, tile, width) == TOP] += LEVELS + 1
    return SlideMap(
        width=width,
        levels=pack(levels.ravel(), LEVELS.bit_length() + 1),
        box=None
        if tiles.coords is None
        else (int(corner[0]), int(corner[1]), int(extent[0]), int(extent[1])),
    )


def _add_tissue(
    maps: list[SlideMap | None],
    order: Sequence[int],
    slides: Mapping[str, AuditedSlide],
    names: Sequence[str],
    folder: Path,
    limit: int,
) -> None:
    """Give maps the thumbnail of their slide, in this order, while they fit into the limit."""
    known = read_thumbnails(folder)
    for row in order:
        drawn, thumbnail = maps[row], known.get(names[row])
        if drawn is None or drawn.box is None or thumbnail is None:
            continue
        content = thumbnail.jpeg(folder / THUMBNAILS)
        if content is None or slides[names[row]].unit != "px":
            continue
        size = -(-len(content) // 3) * 4 + _FRAME
        if size <= limit:
            jpeg = base64.b64encode(content).decode("ascii")
            picture = TissuePicture(jpeg=jpeg, box=thumbnail.box)
            maps[row] = drawn.model_copy(update={"tissue": picture})
            limit -= size


def by_interest(hardest_first: Sequence[int] | NDArray[np.int64]) -> list[int]:
    """Order slides by interest: the hardest, the most compact and one in between, in turn.

    Those in between are the slides at the middle, the quarters, the eighths, ... of the list.

    >>> by_interest([10, 11, 12, 13, 14, 15, 16])
    [10, 16, 13, 11, 15, 12, 14]
    """
    ranked = [int(slide) for slide in hardest_first]
    turns = itertools.zip_longest(ranked, reversed(ranked), _spread(ranked))
    return list(dict.fromkeys(slide for turn in turns for slide in turn if slide is not None))


def within_bytes(
    slides: Sequence[int], sizes: Sequence[int] | Mapping[int, int], limit: int
) -> list[int]:
    """Take slides, in order of interest, while their bytes fit into the limit; at least one.

    >>> within_bytes([2, 0, 1], sizes=[40, 40, 40], limit=100)
    [0, 2]
    """
    totals = itertools.accumulate(sizes[slide] for slide in slides)
    fitting = sum(1 for total in totals if total <= limit)
    return sorted(slides[: max(fitting, 1)])


def _spread(ranked: Sequence[int]) -> Iterator[int]:
    """Slides at the middle, the quarters, the eighths, ... of the ranked list."""
    parts = 2
    while parts < 2 * len(ranked):
        yield from (ranked[len(ranked) * odd // parts] for odd in range(1, parts, 2))
        parts *= 2


def slide_columns(
    measured: MeasuredSlides,
    slides: Sequence[AuditedSlide],
    measures: Mapping[str, SlideMeasures] = MappingProxyType({}),
) -> SlideColumns:
    """Names, classes and tile counts of all slides, and their metrics where a page shows them."""
    table = measured.slides
    by_id = {slide.slide_id: slide for slide in slides}
    return SlideColumns(
        id=list(table.ids),
        case=[by_id[name].case_id for name in table.ids],
        label=[None if label < 0 else int(label) for label in table.labels],
        predicted=table.predictions.tolist(),
        p=rounded(table.sure, 5),
        n=table.n_tiles.tolist(),
        k_star=[by_id[name].k_star for name in table.ids],
        proof=[by_id[name].k_star_kind for name in table.ids],
        measures=dict(measures),
    )


def slide_measures(measured: MeasuredSlides) -> dict[str, SlideMeasures]:
    """Metrics of every ranking on every slide in the prediction view, averaged over its seeds."""

    def mean(values: Floats) -> list[float | None]:
        column: list[float | None] = rounded(defined_mean(values, axis=0), 5)
        return column

    found = {}
    for ranking in measured.curves.rankings:
        own = measured.of(ranking)
        decided = own.with_decisive
        decisive = np.full_like(own.restricted, np.nan) if decided is None else decided.decisive
        counted = decisive if decided is None else (~np.isnan(decisive)).astype(np.float64)
        found[ranking] = SlideMeasures(
            k=mean(own.restricted),
            reach=mean(own.reached),
            decisive=mean(decisive),
            found=mean(counted),
        )
    return found


class SlideDetails:
    """Pack slides of one audit: tile positions, orders and curves.

    Args:
        measured: Curves and metrics of every slide.
        slides: The audited slides.
        kappa: Operating confidence.
        complete: Keep every tile of the orders, exact positions and finer probabilities, for a
            reader that need not save bytes.
    """

    def __init__(
        self,
        measured: MeasuredSlides,
        slides: Sequence[AuditedSlide],
        kappa: float,
        *,
        complete: bool = False,
    ) -> None:
        self.measured = measured
        self.complete = complete
        self.slides = {slide.slide_id: slide for slide in slides}
        self.kappa = kappa
        self.columns = stored_columns(measured.curves)
        # counts of the longest curve; a slide with the same counts does not repeat them
        longest = measured.curves.get(*measured.curves.orders[0])
        self.ks = max((curve.ks for curve in longest), key=len)

    def columns_of(self, ranking: str) -> list[str]:
        """Columns of a ranking, one per seed; none for random orders."""
        return [name for name, (owner, _) in self.columns.items() if owner == ranking]

    def bytes_of(self, row: int) -> int:
        """Estimate the bytes of a packed slide, rather too low than too high."""
        n = int(self.measured.slides.n_tiles[row])
        steps = min(len(self.ks), n)
        curves = len(self.columns) * FINE + 3 * COARSE
        orders = len(self.columns) * max(n - 1, 1).bit_length()
        bits = steps * (curves * len(self._views(row)) + orders) + n * 2 * 5
        return bits // 6

    def pack(self, row: int, tiles: RankedTiles, removed: Sequence[str] = ()) -> SlideDetail:
        """Pack one slide: tile positions, orders, and curves in every view that differs.

        With ``removed``, also the slide without the first tiles of these columns.
        """
        slide = self.slides[tiles.slide_id]
        ks = self._counts(row)
        shared = np.array_equal(ks, self.ks[: len(ks)])
        all_kept = np.array_equal(tiles.tiles, np.arange(len(tiles)))
        finest = EXACT if self.complete else FINEST
        end = len(tiles) if self.complete else ks[-1]
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
            removed=self._removed(row, removed),
        )

    def _removed(self, row: int, columns: Sequence[str]) -> dict[str, RemovedCurve]:
        """The slide without the first tiles of some columns, where that was measured."""
        target, found = int(self.measured.targets["prediction"][row]), {}
        for name in columns:
            curves = self.measured.curves.deletions(*self.columns[name])
            if not curves:
                continue
            ks, probs = curves[row].ks, curves[row].probs
            tried = (ks >= 1) & (ks < curves[row].n_tiles)
            if not tried.any():
                continue
            ks, seen = ks[tried], followed(probs[tried], target)
            flips = ks[~seen.kept]
            found[name] = RemovedCurve(
                ks=None if np.array_equal(ks, np.arange(1, len(ks) + 1)) else pack(ks),
                p=pack_probabilities(seen.confidence, COARSE),
                flip=int(flips[0]) if len(flips) else None,
            )
        return found

    def _views(self, row: int) -> list[View]:
        """Views of a slide: prediction, and label if that is another class."""
        label = self.measured.slides.labels[row]
        differs = label >= 0 and label != self.measured.targets["prediction"][row]
        return ["prediction", "label"] if differs else ["prediction"]

    def _view(self, row: int, view: View) -> ViewDetail:
        target, own = int(self.measured.targets[view][row]), self.measured.tables[view]
        place = int(np.searchsorted(self.measured.rows(view), row))
        ks, bits = self._counts(row), EXACT_P if self.complete else FINE
        curves, msk, stable, falls_back = {}, {}, {}, {}
        for name, order in self.columns.items():
            at, curve = own.orders.index(order), self.measured.curves.get(*order)[row]
            curves[name] = pack_probabilities(_drawn_at(ks, curve, target), bits)
            msk[name] = count_or_none(own.msk[at, place])
            stable[name] = count_or_none(own.stable[at, place])
            falls_back[name] = falls_back_at(curve, target, self.kappa, msk[name])
        return ViewDetail(
            full=cut_to(float(self.measured.slides.full[row, target]), 5),
            curves=curves,
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
        counts = [self.measured.curves.get(*order)[row].ks for order in self.columns.values()]
        every: Integers = np.unique(np.concatenate(counts))
        return every


def falls_back_at(curve: Curve, target: int, kappa: float, first: int | None) -> int | None:
    """First count after the first sufficient one that does not suffice; None where all do."""
    if first is None:
        return None
    below = (curve.ks > first) & ~followed(curve.probs, target).sure(kappa)
    return int(curve.ks[below][0]) if below.any() else None


def _drawn_at(ks: Integers, curve: Curve, target: int) -> Floats:
    """A curve at the counts of its slide; a straight line where it has none of its own."""
    probs = followed(curve.probs, target).confidence
    return probs if np.array_equal(ks, curve.ks) else np.interp(ks, curve.ks, probs)


def place(coords: NDArray[np.int64], patch_size: int | None, finest: int = FINEST) -> TilePlacement:
    """Pack tile corners as whole steps from the top left; exact if the tiles lie on a lattice.

    Args:
        coords: ``[N, 2]`` top-left corners.
        patch_size: Side of a tile in the same unit; None for the most common spacing of tiles.
        finest: Bits that a position may take.

    Returns:
        Packed ``x`` and ``y``, the ``origin`` and ``step`` that give the corners back as
        ``origin + step * x``, the ``side`` of a tile in the unit of the corners, and whether
        this is ``exact``.

    >>> placed = place(np.array([[512, 0], [768, 256], [512, 512]]), patch_size=256)
    >>> placed.origin, placed.step, placed.side, placed.exact
    ((512, 0), 256, 256, True)
    """
    origin = coords.min(axis=0)
    offsets = coords - origin
    step = int(np.gcd.reduce(offsets, axis=None)) or (patch_size or 1)
    limit = (1 << finest) - 1
    exact = int(offsets.max()) // step <= limit
    if not exact:
        step = -(-int(offsets.max()) // limit)
    x, y = np.rint(offsets / step).astype(np.int64).T
    return TilePlacement(
        x=pack(x),
        y=pack(y),
        origin=(int(origin[0]), int(origin[1])),
        step=step,
        side=patch_size or _spacing(offsets),
        exact=exact,
    )


def _spacing(offsets: NDArray[np.int64]) -> int:
    """Most common distance between neighbouring columns or rows of tiles."""
    gaps = np.concatenate([np.diff(np.unique(axis)) for axis in offsets.T])
    if not len(gaps):
        return 1
    values, counts = np.unique(gaps, return_counts=True)
    return int(values[counts.argmax()])


def rounded(value: Any, digits: int) -> Any:
    """Shorten all numbers in nested lists and dictionaries; whole numbers become int.

    >>> rounded({"mean": [0.123456, 2.0, float("nan")]}, 3)
    {'mean': [0.123, 2, None]}
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    value = plain(value)
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        short = cut_to(value, digits)
        return int(short) if short.is_integer() else short
    return value


def cut_to(value: float, digits: int) -> float:
    """Cut a number to some decimals; rounding it to fewer gives what the full number gives.

    Rounding twice would not: 0.10046 becomes 0.1005, then 0.101. So the rest is cut off, and a last
    digit of 0 or 5 is raised by one to show that there was a rest.

    >>> cut_to(0.10046, 4), cut_to(0.92503, 3), cut_to(-0.1, 4)
    (0.1004, 0.926, -0.1)
    """
    full = Decimal(repr(value))
    step = Decimal(1).scaleb(-digits)
    cut = full.quantize(step, ROUND_DOWN, ANY_FLOAT)
    if cut != full and cut.as_tuple().digits[-1] in (0, 5):
        cut += step.copy_sign(full)
    return float(cut)


def to_json(data: BaseModel) -> str:
    """Serialise as compact JSON; whole numbers have no decimal point."""
    content = rounded(data.model_dump(mode="json"), 12)
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


TOP = 255
"""Grey value of the tile with the largest score; 0 is a pixel without a tile."""


def map_raster(
    scores: NDArray[np.float64], coords: NDArray[np.int64], tile_size: int, width: int
) -> NDArray[np.uint8]:
    """Draw the tiles of a slide into a picture, the most important the brightest.

    Only ranks are drawn, whatever the scale of the scores: brightness falls with the logarithm of
    the rank, so that the first tiles differ most, and equal scores are equally bright. Where
    several tiles fall into one pixel the most important is seen, so that no hot spot disappears,
    and a tile that is smaller than a pixel still fills one.

    Args:
        scores: ``[N]`` finite scores, the most important tile has the largest.
        coords: ``[N, 2]`` top-left corners x, y in any unit.
        tile_size: Side of a tile in the same unit.
        width: Pixels from the leftmost to the rightmost edge of the tiles; the height follows.

    Returns:
        ``[height, width]`` from 1 to 255, and 0 where no tile lies.

    >>> corners = np.array([[0, 0], [256, 0], [256, 256]])
    >>> map_raster(np.array([0.1, 0.7, 0.3]), corners, tile_size=256, width=2).tolist()
    [[1, 255], [0, 95]]
    """
    corners = coords - coords.min(axis=0)
    extent = corners.max(axis=0) + tile_size
    scale = width / extent[0]
    height = max(1, int(np.ceil(extent[1] * scale)))
    rank = 1 + len(scores) - np.searchsorted(np.sort(scores), scores, side="right")
    shade = np.rint(TOP - (TOP - 1) * np.log(rank) / np.log(max(len(scores), 2))).astype(np.uint8)
    first = np.floor(corners * scale + 1e-9).astype(np.int64)
    last = np.maximum(np.ceil((corners + tile_size) * scale - 1e-9).astype(np.int64), first + 1)
    picture = np.zeros((height, width), dtype=np.uint8)
    # all tiles at once, one offset within a tile at a time: a tile has few pixels
    wide, high = (last - first).max(axis=0)
    for down in range(int(high)):
        for right in range(int(wide)):
            inside = (first[:, 0] + right < last[:, 0]) & (first[:, 1] + down < last[:, 1])
            rows = np.minimum(first[inside, 1] + down, height - 1)
            columns = np.minimum(first[inside, 0] + right, width - 1)
            np.maximum.at(picture, (rows, columns), shade[inside])
    return picture
