"""Insertion and deletion of one order at every count, against one forward pass per count."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones import Backbone
from foci.errors import FociError
from foci.reveal import EmbeddedBag, Revealer
from tests.backbones.every import D_IN, EVERY, small


def bag(n: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + n)
    return torch.randn(n, D_IN, generator=generator, dtype=torch.float64)


def order(n: int, seed: int = 1) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


def both(opened: EmbeddedBag, sequence: Tensor) -> tuple[Tensor, Tensor]:
    return opened.curve(sequence), opened.curve(sequence, direction="delete")


@torch.no_grad()
def by_hand(model: Backbone, x: Tensor, sequence: Tensor) -> tuple[Tensor, Tensor]:
    """The first k tiles, and all but the first k, forwarded alone and in bag order."""
    n = len(x)
    kept = [model.predict(x[sequence[:k].sort().values]) for k in range(1, min(256, n) + 1)]
    left = [model.predict(x[sequence[k:].sort().values]) for k in range(min(256, n - 1) + 1)]
    return torch.stack(kept), torch.stack(left)


@pytest.mark.parametrize("n", [1, 2, 257])
@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_count_in_both_directions_equals_one_forward_pass_each(
    name: str, preset: str, n: int
) -> None:
    model = small(name, preset, 3).double().eval()
    x, sequence = bag(n), order(n)
    want = by_hand(model, x, sequence)
    got = both(Revealer(model).open(x), sequence)
    for ours, theirs in zip(got, want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


MODELS = {
    name: small(name, "paper", 2).double().eval()
    for name in ("abmil", "acmil", "attrimil", "transmil")
}


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 9999), st.integers(1, 16))
def test_small_bags_equal_one_forward_pass_each(name: str, seed: int, n: int) -> None:
    model, x, sequence = MODELS[name], 3 * bag(n, seed), order(n, seed)
    for ours, theirs in zip(
        both(EmbeddedBag(model, x), sequence), by_hand(model, x, sequence), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)


@given(st.integers(0, 9999), st.integers(2, 16))
def test_deleting_is_inserting_the_reversed_order(seed: int, n: int) -> None:
    opened = EmbeddedBag(MODELS["abmil"], bag(n, seed))
    sequence = order(n, seed)
    inserted, deleted = both(opened, sequence)
    backwards, forwards = both(opened, sequence.flip(0))
    torch.testing.assert_close(deleted.flip(0), backwards, rtol=0, atol=1e-9)
    torch.testing.assert_close(inserted.flip(0), forwards, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1, 1], [1], "insert"), "order: names a tile twice or not at all"),
        (([0, 1, 2], [0], "insert"), "ks: runs from 0 to 0 where 3 tiles allow 1 to 3"),
        (([0, 1, 2], [3], "delete"), "ks: runs from 3 to 3 where 3 tiles allow 0 to 2"),
        (([0, 1, 2], [2, 1], "insert"), "ks: is not increasing"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[Any, ...], message: str) -> None:
    opened = EmbeddedBag(small("abmil", "paper", 2), bag(3).float())
    with pytest.raises(FociError, match=message):
        opened.curve(*arguments)
