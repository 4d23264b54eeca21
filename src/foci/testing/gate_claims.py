"""Checks of gates: closing one removes its tile, and gradients reach it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foci.testing.claim import claim
from foci.testing.specimen import PADDING, Specimen


@claim(made_by=lambda model: "attention" in model.capabilities.gate_sites)
def hard_gate_is_removal(s: Specimen) -> Iterator[str]:
    """A 0/1 attention gate removes what it closes, in padded bags too."""
    for n in s.n_tiles:
        tokens = s.model.embed(s.bag(n))
        padded = torch.cat([tokens, s.random(PADDING, s.model.d_token, salt=7)])
        mask = torch.arange(n + PADDING, device=tokens.device) < n
        for keep in (torch.ones_like(mask[:n]), *s.subsets(n)):
            want = s.model.aggregate(tokens[keep][None])
            gate = keep.to(tokens.dtype)
            shut = f"with {int((~keep).sum())} of {n} tiles gated to 0"
            if wrong := s.compare(s.model.aggregate(tokens[None], gate=gate[None]), want):
                yield f"a hard gate is not removal: {shut} logits and those of the rest {wrong}"
            open_padding = torch.cat([gate, gate.new_ones(PADDING)])
            if wrong := s.compare(
                s.model.aggregate(padded[None], mask[None], open_padding[None]), want
            ):
                yield f"gate and mask do not combine: {shut} logits of a padded bag {wrong}"


@claim(made_by=lambda model: len(model.capabilities.gate_sites) > 0)
def gates_have_gradients(s: Specimen) -> Iterator[str]:
    """Every declared gate site passes a finite gradient, also to tiles gated to 0."""
    for n in s.n_tiles:
        soft = s.random(n, salt=8).sigmoid()
        hard = torch.arange(n, device=soft.device) % 2 == 0
        for site in s.capabilities.gate_sites:
            for kind, gate in (("soft", soft), ("hard", hard.to(soft.dtype))):
                gradient = _gate_gradient(s, site, gate)
                where = f"the {kind} {site} gate of {n} tiles"
                if gradient is None:
                    yield f"no gradient reaches {where}"
                elif not bool(gradient.isfinite().all()):
                    yield f"the gradient at {where} is not finite"
                elif n == max(s.n_tiles) and not bool(gradient.any()):
                    yield f"the gradient at {where} is 0 everywhere"


@torch.enable_grad()
def _gate_gradient(s: Specimen, site: str, values: Tensor) -> Tensor | None:
    gate = values.clone().requires_grad_()
    bag = s.bag(len(gate))
    if site == "attention":
        logits = s.model.aggregate(s.model.embed(bag)[None], gate=gate[None])
    else:
        logits = s.model((gate[:, None] * bag)[None])
    if not logits.requires_grad:
        return None
    weights = s.random(*logits.shape, salt=9).to(logits.dtype)
    return torch.autograd.grad((weights * logits).sum(), gate, allow_unused=True)[0]
