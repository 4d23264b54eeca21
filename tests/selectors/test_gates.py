"""Gates by hand and by gradient, and budgets."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from foci.selectors.objective import (
    Adaptive,
    Fixed,
    Octaves,
    Soft,
    Ste,
    ranks,
)

SCORE = st.sampled_from([-60.0, -2.0, -0.5, 0.0, 0.0, 0.3, 2.0, 60.0])  # ties on purpose


BAGS = st.lists(st.lists(SCORE, min_size=1, max_size=9), min_size=1, max_size=3)


def padded(bags: list[list[float]]) -> tuple[Tensor, Tensor]:
    """Scores with large values on the padding, and the mask."""
    longest = max(map(len, bags))
    scores = [bag + [99.0] * (longest - len(bag)) for bag in bags]
    mask = [[i < len(bag) for i in range(longest)] for bag in bags]
    return torch.tensor(scores, dtype=torch.float64), torch.tensor(mask)


def sigmoid_slope(u: float) -> float:
    return math.exp(-abs(u)) / (1 + math.exp(-abs(u))) ** 2


@given(bags=BAGS, k=st.integers(1, 12), centred=st.booleans())
def test_forward_keeps_exactly_the_top_k_real_tiles(
    bags: list[list[float]], k: int, centred: bool
) -> None:
    scores, mask = padded(bags)
    scores.requires_grad_()
    gate = Ste(centred=centred)(scores, mask, torch.tensor([k] * len(bags)))
    for bag, row in zip(bags, gate.tolist(), strict=True):
        top = sorted(range(len(bag)), key=lambda i: (-bag[i], i))[:k]
        assert row == [1.0 if i in top else 0.0 for i in range(len(row))]


@given(
    bags=BAGS, k=st.integers(1, 12), centred=st.booleans(), temperature=st.sampled_from([0.5, 1.0])
)
def test_backward_is_the_slope_of_the_sigmoid(
    bags: list[list[float]], k: int, centred: bool, temperature: float
) -> None:
    scores, mask = padded(bags)
    scores.requires_grad_()
    weights = torch.arange(1.0, scores.numel() + 1, dtype=torch.float64).view_as(scores)
    counts = torch.tensor([k] * len(bags))
    gate = Ste(centred=centred, temperature=temperature)(scores, mask, counts)
    (gate * weights).sum().backward()
    for b, bag in enumerate(bags):
        threshold = sorted(bag, reverse=True)[min(k, len(bag)) - 1] if centred else 0.0
        for i, row in enumerate(scores.grad[b].tolist()):
            slope = sigmoid_slope((bag[i] - threshold) / temperature) if i < len(bag) else 0.0
            assert row == pytest.approx(weights[b, i].item() * slope / temperature, rel=1e-9)


def test_ties_go_to_the_first_tile_in_large_bags_too() -> None:
    scores, mask = torch.zeros(2, 2000), torch.ones(2, 2000, dtype=torch.bool)
    assert torch.equal(ranks(scores, mask)[1], torch.arange(2000))
    gate = Ste()(scores, mask, torch.tensor([32, 5]))
    assert gate.sum(dim=-1).tolist() == [32, 5]
    assert bool((gate[0, :32] == 1).all())


@pytest.mark.parametrize("rule", [Ste(), Ste(centred=True), Soft()])
@pytest.mark.parametrize("n", [1, 3])
def test_small_bags_and_extreme_scores_give_finite_gradients(rule: Ste | Soft, n: int) -> None:
    for value in (0.0, 500.0, -500.0):
        scores = torch.full((2, 4), value, requires_grad=True)
        mask = torch.tensor([[True] * n + [False] * (4 - n), [True] * 4])
        gate = rule(scores, mask, torch.tensor([32, 32]), torch.Generator().manual_seed(0))
        gate.sum().backward()
        assert bool(scores.grad.isfinite().all())
        assert bool((gate[0, n:] == 0).all())
        if isinstance(rule, Ste):
            assert gate.sum(dim=-1).tolist() == [n, 4]


def test_soft_gates_by_hand_and_by_gradcheck() -> None:
    scores = torch.tensor([[0.3, -1.2, 7.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False]])
    rule, k = Soft(temperature=0.5), torch.tensor([1])
    quiet = rule(scores, mask, k)
    want = [1 / (1 + math.exp(-0.6)), 1 / (1 + math.exp(2.4)), 0.0]
    assert quiet[0].tolist() == pytest.approx(want)

    epsilon = torch.rand(1, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    noisy = rule(scores, mask, k, torch.Generator().manual_seed(5))
    for i in range(2):
        e = epsilon[0, i].item()
        u = (scores[0, i].item() + math.log(e) - math.log(1 - e)) / 0.5
        assert noisy[0, i].item() == pytest.approx(1 / (1 + math.exp(-u)))

    def seeded(a: Tensor) -> Tensor:
        return rule(a, mask, k, torch.Generator().manual_seed(5))

    assert torch.autograd.gradcheck(seeded, (scores,))


def test_soft_noise_has_the_right_law() -> None:
    """P(z > 1/2) = sigmoid(a), whatever the temperature."""
    scores = torch.full((1, 40_000), 0.8)
    mask = torch.ones_like(scores, dtype=torch.bool)
    for temperature in (0.1, 2.0):
        generator = torch.Generator().manual_seed(0)
        z = Soft(temperature=temperature)(scores, mask, torch.tensor([1]), generator)
        assert (z > 0.5).double().mean().item() == pytest.approx(1 / (1 + math.exp(-0.8)), abs=0.01)


N = torch.tensor([1, 16, 40, 600, 1024])


def test_fixed_is_cut_at_the_bag() -> None:
    generator = torch.Generator().manual_seed(0)
    assert Fixed().draw(N, generator).tolist() == [1, 16, 32, 32, 32]
    assert [k.tolist() for k in Fixed(k=8).ladder(N)] == [[1, 8, 8, 8, 8]]


def test_adaptive_is_the_papers_rule() -> None:
    want = [min(n, max(16, int(0.03 * n))) for n in N.tolist()]
    assert Adaptive().draw(N, torch.Generator()).tolist() == want == [1, 16, 16, 18, 30]
    assert Adaptive(alpha=0.05, k_min=4).ladder(N)[0].tolist() == [1, 4, 4, 30, 51]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValidationError):
        Fixed(k=0)
    with pytest.raises(ValidationError):
        Adaptive(alpha=1.5)
    with pytest.raises(ValidationError):
        Octaves(k=3)  # type: ignore[call-arg]


def test_octaves_are_equally_likely_and_leave_a_tile() -> None:
    generator = torch.Generator().manual_seed(0)
    n = torch.tensor([1000, 3, 1])
    draws = torch.stack([Octaves(k_max=15).draw(n, generator) for _ in range(2000)])
    octave = torch.bincount(draws[:, 0].double().log2().floor().long(), minlength=5)
    assert octave[4] == 0
    assert (octave[:4] / 2000 - 0.25).abs().max() < 0.04
    assert set(draws[:, 1].tolist()) == {1, 2}
    assert set(draws[:, 2].tolist()) == {1}
    assert not torch.equal(draws[:, 0].clamp(max=2), draws[:, 1])  # each bag has its own draw
    a, b = (Octaves().draw(N, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a, b)
    assert [k.tolist() for k in Octaves().ladder(n)] == [
        [1, 1, 1], [4, 2, 1], [16, 2, 1], [64, 2, 1], [256, 2, 1],
    ]  # fmt: skip
