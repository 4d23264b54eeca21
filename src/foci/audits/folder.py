"""The audit folder: names of its files, how they are read, and its tables.

``slides.parquet`` lists the audited slides and the skipped ones with the reason. The other tables
have one part per shard of slides: ``curves/`` holds class probabilities at counts of tiles,
``rankings/`` score and rank of every tile, ``measured/`` what is measured of every slide.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from foci.audits.settings import RANDOM, STORED
from foci.bags.bag import side_by_side
from foci.errors import FociError
from foci.files.bounds import check_regular, read_json
from foci.rankings import NULL_MAPS, Ranking
from foci.reveal import Curve, Direction
from foci.words import counted

FORMAT = 1
"""Of the folder; any other is refused."""

MANIFEST = "manifest.json"
SLIDES = "slides.parquet"
CURVES = "curves"
RANKINGS = "rankings"
MEASURED = "measured"
SUMMARY = "summary.json"
TABLES = "tables"
TABLE_FILES = (
    "rankings.csv", "slides.csv", "deletion.csv", "comparisons.csv", "carried.csv", "agreement.csv",
    "skipped.csv",
)  # fmt: skip
OUTCOME_TABLE, DECIDING_SLIDES = "outcome.csv", "deciding_slides.csv"
OPTIONAL_TABLES = (OUTCOME_TABLE, DECIDING_SLIDES)
"""Beside the tables above of a risk, a number or labels, and where bags are patients."""

TRUTH_TABLE = "truth.csv"
"""Beside the tables above where there is a truth; an audit may get one, or another, later."""

SELECTORS = "selectors"
REPORT = "report.html"
PARTS = "parts"
"""Which shards of slides are done, and what only the summary needs of them; removed at the end."""

SUFFIXES = {CURVES: "parquet", RANKINGS: "parquet", MEASURED: "safetensors"}


def part_name(table: str, shard: int) -> str:
    """Path in the folder of a part of ``curves``, ``rankings`` or ``measured``.

    >>> part_name("curves", 12)
    'curves/part-00012.parquet'
    """
    return f"{table}/part-{shard:05d}.{SUFFIXES[table]}"


def parts_of(folder: Path, table: str) -> list[Path]:
    """The parts of a table, in order; any other file beside them is none of ours."""
    found = (folder / table).glob(f"part-*.{SUFFIXES[table]}")
    own = [path for path in found if re.fullmatch(r"part-[0-9]+", path.stem)]
    return sorted(own, key=lambda path: int(path.stem.removeprefix("part-")))


def column(ranking: str, seed: int | None) -> str:
    """Name of a ranking with its seed, as in table columns and partial results.

    >>> column("native", None), column("selector", 2)
    ('native', 'selector-2')
    """
    return ranking if seed is None else f"{ranking}-{seed}"


def seed_folder(folder: Path, seed: int) -> Path:
    """Folder of the selector with this seed."""
    return folder / SELECTORS / f"seed-{seed}"


AGAIN = "run foci audit again with --force"
CHANGED = f"copy the folder again, {AGAIN}, or accept it with --accept-changed"

M = TypeVar("M", bound=BaseModel)


@contextlib.contextmanager
def readable(path: Path, fix: str = AGAIN) -> Iterator[None]:
    """Turn errors from a missing or damaged file into one line that names the file."""
    try:
        check_regular(path)
        yield
    except FociError:
        raise
    except FileNotFoundError:
        raise FociError(path, "is missing", fix) from None
    except (IndexError, KeyError, OSError, TypeError, ValueError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise FociError(path, f"cannot be read ({why})", fix) from None


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    with readable(path):
        content = read_json(path)
    if not isinstance(content, dict):
        raise FociError(path, "is damaged (no JSON object)", AGAIN)
    return content


def read_model(path: Path, model: type[M]) -> M:
    """Read a JSON file into a pydantic model; a mismatch raises a one-line error."""
    return as_model(path, model, read_object(path))


def as_model(path: Path, model: type[M], content: Mapping[str, Any]) -> M:
    """Validate the content of a JSON file as a pydantic model."""
    try:
        return model.model_validate(content, context=STORED)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        missing = first["type"] == "missing"
        what = f"says nothing of {where!r}" if missing else f"is damaged ({where}: {first['msg']})"
        raise FociError(path, what, AGAIN) from None


def lost_file(folder: Path, names: Iterable[str]) -> str | None:
    """The first of the named files that is missing from a folder; None if all are there."""
    return next((name for name in names if not (folder / name).is_file()), None)


# Slides


@dataclass(frozen=True, slots=True)
class AuditedSlide:
    """One audited or skipped slide: a row of ``slides.parquet``.

    Attributes:
        n_tiles: Candidate tiles; 0 if it could not be read.
        patch_size: Side of a tile in that unit, or None.
        features_xxh3: XXH3, 128 bits, of the candidate tiles' features in float32.
        skipped: Why the slide was skipped, in one line; None if it was audited.
        encoder: Tile encoder that the feature file names, or None.
        n_zero: Candidate tiles whose features are all zero; None if it could not be read.
        n_repeated: :attr:`foci.Bag.n_repeated`; None if it could not be read.
        fingerprint: :meth:`foci.Bag.fingerprint`; None if it could not be read.
        feature_norm: :attr:`foci.Bag.feature_norm`; None if it could not be read.
        feature_mean: :attr:`foci.Bag.feature_mean`; None if it could not be read.
        misplaced: Why coordinates seem to be of another order than features, or None.
        k_star: Proven minimum of deciding tiles for the predicted class at the audit's kappa, or a
            lower bound of it; None where there is neither. See :func:`foci.rankings.minimal_set`.
        k_star_kind: :attr:`foci.metrics.MinimalSet.kind`; None if it could not be read.
        k_star_theorem: What proves it; None if nothing does.
        outcome: What a risk, a number or labels are compared with: time and event, the number, or 0
            or 1 for every label (:attr:`foci.bags.Slide.outcome`); None where it is unknown.
        label_outputs: Log-odds that a model of labels gives each of them; None of any other.
    """

    slide_id: str
    case_id: str
    label: str | None = None
    n_tiles: int = 0
    n_total: int = 0
    unit: str = "px"
    patch_size: int | None = None
    features_xxh3: str = ""
    skipped: str | None = None
    encoder: str | None = None
    n_zero: int | None = None
    n_repeated: int | None = None
    fingerprint: str | None = None
    feature_norm: float | None = None
    feature_mean: float | None = None
    misplaced: str | None = None
    k_star: int | None = None
    k_star_kind: str | None = None
    k_star_theorem: str | None = None
    outcome: tuple[float, ...] | None = None
    label_outputs: tuple[float, ...] | None = None


_ARROW = {
    "str": pa.string(),
    "int": pa.int32(),
    "float": pa.float64(),
    "tuple[float, ...]": pa.list_(pa.float64()),
}
SLIDE_SCHEMA = pa.schema(
    [
        pa.field(own.name, _ARROW[kind], nullable=bool(optional))
        for own in fields(AuditedSlide)
        for kind, optional, _ in [str(own.type).partition(" | None")]
    ]
)


def slides_to_arrow(slides: Sequence[AuditedSlide]) -> pa.Table:
    """Convert slides to rows of ``slides.parquet``."""
    return pa.Table.from_pylist([asdict(slide) for slide in slides], schema=SLIDE_SCHEMA)


def read_slides(path: str | Path) -> tuple[AuditedSlide, ...]:
    """Read ``slides.parquet``."""
    slides = slides_from_arrow(read_table(path, SLIDE_SCHEMA))
    pa.default_memory_pool().release_unused()
    return slides


def read_table(path: str | Path, schema: pa.Schema) -> pa.Table:
    """Read a Parquet file; ``pq.read_table`` and ``to_numpy`` load pandas where it is installed."""
    with pq.ParquetFile(path) as file:
        table = file.read(columns=schema.names)
    if table.schema.equals(schema):
        return table
    table = table.select(schema.names)
    _check_filled(table, schema)
    return table.cast(schema)


_WORDS = ("label", "unit", "encoder", "k_star_kind", "k_star_theorem")


def slides_from_arrow(table: pa.Table) -> tuple[AuditedSlide, ...]:
    """Rows of ``slides.parquet`` as slides."""
    _check_filled(table, SLIDE_SCHEMA)
    slides: list[AuditedSlide] = []
    same: dict[str, str] = {}  # words that many slides have, each kept once
    for batch in table.to_batches(max_chunksize=4096):  # a row takes far more than a slide
        rows: list[dict[str, Any]] = batch.to_pylist()
        for row in rows:
            for name in _WORDS:
                row[name] = row[name] and same.setdefault(row[name], row[name])
            for name in ("outcome", "label_outputs"):
                row[name] = row[name] and tuple(row[name])
                if None in (row[name] or ()):
                    raise ValueError(f"column {name} has empty cells")
        slides += [AuditedSlide(**row) for row in rows]
    return tuple(slides)


def _check_filled(table: pa.Table, schema: pa.Schema) -> None:
    for own in schema:
        if not own.nullable and table[own.name].null_count:
            raise ValueError(f"column {own.name} has empty cells")


# Curves


CURVE_SCHEMA = pa.schema(
    [
        pa.field("slide_id", pa.string(), nullable=False),
        pa.field("ranking", pa.string(), nullable=False),
        pa.field("seed", pa.int32()),
        pa.field("direction", pa.string(), nullable=False),
        pa.field("n_tiles", pa.int32(), nullable=False),
        pa.field("ks", pa.list_(pa.int32()), nullable=False),
        pa.field("probs", pa.list_(pa.float64()), nullable=False),
        pa.field("full", pa.list_(pa.float64()), nullable=False),
        pa.field("tied", pa.float64(), nullable=False),
        pa.field("searched", pa.int32(), nullable=False),
    ]
)
"""``probs`` holds ``len(ks)`` rows of ``len(full)`` classes, one row after the other. The ranking
``null-maps`` has one row per slide: deletion under all content-free maps, one after the other."""

REPEATED = ["slide_id", "ranking", "direction", "ks.list.element"]
"""Columns whose values repeat, the only ones that a dictionary makes smaller."""


Order = tuple[str, int | None]
"""Ranking and seed: one order of the tiles of every slide."""


Key = tuple[str, int | None, str]
"""Ranking, seed and direction."""

SLIDES_HELD = 2048
"""Of which curves stay in memory, about 0.2 MB each."""


class CurveParts:
    """The parts of ``curves/``, each read when one of its slides is asked for.

    Those that were read last stay in memory, as many as hold :data:`SLIDES_HELD` slides.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self.names = [self._names(path) for path in self.paths]
        self.starts = list(itertools.accumulate((len(own) for own in self.names), initial=0))
        self._held: OrderedDict[int, CurveTable] = OrderedDict()

    @staticmethod
    def _names(path: Path) -> tuple[str, ...]:
        with readable(path), pq.ParquetFile(path) as file:
            column = file.read(columns=["slide_id"], use_threads=False)["slide_id"]
            return tuple(column.unique().to_pylist())

    def __getitem__(self, part: int) -> CurveTable:
        """The curves of a part."""
        found = self._held.pop(part, None)
        if found is None:
            path = self.paths[part]
            with readable(path):
                found = CurveTable.of(from_arrow(read_table(path, CURVE_SCHEMA)))
        self._held[part] = found
        while len(self._held) > 1 and sum(len(self.names[n]) for n in self._held) > SLIDES_HELD:
            self._held.popitem(last=False)
        return found

    def curves(self, key: Key, part: int) -> Sequence[Curve]:
        """Curves of one ranking, seed and direction."""
        held = self[part]
        if key not in held._curves:
            raise FociError(self.paths[part], f"has no curves of {column(*key[:2])}", AGAIN)
        return held._curves[key]


