"""A slide of coloured squares with two rankings over them, made by hand."""

from pathlib import Path

import numpy as np

from foci.audits import AuditedSlide, RankedTiles
from foci.exports.tables import SURVIVES, RankedColumn, RankedSlide
from tests.makers.slides import squares, write_bounded

SIDE, COLUMNS, ROWS = 256, 4, 3
ORIGIN = (1000, 700)
NAN = float("nan")


def write_image(folder: Path) -> Path:
    return write_bounded(folder / "s.scn", squares(COLUMNS, ROWS, SIDE), ORIGIN)


def ranked(k: int = 9) -> RankedSlide:
    n = COLUMNS * ROWS
    cells = np.stack([np.arange(n) % COLUMNS, np.arange(n) // COLUMNS], axis=1)
    scores = {"native": np.arange(n) * 0.5, "selector-0": -np.arange(n) * 1.0}
    tiles = RankedTiles("s", np.arange(n) + 100, cells * SIDE + ORIGIN, scores)
    columns = tuple(
        RankedColumn(
            name=name,
            ranking=name.removesuffix("-0"),
            order=tiles.order(name)[:k],
            revealed=np.linspace(0.5, 0.9, k),
            delta_p=np.array([0.01 * i if i % 2 else NAN for i in range(k)]),
            msk=3 if name == "native" else None,
            decisive=4 if name == "native" else None,
            why_none="" if name == "native" else SURVIVES,
            as_asked=True,
            keep=(np.arange(1, 10), np.linspace(0.5, 0.9, 9)),
            remove=(np.arange(1, 10), np.linspace(0.9, 0.3, 9)),
        )
        for name in scores
    )
    slide = AuditedSlide("s", "P1", "LUAD", n, n, "px", SIDE)
    witness = np.arange(n) == 11
    return RankedSlide(slide, tiles, columns, "LUAD", 0.93, 0.9, witness)
