"""On which slides of a patient the deciding tiles lie, where bags are patients."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from foci.audits.audit import StoredAudit
from foci.audits.folder import DECIDING_SLIDES, RANKINGS, SOURCE, column, parts_of, readable
from foci.audits.settings import AuditSettings
from foci.words import counted


def deciding_slides(audit: StoredAudit, settings: AuditSettings) -> list[dict[str, Any]]:
    """Tiles and deciding tiles of every slide of every patient; none where bags are slides.

    Deciding tiles are the first ones of the order that answers "which tiles?", to its decisive K;
    empty where a patient has no such set.
    """
    first_part = parts_of(audit.folder, RANKINGS)[0]
    with readable(first_part):
        if SOURCE not in pq.read_schema(first_part).names:
            return []
    measured = audit.measured(settings)
    wanted = (settings.readout, settings.map_name)
    order = next((one for name in wanted for one in measured.curves.orders if one[0] == name), None)
    known = None if order is None else measured.of(order[0]).with_decisive
    row_of = {name: row for row, name in enumerate(measured.slides.ids)}
    rows: list[dict[str, Any]] = []
    for bag in audit.tiles():
        count = np.nan if known is None else known.decisive[0, row_of[bag.slide_id]]
        first: list[int] = []
        if order is not None and not np.isnan(count):
            first = bag.order(column(*order))[: int(count)].tolist()
        deciding = Counter(bag.sources[tile] for tile in first)
        for slide, n_tiles in Counter(bag.sources).items():
            found = deciding[slide] if first else None
            rows.append(
                {"case_id": bag.slide_id, "slide_id": slide, "n_tiles": n_tiles,
                 "deciding_tiles": found}
            )  # fmt: skip
    return rows


def in_one_sentence(rows: list[dict[str, Any]]) -> list[str]:
    """How many slides of a patient decide; nothing where none are known."""
    counts: dict[str, int] = {}
    for row in rows:
        if row["deciding_tiles"] is not None:
            counts[row["case_id"]] = counts.get(row["case_id"], 0) + (row["deciding_tiles"] > 0)
    if not counts:
        return []
    slides = Counter(row["case_id"] for row in rows)
    half, of = (float(np.median(list(own))) for own in (counts.values(), slides.values()))
    return [
        f"the deciding tiles lie on {half:g} of {of:g} slides of a patient (medians over "
        f"{counted(len(counts), 'patient')} with deciding tiles; tables/{DECIDING_SLIDES})"
    ]
