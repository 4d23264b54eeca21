import math

import pytest
import torch
from torch import Tensor

from foci.backbones import CallableBackbone
from foci.selectors.gated import gate_backbone
from foci.selectors.gates import Soft, Ste
from foci.selectors.losses import GatedBatch, Weights, loss_terms, total
from tests.backbones.every import D_IN, EVERY, small


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
    none = Weights(suff=0, hinge=0, excl=0, contig=0, budget=0)
    assert total(terms, none).item() == 0


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


def test_without_any_loss_nothing_can_be_learned() -> None:
    none = Weights(suff=0, hinge=0, excl=0, contig=0, budget=0)
    assert none.active == ()
    assert Weights().active == ("suff", "hinge", "excl", "contig", "budget")
    assert Weights(suff=0, entropy=0.1).active == ("hinge", "excl", "contig", "budget", "entropy")
    terms = {name: torch.ones((), requires_grad=True) for name in ("suff", "budget", "full")}
    assert not total(terms, none).requires_grad
    assert total(terms, Weights()).requires_grad
