"""Rankings against a truth from outside: a pathologist's outlines, marked tiles, readers' labels.

Nothing of it says whether the model uses these tiles; it says whether they lie where a person sees
the disease. Slides without an annotation are left out and counted.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from foci.audits.audit import StoredAudit
from foci.audits.folder import TABLES, TRUTH_TABLE, AuditedSlide, RankedTiles, column, runs
from foci.audits.manifest import write_manifest
from foci.audits.records import Localised, RankingTruth, SlideCorrelation, TruthRecord
from foci.audits.settings import AuditSettings
from foci.audits.tables import as_csv
from foci.bags.matching import short
from foci.bags.tables import read_table
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.bounds import check_regular
from foci.metrics import average_precision, froc, precision_at_k
from foci.metrics.inputs import Floats, Integers, Marks
from foci.metrics.ranking import chance_of_average_precision, chance_of_froc
from foci.metrics.stats import mean_intervals, spearman_interval
from foci.slides.annotations import (
    SUFFIXES,
    Polygon,
    check_place,
    inside_shares,
    of_class,
    read_outlines,
)
from foci.slides.find import read_thumbnails
from foci.slides.image import Box
from foci.words import in_percent, listed, some

_LOG = logging.getLogger(__name__)

SHARE = 0.5
"""Share of a tile's area inside an outline from which it is true."""

FALSE_TILES = (1, 2, 4, 8)
TUMOUR, CANNOT_TELL = "tumour", "cannot tell"
"""Labels of the reader study: the one that is true unless another is asked for, and no label."""

TILE_COLUMNS = ("slide_id", "tile", "witness")
READER_COLUMNS = ("reader", "slide_id", "tile", "label")
A = TypeVar("A", bound=StoredAudit)


class Truth(Protocol):
    """What is known of the tiles, slide by slide.

    Attributes:
        what: What was marked, and by whom, in a sentence.
        slides: Names of the annotated slides.
    """

    @property
    def what(self) -> str: ...  # noqa: D102

    @property
    def slides(self) -> Collection[str]: ...  # noqa: D102

    def of(self, slide: AuditedSlide, tiles: RankedTiles, scan: Box | None) -> Floats | None:
        """``[N]``: 1 for a true tile, 0 for another, NaN where unknown; None if not annotated.

        ``scan`` is the scanned part of the slide, None where its image is not known.
        """


@dataclass(frozen=True)
class MarkedTiles:
    """Marks over the tiles of feature files, NaN where nobody has decided.

    Attributes:
        every: Whether the marks are of every tile of a file.
    """

    what: str
    marks: Mapping[str, Floats]
    every: bool = True

    @property
    def slides(self) -> Collection[str]:
        """Names of the annotated slides."""
        return self.marks.keys()

    def of(self, slide: AuditedSlide, tiles: RankedTiles, scan: Box | None) -> Floats | None:
        """See :class:`Truth`."""
        marks = self.marks.get(tiles.slide_id)
        if marks is None:
            return None
        last = int(tiles.tiles.max())
        if self.every and last >= len(marks):
            what = f"marks {len(marks)} tiles, the feature file has at least {last + 1}"
            raise FociError(tiles.slide_id, what, "mark every tile of the feature file")
        known = np.full(max(last + 1, len(marks)), np.nan)
        known[: len(marks)] = marks
        return known[tiles.tiles]


@dataclass(frozen=True)
class Outlines:
    """Polygons of one class, by the short name of the slide; a tile is true by its area inside."""

    what: str
    files: Mapping[str, Path]
    polygons: Mapping[str, Sequence[Polygon]]
    name: str | None
    share: float

    @property
    def slides(self) -> Collection[str]:
        """Names of the annotated slides."""
        return self.files.keys()

    def of(self, slide: AuditedSlide, tiles: RankedTiles, scan: Box | None) -> Floats | None:
        """See :class:`Truth`. QuPath counts pixels from the corner of the scanned part."""
        key = short(slide.slide_id)
        if key not in self.files:
            return None
        if tiles.coords is None or slide.unit != "px" or slide.patch_size is None:
            what = "has no tile positions in level-0 pixels, which outlines need"
            raise FociError(slide.slide_id, what, "audit features that store coordinates")
        x, y = (0, 0) if scan is None else scan[:2]
        every = [one.shifted(x, y) for one in self.polygons[key]]
        check_place(self.files[key], every, tiles.coords, slide.patch_size, scan)
        inside = inside_shares(of_class(every, self.name), tiles.coords, slide.patch_size)
        return (inside >= self.share - 1e-9).astype(np.float64)


