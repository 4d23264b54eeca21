"""Checks of a model's outputs: shapes, determinism, and agreement of every way to compute them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import torch
from torch import Tensor

from foci.backbones import CallableBackbone
from foci.testing.claim import claim
from foci.testing.specimen import Specimen

_SUM = 1e-3
"""How far from 1 the sum of probabilities may be, as in ``CallableBackbone``."""


@claim()
def outputs_are_well_formed(s: Specimen) -> Iterator[str]:
    """Tokens are ``[N, d]``, logits ``[B, C]`` and ``[C]``, probabilities sum to 1; all finite."""
    d, c = s.model.d_token, s.model.n_classes
    if c < 2:
        yield f"n_classes is {c}, where every probability is 1: make one logit u the two [0, u]"
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
        total = float(outputs["probabilities of one bag"][0].sum())
        if abs(total - 1) > 1e-6:
            yield f"probabilities of one bag ({n} tiles) sum to {total:.6g}"


@claim()
def logits_are_not_probabilities(s: Specimen) -> Iterator[str]:
    """Not all outputs are >= 0 with sum 1: a second softmax would flatten every curve."""
    outputs = torch.stack([s.model(s.bag(n)).double() for n in s.n_tiles])
    totals = outputs.sum(dim=-1)
    if bool((outputs >= 0).all()) and bool(((totals - 1).abs() <= _SUM).all()):
        fix = (
            "give output='probabilities'"
            if isinstance(s.model, CallableBackbone)
            else "return logits, for instance their logarithms"
        )
        yield f"looks like probabilities: {fix} (outputs of {len(outputs)} bags >= 0 with sum 1)"


@claim()
def forward_is_aggregate_of_embed(s: Specimen) -> Iterator[str]:
    """``forward`` and ``predict`` agree with ``aggregate(embed(x))``, which makes the curves."""
    n = max(s.n_tiles)
    bags, mask = s.random(2, n, s.d_in), s.random(2, n, salt=12) > 0
    mask[:, -1] = True
    tokens = s.model.embed(bags)
    logits, masked = s.model.aggregate(tokens), s.model.aggregate(tokens, mask)
    routes: dict[str, tuple[Tensor, Tensor]] = {
        "forward of one bag": (s.model(bags[0]), logits[0]),
        "forward of two bags": (s.model(bags), logits),
        "forward with a mask": (s.model(bags, mask), masked),
        "predict": (s.model.predict(bags[0]), _softmax(logits[0])),
        "predict with a mask": (s.model.predict(bags, mask), _softmax(masked)),
    }
    for name, (got, want) in routes.items():
        if wrong := s.compare(got, want):
            yield f"{name} and aggregate(embed(x)) disagree: their answers to {n} tiles {wrong}"


@claim()
def eval_is_deterministic(s: Specimen) -> Iterator[str]:
    """In eval mode the same bag gives the same logits and scores."""
    for n in s.n_tiles:
        again = _answers(s, n)
        for name, first in _answers(s, n).items():
            if not torch.equal(first, again[name]):
                gap = float((first - again[name]).abs().max())
                yield f"{name} of the same {n} tiles differ by {gap:.2g} from pass to pass"


@claim(made_by=lambda model: not isinstance(model, CallableBackbone))
def config_rebuilds_the_model(s: Specimen) -> Iterator[str]:
    """A model rebuilt from the config, as stored in JSON, and the state dict predicts the same."""
    config = json.loads(json.dumps(s.model.config))
    twin = type(s.model)(**config).to(s.bag(1))
    twin.load_state_dict(s.model.state_dict())
    bag = s.bag(max(s.n_tiles))
    if wrong := s.compare(twin.eval()(bag), s.model(bag)):
        yield f"config does not say all: logits of a model rebuilt from it {wrong}"


def _softmax(logits: Tensor) -> Tensor:
    return torch.softmax(logits.double(), dim=-1)


def _answers(s: Specimen, n: int) -> dict[str, Tensor]:
    answers = {"logits": s.model(s.bag(n))}
    if s.capabilities.score != "none":
        answers["scores"] = s.model.scores(s.model.embed(s.bag(n)))
    return answers
