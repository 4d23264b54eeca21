"""One tile more or fewer: the closed form and forwarding, against every subset."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foci.backbones.models._pooled import PooledBackbone
from foci.errors import FociError
from foci.rankings import EmbeddedBag
from foci.reveal import pooled as module
from foci.reveal.pooled import ForwardedCandidates, PooledTiles
from tests.rankings.trials import OTHERS, POOLED, features, logits_of, make


def opened(name: str, preset: str, spread: float = 20.0) -> tuple[PooledBackbone, PooledTiles]:
    model = make(name, preset, spread=spread)
    assert isinstance(model, PooledBackbone)
    with torch.no_grad():
        return model, PooledTiles(model, model.embed(features(8)))


@pytest.mark.parametrize("spread", [1.0, 2000.0])
@pytest.mark.parametrize(("name", "preset"), POOLED)
def test_every_choice_equals_forwarding_the_subset(name: str, preset: str, spread: float) -> None:
    x = features(8)
    model, candidates = opened(name, preset, spread)
    want = logits_of(model, x, range(8))
    torch.testing.assert_close(candidates.full(), want, rtol=0, atol=1e-9)
    for members in ([], [5], [1, 4, 6], [0, 1, 2, 3, 4, 5, 6, 7]):
        present = torch.zeros(8, dtype=torch.bool)
        present[members] = True
        outside = (~present).nonzero().squeeze(1)
        if len(outside):
            want = torch.stack([logits_of(model, x, [*members, i]) for i in outside.tolist()])
            torch.testing.assert_close(candidates.adding(present, outside), want, rtol=0, atol=1e-9)
        if len(members) > 1:
            inside = torch.tensor(members)
            rest = [[j for j in members if j != i] for i in members]
            want = torch.stack([logits_of(model, x, tiles) for tiles in rest])
            torch.testing.assert_close(
                candidates.removing(present, inside), want, rtol=0, atol=1e-9
            )


class Bare(PooledTiles):
    """Attention and values as given; the logits are the pooled values themselves."""

    plus_one = False

    def __init__(self, attention: torch.Tensor, values: torch.Tensor, scale: float = 1.0) -> None:
        self.attention, self.values, self.scale = attention, values, scale

    def read(self, pooled: torch.Tensor) -> torch.Tensor:
        return self.scale * pooled.flatten(-2)


@given(st.integers(0, 10_000), st.integers(2, 9), st.sampled_from([1.0, 30.0, 1e3, 1e5]))
def test_any_range_of_attention_is_safe(seed: int, n: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    attention = spread * torch.randn(n, 2, generator=generator, dtype=torch.float64)
    values = torch.randn(n, 2, 3, generator=generator, dtype=torch.float64)
    everyone, index = torch.ones(n, dtype=torch.bool), torch.arange(n)

    def pooled(keep: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(attention[keep], dim=0)
        return torch.einsum("nr,nrd->rd", weights, values[keep]).flatten()

    bare = Bare(attention, values)
    gone = torch.stack([pooled(index != i) for i in range(n)])
    torch.testing.assert_close(bare.removing(everyone, index), gone, rtol=0, atol=1e-10)
    first = index < 1
    added = torch.stack([pooled(first | (index == i)) for i in range(1, n)])
    torch.testing.assert_close(bare.adding(first, index[1:]), added, rtol=0, atol=1e-10)
    alone = values.flatten(1)
    torch.testing.assert_close(bare.adding(~everyone, index), alone, rtol=0, atol=0)


def test_a_tile_with_nearly_all_the_weight_leaves_the_others_exact() -> None:
    """1 - w is about 1e-17 here: the quotient alone would be 0/0."""
    attention = torch.tensor([[0.0], [40.0], [1.0]], dtype=torch.float64)
    values = torch.tensor([[[1.0]], [[7.0]], [[3.0]]], dtype=torch.float64)
    got = Bare(attention, values).removing(torch.ones(3, dtype=torch.bool), torch.tensor([1]))
    e = torch.e
    assert got.item() == pytest.approx((1 + 3 * e) / (1 + e), rel=1e-14)


def test_a_tie_of_two_tiles_is_no_division_by_zero() -> None:
    attention = torch.full((2, 1), 3.0, dtype=torch.float64)
    values = torch.tensor([[[1.0]], [[7.0]]], dtype=torch.float64)
    got = Bare(attention, values).removing(torch.ones(2, dtype=torch.bool), torch.arange(2))
    torch.testing.assert_close(got.flatten(), torch.tensor([7.0, 1.0], dtype=torch.float64))


def test_a_small_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    _, candidates = opened("acmil", "mha")
    everyone, index = torch.ones(8, dtype=torch.bool), torch.arange(8)
    want = candidates.removing(everyone, index)
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 1)
    torch.testing.assert_close(candidates.removing(everyone, index), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "preset", "want"),
    [
        ("abmil", "paper", torch.ones(3, 1)),
        ("acmil", "paper", torch.full((3, 5), 0.2)),
        ("clam-mb", "official", torch.eye(3)),
        ("attrimil", "paper", torch.eye(3)),
    ],
)
def test_row_shares_say_which_rows_serve_a_class(
    name: str, preset: str, want: torch.Tensor
) -> None:
    _, candidates = opened(name, preset)
    torch.testing.assert_close(candidates.row_shares(), want.double())


def test_rows_that_move_nothing_share_equally() -> None:
    mute = Bare(features(4)[:, :2], torch.ones(4, 2, 1, dtype=torch.float64), scale=0.0)
    torch.testing.assert_close(mute.row_shares(), torch.full((2, 2), 0.5, dtype=torch.float64))


@pytest.mark.parametrize("budget", [1, 9, 10_000])
@pytest.mark.parametrize(("name", "preset"), OTHERS)
def test_every_forwarded_choice_is_the_right_subset(name: str, preset: str, budget: int) -> None:
    x = features(6)
    model = make(name, preset)
    with torch.no_grad():
        candidates = ForwardedCandidates(model, model.embed(x), budget)
        full = candidates.full()
        present = torch.tensor([False, True, False, False, True, True])
        added = candidates.adding(present, torch.tensor([0, 2, 3]))
        alone = candidates.adding(~torch.ones(6, dtype=torch.bool), torch.arange(6))
        removed = candidates.removing(present, torch.tensor([4, 1]))
    torch.testing.assert_close(full, logits_of(model, x, range(6)))
    members = [1, 4, 5]
    want = torch.stack([logits_of(model, x, [*members, i]) for i in (0, 2, 3)])
    torch.testing.assert_close(added, want)
    torch.testing.assert_close(alone, torch.stack([logits_of(model, x, [i]) for i in range(6)]))
    want = torch.stack([logits_of(model, x, [1, 5]), logits_of(model, x, [4, 5])])
    torch.testing.assert_close(removed, want)


def test_never_more_tokens_at_once_than_the_budget() -> None:
    model = make("transmil", "paper")
    seen: list[int] = []
    inner = model.aggregate

    def counting(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens.shape[0] * tokens.shape[1])
        return inner(tokens)

    model.aggregate = counting  # type: ignore[method-assign, assignment]
    candidates = ForwardedCandidates(model, model.embed(features(7)), budget=13)
    candidates.removing(torch.ones(7, dtype=torch.bool), torch.arange(7))
    assert seen == [12, 12, 12, 6]


def test_a_budget_without_tokens_is_refused() -> None:
    with pytest.raises(FociError, match=r"^budget: 0 is too few; give at least 1$"):
        EmbeddedBag(make("transmil", "paper"), features(3)).candidates(budget=0)