def read_truth(
    path: str | Path, *, name: str | None = None, share: float = SHARE, what: str | None = None
) -> Truth:
    """Read annotations: GeoJSON of QuPath, a table of marked tiles, or labels of ``foci view``.

    Args:
        path: A folder of GeoJSON files, one per slide; such a file; a Parquet or CSV table of
            ``slide_id``, ``tile`` (row in the feature file) and ``witness``; or the CSV of readers.
        name: The class (label) that is true. None for the only class of the outlines; ``tumour``
            where readers gave labels.
        share: Of a tile's area inside an outline, from which it is true.
        what: What was marked, and by whom; None for a sentence that names the source.
    """
    source = Path(path)
    if not 0 < share <= 1:
        raise FociError("--truth-share", f"is {share:g}", "give a share above 0, at most 1")
    if not source.exists():
        raise FociError(source, "does not exist", "give a folder of GeoJSON files, or a table")
    if source.is_dir() or source.suffix.lower() in SUFFIXES:
        return _read_outlines(source, name, share, what)
    if source.suffix.lower() == ".parquet":
        return MarkedTiles(what or f"Tiles marked in {source.name}.", _read_parquet(source))
    table = read_table(source, most_rows=None)
    if set(READER_COLUMNS) <= set(table.columns):
        true = name or TUMOUR
        told = what or f"Tiles that readers called {true} ({source.name})."
        return MarkedTiles(told, _votes(source, table.rows, true), every=False)
    table.require(*TILE_COLUMNS)
    columns = [[row[name] for row in table.rows] for name in TILE_COLUMNS]
    return MarkedTiles(what or f"Tiles marked in {source.name}.", _marks(source, *columns))


def _read_outlines(source: Path, name: str | None, share: float, what: str | None) -> Outlines:
    found = [source]
    if source.is_dir():
        found = sorted(p for p in source.iterdir() if p.suffix.lower() in SUFFIXES)
        if not found:
            raise FociError(source, "holds no GeoJSON files", "export annotations from QuPath")
    files: dict[str, Path] = {}
    for path in found:
        other = files.setdefault(short(path.stem), path)
        if other != path:
            raise FociError(path, f"is of the same slide as {other.name}", "keep one of them")
    polygons = {slide: read_outlines(path) for slide, path in files.items()}
    classes = sorted({one.name or "" for own in polygons.values() for one in own})
    if name is None and len(classes) > 1:
        known = listed([one or "no class" for one in classes], 8)
        raise FociError(source, f"holds several classes: {known}", "choose with --truth-class")
    if name is not None and not any(of_class(own, name) for own in polygons.values()):
        known = listed([one or "no class" for one in classes], 8) or "none"
        raise FociError(source, f"holds no outline of {name}", f"--truth-class: {known}")
    shown = name or (classes[0] if classes else "") or "no class"
    told = f"Outlines of {shown} ({source.name}); tiles with at least {in_percent(share)} inside."
    return Outlines(what or told, files, polygons, name, share)


def _read_parquet(path: Path) -> dict[str, Floats]:
    try:
        check_regular(path)
        table = pq.read_table(path, columns=list(TILE_COLUMNS))
        return _marks(path, *(table[name].to_numpy() for name in TILE_COLUMNS))
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        if isinstance(error, FociError):
            raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        fix = f"give a Parquet file with the columns {', '.join(TILE_COLUMNS)}"
        raise FociError(path, f"is no table of marked tiles ({why})", fix) from None


_WORDS = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}


def _marks(path: Path, slides: Any, tiles: Any, witness: Any) -> dict[str, Floats]:
    """Marks by slide; every tile of a slide's file must be there once."""
    try:
        names, rows = np.asarray(slides), np.asarray(tiles).astype(np.int64)
        marks = np.array([_WORDS[str(one).lower()] for one in witness])
    except (KeyError, TypeError, ValueError) as error:
        what = f"is no table of marked tiles ({error})"
        raise FociError(path, what, "write the row in tile, 0 or 1 in witness") from None
    order = np.lexsort((rows, names))
    names, rows, marks = names[order], rows[order], marks[order]
    by_slide = {}
    for start, end in runs(names):
        if not np.array_equal(rows[start:end], np.arange(end - start)):
            what = f"does not mark every tile of {names[start]} exactly once"
            raise FociError(path, what, "give one row per tile of the feature file")
        by_slide[str(names[start])] = marks[start:end]
    return by_slide


