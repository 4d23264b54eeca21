"""A risk, a number or a label read as two sides of a cut: the same on every backbone."""

from itertools import combinations

import numpy as np
import pytest
import torch

from foci import backbones
from foci.backbones.outcomes import Sides, scalar, two_sides
from foci.errors import FociError
from foci.outputs import Cut, logit
from foci.rankings import minimal_set
from foci.reveal import EmbeddedBag
from foci.selectors.objective import flip, hinge
from tests.backbones.every import EVERY, small

KAPPA = 0.9


def model(name: str, preset: str = "official", outputs: int = 2, seed: int = 0):
    torch.manual_seed(seed)
    made = backbones.create(name, preset, d_in=32, n_classes=outputs)
    return made.requires_grad_(False).eval()


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_log_odds_are_the_distance_from_the_cut_in_units_of_tau(name: str, preset: str) -> None:
    own = small(name, preset, 2).requires_grad_(False).eval()
    cut, x = Cut(0.3, 0.7), torch.randn(9, 32)
    before = {key: value.clone() for key, value in own.state_dict().items()}
    sided = two_sides(own, "cox", cut, KAPPA)
    low, high = sided(x)
    f = scalar(own(x), "cox")
    assert float(high - low) == pytest.approx(float(f - 0.3) / 0.7 * logit(KAPPA), abs=2e-5)
    assert cut.output(sided.predict(x), KAPPA) == pytest.approx(float(f), abs=1e-5)
    assert all(torch.equal(value, before[key]) for key, value in own.state_dict().items())
    assert sided.capabilities.closed_form == own.capabilities.closed_form


def test_two_classes_are_the_case_of_no_cut_and_the_threshold_as_tau() -> None:
    own = model("abmil")
    sided = two_sides(own, "regression", Cut(0.0, logit(KAPPA)), KAPPA)
    for key, value in own.state_dict().items():
        assert torch.equal(value, sided.state_dict()[key]), key
    wrapped = Sides(own, "regression", 1.0, 0.0)
    for seed in range(5):
        x = torch.randn(20, 32, generator=torch.Generator().manual_seed(seed))
        order = torch.randperm(20)
        for direction in ("insert", "delete"):
            classes = EmbeddedBag(own, x).curve(order, direction=direction)
            sides = EmbeddedBag(sided, x).curve(order, direction=direction)
            assert torch.equal(classes, sides)
            plain = EmbeddedBag(wrapped, x).curve(order, direction=direction)
            assert torch.allclose(classes, plain, atol=1e-6)


def test_hazards_become_the_negative_sum_of_the_survival() -> None:
    hazards = torch.tensor([0.3, -1.0, 0.0, 2.0], dtype=torch.float64)
    alive, total = 1.0, 0.0
    for h in hazards.tolist():
        alive *= 1 - 1 / (1 + np.exp(-h))
        total -= alive
    assert float(scalar(hazards, "hazards")) == pytest.approx(total, abs=1e-12)


def test_hazards_have_every_count_in_closed_form() -> None:
    own, x = model("abmil", outputs=4), torch.randn(12, 32)
    sided = two_sides(own, "hazards", Cut(-0.9, 0.01), KAPPA)
    assert isinstance(sided, Sides)
    curve = EmbeddedBag(sided, x).curve(range(12))
    for k in range(1, 13):
        assert curve[k - 1].numpy() == pytest.approx(sided.predict(x[:k]).numpy(), abs=1e-5)


def test_a_label_is_one_of_the_outputs() -> None:
    own, x = model("abmil", outputs=3), torch.randn(7, 32)
    sided = two_sides(own, "multilabel", Cut(0.0, logit(KAPPA)), KAPPA, label=2)
    expected = torch.sigmoid(own(x)[2].double())
    assert float(sided.predict(x)[1]) == pytest.approx(float(expected), abs=1e-7)
    with pytest.raises(FociError, match="names no label; give --target-class"):
        scalar(own(x), "multilabel")
    with pytest.raises(FociError, match="has 3 outputs, not one number"):
        scalar(own(x), "cox")


@pytest.mark.parametrize("seed", range(12))
def test_proven_minima_of_linear_heads_against_brute_force(seed: int) -> None:
    """T1 to T3 with m_i = s (f_i - c), straight from the definitions of sure and necessary."""
    output = ("cox", "regression")[seed % 2]
    own = model("abmil", seed=seed).double()
    x = 2 * torch.randn(9, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    whole = frozenset(range(9))
    subsets = [frozenset(c) for k in range(1, 10) for c in combinations(range(9), k)]
    present = torch.tensor([[tile in tiles for tile in range(9)] for tiles in subsets])
    values = scalar(own(x.expand(len(subsets), -1, -1), present), output)
    f = dict(zip(subsets, values.tolist(), strict=True))

    alone = sorted(f[frozenset([tile])] for tile in whole)
    cut = (alone[3] + alone[4]) / 2
    side = 1 if f[whole] >= cut else -1
    tau = 0.9 * abs(f[whole] - cut)
    found = minimal_set(EmbeddedBag(two_sides(own, output, Cut(cut, tau), KAPPA), x), KAPPA)
    flipping = [tiles for tiles in subsets[:-1] if side * (f[whole - tiles] - cut) < 0]
    assert flipping
    assert all(side * (f[tiles] - cut) >= tau for tiles in flipping)  # T2: what flips suffices
    assert (found.k, found.theorem) == (len(flipping[0]), "T2")
    assert max(side * (own_f - cut) for own_f in alone) >= tau  # T3: one tile suffices


@pytest.mark.parametrize("output", ["cox", "regression", "hazards"])
def test_selector_losses_are_those_of_the_cut(output: str) -> None:
    """No loss where kept tiles stay clear of the cut by tau and dropped ones cross it."""
    own = model("abmil", outputs=4 if output == "hazards" else 2)
    bags = [torch.randn(9, 32, generator=torch.Generator().manual_seed(i)) for i in range(40)]
    f = torch.stack([scalar(own(x).double(), output) for x in bags])
    cut = Cut(float(f.median()), float(f.std()) / 2)
    logits = torch.stack([two_sides(own, output, cut, KAPPA)(x).double() for x in bags])
    for side in (0, 1):
        targets = torch.full((len(bags),), side)
        g = (2 * side - 1) * (f - cut.value)
        clear, crossed = g >= cut.tau + 1e-6, g < -1e-6
        kept = hinge(logits, targets, KAPPA)
        assert (kept[clear] == 0).all()
        assert (kept[g < cut.tau - 1e-6] > 0).all()
        dropped = flip(logits, targets, 0.0, torch.ones(len(bags), dtype=torch.bool))
        assert (dropped[crossed] == 0).all()
        assert (dropped[g > 1e-6] > 0).all()
        assert clear.any()
        assert crossed.any()
