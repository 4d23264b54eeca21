"""Bag, the tile features and coordinates of one slide; and Slide, its row in a cohort."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from foci.errors import BagError, CohortError

if TYPE_CHECKING:
    from torch import Tensor

Unit = Literal["px", "um", "grid"]
"""Level-0 pixels; micrometres where the slide's resolution is unknown; or bare grid indices."""

FINGERPRINT_TILES, FINGERPRINT_COLUMNS = 16, 64


@dataclass(frozen=True)
class Provenance:
    """Where the features of a bag come from.

    Attributes:
        layout: Name of the reader, or ``"memory"``.
        path: The feature file.
        encoder: Tile encoder, where the file says so.
        notes: What the reader had to assume or leave open, in plain sentences.
        misplaced: Why coordinates seem to be of another order than features, or None.
    """

    layout: str = "memory"
    path: Path | None = None
    encoder: str | None = None
    notes: tuple[str, ...] = ()
    misplaced: str | None = None


@dataclass(frozen=True, eq=False)
class Bag:
    """Tile features and coordinates of one slide.

    Attributes:
        slide_id: Always a string.
        features: ``[N, D]`` float32.
        coords: ``[N, 2]`` int64, top-left corner (x, y) of each tile, or None.
        unit: What ``coords`` and ``patch_size`` are measured in.
        patch_size: Side of a tile in the same unit, or None.
        patch_size_inferred: True if ``patch_size`` was estimated from the spacing of the tiles.
        kept: ``[N]`` int64, index in the file of each tile that a pre-filter kept; None means all.
        n_in_file: Number of tiles in the file, where a pre-filter has dropped some.
        provenance: Where it comes from.
        sources: Slide of every tile, where the bag holds all slides of a patient; else empty.
        own_rows: ``[N]`` int64, row of every tile in the file of its own slide, where there are
            several; ``kept`` then counts through all files.

    >>> bag = Bag("slide-1", np.ones((3, 4), dtype=np.float32))
    >>> len(bag), bag.width, bag.tiles.tolist(), bag.n_total
    (3, 4, [0, 1, 2], 3)
    """

    slide_id: str
    features: NDArray[np.float32]
    coords: NDArray[np.int64] | None = None
    unit: Unit = "px"
    patch_size: int | None = None
    patch_size_inferred: bool = False
    kept: NDArray[np.int64] | None = None
    n_in_file: int | None = None
    provenance: Provenance = field(default_factory=Provenance)
    sources: tuple[str, ...] = ()
    own_rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        """Feature width D."""
        return int(self.features.shape[1])

    @property
    def n_total(self) -> int:
        """Number of tiles before any pre-filter."""
        return len(self) if self.n_in_file is None else self.n_in_file

    @property
    def tiles(self) -> NDArray[np.int64]:
        """Row of every tile in its feature file, or in the files of a patient one after another."""
        return np.arange(len(self), dtype=np.int64) if self.kept is None else self.kept

    @property
    def file_rows(self) -> NDArray[np.int64]:
        """Row of every tile in the file of its own slide."""
        return self.tiles if self.own_rows is None else self.own_rows

    @property
    def n_zero(self) -> int:
        """Number of tiles whose features are all zero.

        >>> Bag("s", np.array([[0.0, 0.0], [0.0, 1.0]], dtype=np.float32)).n_zero
        1
        """
        candidates = np.flatnonzero(self.features[:, 0] == 0)
        return int((~self.features[candidates].any(axis=1)).sum())

    @property
    def n_repeated(self) -> int:
        """Number of tiles whose features another tile has, too; all-zero ones do not count.

        >>> x = np.array([[1.0, 2.0], [1.0, 3.0], [1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
        >>> Bag("s", x.astype(np.float32)).n_repeated
        2
        """
        # Equal tiles have equal sums: of most bags no tile is looked at beyond its first columns.
        sums = self.features[:, :FINGERPRINT_COLUMNS].astype(np.float64).sum(axis=1)
        _, which, n = np.unique(sums, return_inverse=True, return_counts=True)
        rows = Counter(row.tobytes() for row in self.features[n[which] > 1] if row.any())
        return sum(count for count in rows.values() if count > 1)

    @property
    def feature_norm(self) -> float:
        r"""Median over the tiles of :math:`\lVert x_i \rVert_2`.

        >>> Bag("s", np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 7.0]], dtype=np.float32)).feature_norm
        5.0
        """
        with np.errstate(over="ignore"):
            squared = np.einsum("nd,nd->n", self.features, self.features)
        return float(np.median(np.sqrt(squared)))

    @property
    def feature_mean(self) -> float:
        """Mean of all features of all tiles."""
        with np.errstate(over="ignore"):
            return float(self.features.mean())

    def fingerprint(self) -> str:
        """Short hash of the content, the same under any name, layout, tile order or precision.

        It covers the feature width, the number of tiles in the file, and in half precision the 16
        tiles with the largest sum over the first 64 features. Another tiling or another encoder of
        the same slide gives another fingerprint, and so may another tile cap.

        >>> x = np.arange(12, dtype=np.float32).reshape(4, 3)
        >>> Bag("a", x).fingerprint() == Bag("b", x[::-1].copy()).fingerprint()
        True
        """
        with np.errstate(over="ignore", invalid="ignore"):
            # Sums of half-precision numbers are exact in float64: no order of summation matters.
            head = self.features[:, :FINGERPRINT_COLUMNS].astype(np.float16).astype(np.float64)
            chosen = np.argsort(-head.sum(axis=1), kind="stable")
            rows = self.features[chosen[:FINGERPRINT_TILES]].astype("<f2") + np.float16(0)
        sha = hashlib.sha256(f"{self.n_total} {self.width}\n".encode())
        for row in sorted(row.tobytes() for row in rows):
            sha.update(row)
        return sha.hexdigest()[:32]

    @property
    def x(self) -> Tensor:
        """The features as a torch tensor that shares memory with the array."""
        import torch

        return torch.from_numpy(self.features)

    def __repr__(self) -> str:
        parts = [f"{self.slide_id!r}", f"{len(self)} tiles x {self.width}"]
        if len(self) < self.n_total:
            parts.append(f"of {self.n_total}")
        if self.coords is not None:
            parts.append(f"coords in {self.unit}")
        parts.append(self.provenance.layout)
        return f"Bag({', '.join(parts)})"


