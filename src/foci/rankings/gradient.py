"""Rank by the gradient of the target's logit, at the bag or integrated up to it."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.errors import FociError
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.engines import at_least_one
from foci.reveal.pooled import BUDGET


@ranking("gradient-x-input", needs=("gradients", "target"))
def gradient_x_input(bag: EmbeddedBag) -> Tensor:
    r"""Gradient of the target's logit times the feature.

    .. math:: s_i = \sum_d x_{id}\, \frac{\partial \ell_t}{\partial x_{id}}

    Without captum, which is an optional dependency: the gradient is one call of autograd.
    """
    return (bag.features.double() * logit_gradient(bag).double()).sum(dim=-1)


def followed(bag: EmbeddedBag, logits: Tensor) -> Tensor:
    """The target's logit of ``[..., C]``; its lead over the other where both are one number."""
    own: Tensor = logits[..., bag.target]
    return own - logits[..., 1 - bag.target] if bag.backbone.one_number else own


def logit_gradient(bag: EmbeddedBag) -> Tensor:
    """Gradient ``[N, D]`` of what is followed; the model's own ``.grad`` stays untouched."""
    with torch.inference_mode(False), torch.enable_grad():
        x = bag.features.clone().requires_grad_()
        logit = followed(bag, bag.backbone(x))
        if logit.requires_grad:
            gradient: Tensor | None = torch.autograd.grad(logit, x, allow_unused=True)[0]
            if gradient is not None:
                return gradient
    raise FociError(
        f"backbone {bag.backbone.architecture}",
        "passes no gradient from its logits to the features",
        "declare differentiable=False, or remove no_grad, detach and NumPy from its forward pass",
    )


@ranking("integrated-gradients", needs=("gradients", "target"))
def integrated_gradients(bag: EmbeddedBag, *, n_steps: int = 50, budget: int = BUDGET) -> Tensor:
    r"""Integrated gradients of the target's logit from zero features (Sundararajan et al. 2017).

    .. math:: s_i = \sum_d x_{id} \int_0^1
       \frac{\partial \ell_t(\gamma x)}{\partial x_{id}}\, d\gamma, \qquad
       \sum_i s_i = \ell_t(x) - \ell_t(0)

    The integral is a Gauss-Legendre sum of ``n_steps`` points, computed by captum; ``budget`` is
    the most tiles that are forwarded at once.
    """
    n_steps, budget = at_least_one(n_steps, "n_steps"), at_least_one(budget, "budget")
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise FociError(
            "ranking 'integrated-gradients'",
            "needs captum, which is not installed",
            "pip install foci-mil[attribution]",
        ) from error
    logit_gradient(bag)  # refused here, because captum's message names neither model nor cause
    with torch.inference_mode(False), torch.enable_grad():
        x = bag.features.clone().unsqueeze(0).requires_grad_()
        attribution: Tensor = IntegratedGradients(
            lambda bags: followed(bag, bag.backbone(bags))
        ).attribute(
            x,
            n_steps=n_steps,
            internal_batch_size=max(1, budget // len(bag)),
        )
    return attribution[0].double().sum(dim=-1)