def _votes(path: Path, rows: Sequence[Mapping[str, str]], true: str) -> dict[str, Floats]:
    """What most readers say of a tile; each reader's last label counts, a tie is no answer."""
    last: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
    for row in rows:
        if not row["tile"].isdecimal() or len(row["tile"]) > 9:
            raise FociError(path, f"has the tile {row['tile']!r}", "give its row in the features")
        last[row["slide_id"], int(row["tile"])][row["reader"]] = row["label"]
    if true not in {label for own in last.values() for label in own.values()}:
        known = listed(sorted({label for own in last.values() for label in own.values()}), 8)
        raise FociError(path, f"holds no tile that is {true}", f"--truth-class: {known}")
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for (slide, tile), own in last.items():
        votes = Counter(label == true for label in own.values() if label != CANNOT_TELL)
        if votes[True] != votes[False]:
            found[slide][tile] = float(votes[True] > votes[False])
    marks = {}
    for slide, tiles in found.items():
        marks[slide] = np.full(max(tiles) + 1, np.nan)
        marks[slide][list(tiles)] = list(tiles.values())
    return marks


@dataclass(frozen=True, eq=False)
class _Judged:
    """One slide with a true tile: the tiles that somebody has judged."""

    case: str
    scores: Mapping[str, Floats]
    true: Marks
    lesions: Integers | None
    decisive: Mapping[str, float]
    n_tiles: int


def localise(audit: StoredAudit, truth: Truth) -> TruthRecord:
    """Compare every stored ranking with the truth, on the slides that have a true tile.

    Raises:
        FociError: If no audited slide has one, or an annotation does not fit its slide.
    """
    by_id = {slide.slide_id: (row, slide) for row, slide in enumerate(audit.slides)}
    _say_unknown(truth, by_id)
    scans = {name: one.box for name, one in read_thumbnails(audit.folder).items()}
    measured = audit.measured().tables["prediction"]
    columns = {column(*order): at for at, order in enumerate(measured.orders)}
    judged: list[_Judged] = []
    n_unmarked = n_without = n_unknown = 0
    for tiles in audit.tiles():
        row, slide = by_id[tiles.slide_id]
        marks = truth.of(slide, tiles, scans.get(tiles.slide_id))
        if marks is None:
            n_unmarked += 1
            continue
        known, true = ~np.isnan(marks), marks == 1
        if not true.any():
            n_without += 1
            continue
        n_unknown += int((~known).sum())
        judged.append(
            _Judged(
                case=slide.case_id,
                scores={name: scores[known] for name, scores in tiles.scores.items()},
                true=true[known],
                lesions=_regions(slide, tiles, true, known),
                decisive={
                    name: float(measured.decisive[columns[name], row]) for name in tiles.scores
                },
                n_tiles=len(tiles),
            )
        )
    if not judged:
        raise FociError("truth", "marks no tile of any audited slide", "check the slides' names")
    settings = audit.manifest.settings
    return TruthRecord(
        what=truth.what,
        n_slides=len(judged),
        n_cases=len({slide.case for slide in judged}),
        n_unmarked=n_unmarked,
        n_without=n_without,
        n_tiles=sum(len(slide.true) for slide in judged),
        n_unknown=n_unknown,
        false_tiles=list(FALSE_TILES),
        rankings={name: _ranking(name, judged, settings) for name in judged[0].scores},
    )


def _say_unknown(truth: Truth, audited: Collection[str]) -> None:
    names = set(audited) | {short(name) for name in audited}
    others = sorted(name for name in truth.slides if name not in names)
    if others:
        _LOG.info("annotations of slides that are not audited are not used: %s", some(others))


