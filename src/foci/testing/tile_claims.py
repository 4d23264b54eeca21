"""Claims about single tiles and about the model as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator

import torch

from foci.backbones import CallableBackbone
from foci.testing.claim import claim
from foci.testing.specimen import Specimen


@claim()
def outputs_are_well_formed(s: Specimen) -> Iterator[str]:
    """Tokens are ``[N, d]``, logits ``[B, C]`` and ``[C]``, probabilities sum to 1; all finite."""
    d, c = s.model.d_token, s.model.n_classes
    for n in s.n_tiles:
        bag, bags = s.bag(n), s.random(2, n, s.d_in)
        tokens = s.model.embed(bags)
        outputs = {
            "tokens of one bag": (s.model.embed(bag), (n, d)),
            "tokens of two bags": (tokens, (2, n, d)),
            "logits of aggregate": (s.model.aggregate(tokens), (2, c)),
            "logits of one bag": (s.model(bag), (c,)),
            "logits of two bags": (s.model(bags), (2, c)),
            "probabilities of one bag": (s.model.predict(bag), (c,)),
        }
        for name, (got, shape) in outputs.items():
            if got.shape != shape:
                yield f"{name} ({n} tiles) have shape {list(got.shape)} instead of {list(shape)}"
            elif not bool(got.isfinite().all()):
                yield f"{name} ({n} tiles) are not finite"
        total = float(s.model.predict(bag).sum())
        if abs(total - 1) > 1e-6:
            yield f"probabilities of one bag ({n} tiles) sum to {total:.6g}"


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
    for n in s.n_tiles:
        tokens = s.model.embed(s.bag(n))
        scores = s.model.scores(tokens)
        if scores.shape != (n,):
            yield f"scores of {n} tiles have shape {list(scores.shape)} instead of [{n}]"
            continue
        if not bool(scores.isfinite().all()):
            yield f"scores of {n} tiles are not finite"
        if s.capabilities.order_free:
            order = s.order(n)
            if wrong := s.compare(s.model.scores(tokens[order]), scores[order]):
                yield f"scores do not move with their tiles: of {n} permuted tiles they {wrong}"


@claim()
def eval_is_deterministic(s: Specimen) -> Iterator[str]:
    """In eval mode the same bag gives the same logits, whatever the random state."""
    for n in s.n_tiles:
        torch.manual_seed(0)
        first = s.model(s.bag(n))
        torch.manual_seed(1)
        again = s.model(s.bag(n))
        if not torch.equal(first, again):
            gap = float((first - again).abs().max())
            yield f"two forward passes over the same {n} tiles differ by {gap:.2g} in eval mode"


@claim(made_by=lambda model: not isinstance(model, CallableBackbone))
def config_rebuilds_the_model(s: Specimen) -> Iterator[str]:
    """A model rebuilt from the config, as stored in JSON, and the state dict predicts the same."""
    config = json.loads(json.dumps(s.model.config))
    twin = type(s.model)(**config).to(s.bag(1))
    twin.load_state_dict(s.model.state_dict())
    bag = s.bag(max(s.n_tiles))
    if wrong := s.compare(twin.eval()(bag), s.model(bag)):
        yield f"config does not say all: logits of a model rebuilt from it {wrong}"
