r"""Read a model's risk, number or one of its labels as a decision between the two sides of a cut.

A number f is held as two logits whose difference it is, as a sigmoid output u is held as [0, u].
Hazards :math:`h_t` of time bins become the risk

.. math:: f = -\sum_t S(t), \qquad S(t) = \prod_{u \le t} (1 - \sigma(h_u)).

:func:`two_sides` makes a classifier of two classes of it, see :mod:`foci.outputs`. Where the logits
are the last layer of a head, its weights are scaled and everything that holds of the classifier
still does: closed form, proven minima. Any other model is wrapped.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from foci.backbones.base import Backbone, Capabilities, declared
from foci.errors import FociError
from foci.outputs import Cut, Output

if TYPE_CHECKING:
    from foci.bags import Bag


def scalar(logits: Tensor, output: Output, label: int | None = None) -> Tensor:
    """The number f ``[...]`` that a model's logits ``[..., C]`` stand for.

    >>> scalar(torch.tensor([1.0, 3.0]), "cox").item()
    2.0
    >>> round(scalar(torch.tensor([0.0, 0.0]), "hazards").item(), 4)  # -(1/2 + 1/4)
    -0.75
    """
    if output == "hazards":
        return -torch.cumprod(torch.sigmoid(-logits), dim=-1).sum(dim=-1)
    if output == "multilabel":
        if label is None:
            raise FociError("output multilabel", "names no label", "give --target-class NAME")
        return logits[..., label]
    if logits.shape[-1] != 2:
        what = f"has {logits.shape[-1]} outputs, not one number"
        fix = "give hazards, multilabel or class"
        raise FociError(f"output {output}", what, fix)
    return logits[..., 1] - logits[..., 0]


def two_sides(
    backbone: Backbone, output: Output, cut: Cut, kappa: float, label: int | None = None
) -> Backbone:
    """The same model as a classifier of the sides below and above a cut; the model stays as it is.

    Its log-odds are (f - c) logit(kappa) / tau.
    """
    slope = cut.slope(kappa)
    by_head = declared(backbone, "split-readout") or declared(backbone, "encoder")
    one_head = backbone.capabilities.structure in ("linear head", "relu head")
    if (output in ("cox", "regression") and by_head) or (output == "multilabel" and one_head):
        sided = copy.deepcopy(backbone)
        head = getattr(sided, "head", None)
        last = head[-1] if isinstance(head, nn.Sequential) else head
        if isinstance(last, nn.Linear) and last.out_features == backbone.n_classes:
            with torch.no_grad():
                weight = last.weight
                bias = weight.new_zeros(len(weight)) if last.bias is None else last.bias.clone()
                if label is not None:
                    weight, bias = (
                        torch.stack([torch.zeros_like(one[label]), one[label]])
                        for one in (weight, bias)
                    )
                    sided.n_classes = sided._arguments["n_classes"] = last.out_features = 2
                last.weight = nn.Parameter(weight * slope, requires_grad=False)
                bias = bias * slope + bias.new_tensor([0.0, -slope * cut.value])
                last.bias = nn.Parameter(bias, requires_grad=False)
            return sided
    return Sides(backbone, output, slope, cut.value, label)


class Sides(Backbone):
    """A model whose output is read against a cut, as a classifier of two classes.

    Args:
        backbone: The model.
        output: What its logits are.
        slope: Log-odds per unit of the output.
        cut: The cut.
        label: Which of the outputs, where they are labels.
    """

    slope: Tensor
    cut: Tensor

    def __init__(
        self, backbone: Backbone, output: Output, slope: float, cut: float, label: int | None = None
    ) -> None:
        super().__init__(backbone.d_in, 2, d_token=backbone.d_token)
        self.backbone, self.output, self.label = backbone, output, label
        self.architecture = backbone.architecture  # type: ignore[misc]
        self.notes = backbone.notes
        self.register_buffer("slope", torch.tensor(slope, dtype=torch.float64))
        self.register_buffer("cut", torch.tensor(cut, dtype=torch.float64))

    def _sides(self, logits: Tensor) -> Tensor:
        f = scalar(logits, self.output, self.label)
        z = (f - self.cut.to(f)) * self.slope.to(f)
        return torch.stack([torch.zeros_like(z), z], dim=-1)

    @property
    def config(self) -> dict[str, Any]:
        """The model's own, and what is read of it."""
        own = {"output": self.output, "label": self.label}
        return {**self.backbone.config, **own, "slope": float(self.slope), "cut": float(self.cut)}

    @property
    def capabilities(self) -> Capabilities:
        """The model's own; its logits no longer come apart."""
        return replace(self.backbone.capabilities, structure="none")

    @property
    def input_width(self) -> int:
        """The model's own."""
        return self.backbone.input_width

    def inputs(self, bag: Bag) -> Tensor:
        """The model's own."""
        return self.backbone.inputs(bag)

    def placed(self, x: Tensor) -> Tensor:
        """The model's own."""
        return self.backbone.placed(x)

    def embed(self, x: Tensor) -> Tensor:
        """The model's own."""
        return self.backbone.embed(x)

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """See :meth:`Backbone.aggregate`."""
        return self._sides(self.backbone.aggregate(tokens, mask, gate))

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """See :meth:`Backbone.prefixes`."""
        return self._sides(self.backbone.prefixes(tokens, ks))

    def scores(self, tokens: Tensor) -> Tensor:
        """The model's own map."""
        return self.backbone.scores(tokens)
