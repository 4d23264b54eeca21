r"""A plain transformer: all prefixes packed without padding, and nothing computed twice.

Exact, but cheaper than forwarding every prefix:

* tile-wise work (LayerNorms, projections, feed-forward) runs on the tokens of many prefixes laid
  end to end, so that no padding is multiplied;
* the first layer's queries, keys and values do not depend on the prefix and are computed once;
* in the last layer only the CLS token is needed. With one query per head its keys and values need
  not be formed: :math:`q^\top W_k h_i = (W_k^\top q)^\top h_i` and
  :math:`\sum_i w_i W_v h_i = W_v \sum_i w_i h_i`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones.encoder import EncoderLayer
from foci.backbones.transmil import TransMIL
from foci.reveal.generic import chunks
from foci.reveal.nested import Nested


class PackedReveal:
    """Prefixes of similar length run together.

    Args:
        backbone: The paper's TransMIL, or any width of it.
        tokens: ``[N, d]`` of one bag.
        budget: Most tokens that are in flight at once; sets the memory.
    """

    def __init__(self, backbone: TransMIL, tokens: Tensor, budget: int) -> None:
        self.backbone, self.budget = backbone, budget
        self.hidden = torch.cat([backbone.cls[None].to(tokens.dtype), tokens])  # [1 + N, d]
        self.layers = cast("list[EncoderLayer]", list(backbone.layers))
        self.first = self.layers[0].qkv(self.hidden)

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, chunk by chunk."""
        zero = torch.zeros(1, dtype=torch.long, device=nested.sequence.device)
        sequence = torch.cat([zero, nested.sequence + 1])
        for chunk in chunks(nested.sizes, self.budget):
            yield chunk, self._logits(sequence, nested.sizes[chunk] + 1)

    def _logits(self, sequence: Tensor, sizes: Tensor) -> Tensor:
        """Logits ``[b, C]`` of the first n entries of the sequence (CLS first), n in ``sizes``."""
        longest = int(sizes.max())
        sequence = sequence[:longest]
        present = torch.arange(longest, device=sizes.device)[None, :] < sizes[:, None]  # [b, L]
        packed = self.hidden[sequence].expand(len(sizes), -1, -1)[present]  # [T, d]
        for number, layer in enumerate(self.layers[:-1]):
            if number == 0:
                q, k, v = (part[:, sequence].expand(len(sizes), -1, -1, -1) for part in self.first)
            else:
                q, k, v = (_unpack(part, present) for part in layer.qkv(packed))
            gathered = F.scaled_dot_product_attention(q, k, v, attn_mask=present[:, None, None, :])
            packed = packed + layer.output(gathered.transpose(1, 2)[present].flatten(1))
            packed = packed + layer.feed_forward(packed)
        return self.backbone.readout(last_cls(self.layers[-1], packed, present))


def last_cls(layer: EncoderLayer, packed: Tensor, present: Tensor) -> Tensor:
    """CLS tokens ``[b, d]`` after the last layer, from packed tokens ``[T, d]`` before it."""
    normed = layer.attention_norm(packed)
    grid = torch.zeros(*present.shape, packed.shape[-1], dtype=packed.dtype,
                       device=packed.device)  # fmt: skip
    grid[present] = normed  # [b, L, d]
    heads, d = layer.heads, packed.shape[-1]
    width = d // heads
    key_weight, value_weight = layer.key_value.weight.view(2, heads, width, d)
    key_bias, value_bias = layer.key_value.bias.view(2, heads, width)
    query = layer.query(grid[:, 0]).view(-1, heads, width) * width**-0.5
    probe = torch.einsum("bhw,hwd->bhd", query, key_weight)
    offset = torch.einsum("bhw,hw->bh", query, key_bias)
    logits = probe @ grid.transpose(1, 2) + offset[..., None]  # [b, heads, L]
    weights = logits.masked_fill(~present[:, None, :], -torch.inf).softmax(dim=-1)
    mixed = weights @ grid  # [b, heads, d]
    gathered = torch.einsum("bhd,hwd->bhw", mixed, value_weight) + value_bias
    first = F.pad(present.sum(dim=1).cumsum(0), (1, 0))[:-1]
    cls: Tensor = packed[first] + layer.output(gathered.flatten(1))
    return cls + layer.feed_forward(cls)


def _unpack(part: Tensor, present: Tensor) -> Tensor:
    """``[heads, T, w]`` to the padded ``[b, heads, L, w]``."""
    grid = part.new_zeros(*present.shape, part.shape[0], part.shape[2])
    grid[present] = part.transpose(0, 1)
    return grid.transpose(1, 2)
