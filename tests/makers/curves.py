"""Curve tables made by hand: every slide becomes sufficient at a count that is written down."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from foci.audits import AuditedSlide, Curve, CurveTable, RankedTiles
from foci.audits.folder import column
from foci.audits.measure import measure_slides
from foci.audits.numbers import mean_agreement, pair_agreement, summarise
from foci.audits.records import PairAgreement, Summary
from foci.audits.settings import AuditSettings, null_counts
from foci.rankings import NULL_MAPS

CLASSES = ("benign", "tumour")
DELETION = (1, 2, 4, 8, 16, 32, 64, 128, 256)
Counts = Mapping[str, Sequence[Sequence[int | None]]]
"""For every ranking and seed the MSK of every slide; None where it is not reached."""


class Settings(AuditSettings):
    """Of an audit with few draws, and no thresholds beside its own."""

    kappas: tuple[float, ...] = Field(default=(), validate_default=True)
    n_boot: int = 200


def curve(
    slide: str,
    ranking: str,
    seed: int | None,
    count: int | None,
    *,
    n_tiles: int = 500,
    target: int = 1,
    k_max: int = 256,
    low: float = 0.6,
    high: float = 0.95,
    full: float = 0.95,
) -> Curve:
    """Two classes; the target has ``low`` before the count and ``high`` from there on."""
    ks = np.arange(1, min(k_max, n_tiles) + 1)
    p = np.full(len(ks), low) if count is None else np.where(ks >= count, high, low)
    return Curve(slide, ranking, seed, "insert", n_tiles, ks, two(p, target), two(full, target))


def deleted(
    slide: str,
    ranking: str,
    seed: int | None,
    drop: float,
    *,
    n_tiles: int = 500,
    target: int = 1,
) -> Curve:
    """The target loses ``drop * K / 256`` when the top K tiles are gone."""
    ks = np.array([k for k in DELETION if k < n_tiles], dtype=np.int64)
    p = 0.95 - drop * ks / 256
    whole = two(0.95, target)
    return Curve(slide, ranking, seed, "delete", n_tiles, ks, two(p, target), whole)


def two(p: float | NDArray[np.float64], target: int) -> NDArray[np.float64]:
    """Probabilities of two classes from that of the target."""
    values = np.asarray(p, dtype=np.float64)
    pair = (1 - values, values) if target == 1 else (values, 1 - values)
    return np.stack(pair, axis=-1)


def table(
    counts: Counts,
    *,
    n_tiles: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
    drops: Mapping[str, float] | None = None,
    k_max: int = 256,
) -> CurveTable:
    """Curves of every ranking, seed and slide ``s0``, ``s1``, ..."""
    n_slides = len(next(iter(counts.values()))[0])
    sizes, followed = n_tiles or [500] * n_slides, targets or [1] * n_slides
    curves = []
    for ranking, seeds in counts.items():
        alone = len(seeds) == 1 and ranking not in ("random", "selector")
        for number, slides in enumerate(seeds):
            seed = None if alone else number
            for i, count in enumerate(slides):
                size, target = sizes[i], followed[i]
                name = f"s{i}"
                curves.append(
                    curve(name, ranking, seed, count, n_tiles=size, target=target, k_max=k_max)
                )
                drop = (drops or {}).get(ranking, 0.0)
                curves.append(deleted(name, ranking, seed, drop, n_tiles=size, target=target))
    return CurveTable.of(curves)


def slides(
    cases: Sequence[str], labels: Sequence[str | None], n_tiles: Sequence[int] | None = None
) -> list[AuditedSlide]:
    """The slides of :func:`table`."""
    sizes = n_tiles or [500] * len(cases)
    return [
        AuditedSlide(f"s{i}", case, label, size, size)
        for i, (case, label, size) in enumerate(zip(cases, labels, sizes, strict=True))
    ]


def tiles(curves: CurveTable, seed: int = 0) -> list[RankedTiles]:
    """Scores of every ranking but random, drawn."""
    rng = np.random.default_rng(seed)
    first = curves.rankings[0]
    found = []
    for one in curves.get(first, curves.seeds(first)[0]):
        scores = {
            column(name, s): rng.random(one.n_tiles)
            for name in curves.rankings
            if name != "random"
            for s in curves.seeds(name)
        }
        found.append(RankedTiles(one.slide_id, np.arange(one.n_tiles), None, scores))
    return found


def agreement(curves: CurveTable, tiles: Iterable[RankedTiles]) -> list[PairAgreement]:
    """Mean of :func:`pair_agreement` over slides."""
    columns = {
        ranking: [column(ranking, seed) for seed in curves.seeds(ranking)]
        for ranking in curves.rankings
    }
    found: dict[tuple[str, str], list[list[float]]] = {}
    for slide in tiles:
        for pair, values in pair_agreement(slide, columns).items():
            found.setdefault(pair, []).append(values)
    return mean_agreement({pair: np.array(values) for pair, values in found.items()})


def summary_of(
    counts: Counts,
    cases: Sequence[str],
    labels: Sequence[str | None],
    settings: Settings = Settings(),  # noqa: B008
    **how: Any,
) -> Summary:
    """The summary of :func:`table`."""
    curves = table(counts, **how)
    known = slides(cases, labels, how.get("n_tiles"))
    return summarised(curves, known, CLASSES, settings, tiles(curves))


def flipping(
    slide: str,
    ranking: str,
    seed: int | None,
    flip: int | None,
    *,
    n_tiles: int = 500,
    target: int = 1,
    k_max: int = 256,
    full: float = 0.95,
) -> Curve:
    """Deletion at every count: the target keeps ``full`` before the flip and has 0.1 from there."""
    ks = np.arange(1, min(k_max, n_tiles - 1) + 1)
    p = np.full(len(ks), full) if flip is None else np.where(ks >= flip, 0.1, full)
    return Curve(slide, ranking, seed, "delete", n_tiles, ks, two(p, target), two(full, target))


Pair = tuple[int | None, int | None]
"""MSK, and the count whose deletion flips the decision; None where there is none."""


NULLS = (None,) * 141
"""Under 139 content-free maps, and the two that stand beside them, no decision ever flips."""


def content_free(
    slide: str,
    flips: Sequence[int | None] = NULLS,
    *,
    n_tiles: int = 500,
    target: int = 1,
    full: float = 0.95,
) -> Curve:
    """Deletion under content-free maps, as in :func:`flipping`; without any, not sampled."""
    ks = np.array(
        [k for k in np.unique(null_counts(n_tiles)).tolist() if k and flips], dtype=np.int64
    )
    p = [np.where(ks >= (flip or np.inf), 0.1, full) for flip in flips] or [ks]
    whole = two(full, target)
    return Curve(
        slide, NULL_MAPS, None, "delete", n_tiles, ks, two(np.concatenate(p), target), whole
    )


def rationale_table(
    pairs: Mapping[str, Sequence[Pair]],
    *,
    targets: Sequence[int] | None = None,
    full: Sequence[float] | None = None,
    n_tiles: int | Sequence[int] = 500,
    k_max: int = 256,
    nulls: Sequence[Sequence[int | None]] | None = None,
    tied: Mapping[str, Sequence[float]] | None = None,
) -> CurveTable:
    """Curves with chosen MSK and flips of every slide, all counts in both directions.

    Args:
        pairs: By ranking.
        targets: Class of every slide.
        full: Its confidence.
        n_tiles: Tiles of every slide.
        k_max: Largest count.
        nulls: Flips of every slide under every content-free map; :data:`NULLS` where None is given,
            and no such maps where the list is empty.
        tied: Share of the first tiles of every slide that are tied, by ranking.
    """
    n_slides = len(next(iter(pairs.values())))
    followed, sure = targets or [1] * n_slides, full or [0.95] * n_slides
    sizes = [n_tiles] * n_slides if isinstance(n_tiles, int) else n_tiles
    curves = []
    for ranking, slides_ in pairs.items():
        seed = 0 if ranking in ("random", "selector") else None
        shares = (tied or {}).get(ranking, [0.0] * n_slides)
        for i, (count, flip) in enumerate(slides_):
            how = {"n_tiles": sizes[i], "target": followed[i], "k_max": k_max, "full": sure[i]}
            high = 0.95 if sure[i] >= 0.9 else sure[i]
            both = (
                curve(f"s{i}", ranking, seed, count, low=min(0.6, high), high=high, **how),
                flipping(f"s{i}", ranking, seed, flip, **how),
            )
            curves += [replace(one, tied=shares[i], searched=sizes[i] - 1) for one in both]
    for i, flips in enumerate([NULLS] * n_slides if nulls is None else nulls):
        curves.append(
            content_free(f"s{i}", flips, n_tiles=sizes[i], target=followed[i], full=sure[i])
        )
    return CurveTable.of(curves)


def summarised(
    curves: CurveTable,
    known: Sequence[AuditedSlide],
    classes: Sequence[str],
    settings: AuditSettings,
    scores: Iterable[RankedTiles],
    n_skipped: int = 0,
) -> Summary:
    """Slides measured and summarised."""
    measured = measure_slides(curves, known, classes, settings)
    return summarise(measured, curves, classes, settings, agreement(curves, scores), n_skipped)


def random_table(seed: int, n_slides: int, n_classes: int) -> CurveTable:
    """Curves that jump about, of slides with very different numbers of tiles."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 17, 33, 40, 120, 300], n_slides)
    full = rng.dirichlet(np.ones(n_classes), n_slides)
    curves = []
    seeds: dict[str, list[int | None]] = {
        "native": [None], "selector": [0, 1, 2], "random": [0, 1], "greedy-insertion": [None],
    }  # fmt: skip
    for ranking, drawn in seeds.items():
        for s in drawn:
            for i, n in enumerate(sizes):
                ks = np.arange(1, min(60, n) + 1)
                walk = rng.dirichlet(np.full(n_classes, 0.3), len(ks))
                curves.append(Curve(f"s{i}", ranking, s, "insert", int(n), ks, walk, full[i]))
                gone = np.array([k for k in DELETION if k < n], dtype=np.int64)
                left = rng.dirichlet(np.ones(n_classes), len(gone)).reshape(-1, n_classes)
                curves.append(Curve(f"s{i}", ranking, s, "delete", int(n), gone, left, full[i]))
    return CurveTable.of(curves)
