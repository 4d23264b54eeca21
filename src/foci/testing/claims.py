"""The claims of the backbone contract, each with the check that tries to break it.

A check gets a :class:`Specimen`, a copy of the model with reproducible random bags, and yields one
line for every violation it finds.
"""

from __future__ import annotations

import contextlib
import copy
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from foci import reveal
from foci.backbones import Backbone, CallableBackbone, Capabilities
from foci.backbones.freezing import device_and_dtype
from foci.registry import Registry

PADDING = 5
"""How many places a check pads a bag with."""


@dataclass(frozen=True)
class Specimen:
    """The model and the bags of a check; the same seed gives every check the same bags.

    Attributes:
        model: The copy, in eval mode.
        d_in: Numbers per tile: the feature width, and the tile's place if the model reads it.
        n_tiles: Bag sizes to try.
        long_bag: One larger size, for claims that may hold for short bags only.
        seed: Seed of the bags.
        dtype: Of the features.
        tolerance: Largest difference, relative where values exceed 1, that counts as equal.
        tiles: ``[M, D]`` real tiles that bags are drawn from; None for random numbers.
    """

    model: Backbone
    d_in: int
    n_tiles: tuple[int, ...]
    long_bag: int
    seed: int
    dtype: torch.dtype
    tolerance: float = 0.0
    tiles: Tensor | None = None

    def copied(self) -> Specimen:
        """With a copy of the model in ``dtype``, as far as it can be copied and cast.

        A function that closes over float32 weights does not follow a cast: it is then checked in
        its own precision, with the tolerance of that precision.
        """
        for dtype in (self.dtype, device_and_dtype(self.model)[1]):
            try:
                model = copy.deepcopy(self.model).to(dtype)
            except Exception:  # a foreign model may refuse to be copied: then check itself
                model = self.model
            tolerance = tolerance_of(dtype)
            specimen = replace(self, model=model.eval(), dtype=dtype, tolerance=tolerance)
            with contextlib.suppress(Exception):  # the checks will say what it raises
                logits: Tensor = specimen.model(specimen.bag(max(self.n_tiles)))
                return replace(specimen, tolerance=max(tolerance, tolerance_of(logits.dtype)))
        return specimen

    @property
    def capabilities(self) -> Capabilities:
        """What the model declares."""
        return self.model.capabilities

    @property
    def all_sizes(self) -> tuple[int, ...]:
        """All bag sizes, the long bag included."""
        return tuple(dict.fromkeys((*self.n_tiles, self.long_bag)))

    def random(self, *shape: int, salt: int = 0) -> Tensor:
        """Standard normal numbers that depend only on seed, shape and salt.

        A shape that ends with the feature width asks for tiles, if any were given.
        """
        key = zlib.crc32(repr((self.seed, salt, shape)).encode())
        generator = torch.Generator().manual_seed(key)
        if self.tiles is not None and len(shape) > 1 and shape[-1] == self.d_in:
            rows = torch.randint(len(self.tiles), shape[:-1], generator=generator)
            return self.tiles[rows]
        tiles = len(shape) > 1 and shape[-1] == self.d_in > self.model.d_in
        shape = (*shape[:-1], self.model.d_in) if tiles else shape
        numbers = torch.randn(*shape, generator=generator, dtype=torch.float64)
        numbers = self.model.made_up_inputs(numbers) if tiles else numbers
        return numbers.to(device_and_dtype(self.model)[0], self.dtype)

    def bag(self, n: int, salt: int = 0) -> Tensor:
        """Features ``[n, D]``."""
        return self.random(n, self.d_in, salt=salt)

    def order(self, n: int) -> Tensor:
        """A permutation of n tiles that moves at least one of them (n > 1)."""
        order = self.random(n, salt=1).argsort()
        return order.flip(0) if torch.equal(order, order.sort().values) else order

    def subsets(self, n: int) -> Iterator[Tensor]:
        """Masks ``[n]``: about half of the tiles, all but the first, only the last.

        Only the first of them for the long bag, where a pass is expensive.
        """
        if n > 1:
            half = self.random(n, salt=2) > 0
            half[0], half[-1] = True, False
            yield half
            if n in self.n_tiles:
                index = torch.arange(n, device=half.device)
                yield from (index > 0, index == n - 1)

    def counts(self, n: int) -> Tensor:
        """Increasing counts up to n: all of them, a few for the long bag."""
        every = torch.arange(1, n + 1, device=device_and_dtype(self.model)[0])
        return every if n in self.n_tiles else every.flip(0)[:: max(1, n // 8)].flip(0)

    def compare(self, got: Tensor, want: Tensor) -> str | None:
        """Describe the difference of ``got`` from ``want``; None if they are equal."""
        if got.shape != want.shape:
            return f"have shape {list(got.shape)} instead of {list(want.shape)}"
        gap = (got - want).abs() / want.abs().clamp_min(1.0)
        if bool((gap <= self.tolerance).all()):
            return None
        return f"differ by {float(gap.max()):.2g} (tolerance {self.tolerance:.0e})"


def tolerance_of(dtype: torch.dtype) -> float:
    """Largest difference that counts as equal in a precision."""
    return {torch.float64: 1e-9, torch.float32: 1e-4}.get(dtype, 1e-2)


Complaints = Callable[[Specimen], Iterator[str]]


@dataclass(frozen=True)
class Claim:
    """How a claim is checked, one line for every violation, and whether a model makes it at all."""

    complaints: Complaints
    made_by: Callable[[Backbone], bool]


CLAIMS: Registry[Claim] = Registry("backbone check")
"""All checks, in the order in which they run."""


def claim(
    made_by: Callable[[Backbone], bool] = lambda model: True,
) -> Callable[[Complaints], Complaints]:
    """Register a check under its function's name."""

    def decorate(complaints: Complaints) -> Complaints:
        CLAIMS.add(complaints.__name__, Claim(complaints, made_by))
        return complaints

    return decorate


# Outputs: shapes, determinism, and agreement of every way to compute them

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
        fix = "return logits, for instance their logarithms"
        if isinstance(s.model, CallableBackbone):
            fix = "give output='probabilities'"
        yield f"looks like probabilities: {fix} (outputs of {len(outputs)} bags >= 0 with sum 1)"


@claim()
def forward_is_aggregate_of_embed(s: Specimen) -> Iterator[str]:
    """``forward`` and ``predict`` agree with ``aggregate(embed(x))``, which makes the curves."""
    n = max(s.n_tiles)
    bags, mask = s.random(2, n, s.d_in), s.random(2, n, salt=12) > 0
    mask[:, -1] = True
    tokens = s.model.embed(bags)
    logits, masked = s.model.aggregate(tokens), s.model.aggregate(tokens, mask)
    p, p_masked = (torch.softmax(one.double(), dim=-1) for one in (logits, masked))
    routes: dict[str, tuple[Tensor, Tensor]] = {
        "forward of one bag": (s.model(bags[0]), logits[0]),
        "forward of two bags": (s.model(bags), logits),
        "forward with a mask": (s.model(bags, mask), masked),
        "predict": (s.model.predict(bags[0]), p[0]),
        "predict with a mask": (s.model.predict(bags, mask), p_masked),
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


SUBSETS, CALLS = (1, 2, 5, 8, 16, 32, 64, 99), 40
"""Sizes of the subsets that a model is asked about again and again, and how often in all."""

MOST_HELD = 16_384
"""Tiles of the largest subset of a large bag: it can be held while others are read."""


def subsets_of(x: Tensor) -> list[Tensor]:
    """Always the same subsets of several sizes, in the order of the bag, and last the bag."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    return [*(x[order[:k].sort().values] for k in (*SUBSETS, MOST_HELD) if k < len(x)), x]


@claim()
def same_subset_same_answer(s: Specimen) -> Iterator[str]:
    """A model is a function of the bag: whatever was asked before, a subset has one answer."""
    bags = subsets_of(s.bag(max(SUBSETS) + 1))
    first = [s.model(bag) for bag in bags]
    for _ in range(1 + CALLS // len(bags)):
        for bag, before in zip(bags, first, strict=True):
            if wrong := s.compare(s.model(bag), before):
                yield f"two answers to the same {len(bag)} tiles, asked one after another, {wrong}"


@claim(made_by=lambda model: isinstance(model, CallableBackbone))
def functions_are_in_eval_mode(s: Specimen) -> Iterator[str]:
    """A wrapped function uses no module in training mode that answers otherwise in eval mode."""
    for module in _used_by(getattr(s.model, "function", None)):
        for layer in module.modules():
            if layer.training and isinstance(layer, _OTHERWISE_IN_TRAINING):
                name = f"{type(layer).__name__} of {type(module).__name__}"
                yield f"uses {name} in training mode: call .eval() on the model first"


_OTHERWISE_IN_TRAINING = (
    nn.modules.batchnorm._NormBase,
    nn.modules.dropout._DropoutNd,
    nn.MultiheadAttention,
    nn.RNNBase,
)


def _used_by(function: Any) -> list[nn.Module]:
    """Modules that a function holds: as itself, its owner, arguments, closure or globals."""
    if isinstance(function, nn.Module):
        return [function]
    inner = getattr(function, "func", None)  # of functools.partial
    found = [] if inner is None else _used_by(inner)
    code = getattr(function, "__code__", None)
    known = getattr(function, "__globals__", {})
    held = [
        getattr(function, "__self__", None),
        *getattr(function, "args", ()),
        *getattr(function, "keywords", {}).values(),
        *(getattr(function, "__defaults__", None) or ()),
        *(known.get(name) for name in (code.co_names if code else ())),
    ]
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a cell that is still empty
            held.append(cell.cell_contents)
    return found + [one for one in held if isinstance(one, nn.Module)]


@claim(made_by=lambda model: not isinstance(model, CallableBackbone))
def config_rebuilds_the_model(s: Specimen) -> Iterator[str]:
    """A model rebuilt from the config, as stored in JSON, and the state dict predicts the same."""
    config = json.loads(json.dumps(s.model.config))
    twin = type(s.model)(**config).to(s.bag(1))
    twin.load_state_dict(s.model.state_dict())
    bag = s.bag(max(s.n_tiles))
    if wrong := s.compare(twin.eval()(bag), s.model(bag)):
        yield f"config does not say all: logits of a model rebuilt from it {wrong}"


def _answers(s: Specimen, n: int) -> dict[str, Tensor]:
    answers = {"logits": s.model(s.bag(n))}
    if s.capabilities.score != "none":
        answers["scores"] = s.model.scores(s.model.embed(s.bag(n)))
    return answers


# Gates: closing one removes its tile, and gradients reach it


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
            closed = f"with {int((~keep).sum())} of {n} tiles gated to 0"
            if wrong := s.compare(s.model.aggregate(tokens[None], gate=gate[None]), want):
                yield f"a hard gate is not removal: {closed} logits and those of the rest {wrong}"
            open_padding = torch.cat([gate, gate.new_ones(PADDING)])
            if wrong := s.compare(
                s.model.aggregate(padded[None], mask[None], open_padding[None]), want
            ):
                yield f"gate and mask do not combine: {closed} logits of a padded bag {wrong}"


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


# Sets of tiles: masking, padding, batching, permutation, prefixes and curves

_GARBAGE = 1e3
_ELSEWHERE = 1024


@claim()
def masking_is_removal(s: Specimen) -> Iterator[str]:
    """Masking tiles out gives the logits of the bag without them, however long the bag."""
    for n in s.all_sizes:
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
        mask = torch.arange(n + PADDING, device=bag.device)[None] < n
        for content, scale in (("zeros", 0.0), ("garbage", _GARBAGE)):
            padding = scale * s.random(PADDING, s.d_in, salt=5)
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


@claim()
def every_row_has_its_own_mask(s: Specimen) -> Iterator[str]:
    """In a batch with different lengths or scattered masks, each row equals its bag alone."""
    for n in (n for n in s.n_tiles if n > 1):
        tokens = s.model.embed(s.random(3, n, s.d_in, salt=10))
        place = torch.arange(n, device=tokens.device)
        lengths = torch.tensor([(n + 1) // 2, n, 1], device=tokens.device)
        scattered = s.random(3, n, salt=11) > 0
        scattered[:, n // 2] = True
        for mates, mask in (
            ("padded to the longest", place < lengths[:, None]),
            ("with scattered masks", scattered),
        ):
            together = s.model.aggregate(tokens, mask)
            for row, (bag, keep) in enumerate(zip(tokens, mask, strict=True)):
                if wrong := s.compare(together[row], s.model.aggregate(bag[keep][None])[0]):
                    yield (
                        f"rows do not keep to their own mask: logits of {int(keep.sum())} tiles "
                        f"alone and in a batch of 3 bags {mates} {wrong}"
                    )


@claim(made_by=lambda model: model.capabilities.order_free)
def order_does_not_matter(s: Specimen) -> Iterator[str]:
    """Permuting the tiles leaves the logits unchanged."""
    for n in s.all_sizes:
        bag = s.bag(n)
        if wrong := s.compare(s.model(bag[s.order(n)]), s.model(bag)):
            yield f"declared order-free, but the logits of {n} tiles in two orders {wrong}"


@claim(made_by=lambda model: model.input_width > model.d_in)
def coordinates_go_with_their_tiles(s: Specimen) -> Iterator[str]:
    """Removing tiles removes their coordinates: where they were makes no difference."""
    place = slice(s.model.d_in, s.model.d_in + 2)
    for n in s.all_sizes:
        bag = s.bag(n)
        for keep in s.subsets(n):
            moved = bag.clone()
            moved[~keep, place] += _ELSEWHERE
            want = s.model(bag[keep])
            for which, tiles in (("their", bag), ("other", moved)):
                got = s.model(tiles[None], keep[None])[0]
                if wrong := s.compare(got, want):
                    yield (
                        f"coordinates are left behind: logits of {int(keep.sum())} tiles and of "
                        f"{n} with the rest masked out at {which} places {wrong}"
                    )


@claim(made_by=lambda model: model.capabilities.closed_form)
def prefixes_equal_subsets(s: Specimen) -> Iterator[str]:
    """``prefixes`` gives the logits of the first k tokens, up to the full bag."""
    for n in s.all_sizes:
        tokens = s.model.embed(s.bag(n))[s.order(n)]
        counts = s.counts(n)
        want = torch.cat([s.model.aggregate(tokens[:k][None]) for k in counts.tolist()])
        every = s.model.prefixes(tokens)
        if len(every) != n:
            yield f"prefixes of {n} tiles have {len(every)} rows instead of {n}"
            continue
        if wrong := s.compare(every[-1], want[-1]):
            yield f"the last prefix is not the full bag: logits of {n} tiles {wrong}"
        if wrong := s.compare(every[counts - 1], want):
            yield f"prefixes are not subsets: logits of the first k = 1..{n} tiles {wrong}"
        ks, rows = counts.flip(0)[::2].flip(0), want.flip(0)[::2].flip(0)
        if wrong := s.compare(s.model.prefixes(tokens, ks), rows):
            yield f"prefixes are not subsets: logits at ks = {ks.tolist()} {wrong}"


@claim(made_by=lambda model: model.capabilities.structure != "none")
def parts_give_the_logits(s: Specimen) -> Iterator[str]:
    """The ``parts`` of a bag have the declared structure and give the logits of every subset."""
    for n in s.all_sizes:
        tokens = s.model.embed(s.bag(n))
        parts = s.model.parts(tokens)
        if parts.structure != s.capabilities.structure:
            yield f"declared as {s.capabilities.structure}, but the parts are {parts.structure}"
        whole = torch.ones(n, dtype=torch.bool, device=tokens.device)
        for keep in (whole, *s.subsets(n)):
            want = s.model.aggregate(tokens[keep][None])[0]
            got = torch.from_numpy(parts.logits(keep.cpu().numpy())).to(want)
            if wrong := s.compare(got, want):
                some = f"{int(keep.sum())} of {n} tiles"
                yield f"declared as {parts.structure}, but logits of {some} from the parts {wrong}"


@claim()
def curve_equals_reference(s: Specimen) -> Iterator[str]:
    """A curve by the default engine equals forwarding every subset alone."""
    n = max(s.n_tiles)
    bag, order = s.bag(n), s.order(n)
    fast = reveal.Revealer(s.model, recheck=())
    slow = reveal.Revealer(s.model, engine="reference", recheck=())
    counts = sorted({1, n // 2, n - 1, n} - {0})
    directions: dict[reveal.Direction, list[int]] = {
        "insert": counts,
        "delete": [n - k for k in reversed(counts)],
    }
    for direction, ks in directions.items():
        got = fast.open(bag).curve(order, ks, direction)
        if wrong := s.compare(got, slow.open(bag).curve(order, ks, direction)):
            yield (
                f"the {fast.engine} {direction} curve is not that of the subsets forwarded alone: "
                f"probabilities of {n} tiles at ks = {ks} {wrong}"
            )


# Single tiles: tokens and scores belong to them, and nothing changes in place


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
    claimed = {"scores": s.capabilities.score != "none", "prefixes": s.capabilities.closed_form}
    for name in (name for name, made in claimed.items() if made):
        tokens = given.clone()
        getattr(s.model, name)(tokens)
        if not torch.equal(tokens, given):
            yield f"{name} changes the tokens that it is given"
