"""Integrated gradients from zero features to the bag, by captum."""

from __future__ import annotations

import torch
from torch import Tensor

from foci.errors import FociError
from foci.rankings.gradient.gradient_x_input import logit_gradient
from foci.rankings.registry import ranking
from foci.reveal import EmbeddedBag
from foci.reveal.arguments import at_least_one
from foci.reveal.candidates.forwarded import BUDGET


@ranking("integrated-gradients", needs=("gradients", "target"))
def integrated_gradients(bag: EmbeddedBag, *, n_steps: int = 50, budget: int = BUDGET) -> Tensor:
    r"""Integrated gradients of the target's logit from zero features (Sundararajan et al. 2017).

    .. math:: s_i = \sum_d x_{id} \int_0^1
       \frac{\partial \ell_t(\gamma x)}{\partial x_{id}}\, d\gamma, \qquad
       \sum_i s_i = \ell_t(x) - \ell_t(0)

    The integral is a Gauss-Legendre sum, computed by captum.

    Args:
        bag: The bag.
        n_steps: Points of the quadrature.
        budget: Most tiles forwarded at once.
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
        attribution: Tensor = IntegratedGradients(bag.backbone).attribute(
            x,
            target=bag.target,
            n_steps=n_steps,
            internal_batch_size=max(1, budget // len(bag)),
        )
    return attribution[0].double().sum(dim=-1)