@dataclass(frozen=True)
class StoredCurves(Sequence[Curve]):
    """Curves of one ranking, seed and direction in all parts, up to ``k_max`` tiles."""

    parts: CurveParts
    key: Key
    k_max: int | None = None

    def __len__(self) -> int:
        return self.parts.starts[-1]

    @overload
    def __getitem__(self, row: int) -> Curve: ...
    @overload
    def __getitem__(self, row: slice) -> tuple[Curve, ...]: ...
    def __getitem__(self, row: int | slice) -> Curve | tuple[Curve, ...]:
        """The curve of a slide."""
        if isinstance(row, slice):
            return tuple(self[n] for n in range(*row.indices(len(self))))
        place = range(len(self))[row]
        part = bisect_right(self.parts.starts, place) - 1
        curve = self.parts.curves(self.key, part)[place - self.parts.starts[part]]
        return curve if self.k_max is None else cut(curve, self.k_max)


@dataclass(frozen=True, repr=False)
class CurveTable:
    """All curves of an audit, by ranking, seed and direction, each for the same slides."""

    slide_ids: tuple[str, ...]
    _curves: Mapping[Key, Sequence[Curve]]
    _parts: CurveParts | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.rankings)
        return f"CurveTable({counted(len(self.slide_ids), 'slide')}; rankings: {names})"

    @classmethod
    def of(cls, curves: Iterable[Curve]) -> CurveTable:
        """Arrange curves; every ranking must hold the same slides in the same order."""
        groups: dict[Key, list[Curve]] = {}
        for curve in curves:
            groups.setdefault((curve.ranking, curve.seed, curve.direction), []).append(curve)
        names = {tuple(c.slide_id for c in group) for group in groups.values()}
        if len(names) != 1:
            raise FociError("curves", "differ in their slides between rankings", "audit again")
        return cls(next(iter(names)), {key: tuple(group) for key, group in groups.items()})

    @classmethod
    def read(cls, folder: str | Path) -> CurveTable:
        """Open the curves of an audit folder; each part is read when it is needed."""
        paths = parts_of(Path(folder), CURVES)
        if not paths:
            raise FileNotFoundError
        parts = CurveParts(paths)
        names = tuple(name for own in parts.names for name in own)
        return cls(names, {key: StoredCurves(parts, key) for key in parts[0]._curves}, parts)

    def by_part(self) -> Iterator[CurveTable]:
        """The curves of each part, which are in memory one part after the other."""
        if self._parts is None:
            yield self
        else:
            for part in range(len(self._parts.paths)):
                yield self._parts[part]

    @property
    def n_classes(self) -> int:
        """Number of classes of the classifier."""
        return len(next(iter(self._curves.values()))[0].full)

    @property
    def rankings(self) -> tuple[str, ...]:
        """Names of the rankings, in the order of the run."""
        names = dict.fromkeys(ranking for ranking, _, _ in self._curves)
        return tuple(name for name in names if name != NULL_MAPS)

    @property
    def null_maps(self) -> Sequence[Curve]:
        """Deletion under content-free maps, ``[M * len(ks), C]``; empty where none were run."""
        return self._curves.get((NULL_MAPS, None, "delete"), ())

    def seeds(self, ranking: str) -> tuple[int | None, ...]:
        """Seeds of a ranking; ``(None,)`` where nothing is drawn."""
        return tuple(dict.fromkeys(s for name, s, _ in self._curves if name == ranking))

    @property
    def orders(self) -> list[Order]:
        """Every ranking with each of its seeds."""
        return [(ranking, seed) for ranking in self.rankings for seed in self.seeds(ranking)]

    def get(
        self, ranking: str, seed: int | None = None, direction: Direction = "insert"
    ) -> Sequence[Curve]:
        """Curves of one ranking and seed, in the order of :attr:`slide_ids`."""
        key = (ranking, seed, direction)
        if key not in self._curves:
            known = ", ".join(self.rankings)
            what = f"holds no {direction} curves" + ("" if seed is None else f" of seed {seed}")
            raise FociError(f"ranking {ranking!r}", what, f"rankings in this audit: {known}")
        return self._curves[key]

    def every_seed(
        self, ranking: str, direction: Direction = "insert"
    ) -> tuple[Sequence[Curve], ...]:
        """:meth:`get` for each seed."""
        return tuple(self.get(ranking, seed, direction) for seed in self.seeds(ranking))

    def deletions(self, ranking: str, seed: int | None) -> Sequence[Curve]:
        """Deletion curves of a ranking and seed; empty where none were measured."""
        return self._curves.get((ranking, seed, "delete"), ())

    def tail(self, ranking: str, seed: int | None, direction: Direction) -> Sequence[Curve]:
        """Counts beyond those of a curve, to the last tile; empty where the curve has them all."""
        return self._curves.get((ranking, seed, f"{direction}-tail"), ())

    def up_to(self, k_max: int) -> CurveTable:
        """The same audit as if no more than ``k_max`` tiles had ever been revealed.

        Deletion curves stay as they are: their counts are not a budget.
        """
        within = {
            key: group
            if key[2] != "insert"
            else replace(group, k_max=k_max)
            if isinstance(group, StoredCurves)
            else tuple(cut(curve, k_max) for curve in group)
            for key, group in self._curves.items()
        }
        return CurveTable(self.slide_ids, within, self._parts)


