"""Losses by hand, and their weighted sum."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones import CallableBackbone
from foci.selectors import objective as losses
from foci.selectors.gated import gate_backbone
from foci.selectors.objective import GatedBatch, Soft, Ste, Weights, loss_terms, total
from tests.backbones.every import D_IN, EVERY, small

LOGITS = torch.tensor([[0.0, math.log(3.0)], [math.log(9.0), 0.0]])  # p_1 = 0.75; p_0 = 0.9


TARGETS = torch.tensor([1, 1])  # p_y = 0.75 and 0.1


def test_keep_and_drop_losses_by_hand() -> None:
    assert losses.target_probability(LOGITS, TARGETS).tolist() == pytest.approx([0.75, 0.1])
    cross_entropy = [-math.log(0.75), -math.log(0.1)]
    assert losses.sufficiency(LOGITS, TARGETS).tolist() == pytest.approx(cross_entropy)
    assert losses.hinge(LOGITS, TARGETS, tau=0.9).tolist() == pytest.approx([0.15, 0.8])
    assert losses.hinge(LOGITS, TARGETS, tau=0.7).tolist() == pytest.approx([0.0, 0.6])
    both = torch.tensor([True, True])
    assert losses.exclusion(LOGITS, TARGETS, 0.2, both).tolist() == pytest.approx([0.55, 0.0])


def test_a_bag_without_a_rest_has_no_exclusion() -> None:
    logits = LOGITS.clone().requires_grad_()
    loss = losses.exclusion(logits, TARGETS, 0.05, torch.tensor([False, True]))
    assert loss.tolist() == pytest.approx([0.0, 0.05])
    loss.sum().backward()
    assert bool((logits.grad[0] == 0).all())
    assert bool((logits.grad[1] != 0).all())


def test_flip_by_hand() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, 5.0, 1.0], [4.0, 0.0, 0.0]], requires_grad=True)
    targets, has_drop = torch.tensor([0, 0, 0]), torch.tensor([True, True, False])
    loss = losses.flip(logits, targets, 1.0, has_drop)
    assert loss.tolist() == pytest.approx([1.5, 0.0, 0.0])  # rivals lead by -0.5 and 5
    loss.sum().backward()
    assert logits.grad.tolist() == [[1.0, 0.0, -1.0], [0.0] * 3, [0.0] * 3]


def test_contiguity_of_a_known_mask() -> None:
    """Kept: (0, 0), (1, 0), (0, 1/2); centre (1/3, 1/6)."""
    coords = losses.unit_box(torch.tensor([[0, 0], [512, 0], [0, 256], [256, 256]]))
    gate = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    want = ((1 / 9 + 1 / 36) + (4 / 9 + 1 / 36) + (1 / 9 + 1 / 9)) / 3
    assert losses.contiguity(gate, coords[None]).item() == pytest.approx(want)


def test_contiguity_weighs_soft_gates_and_ignores_padding() -> None:
    """Weights 3 : 1 on two points at distance 1: variance 3/4 * 1/4."""
    coords = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]])
    gate = torch.tensor([[0.6, 0.2, 0.0]])
    assert losses.contiguity(gate, coords).item() == pytest.approx(3 / 16)


@given(
    scale=st.integers(1, 4096),
    shift=st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)),
)
def test_contiguity_does_not_know_the_unit(scale: int, shift: tuple[int, int]) -> None:
    cells = torch.tensor([[0, 0], [3, 0], [1, 2], [2, 5], [4, 4]])
    gate = torch.tensor([[1.0, 0.0, 1.0, 1.0, 0.0]])
    one = losses.contiguity(gate, losses.unit_box(cells)[None])
    other = losses.contiguity(gate, losses.unit_box(cells * scale + torch.tensor(shift))[None])
    assert other.item() == pytest.approx(one.item(), rel=1e-5)


def test_one_tile_and_tiles_in_one_place_have_no_spread() -> None:
    for coords in (torch.tensor([[7, 9]]), torch.full((4, 2), 1000)):
        unit = losses.unit_box(coords)
        assert bool((unit == 0).all())
        gate = torch.ones(1, len(coords), requires_grad=True)
        spread = losses.contiguity(gate, unit[None])
        spread.sum().backward()
        assert spread.item() == 0
        assert bool(gate.grad.isfinite().all())


def test_entropy_by_hand() -> None:
    gate = torch.tensor([[0.5, 0.1, 0.0], [1.0, 0.0, 0.5]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    h = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    got = losses.entropy(gate, mask)
    assert got.tolist() == pytest.approx([(math.log(2) + h) / 2, math.log(2) / 3], abs=1e-5)
    got.sum().backward()
    assert bool(gate.grad.isfinite().all())
    assert gate.grad[0, 1].item() == pytest.approx(math.log(0.9 / 0.1) / 2, rel=1e-5)


def mean_of_two_columns(x: Tensor) -> Tensor:
    return x[:, :2].mean(dim=0)


def one_bag(x: Tensor, target: int) -> tuple[GatedBatch, CallableBackbone]:
    model = CallableBackbone(mean_of_two_columns, d_in=x.shape[1], n_classes=2)
    coords = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])[:, : len(x)]
    batch = GatedBatch(
        tiles={"tokens": x[None]},
        mask=torch.ones(1, len(x), dtype=torch.bool),
        coords=coords,
        targets=torch.tensor([target]),
        full=model(x)[None],
    )
    return batch, model


def p1(logit0: float, logit1: float) -> float:
    return 1 / (1 + math.exp(logit0 - logit1))


def test_all_terms_of_one_bag_by_hand() -> None:
    """Tiles speak for class 1 with 6, 3 and 0; the first two are kept."""
    x = torch.tensor([[0.0, 6.0], [0.0, 3.0], [0.0, 0.0]])
    batch, model = one_bag(x, target=1)
    scores = torch.tensor([[2.0, 1.0, -1.0]])
    weights = Weights(entropy=0.1)
    terms = loss_terms(
        batch, scores, gate_backbone(model, "feature"), Ste(), torch.tensor([2]), weights
    )
    got = {name: value.item() for name, value in terms.items()}
    keep, drop = p1(0, 3), p1(0, 0)  # zeroed tiles stay in the mean
    assert got == pytest.approx(
        {
            "suff": -math.log(keep),
            "hinge": max(0.9 - keep, 0),
            "excl": drop - 0.2,
            "contig": 0.25,
            "budget": 2.0,
            "entropy": 0.0,
            "full": -math.log(p1(0, 3)),
        },
        abs=1e-5,
    )
    want = 0.5 * got["suff"] + got["hinge"] + 0.5 * got["excl"] + 0.01 * 0.25 + 5e-3 * 2
    assert total(terms, weights).item() == pytest.approx(want, abs=1e-5)


def test_the_monitor_and_zero_weights_are_left_out() -> None:
    terms = {name: torch.tensor(10.0) for name in ("suff", "hinge", "excl", "contig", "budget")}
    terms["full"] = torch.tensor(1e6)
    weights = Weights(suff=0.5, hinge=0, excl=0, contig=0, budget=0.2)
    assert total(terms, weights).item() == pytest.approx(7.0)
    terms["hinge"] = torch.tensor(torch.nan)
    assert total(terms, weights).item() == pytest.approx(7.0)
    assert Weights().active == ("suff", "hinge", "excl", "contig", "budget")
    assert Weights(suff=0, entropy=0.1).active == ("hinge", "excl", "contig", "budget", "entropy")


def test_without_any_loss_nothing_can_be_learned() -> None:
    none = Weights(suff=0, hinge=0, excl=0, contig=0, budget=0)
    assert none.active == ()
    terms = {name: torch.ones((), requires_grad=True) for name in ("suff", "budget", "full")}
    assert total(terms, none).item() == 0
    assert not total(terms, none).requires_grad
    assert total(terms, Weights()).requires_grad


@pytest.mark.parametrize("rule", [Ste(), Ste(centred=True), Soft()])
@pytest.mark.parametrize("site", ["feature", "attention"])
@pytest.mark.parametrize("name", [name for name, preset in EVERY if preset == "paper"])
def test_tiny_and_padded_bags_give_finite_gradients(name: str, site: str, rule: Ste | Soft) -> None:
    """N = 1, N < K and N > K in one batch, all scores equal."""
    model = small(name, "paper", 2).eval().requires_grad_(False)
    view = gate_backbone(model, site)  # type: ignore[arg-type]
    lengths = torch.tensor([1, 3, 8])
    mask = torch.arange(8)[None, :] < lengths[:, None]
    x = torch.randn(3, 8, D_IN, generator=torch.Generator().manual_seed(0)) * mask.unsqueeze(-1)
    tiles = view.prepare(x)
    coords = torch.rand(3, 8, 2)
    full = model.aggregate(tiles["tokens"], mask)
    batch = GatedBatch(tiles, mask, coords, torch.tensor([0, 1, 1]), full)
    scores = torch.zeros(3, 8, requires_grad=True)
    weights = Weights(entropy=0.1, beta=1e-6)
    generator = torch.Generator().manual_seed(1)
    terms = loss_terms(batch, scores, view, rule, torch.tensor([4, 4, 4]), weights, generator)
    total(terms, weights).backward()
    assert all(bool(value.isfinite()) for value in terms.values())
    assert bool(scores.grad.isfinite().all())
    assert bool((scores.grad[~mask] == 0).all())
    assert bool(scores.grad[2].any())
    if isinstance(rule, Ste):
        last = GatedBatch({k: v[2:] for k, v in tiles.items()}, mask[2:], coords[2:],
                          batch.targets[2:], full[2:])  # fmt: skip
        alone = loss_terms(last, scores[2:], view, rule, torch.tensor([4]), weights)
        assert terms["excl"].item() == pytest.approx(alone["excl"].item() / 3, rel=1e-4)


def test_padding_changes_nothing() -> None:
    model = small("abmil", "paper", 2).double().eval().requires_grad_(False)
    view = gate_backbone(model, "attention")
    x = torch.randn(1, 6, D_IN, dtype=torch.float64)
    scores = torch.randn(1, 6, dtype=torch.float64)
    coords = torch.rand(1, 6, 2, dtype=torch.float64)
    values, gradients = [], []
    for padding in (0, 3):
        mask = torch.arange(6 + padding)[None, :] < 6
        longer = [torch.nn.functional.pad(t, (0, 0, 0, padding)) for t in (x, coords)]
        a = torch.nn.functional.pad(scores, (0, padding), value=50.0).requires_grad_()
        tiles = view.prepare(longer[0])
        full = model.aggregate(tiles["tokens"], mask)
        batch = GatedBatch(tiles, mask, longer[1], torch.tensor([1]), full)
        weights = Weights(entropy=0.1)
        terms = loss_terms(batch, a, view, Ste(), torch.tensor([2]), weights)
        total(terms, weights).backward()
        values.append({name: value.item() for name, value in terms.items()})
        gradients.append(a.grad[:, :6])
    assert values[0] == pytest.approx(values[1])
    torch.testing.assert_close(*gradients)


def test_a_soft_gate_always_has_a_drop_view() -> None:
    """K plays no part: three tiles at gates 1/2 leave half of each, whatever K is."""
    x = torch.tensor([[0.0, 6.0], [0.0, 3.0], [0.0, 0.0]])
    batch, model = one_bag(x, target=1)
    scores = torch.zeros(1, 3)
    for k in (1, 3, 32):
        terms = loss_terms(
            batch, scores, gate_backbone(model, "feature"), Soft(), torch.tensor([k]), Weights()
        )
        assert terms["excl"].item() == pytest.approx(p1(0, 1.5) - 0.2, abs=1e-6)
