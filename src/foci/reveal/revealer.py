"""Settings for the curves of many bags under one frozen classifier."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.bags import Bag
from foci.reveal.arguments import check_features
from foci.reveal.curves import KAPPA
from foci.reveal.embedded_bag import EmbeddedBag
from foci.reveal.engines.choice import CurveEngine, Engine


class Revealer:
    """Opens bags for one frozen classifier, all with the same settings.

    Args:
        backbone: Used in eval mode and without gradients; never changed.
        engine: ``"auto"`` follows the declared capabilities; the others force one engine.
        recheck: Confidences at which a crossing must not depend on rounding: every probability
            close to one of them is computed again in float64, and so is every tie between the two
            leading classes, at which the decision flips. Empty for neither.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        engine: Engine = "auto",
        recheck: Sequence[float] = (KAPPA,),
    ) -> None:
        self.backbone = backbone
        self._settings = CurveEngine(backbone, engine=engine, recheck=recheck)

    @property
    def engine(self) -> Engine:
        """The engine in use; never ``"auto"``."""
        return self._settings.name

    def open(self, bag: Bag | Tensor, tokens: Tensor | None = None) -> EmbeddedBag:
        """A bag that is embedded once, when its first curve is computed.

        Args:
            bag: A bag, or its features ``[N, D]``.
            tokens: ``[N, d]``, where the bag is embedded already.
        """
        if not isinstance(bag, Bag):
            bag = torch.as_tensor(bag)
            check_features(bag, self.backbone.d_in)
        return EmbeddedBag(self.backbone, bag, tokens=tokens, engine=self._settings)