def cut(curve: Curve, k_max: int) -> Curve:
    """The curve up to ``k_max`` tiles."""
    within = int(np.searchsorted(curve.ks, k_max, side="right"))
    if within == len(curve.ks):
        return curve
    if not within:
        what = f"is {k_max}, below the first count {curve.ks[0]}"
        raise FociError("k_max", what, "raise k_max")
    return replace(curve, probs=curve.probs[:within], ks=curve.ks[:within])


def curves_to_arrow(curves: Sequence[Curve]) -> pa.Table:
    """Curves as rows of ``curves/``."""
    columns = {name: [getattr(curve, name) for curve in curves] for name in CURVE_SCHEMA.names}
    columns["probs"] = [curve.probs.ravel() for curve in curves]
    return pa.table(columns, schema=CURVE_SCHEMA)


def from_arrow(table: pa.Table) -> list[Curve]:
    """Rows of ``curves/`` as curves."""
    _check_filled(table, CURVE_SCHEMA)
    columns = {
        own.name: _lists(table[own.name])
        if pa.types.is_list(own.type)
        else table[own.name].to_pylist()
        for own in CURVE_SCHEMA
    }
    curves = []
    for row in zip(*columns.values(), strict=True):
        values = dict(zip(columns, row, strict=True))
        ks, probs, full = values["ks"], values["probs"], values["full"]
        alone = values["direction"] != "insert"  # the only tile of a bag cannot be deleted
        size = len(ks) * len(full)
        if values["ranking"] == NULL_MAPS and size:
            size *= len(probs) // size
        if not (len(ks) or alone) or len(probs) != size:
            raise ValueError("a curve without a row of probabilities for every count")
        if (ks[1:] <= ks[:-1]).any():
            raise ValueError("a curve whose counts do not increase")
        values |= {"ks": ks.astype(np.int64), "probs": probs.reshape(-1, len(full))}
        curves.append(Curve(**values))
    return curves


