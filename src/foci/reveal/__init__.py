"""Reveal and deletion curves: a frozen classifier's predictions as tiles are added or removed.

Names are loaded on first use: reading stored curves needs no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foci.lazy import lazy_names

if TYPE_CHECKING:
    from torch import Tensor

    from foci.backbones import Backbone
    from foci.reveal.bag import EmbeddedBag, Revealer
    from foci.reveal.curves import GRID, K_MAX, KAPPA, Curve, Direction
    from foci.reveal.engines import Engine, choose_engine
    from foci.reveal.prefixes import default_counts
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


_CURVES = "foci.reveal.curves"
_HOMES = {
    "GRID": _CURVES,
    "KAPPA": _CURVES,
    "K_MAX": _CURVES,
    "Curve": _CURVES,
    "Direction": _CURVES,
    "EmbeddedBag": "foci.reveal.bag",
    "Engine": "foci.reveal.engines",
    "Revealer": "foci.reveal.bag",
    "choose_engine": "foci.reveal.engines",
    "curve_until": "foci.reveal.search",
    "decisive_curves": "foci.reveal.search",
    "default_counts": "foci.reveal.prefixes",
}

__getattr__, __dir__ = lazy_names("foci.reveal", _HOMES)


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
