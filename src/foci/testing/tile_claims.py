"""Checks of single tiles: tokens and scores belong to them, and nothing changes in place."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from foci.testing.claim import claim
from foci.testing.specimen import Specimen


@claim()
def embed_is_tile_wise(s: Specimen) -> Iterator[str]:
    """A token depends on its own tile only: not on subsets, neighbours or batch mates."""
    for n in s.n_tiles:
        bag = s.bag(n)
        tokens = s.model.embed(bag)
        for keep in s.subsets(n):
            if wrong := s.compare(s.model.embed(bag[keep]), tokens[keep]):
                yield f"embed is not tile-wise: tokens of {int(keep.sum())} of {n} tiles {wrong}"
        changed = bag.clone()
        changed[0] = s.bag(1, salt=3)[0]
        if wrong := s.compare(s.model.embed(changed)[1:], tokens[1:]):
            yield f"embed is not tile-wise: after changing one of {n} tiles other tokens {wrong}"
        if wrong := s.compare(s.model.embed(torch.stack([changed, bag]))[1], tokens):
            yield f"embed is not tile-wise: in a batch the tokens of a bag of {n} {wrong}"


@claim(made_by=lambda model: model.capabilities.homogeneous)
def embed_is_homogeneous(s: Specimen) -> Iterator[str]:
    """``embed(g * x) == g * embed(x)`` for gates g in [0, 1], 0 and 1 among them."""
    for n in s.n_tiles:
        bag, gate = s.bag(n), s.random(n, 1, salt=4).sigmoid()
        gate[0], gate[-1] = 1.0, 0.0
        if wrong := s.compare(s.model.embed(gate * bag), gate * s.model.embed(bag)):
            yield f"declared homogeneous, but tokens of {n} gated tiles and gated tokens {wrong}"


@claim(made_by=lambda model: model.capabilities.score != "none")
def scores_belong_to_tiles(s: Specimen) -> Iterator[str]:
    """One finite score per tile, which moves with its tile where order does not matter."""
    for n in s.all_sizes:
        tokens = s.model.embed(s.bag(n))
        scores = s.model.scores(tokens)
        if scores.shape != (n,):
            yield f"scores of {n} tiles have shape {list(scores.shape)} instead of [{n}]"
            continue
        if not bool(scores.isfinite().all()):
            yield f"scores of {n} tiles are not finite"
        if s.capabilities.order_free and n in s.n_tiles:
            order = s.order(n)
            if wrong := s.compare(s.model.scores(tokens[order]), scores[order]):
                yield f"scores do not move with their tiles: of {n} permuted tiles they {wrong}"


@claim()
def inputs_are_left_unchanged(s: Specimen) -> Iterator[str]:
    """No method changes its inputs in place: a bag is embedded once for all its curves."""
    n = max(s.n_tiles)
    bag = s.bag(n)
    tokens = s.model.embed(bag)
    if not torch.equal(bag, s.bag(n)):
        yield "embed changes the features that it is given"
    given, mask = tokens.clone(), torch.arange(n, device=bag.device)[None] < n - 1
    s.model.aggregate(tokens[None], mask)
    if not torch.equal(tokens, given) or int(mask.sum()) != n - 1:
        yield "aggregate changes the tokens or the mask that it is given"
    tokens = given.clone()
    if s.capabilities.score != "none":
        s.model.scores(tokens)
        if not torch.equal(tokens, given):
            yield "scores changes the tokens that it is given"
    tokens = given.clone()
    if s.capabilities.closed_form:
        s.model.prefixes(tokens)
        if not torch.equal(tokens, given):
            yield "prefixes changes the tokens that it is given"