def _lists(column: pa.ChunkedArray) -> list[NDArray[Any]]:
    values: list[NDArray[Any]] = []
    for chunk in column.chunks:
        flat, ends = map(np.from_dlpack, (chunk.values, chunk.offsets))
        values += [flat[a:b] for a, b in itertools.pairwise(ends)]
    return values


# Rankings

SCORE, RANK = "score:", "rank:"
SOURCE = "source"
"""Column with the slide of every tile, where bags are patients."""


@dataclass(frozen=True, eq=False)
class RankedTiles:
    """Candidate tiles of one slide, with their scores under every ranking.

    Attributes:
        tiles: ``[N]`` index of every tile in its file.
        coords: ``[N, 2]`` top-left corners, or None.
        scores: ``[N]`` per ranking, by :func:`foci.audits.folder.column`. Random
            orders are not stored: :func:`foci.rankings.score` draws the same ones again.
        sources: Slide of every tile, where the bag is a patient; else empty.
        own_coords: ``[N, 2]`` corners of these tiles on their own slides, which stand side by side
            in ``coords``; None where ``coords`` are the slide's own.
    """

    slide_id: str
    tiles: NDArray[np.int64]
    coords: NDArray[np.int64] | None
    scores: Mapping[str, NDArray[np.float64]]
    sources: tuple[str, ...] = ()
    own_coords: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        slide_id: str,
        tiles: NDArray[np.int64],
        coords: NDArray[np.int64] | None,
        scores: Mapping[str, NDArray[np.float64]],
        sources: Sequence[str] = (),
    ) -> RankedTiles:
        """The tiles of a slide, or of a patient's slides, which are put side by side."""
        if not sources or coords is None:
            return cls(slide_id, tiles, coords, scores, tuple(sources))
        placed = side_by_side(coords, sources)
        return cls(slide_id, tiles, placed, scores, tuple(sources), coords)

    @property
    def on_slide(self) -> NDArray[np.int64] | None:
        """``[N, 2]`` corners on the slide that each tile is from, or None."""
        return self.coords if self.own_coords is None else self.own_coords

    def source(self, position: int) -> str:
        """The slide that a tile is from."""
        return self.sources[position] if self.sources else self.slide_id

    def __len__(self) -> int:
        return len(self.tiles)

    def order(self, column: str) -> NDArray[np.int64]:
        """Positions of the tiles in the bag, most important first."""
        if column not in self.scores:
            raise FociError(self.slide_id, f"has no scores of {column}", AGAIN)
        return Ranking(column, self.slide_id, self.scores[column]).order


