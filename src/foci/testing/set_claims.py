"""Claims about sets of tiles: what is removed, padded, gated, permuted or not yet revealed."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from foci.testing.claim import claim
from foci.testing.specimen import Specimen

_GARBAGE = 1e3
_PADDING = 5


@claim()
def masking_is_removal(s: Specimen) -> Iterator[str]:
    """Masking tiles out gives the logits of the bag without them."""
    for n in s.n_tiles:
        tokens = s.model.embed(s.bag(n))
        for keep in s.subsets(n):
            got = s.model.aggregate(tokens[None], keep[None])
            if wrong := s.compare(got, s.model.aggregate(tokens[keep][None])):
                yield (
                    f"masking is not removal: with {int((~keep).sum())} of {n} tiles masked out "
                    f"the logits and those of the remaining tiles alone {wrong}"
                )


@claim()
def padding_is_inert(s: Specimen) -> Iterator[str]:
    """Whatever stands in padded positions, the logits are those of the unpadded bag."""
    for n in s.n_tiles:
        bag = s.bag(n)
        want = s.model(bag[None])
        mask = torch.arange(n + _PADDING, device=bag.device)[None] < n
        for content, scale in (("zeros", 0.0), ("garbage", _GARBAGE)):
            padding = scale * s.random(_PADDING, s.d_in, salt=5)
            got = s.model(torch.cat([bag, padding])[None], mask)
            if wrong := s.compare(got, want):
                yield (
                    f"padding leaks: logits of {n} tiles and of the same tiles "
                    f"padded with {content} {wrong}"
                )


@claim()
def batch_mates_do_not_matter(s: Specimen) -> Iterator[str]:
    """A bag's logits are the same alone and in a batch."""
    for n in s.n_tiles:
        tokens = s.model.embed(s.random(3, n, s.d_in) * s.random(3, 1, 1, salt=6).exp())
        together = s.model.aggregate(tokens)
        for item in range(3):
            if wrong := s.compare(together[item], s.model.aggregate(tokens[item][None])[0]):
                yield f"batch mates matter: logits of {n} tiles alone and in a batch of 3 {wrong}"


@claim(made_by=lambda model: model.capabilities.order_free)
def order_does_not_matter(s: Specimen) -> Iterator[str]:
    """Permuting the tiles leaves the logits unchanged."""
    for n in s.n_tiles:
        bag = s.bag(n)
        if wrong := s.compare(s.model(bag[s.order(n)]), s.model(bag)):
            yield f"declared order-free, but the logits of {n} tiles in two orders {wrong}"


@claim(made_by=lambda model: "attention" in model.capabilities.gate_sites)
def hard_gate_is_removal(s: Specimen) -> Iterator[str]:
    """A 0/1 attention gate removes what it closes, in padded bags too."""
    for n in s.n_tiles:
        tokens = s.model.embed(s.bag(n))
        padded = torch.cat([tokens, s.random(_PADDING, s.model.d_token, salt=7)])
        mask = torch.arange(n + _PADDING, device=tokens.device) < n
        for keep in (torch.ones_like(mask[:n]), *s.subsets(n)):
            want = s.model.aggregate(tokens[keep][None])
            gate = keep.to(tokens.dtype)
            shut = f"with {int((~keep).sum())} of {n} tiles gated to 0"
            if wrong := s.compare(s.model.aggregate(tokens[None], gate=gate[None]), want):
                yield f"a hard gate is not removal: {shut} logits and those of the rest {wrong}"
            open_padding = torch.cat([gate, gate.new_ones(_PADDING)])
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


@claim(made_by=lambda model: model.capabilities.closed_form)
def prefixes_equal_subsets(s: Specimen) -> Iterator[str]:
    """``prefixes`` gives the logits of the first k tokens, up to the full bag."""
    for n in s.n_tiles:
        tokens = s.model.embed(s.bag(n))[s.order(n)]
        want = torch.cat([s.model.aggregate(tokens[:k][None]) for k in range(1, n + 1)])
        ks = torch.arange(n, 0, -2, device=tokens.device).flip(0)
        if wrong := s.compare(s.model.prefixes(tokens)[-1], want[-1]):
            yield f"the last prefix is not the full bag: logits of {n} tiles {wrong}"
        if wrong := s.compare(s.model.prefixes(tokens), want):
            yield f"prefixes are not subsets: logits of the first k = 1..{n} tiles {wrong}"
        if wrong := s.compare(s.model.prefixes(tokens, ks), want[ks - 1]):
            yield f"prefixes are not subsets: logits at ks = {ks.tolist()} {wrong}"


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
