"""Which tiles a student must do without: masked hard instance mining (Tang et al., 2023)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from foci.backbones.sampling import choose
from foci.errors import FociError


@dataclass(frozen=True)
class MaskRatios:
    """How much of a bag is hidden, as shares of its N tiles; the three sets may overlap.

    The defaults are the published TCGA-NSCLC run with gated attention.

    Attributes:
        random: Share drawn at random (r).
        low: Share with the lowest attention (r_l).
        high: Share hidden among the highest attention (r_h).
        high_draw: Which part of the candidates with the highest attention is drawn (r_hr): at 1
            exactly the top share ``high``, below 1 a random part of the top ``high / high_draw``;
            not above ``high`` means that all tiles are candidates.
    """

    random: float = 0.7
    low: float = 0.2
    high: float = 0.02
    high_draw: float = 1.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not 0 <= value <= 1:
                raise FociError(f"mask ratio {name!r}", f"is {value}", "choose it in [0, 1]")


def share(n: int, ratio: float) -> int:
    """``ceil(n * ratio)``, with products like 100 * 0.07 taken for the 7 they stand for.

    >>> share(10, 0.25), share(100, 0.07), share(5, 0.0)
    (3, 7, 0)
    """
    return math.ceil(n * ratio - 1e-9)


def mask_tiles(attention: Tensor, ratios: MaskRatios) -> Tensor:
    r"""The tiles of one bag that are hidden from the student.

    .. math:: M = R_{\lceil rN \rceil} \cup L_{\lceil r_l N \rceil} \cup
       \mathrm{draw}_{r_{hr}}\big(H_{\lceil r_h N / r_{hr} \rceil}\big)

    with R random tiles, L the lowest and H the highest attention. One random tile stays visible
    where the union would leave none.

    Args:
        attention: ``[N]``, any monotone version of the teacher's attention.
        ratios: How much is hidden.

    Returns:
        ``[N]`` bool, True where a tile is hidden. Draws from torch's global generator.
    """
    n = len(attention)
    place = attention.argsort(descending=True, stable=True).argsort()
    tiles = torch.ones_like(place, dtype=torch.bool)
    draw = max(ratios.high_draw, ratios.high)
    candidates = share(n, ratios.high / draw) if draw > 0 else 0
    hidden = (
        choose(tiles, share(n, ratios.random))
        | (place >= n - share(n, ratios.low))
        | choose(place < candidates, share(candidates, draw))
    )
    return hidden & ~choose(tiles, 1) if hidden.all() else hidden
