"""ASMIL as the paper runs it: gated attention held steady by an anchor (after Ye et al. 2026)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from foci.backbones.abmil import ABMIL
from foci.backbones.anchor import AnchorObjective
from foci.backbones.batch import Batch
from foci.backbones.layers import frozen_copy
from foci.backbones.objective import Objective
from foci.backbones.pooling import pool, softmax_weights
from foci.backbones.presets import architecture, preset
from foci.backbones.sampling import choose
from foci.errors import FociError


@architecture("asmil")
class ASMIL(ABMIL):
    """ABMIL with a second, slowly trailing copy of its attention.

    The anchor takes part in training only (:class:`ASMILObjective`); it is kept and counted as
    part of the model, as in the paper's efficiency table. Native score: the online attention
    logits before the softmax. The authors' published architecture is
    :class:`~foci.backbones.asmil_query.ASMILQuery`.

    Args:
        *args: As for :class:`~foci.backbones.abmil.ABMIL`.
        **widths: As for :class:`~foci.backbones.abmil.ABMIL`.
    """

    def __init__(self, *args: Any, **widths: Any) -> None:
        super().__init__(*args, **widths)
        self.anchor = frozen_copy(self.attention)

    def make_objective(self, **settings: Any) -> Objective:
        """See :class:`ASMILObjective`."""
        return ASMILObjective(self, **settings)


class ASMILObjective(AnchorObjective):
    r"""The anchored loss, on bags that may be thinned at random.

    The published model drops query tokens at random; the gated form has none, and drops
    :math:`\lfloor \mathrm{tile\_drop} \cdot N \rfloor` tiles of every bag instead. Both terms of
    the loss then see the thinned bag. A backbone in ``eval`` mode sees every tile.

    Args:
        backbone: The classifier.
        tile_drop: Share of tiles dropped while training, below 1; 0 drops none.
        **settings: As for :class:`~foci.backbones.anchor.AnchorObjective`.
    """

    backbone: ASMIL

    def __init__(self, backbone: ASMIL, *, tile_drop: float = 0.0, **settings: float) -> None:
        if not 0 <= tile_drop < 1:
            raise FociError("tile_drop", f"{tile_drop} drops every tile", "choose in [0, 1)")
        super().__init__(backbone, **settings)
        self.tile_drop = tile_drop

    def pair(self) -> tuple[nn.Module, nn.Module]:
        """The anchor belongs to the model."""
        return self.backbone.anchor, self.backbone.attention

    def forward(self, batch: Batch) -> Tensor:
        """Mean over the batch."""
        model, mask = self.backbone, batch.mask
        if model.training and self.tile_drop:
            n_tiles = mask.sum(dim=-1, keepdim=True)
            mask = mask & ~choose(mask, (n_tiles * self.tile_drop).long())
        tokens = model.embed(batch.features)
        online = model.attend(tokens)
        with torch.no_grad():
            anchor = model.anchor(tokens)
        slide = model.readout(pool(softmax_weights(online, mask), model.values(tokens)))
        return self.loss(slide, batch.labels, online, anchor, mask)


preset("asmil", "paper", ASMIL, d=256, hidden=128, head_hidden=128, projection_bias=False)