def spacing(coords: NDArray[Any]) -> float | None:
    """Most common distance between neighbours in one row or column; None if no two share one.

    Only tiles of the same row (or column) are compared: CLAM starts a new grid at every tissue
    contour, so that differences *between* contours are arbitrary.

    >>> spacing(np.array([[7, 0], [519, 0], [1031, 0], [30, 4], [542, 4]]))
    512.0
    """
    steps = _steps(coords)
    if not len(steps):
        return None
    values, counts = np.unique(steps, return_counts=True)
    return float(values[np.argmax(counts)])


def share_on_grid(coords: NDArray[Any], step: float) -> float:
    """Share of neighbouring pairs whose distance is a multiple of ``step``."""
    steps = _steps(coords)
    if not len(steps):
        return 1.0
    remainder = np.abs(steps / step - np.round(steps / step))
    return float(np.mean(remainder < 0.01))


def _steps(coords: NDArray[Any]) -> NDArray[Any]:
    """Distances between neighbours of one row, then of one column."""
    found = []
    for along, across in ((0, 1), (1, 0)):
        order = np.lexsort((coords[:, along], coords[:, across]))
        step = np.diff(coords[order, along])
        found.append(step[(np.diff(coords[order, across]) == 0) & (step > 0)])
    return np.concatenate(found)


@dataclass(frozen=True)
class Slide:
    """One slide of a cohort; all ids are strings, however numeric they look.

    Attributes:
        slide_id: Name of the slide, unique in its cohort.
        case_id: The patient; all slides of a patient are in one split.
        label: Class name, or None where it is unknown.
        split: ``"train"``, ``"val"`` or ``"test"``, or None before splitting.
        site: Hospital or scanner, for stratification.
        slide_path: The whole-slide image.
        feature_path: The feature file.
        outcome: What is known of the slide in numbers, in the order of the columns that were asked
            for: time and event, a value, or a 0 or 1 per label. Empty where nothing is known.
        parts: The slides of a patient, where the row is a patient; else empty.
    """

    slide_id: str
    case_id: str
    label: str | None = None
    split: str | None = None
    site: str | None = None
    slide_path: Path | None = None
    feature_path: Path | None = None
    outcome: tuple[float, ...] = ()
    parts: tuple[Slide, ...] = ()


