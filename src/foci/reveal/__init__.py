r"""Reveal and deletion curves: a frozen classifier's predictions as tiles are added or removed.

With the tiles of a bag in the order :math:`\pi(1), \pi(2), \dots`, most important first, a curve is

.. math:: p(k) = \mathrm{softmax}\, f(\{x_{\pi(1)}, \dots, x_{\pi(k)}\})
   \qquad\text{or, by deletion,}\qquad
   p(k) = \mathrm{softmax}\, f(\{x_{\pi(k+1)}, \dots, x_{\pi(N)}\})

at every count k. :func:`curve` computes one; ``engines`` has the exact ways to do so. Names that
need torch are loaded on first use: reading stored curves needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from foci.registry import lazy_names

if TYPE_CHECKING:
    from torch import Tensor

    from foci.backbones import Backbone
    from foci.reveal.bag import EmbeddedBag, Revealer
    from foci.reveal.engines import Engine, choose_engine, default_counts
    from foci.reveal.search import curve_until, decisive_curves

__all__ = [
    "GRID",
    "KAPPA",
    "K_MAX",
    "Curve",
    "Direction",
    "EmbeddedBag",
    "Engine",
    "Revealer",
    "choose_engine",
    "curve",
    "curve_until",
    "decisive_curves",
    "default_counts",
]

__getattr__, _ = lazy_names(
    "foci.reveal",
    {
        "EmbeddedBag": "foci.reveal.bag",
        "Engine": "foci.reveal.engines",
        "Revealer": "foci.reveal.bag",
        "choose_engine": "foci.reveal.engines",
        "curve_until": "foci.reveal.search",
        "decisive_curves": "foci.reveal.search",
        "default_counts": "foci.reveal.engines",
    },
)


def __dir__() -> list[str]:
    return __all__


Direction = Literal["insert", "delete"]

Stored = Literal["insert", "delete", "insert-tail", "delete-tail"]
"""Of a stored curve; its tail is the few counts beyond it, to the last tile."""

K_MAX = 256
"""The paper's largest reveal count."""

KAPPA = 0.9
"""The paper's operating confidence."""

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Counts at which a classifier without a closed form is asked first."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One slide under one ranking, in one direction.

    Attributes:
        slide_id: The slide.
        ranking: Name of the ranking.
        seed: Of the selector or the random order; None where nothing is drawn.
        direction: ``"insert"`` reveals the first k tiles, ``"delete"`` removes them; a tail holds
            counts beyond those, which only areas over the whole slide are read from.
        n_tiles: Candidate tiles N.
        ks: ``[len(ks)]`` increasing counts.
        probs: ``[len(ks), C]`` class probabilities.
        full: ``[C]`` class probabilities of the full bag.
        tied: Share of the first 32 tiles whose score another tile has too.
        searched: Count up to which every one was tried. Beyond the largest count that is revealed
            in any case, a curve keeps a grid of them, and the first at which its tiles decide.
    """

    slide_id: str
    ranking: str
    seed: int | None
    direction: Stored
    n_tiles: int
    ks: NDArray[np.int64]
    probs: NDArray[np.float64]
    full: NDArray[np.float64]
    tied: float = 0.0
    searched: int = 0


def curve(
    backbone: Backbone,
    features: Tensor,
    order: Tensor | Sequence[int],
    ks: Tensor | Sequence[int] | None = None,
    direction: Direction = "insert",
    engine: Engine = "auto",
) -> Tensor:
    """Class probabilities of one bag at every reveal count, ``[len(ks), C]`` in float64.

    For several rankings of one bag, or several bags, use :class:`Revealer`: it embeds a bag once.

    Args:
        backbone: The frozen classifier.
        features: ``[N, D]`` of one bag.
        order: Tile indices, most important first.
        ks: Increasing counts; default is 1..min(256, N) revealed, or 0..min(256, N - 1) deleted.
        direction: ``"insert"`` reveals the first k tiles, ``"delete"`` removes them.
        engine: ``"auto"``, or ``"reference"`` for one forward pass per count.

    >>> import torch
    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=8, n_classes=2)
    >>> bag = torch.randn(5, 8)
    >>> probabilities = curve(model, bag, order=[3, 1, 0, 2, 4])
    >>> probabilities.shape
    torch.Size([5, 2])
    >>> bool(torch.allclose(probabilities[-1], model.predict(bag)))
    True
    """
    from foci.reveal.bag import Revealer

    return Revealer(backbone, engine=engine).open(features).curve(order, ks, direction)
