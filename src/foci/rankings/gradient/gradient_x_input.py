"""Gradient x input: the first-order effect of every feature, summed over the tile."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag


@ranking("gradient-x-input", needs=("gradients", "target"))
def gradient_x_input(bag: EmbeddedBag) -> Tensor:
    r"""Gradient of the target's logit times the feature.

    .. math:: s_i = \sum_d x_{id}\, \frac{\partial \ell_t}{\partial x_{id}}

    Without captum, which is an optional dependency: the gradient is one call of autograd.
    """
    return (bag.features.double() * logit_gradient(bag).double()).sum(dim=-1)


def logit_gradient(bag: EmbeddedBag) -> Tensor:
    """Gradient ``[N, D]`` of the target's logit; the model's own ``.grad`` stays untouched."""
    with torch.inference_mode(False), torch.enable_grad():
        x = bag.features.clone().requires_grad_()
        logit: Tensor = bag.backbone(x)[bag.target]
        if logit.requires_grad:
            gradient: Tensor | None = torch.autograd.grad(logit, x, allow_unused=True)[0]
            if gradient is not None:
                return gradient
    raise FociError(
        f"backbone {bag.backbone.architecture}",
        "passes no gradient from its logits to the features",
        "declare differentiable=False, or remove no_grad, detach and NumPy from its forward pass",
    )