@dataclass(frozen=True)
class SlideRows:
    """Slides of a table, and notes on what was assumed, left out or could not be met."""

    slides: tuple[Slide, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """A slide that was left out, and the reason in one line."""

    slide_id: str
    reason: str


MANY_SKIPPED = 0.1
"""Share of skipped slides above which a result no longer stands for its cohort."""


def many_skipped(skipped: int, total: int, which: str = "slides") -> str | None:
    """A sentence if more than 10 % of the slides were skipped, else None.

    >>> many_skipped(1, 10) is None
    True
    >>> many_skipped(2, 10)
    '2 of 10 slides are skipped (20 %): the result may not stand for the cohort'
    """
    if skipped <= MANY_SKIPPED * total:
        return None
    share = f"{skipped} of {total} {which} are skipped ({skipped / total:.0%})".replace("%)", " %)")
    return f"{share}: the result may not stand for the cohort"


# All slides of a patient as one bag: joined when they are read, never rewritten. Tiles keep the
# slide that they come from and their place on it; where they are shown together, the slides
# stand side by side.


def by_patient(slides: Sequence[Slide]) -> tuple[Slide, ...]:
    """One row per patient, in the order of the table, with its slides as parts.

    Raises:
        CohortError: If two slides of a patient differ in label, numbers or split.
    """
    cases: dict[str, list[Slide]] = {}
    for slide in slides:
        cases.setdefault(slide.case_id, []).append(slide)
    found = []
    for case, own in cases.items():
        for name, what in (("label", "labels"), ("outcome", "numbers"), ("split", "splits")):
            values = {getattr(slide, name) for slide in own}
            if len(values) > 1:
                shown = " and ".join(sorted(str(value) for value in values))
                raise CohortError(
                    f"patient {case}",
                    f"has slides with different {what} ({shown})",
                    "give a patient one, or leave out --bag patient",
                )
        first = own[0]
        found.append(
            Slide(case, case, first.label, first.split, first.site, None, None, first.outcome,
                  tuple(own))
        )  # fmt: skip
    return tuple(found)


def joined(slide_id: str, bags: Sequence[Bag]) -> Bag:
    """The bags of a patient's slides as one, with the slide of every tile."""
    units = {bag.unit for bag in bags}
    if len(units) > 1:
        what = f"has slides measured in {' and '.join(sorted(units))}"
        raise BagError(slide_id, what, "give --mpp, or encode them alike")
    placed = all(bag.coords is not None for bag in bags)
    sizes = {bag.patch_size for bag in bags}
    encoders = sorted({bag.provenance.encoder or "" for bag in bags} - {""})
    starts = np.cumsum([0, *(bag.n_total for bag in bags[:-1])])
    wrong = [bag.provenance.misplaced for bag in bags if bag.provenance.misplaced]
    return replace(
        bags[0],
        slide_id=slide_id,
        features=np.concatenate([bag.features for bag in bags]),
        coords=np.concatenate([bag.coords for bag in bags if bag.coords is not None])
        if placed
        else None,
        patch_size=sizes.pop() if len(sizes) == 1 else None,
        patch_size_inferred=any(bag.patch_size_inferred for bag in bags),
        kept=np.concatenate([start + bag.tiles for start, bag in zip(starts, bags, strict=True)]),
        n_in_file=sum(bag.n_total for bag in bags),
        provenance=Provenance(
            layout=bags[0].provenance.layout,
            encoder=", ".join(encoders) or None,
            notes=tuple(dict.fromkeys(note for bag in bags for note in bag.provenance.notes)),
            misplaced=wrong[0] if wrong else None,
        ),
        sources=tuple(bag.slide_id for bag in bags for _ in range(len(bag))),
        own_rows=np.concatenate([bag.tiles for bag in bags]),
    )


def side_by_side(coords: NDArray[np.int64], sources: Sequence[str]) -> NDArray[np.int64]:
    """Places ``[N, 2]`` on one canvas: slides from left to right, with a gap between.

    >>> side_by_side(np.array([[5, 5], [15, 5], [0, 0]]), ["a", "a", "b"]).tolist()
    [[0, 0], [10, 0], [31, 0]]
    """
    tile = round(spacing(coords) or 1)
    which = {name: np.array([one == name for one in sources]) for name in dict.fromkeys(sources)}
    gap = max(int(np.ptp(coords[own, 0])) for own in which.values()) // 10
    placed, start = np.empty_like(coords), 0
    for own in which.values():
        mine = coords[own]
        placed[own] = mine - mine.min(axis=0) + [start, 0]
        start += int(np.ptp(mine[:, 0])) + 2 * tile + gap
    return placed