def scores_to_arrow(slide: RankedTiles) -> pa.Table:
    """Convert a slide to rows of ``rankings/``, one per tile."""
    n = len(slide)
    x, y = ([None] * n, [None] * n) if slide.on_slide is None else slide.on_slide.T
    columns: dict[str, pa.Array] = {
        "slide_id": pa.repeat(pa.scalar(slide.slide_id), n),
        "tile": pa.array(slide.tiles, pa.int32()),
        "x": pa.array(x, pa.int64()),
        "y": pa.array(y, pa.int64()),
    }
    if slide.sources:
        columns[SOURCE] = pa.array(slide.sources, pa.string())
    for name, scores in slide.scores.items():
        columns[SCORE + name] = pa.array(scores, pa.float64())
        columns[RANK + name] = pa.array(Ranking(name, slide.slide_id, scores).ranks, pa.int32())
    return pa.table(columns)


LARGE = 10_000
"""Tiles above which a slide has a row group of its own, so that it is read alone."""


def ranked_groups(slides: Sequence[RankedTiles]) -> Iterator[pa.Table]:
    """Row groups of a part of ``rankings/``."""
    for _, group in itertools.groupby(
        enumerate(slides), lambda one: one[0] if len(one[1]) > LARGE else -1
    ):
        yield pa.concat_tables([scores_to_arrow(slide) for _, slide in group])


