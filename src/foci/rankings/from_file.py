"""Rank by scores from a file."""

from __future__ import annotations

import difflib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.bags import Bag
from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.rankings.score_file import Places, ScoreFile, read_scores
from foci.reveal import EmbeddedBag


@ranking("from-file")
def from_file(bag: EmbeddedBag, *, path: str | Path, column: str = "score") -> Tensor:
    """Scores from a table; every tile of the bag must have exactly one.

    Rows of tiles that a pre-filter has dropped are ignored.

    Args:
        bag: The bag.
        path: Parquet, CSV, TSV or Excel with the columns ``slide_id``, ``tile`` (index in the
            feature file) or else ``x`` and ``y``, and the score. It is read once.
        column: Name of the score's column.
    """
    file = read_scores(path, column)
    if file.named(bag.slide_id) is None:
        near = difflib.get_close_matches(bag.slide_id, file.slides, n=1)
        what = f"has no slide {bag.slide_id!r} ({len(file.slides)} slides)"
        fix = f"did you mean {near[0]!r}?" if near else "use the slide names of the cohort"
        raise FociError(file.path, what, fix)
    known = bag.bag or Bag(bag.slide_id, bag.features.cpu().float().numpy())
    return torch.from_numpy(_match(file, known))


def _match(file: ScoreFile, bag: Bag) -> NDArray[np.float64]:
    """Scores ``[N]`` of one bag, in bag order."""
    places, scores = file.slides[file.named(bag.slide_id) or bag.slide_id]
    where = f"{file.path}, slide {bag.slide_id}"
    wanted = _places(file, bag, where)
    row_of = _rows(places, where, " and ".join(file.by))
    unknown = set(row_of).difference(wanted) if len(bag) == bag.n_total else set()
    if file.by == ("tile",):
        unknown |= {place for place in row_of if not 0 <= place[0] < bag.n_total}
    if unknown:
        raise FociError(
            where,
            f"{_say(min(unknown))} is none of the slide's {bag.n_total} tiles",
            "score the tiles of the same feature file",
        )
    missing = [place for place in wanted if place not in row_of]
    if missing:
        raise FociError(
            where,
            f"{_say(missing[0])} has no score ({len(missing)} of {len(bag)} tiles have none)",
            "score every tile of the bag",
        )
    matched: NDArray[np.float64] = scores[[row_of[place] for place in wanted]]
    bad = np.flatnonzero(np.isnan(matched))
    if len(bad):
        raise FociError(
            where,
            f"the score of {_say(wanted[bad[0]])} is NaN ({len(bad)} of {len(bag)} tiles)",
            "give every tile a number",
        )
    return matched


def _places(file: ScoreFile, bag: Bag, where: str) -> list[tuple[int, ...]]:
    """Every tile of the bag by index or by corner, as in the file."""
    if file.by == ("tile",):
        return [(int(tile),) for tile in bag.tiles]
    if bag.coords is None:
        what = "names tiles by x and y, but the bag has no coordinates"
        raise FociError(where, what, "add a column 'tile' with the index in the feature file")
    places: list[tuple[int, ...]] = [(int(x), int(y)) for x, y in bag.coords]
    if len(set(places)) < len(places):
        what = "names tiles by x and y, but two tiles of the bag have the same"
        raise FociError(where, what, "add a column 'tile' with the index in the feature file")
    return places


def _rows(places: Places, where: str, columns: str) -> dict[tuple[int, ...], int]:
    """Row of every place; refuses fractions and repetitions."""
    if not (np.isfinite(places) & (places == np.floor(places))).all():
        raise FociError(where, f"{columns} must be whole numbers", "correct or delete those rows")
    row_of: dict[tuple[int, ...], int] = {}
    for row, place in enumerate(map(tuple, places.astype(np.int64).tolist())):
        if place in row_of:
            raise FociError(where, f"{_say(place)} is there twice", "keep one row per tile")
        row_of[place] = row
    return row_of


def _say(place: tuple[int, ...]) -> str:
    return f"tile {place[0]}" if len(place) == 1 else f"the tile at x={place[0]}, y={place[1]}"
