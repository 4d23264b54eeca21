"""Rankings that know nothing of the classifier: random orders and the norm of the feature."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.bags import Bag
from foci.errors import FociError
from foci.rankings import Ranking
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


def uniform_scores(slide_id: str, n_tiles: int, seed: int) -> NDArray[np.float64]:
    """Uniform numbers in [0, 1) that depend on nothing but the arguments.

    Neither the machine nor a library version changes them: the raw stream of PCG64, which NumPy
    guarantees, is seeded with the SHA-256 of seed and slide name. (NumPy does not guarantee the
    stream of ``Generator.random``.)

    >>> uniform_scores("slide-1", 3, seed=0).round(4).tolist()
    [0.283, 0.1766, 0.1294]
    """
    digest = hashlib.sha256(f"{seed}\n{slide_id}".encode()).digest()
    raw = np.random.PCG64(int.from_bytes(digest, "big")).random_raw(n_tiles)
    return np.ldexp((raw >> np.uint64(11)).astype(np.float64), -53)
