"""Rank by what adding or removing a tile does: greedy searches, and leave-one-out.

``budget`` is the most tokens that are forwarded at once; it has no effect for pooling classifiers.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.engines import at_least_one
from foci.reveal.pooled import BUDGET

ROUNDS = 32


@ranking("greedy-insertion", needs=("target",))
def greedy_insertion(
    bag: EmbeddedBag, *, rounds: int = ROUNDS, shortlist: int | None = None, budget: int = BUDGET
) -> Tensor:
    r"""Add, round by round, the tile that makes the target most probable.

    .. math:: i_{k+1} = \arg\max_{i \notin S_k} p_t(S_k \cup \{i\}), \qquad S_0 = \emptyset

    The tiles never chosen follow by their value in the last round. Scores are N for the first tile
    and count down to 1.

    Args:
        bag: The bag.
        rounds: Tiles to choose.
        shortlist: Only this many of the best tiles of the first round compete in later rounds;
            they are ranked before all others. None for all tiles.
        budget: Most tokens forwarded at once.
    """
    candidates = bag.candidates(budget)
    nothing = torch.zeros(len(bag), dtype=torch.bool, device=bag.tokens.device)

    def value(present: Tensor, tiles: Tensor) -> Tensor:
        return bag.log_odds(candidates.adding(present, tiles))

    return _search(value, nothing, rounds, len(bag), shortlist)


@ranking("greedy-deletion", needs=("target",))
def greedy_deletion(
    bag: EmbeddedBag, *, rounds: int = ROUNDS, shortlist: int | None = None, budget: int = BUDGET
) -> Tensor:
    r"""Remove, round by round, the tile without which the target is least probable.

    .. math:: i_{k+1} = \arg\min_{i \in S_k} p_t(S_k \setminus \{i\}), \qquad S_0 = \{1..N\}

    One tile always stays; the rest, and the arguments, are as in ``greedy-insertion``.
    """
    candidates = bag.candidates(budget)
    every_tile = torch.ones(len(bag), dtype=torch.bool, device=bag.tokens.device)

    def value(present: Tensor, tiles: Tensor) -> Tensor:
        return -bag.log_odds(candidates.removing(present, tiles))

    return _search(value, every_tile, rounds, len(bag) - 1, shortlist)


def _search(
    value: Callable[[Tensor, Tensor], Tensor],
    present: Tensor,
    rounds: int,
    limit: int,
    shortlist: int | None,
) -> Tensor:
    """Scores ``[N]`` from N down to 1 in the order in which tiles are chosen."""
    rounds = at_least_one(rounds, "rounds")
    shortlist = None if shortlist is None else at_least_one(shortlist, "shortlist")
    n = len(present)
    rivals = torch.arange(n, device=present.device)
    values = torch.zeros(n, dtype=torch.float64, device=present.device)
    chosen, outside = rivals[:0], rivals[:0]
    for number in range(min(rounds, limit)):
        values[rivals] = value(present, rivals)
        if bool(values.isnan().any()):
            return values  # for the caller to refuse: ranks would hide the NaN
        best = rivals[values[rivals].argmax()]
        present[best] = ~present[best]
        chosen = torch.cat([chosen, best.reshape(1)])
        rivals = rivals[rivals != best]
        if number == 0 and shortlist is not None:
            ordered = _descending(rivals, values)
            rivals, outside = ordered[: shortlist - 1].sort().values, ordered[shortlist - 1 :]
        if not len(rivals):
            break
    order = torch.cat([chosen, _descending(rivals, values), _descending(outside, values)])
    scores = torch.empty_like(values)
    scores[order] = torch.arange(n, 0, -1, dtype=values.dtype, device=values.device)
    return scores


def _descending(tiles: Tensor, values: Tensor) -> Tensor:
    return tiles[values[tiles].argsort(descending=True, stable=True)]


@ranking("leave-one-out", needs=("target",))
def leave_one_out(bag: EmbeddedBag, *, budget: int = BUDGET) -> Tensor:
    r"""The fall of the target's probability when the tile is removed.

    .. math:: s_i = p_t(\{1..N\}) - p_t(\{1..N\} \setminus \{i\})

    The tile is removed, not zeroed. A bag without tiles has no prediction and counts as
    :math:`1/C`, so the only tile of a bag scores :math:`p_t - 1/C`.
    """
    candidates = bag.candidates(budget)
    full = bag.probability(candidates.full())
    if len(bag) == 1:
        return (full - 1 / bag.backbone.n_classes).reshape(1)
    index = torch.arange(len(bag), device=bag.tokens.device)
    every_tile = torch.ones(len(bag), dtype=torch.bool, device=index.device)
    return full - bag.probability(candidates.removing(every_tile, index))