def stored_columns(curves: CurveTable) -> dict[str, Order]:
    """Ranking and seed of every column whose scores are stored; of random orders none are."""
    return {column(*order): order for order in curves.orders if order[0] != RANDOM}


def read_tiles(path: str | Path, slide_ids: Collection[str] | None = None) -> Iterator[RankedTiles]:
    """Read a part of ``rankings/`` one slide at a time, in the order of the audit.

    Where ``slide_ids`` are given, row groups that hold none of them are left alone.
    """
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            if slide_ids is not None:
                held = file.read_row_group(group, columns=["slide_id"])["slide_id"].unique()
                if not set(held.to_pylist()) & set(slide_ids):
                    continue
            yield from ranked_tiles(file.read_row_group(group), slide_ids)


def ranked_tiles(
    table: pa.Table, slide_ids: Collection[str] | None = None
) -> Iterator[RankedTiles]:
    """Rows of ``rankings/``, slide by slide; all slides, or those named."""
    names = table["slide_id"].to_numpy()
    columns = [c.removeprefix(SCORE) for c in table.column_names if c.startswith(SCORE)]
    for start, end in runs(names):
        if slide_ids is not None and names[start] not in slide_ids:
            continue
        rows = table.slice(start, end - start)
        placed = rows["x"].null_count == 0
        yield RankedTiles.of(
            slide_id=str(names[start]),
            tiles=_numbers(rows["tile"], pa.int64()),
            coords=np.column_stack([_numbers(rows[axis], pa.int64()) for axis in ("x", "y")])
            if placed
            else None,
            scores={name: _numbers(rows[SCORE + name], pa.float64()) for name in columns},
            sources=rows[SOURCE].to_pylist() if SOURCE in table.column_names else (),
        )


