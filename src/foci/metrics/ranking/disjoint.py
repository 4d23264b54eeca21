"""Number of disjoint sufficient sets of tiles in one slide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from foci.metrics import inputs
from foci.metrics.cards import card


@card(
    title="Disjoint sufficient sets",
    symbol=r"\#S_s",
    equation=r"\max\{m : S_1, \dots, S_m \subseteq X_s\ \text{disjoint, each sufficient}\}",
    direction="none",
    range=(0, math.inf),
    needs="the sufficient sets of a slide, found one after the other on what the others left",
    does_not_show="the largest possible number: a search that takes tiles greedily finds fewer",
    source="Carter et al. 2019 (sufficient input subsets), applied to tiles",
)
def disjoint_sets(sets: Iterable[Sequence[int]]) -> int:
    """Number of disjoint sufficient sets; sets that share a tile or are empty are refused.

    One set means that the decision hangs on one group of tiles, many that the evidence is spread
    over the slide.

    >>> disjoint_sets([[4, 1], [7], [0, 2, 3]])
    3
    """
    found = [{int(tile) for tile in tiles} for tiles in sets]
    inputs.require(all(found), "sets", "holds an empty set", "leave it out")
    total = sum(len(tiles) for tiles in found)
    distinct = len(set().union(*found)) if found else 0
    what, fix = "share a tile", "search each on the tiles that the others left"
    inputs.require(total == distinct, "sets", what, fix)
    return len(found)
