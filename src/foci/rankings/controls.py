"""Rankings that know nothing of the classifier: random orders and the norm of the feature."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from torch import Tensor

from foci.bags import Bag
from foci.errors import FociError
from foci.rankings import Ranking, uniform_scores
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag


@ranking("feature-norm")
def feature_norm(bag: EmbeddedBag) -> Tensor:
    r"""L2 norm of the feature, :math:`\lVert x_i \rVert_2`.

    The paper's pre-filter selects tiles by it.
    """
    norms: Tensor = torch.linalg.vector_norm(bag.features.double(), dim=-1)
    return norms


@ranking("random")
def random(bag: EmbeddedBag, *, seed: int = 0) -> Tensor:
    """A random number for every tile of the slide's file, another one for every seed.

    See :func:`random_scores`.
    """
    return torch.from_numpy(random_scores(bag.bag, bag.slide_id, len(bag), seed))


def random_controls(bag: Bag | Tensor, n_seeds: int = 10) -> tuple[Ranking, ...]:
    """The random orders of the control band, ``random-0`` to ``random-9`` by default.

    >>> [control.name for control in random_controls(torch.zeros(4, 8), n_seeds=2)]
    ['random-0', 'random-1']
    """
    known = bag if isinstance(bag, Bag) else None
    slide_id = known.slide_id if known else "bag"
    return tuple(
        Ranking(f"random-{seed}", slide_id, random_scores(known, slide_id, len(bag), seed))
        for seed in range(n_seeds)
    )


def random_scores(
    bag: Bag | None, slide_id: str, n_tiles: int, seed: int = 0
) -> NDArray[np.float64]:
    """One uniform random number per tile, ``[N]``; sorted in descending order, a random order.

    Tiles are identified by their index in the file, so a tile has the same number whether or not a
    pre-filter dropped others, and in whatever order the bag lists its tiles. ``bag`` is None for
    features that come from no file.
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise FociError("seed", f"is {seed!r}", "give a whole number")
    if bag is None:
        return uniform_scores(slide_id, n_tiles, seed)
    drawn: NDArray[np.float64] = uniform_scores(slide_id, bag.n_total, seed)[bag.tiles]
    return drawn


def null_directions(n_maps: int, spread: NDArray[np.float64], seed: int = 0) -> Tensor:
    r"""Random directions in standardised feature space, ``[M, D]``: maps that know nothing.

    .. math:: s_i = \sum_d \frac{u_d}{\sigma_d}\, x_{i,d}, \qquad u_d \sim \mathcal{N}(0, 1)

    ``spread`` ``[D]`` is the standard deviation of every feature; one that never varies has no
    say. (Its mean would move all scores of a slide alike.)

    >>> null_directions(2, np.array([1.0, 2.0, 0.0])).shape
    torch.Size([2, 3])
    """
    drawn = uniform_scores("null maps", n_maps * len(spread), seed).reshape(n_maps, -1)
    normal = ndtri(drawn + 2.0**-54)  # never 0
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return torch.from_numpy(normal * scale)