def _numbers(cells: pa.ChunkedArray, kind: pa.DataType) -> NDArray[Any]:
    if cells.null_count or not (pa.types.is_integer(cells.type) or cells.type == kind):
        raise ValueError(f"{cells.null_count} empty cells of type {cells.type}, not {kind}")
    numbers: NDArray[Any] = cells.cast(kind).to_numpy()
    return numbers


def runs(names: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Start and end of every run of equal names.

    >>> list(runs(np.array(["a", "a", "b"])))
    [(0, 2), (2, 3)]
    """
    changes = np.flatnonzero(names[1:] != names[:-1]) + 1
    ends = [0, *changes.tolist(), len(names)] if len(names) else []
    return itertools.pairwise(ends)


# Measured


Arrays = Mapping[str, NDArray[Any]]
"""By name, the slides along the first axis."""


def arrays_to_bytes(arrays: Arrays, facts: Mapping[str, Any]) -> bytes:
    """Arrays as a safetensors file, with facts on them."""
    from safetensors.numpy import save

    return bytes(
        save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, {"facts": json.dumps(facts)})
    )


_KINDS = {"BOOL": "?"} | {f"{kind}{8 * n}": f"<{kind.lower()}{n}" for kind in "FIU" for n in (4, 8)}
"""Of numbers in such a file."""


class StoredArrays(Arrays):
    """Arrays of a safetensors file, each read when it is asked for.

    The file is open only then: what is mapped of thousands of shards would count as memory. Its
    header is checked and read once, as a summary asks every shard for dozens of arrays.
    """

    def __init__(self, path: Path) -> None:
        from safetensors import SafetensorError, safe_open

        self.path = path
        with readable(path):
            try:
                with safe_open(path, framework="np") as checked:
                    self.facts: dict[str, Any] = json.loads(checked.metadata()["facts"])
            except SafetensorError as error:
                raise ValueError(error) from None
            with path.open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                self._header: dict[str, dict[str, Any]] = json.loads(file.read(size))
        del self._header["__metadata__"]
        self._start = 8 + size

    def __getitem__(self, name: str) -> NDArray[Any]:
        own = self._header[name]
        start, end = own["data_offsets"]
        with readable(self.path):
            kind = np.dtype(_KINDS[own["dtype"]])
            n, place = (end - start) // kind.itemsize, self._start + start
            return np.fromfile(self.path, kind, n, offset=place).reshape(own["shape"])

    def __iter__(self) -> Iterator[str]:
        return iter(self._header)

    def __len__(self) -> int:
        return len(self._header)
