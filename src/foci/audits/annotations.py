"""Compare rankings with annotated tiles: precision among the first 8, average precision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.audits.audit import StoredAudit
from foci.audits.folder.manifest import TruthRecord, write_manifest
from foci.audits.folder.tile_scores import RankedTiles, runs
from foci.errors import FociError
from foci.metrics import average_precision, precision_at_k

FIRST = 8
"""Tiles in which precision is measured: about as many as a person looks at."""

COLUMNS = ("slide_id", "tile", "witness")
A = TypeVar("A", bound=StoredAudit)
Marks = Mapping[str, NDArray[np.bool_]]
"""For every slide a mask over the tiles of its file, True for a witness."""


def read_marks(path: str | Path) -> dict[str, NDArray[np.bool_]]:
    """Read tile annotations from Parquet: ``slide_id``, ``tile`` (row in the file), ``witness``."""
    try:
        table = pq.read_table(path, columns=list(COLUMNS))
        names, tiles, marks = (table[column].to_numpy() for column in COLUMNS)
        order = np.lexsort((tiles, names))
        names, tiles, marks = names[order], tiles[order], marks[order].astype(bool)
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        fix = f"give a Parquet file with the columns {', '.join(COLUMNS)}"
        raise FociError(path, f"is no table of marked tiles ({why})", fix) from None
    by_slide = {}
    for start, end in runs(names):
        if not np.array_equal(tiles[start:end], np.arange(end - start)):
            what = f"does not mark every tile of {names[start]} exactly once"
            raise FociError(path, what, "give one row per tile of the feature file")
        by_slide[str(names[start])] = marks[start:end]
    return by_slide


def compare_with_marks(audit: StoredAudit, marks: Marks, what: str) -> TruthRecord:
    """Precision among the first 8 tiles and average precision of every stored ranking.

    Only slides that have a witness among their candidate tiles count. ``chance`` is the share of
    witnesses, the mean precision of a random order.

    Args:
        audit: A finished audit.
        marks: The annotated tiles.
        what: One sentence that says what was marked and by whom.
    """
    precision: dict[str, list[float]] = {}
    average: dict[str, list[float]] = {}
    shares: list[float] = []
    for slide in audit.tiles():
        witness = _marks_of(slide, marks)
        if witness is None or not witness.any():
            continue
        shares.append(float(witness.mean()))
        for column, scores in slide.scores.items():
            share = precision_at_k(scores, witness, min(FIRST, len(slide)))
            precision.setdefault(column, []).append(share)
            average.setdefault(column, []).append(average_precision(scores, witness))
    if not shares:
        raise FociError("truth", "marks no tile of any audited slide", "check the slides' names")
    return TruthRecord(
        what=what,
        n_slides=len(shares),
        chance=float(np.mean(shares)),
        precision8={column: float(np.mean(v)) for column, v in precision.items()},
        average_precision={column: float(np.mean(v)) for column, v in average.items()},
    )


def attach(audit: A, marks: Marks, what: str) -> A:
    """Write the comparison into the audit's manifest and reload the audit."""
    truth = compare_with_marks(audit, marks, what)
    write_manifest(audit.folder, audit.manifest.model_copy(update={"truth": truth}))
    return type(audit).load(audit.folder, accept_changed=bool(audit.changed))


def _marks_of(slide: RankedTiles, marks: Marks) -> NDArray[np.bool_] | None:
    mask = marks.get(slide.slide_id)
    if mask is None:
        return None
    if slide.tiles.max() >= len(mask):
        what = f"marks {len(mask)} tiles, the feature file has at least {slide.tiles.max() + 1}"
        raise FociError(slide.slide_id, what, "mark every tile of the feature file")
    return mask[slide.tiles]
