"""Checks of sets of tiles: masking, padding, batching, permutation, prefixes and curves."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from foci import reveal
from foci.testing.claim import claim
from foci.testing.specimen import PADDING, Specimen

_GARBAGE = 1e3


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
