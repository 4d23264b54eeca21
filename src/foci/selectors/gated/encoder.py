"""Gate the attention of a plain transformer (TransMIL) without computing every pair of tiles."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.layers.encoder import EncoderLayer
from foci.backbones.models.transmil import TransMIL
from foci.selectors.gated.base import GatedBackbone, Tiles
from foci.selectors.gated.gated_attention import gated_attention


class EncoderAttentionGated(GatedBackbone):
    r"""Gated attention weights, before normalisation, in every layer of a transformer.

    Logits and gradients are those of ``backbone.aggregate(tokens, mask, gate)``. The tiles are
    split into open ones, :math:`g > 0`, and closed ones, :math:`g = 0`:

    * nobody attends to a closed tile, so the logits depend on the open tiles alone, and no gradient
      reaches a closed tile's hidden state;
    * the gate of a closed tile has a slope, though, for which its keys and values are needed in
      every layer. Closed tiles are carried along without gradients, attending to the open ones;
    * where the gate needs no gradient, closed tiles are left out altogether;
    * in the last layer only the CLS token has a query.

    Bags are forwarded one by one: a bag that keeps 3 tiles costs 3 tiles, whatever the batch.

    Args:
        backbone: The paper's TransMIL, or any width of it.
    """

    def __init__(self, backbone: TransMIL) -> None:
        self.backbone: TransMIL = backbone

    def logits(self, tiles: Tiles, mask: Tensor, gate: Tensor) -> Tensor:
        """Gate the attention."""
        bags = zip(tiles["tokens"], mask, gate, strict=True)
        return torch.cat([self._logits(*bag) for bag in bags])

    def _logits(self, tokens: Tensor, real: Tensor, gate: Tensor) -> Tensor:
        """Logits ``[1, C]`` of one bag ``[N, d]`` under its gate ``[N]``."""
        kept = real & (gate > 0)
        opened, closed = kept.nonzero()[:, 0], (real & ~kept).nonzero()[:, 0]
        learned = torch.is_grad_enabled() and gate.requires_grad
        order = torch.cat([opened, closed]) if learned else opened
        gate = F.pad(gate[order], (1, 0), value=1.0)
        tokens, n_open = tokens[order], len(opened)
        hidden = torch.cat([self.backbone.cls[None], tokens[:n_open]]).unsqueeze(0)
        shut = tokens[n_open:].detach().unsqueeze(0)
        *layers, last = cast("list[EncoderLayer]", list(self.backbone.layers))
        for layer in layers:
            hidden, shut = _through(layer, hidden, shut, gate)
        return self.backbone.readout(last.first(torch.cat([hidden, shut], dim=1), gate=gate))


def _through(
    layer: EncoderLayer, hidden: Tensor, shut: Tensor, gate: Tensor
) -> tuple[Tensor, Tensor]:
    """Open and closed tiles through one layer.

    Args:
        layer: The layer.
        hidden: CLS and open tiles ``[1, n, d]``.
        shut: Closed tiles ``[1, m, d]``.
        gate: ``[n + m]`` of both.
    """
    n_open = hidden.shape[1]
    q, k, v = layer.qkv(hidden)
    if shut.shape[1]:
        with torch.no_grad():
            shut_q, shut_k, shut_v = layer.qkv(shut)
            gathered = gated_attention(shut_q, k, v, gate[:n_open], n_open)
            shut = shut + layer.merge(gathered)
            shut = shut + layer.feed_forward(shut)
        k, v = torch.cat([k, shut_k], dim=-2), torch.cat([v, shut_v], dim=-2)
    hidden = hidden + layer.merge(gated_attention(q, k, v, gate, n_open))
    return hidden + layer.feed_forward(hidden), shut