def _regions(slide: AuditedSlide, tiles: RankedTiles, true: Marks, known: Marks) -> Integers | None:
    """Number of the region of every known tile: true tiles that touch, by a side or a corner."""
    if tiles.coords is None or slide.patch_size is None:
        return None
    places = tiles.coords[true]
    pairs = KDTree(places).query_pairs(1.01 * slide.patch_size, p=np.inf, output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), pairs.T), shape=(len(places), len(places)))
    regions = np.zeros(len(tiles), np.int64)
    regions[true] = 1 + connected_components(links, directed=False)[1]
    return regions[known]


def _ranking(name: str, judged: Sequence[_Judged], settings: AuditSettings) -> RankingTruth:
    cases = [slide.case for slide in judged]

    def mean(values: Sequence[float], chances: Sequence[float], of: Sequence[str]) -> Localised:
        found = mean_intervals(np.array(values)[:, None], of, **settings.drawn)[0]
        return Localised(**vars(found), chance=float(np.mean(chances)), n_slides=len(values))

    shares = [float(slide.true.mean()) for slide in judged]

    def precision(first: int) -> Localised:
        found = [
            precision_at_k(slide.scores[name], slide.true, min(first, len(slide.true)))
            for slide in judged
        ]
        return mean(found, shares, cases)

    placed = [slide for slide in judged if slide.lesions is not None]
    return RankingTruth(
        average_precision=mean(
            [average_precision(slide.scores[name], slide.true) for slide in judged],
            [chance_of_average_precision(len(s.true), int(s.true.sum())) for s in judged],
            cases,
        ),
        precision8=precision(8),
        precision32=precision(32),
        froc=[
            mean(
                [froc(s.scores[name], s.lesions, allowed) for s in placed if s.lesions is not None],
                [_froc_by_chance(s.lesions, allowed) for s in placed if s.lesions is not None],
                [slide.case for slide in placed],
            )
            for allowed in (FALSE_TILES if placed else ())
        ],
        **_deciding(name, judged, settings, mean),
    )


def _froc_by_chance(lesions: Integers, allowed: int) -> float:
    outside, *sizes = np.bincount(lesions).tolist()
    return chance_of_froc(sizes, outside, allowed)


def _deciding(
    name: str, judged: Sequence[_Judged], settings: AuditSettings, mean: Any
) -> dict[str, Any]:
    """Deciding tiles against true ones, on slides that have deciding tiles, all of them judged."""
    having = [
        slide
        for slide in judged
        if np.isfinite(slide.decisive[name]) and len(slide.true) == slide.n_tiles
    ]
    if not having:
        return {}
    counts = np.array([slide.decisive[name] for slide in having])
    true = np.array([slide.true.sum() for slide in having])
    tiles = np.array([slide.n_tiles for slide in having])
    cases = [slide.case for slide in having]
    inside = [
        precision_at_k(slide.scores[name], slide.true, int(slide.decisive[name]))
        for slide in having
    ]

    def correlation(first: Floats, second: Floats) -> SlideCorrelation:
        found = spearman_interval(first, second, cases, **settings.drawn)
        return SlideCorrelation(**vars(found), n_slides=len(having))

    return {
        "deciding": mean(inside, (true / tiles).tolist(), cases),
        "count_correlation": correlation(counts, true),
        "share_correlation": correlation(counts / tiles, true / tiles),
    }


def attach(audit: A, truth: Truth) -> A:
    """Write the comparison into the audit's manifest and as a table, and reload the audit."""
    record = localise(audit, truth)
    write_manifest(audit.folder, audit.manifest.model_copy(update={"truth": record}))
    (audit.folder / TABLES).mkdir(exist_ok=True)
    write_whole(audit.folder / TABLES / TRUTH_TABLE, as_csv(truth_rows(record)))
    return type(audit).load(audit.folder, accept_changed=bool(audit.changed))


def truth_rows(record: TruthRecord) -> list[dict[str, Any]]:
    """One row per ranking and measure: estimate, interval, chance level, slides."""
    rows = []
    for ranking, own in record.rankings.items():
        measures: dict[str, Localised | SlideCorrelation | None] = {
            name: getattr(own, name) for name in RankingTruth.model_fields if name != "froc"
        }
        measures |= {
            f"froc_{allowed}": found
            for allowed, found in zip(record.false_tiles, own.froc, strict=False)
        }
        for name, found in measures.items():
            if found is not None:
                chance = getattr(found, "chance", None)
                rows.append(
                    {"ranking": ranking, "measure": name} | found.model_dump() | {"chance": chance}
                )
    return rows
