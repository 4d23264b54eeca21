"""Rank by the L2 norm of the feature: what the encoder alone shows."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.bags import Bag
from foci.rankings.registry import Ranking, ranking
from foci.reveal import EmbeddedBag
from foci.reveal.prefixes import random_scores


@ranking("feature-norm")
def feature_norm(bag: EmbeddedBag) -> Tensor:
    r"""L2 norm of the feature, :math:`\lVert x_i \rVert_2`.

    The paper's pre-filter selects tiles by it.
    """
    norms: Tensor = torch.linalg.vector_norm(bag.features.double(), dim=-1)
    return norms


# Random orders: the control that every other ranking has to beat.


@ranking("random")
def random(bag: EmbeddedBag, *, seed: int = 0) -> Tensor:
    """A random number for every tile of the slide's file; see :func:`random_scores`.

    Args:
        bag: The bag.
        seed: Each gives another order.
    """
    return torch.from_numpy(random_scores(bag.bag, bag.slide_id, len(bag), seed))


def random_controls(bag: Bag | Tensor, n_seeds: int = 10) -> tuple[Ranking, ...]:
    """The random orders of the control band, ``random-0`` to ``random-9``.

    Args:
        bag: A bag or its features.
        n_seeds: How many.

    >>> [control.name for control in random_controls(torch.zeros(4, 8), n_seeds=2)]
    ['random-0', 'random-1']
    """
    known = bag if isinstance(bag, Bag) else None
    slide_id = known.slide_id if known else "bag"
    return tuple(
        Ranking(f"random-{seed}", slide_id, random_scores(known, slide_id, len(bag), seed))
        for seed in range(n_seeds)
    )
