import math
from typing import Any

import pytest
import torch

from foci.backbones.models.asmil import ASMIL, anchor_divergence, normalised_sigmoid
from foci.errors import FociError
from tests.backbones.golden_branches import read


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def test_normalised_sigmoid_by_hand() -> None:
    """sigmoid(0) = 1/2, sigmoid(ln 3) = 3/4, sigmoid(-ln 3) = 1/4; their sum is 3/2."""
    logits = torch.tensor([[0.0], [math.log(3)], [-math.log(3)]], dtype=torch.float64)
    got = normalised_sigmoid(logits).flatten().tolist()
    assert got == pytest.approx([1 / 3, 1 / 2, 1 / 6], abs=1e-8)
    assert sum(got) == pytest.approx(1.5 / (1.5 + 1e-8), abs=1e-12)


def test_absent_tiles_take_no_share() -> None:
    logits = torch.zeros(3, 1, dtype=torch.float64)
    mask = torch.tensor([True, False, True])
    assert normalised_sigmoid(logits, mask).flatten().tolist() == pytest.approx([0.5, 0, 0.5])


def test_divergence_by_hand() -> None:
    a, b = [0.3, -1.2, 2.0], [1.0, 0.0, -0.5]
    shares = [sigmoid(z / 0.5) for z in b]
    mass = sum(math.exp(z) for z in a)
    want = -sum(s / sum(shares) * (z - math.log(mass)) for s, z in zip(shares, a, strict=True))
    online, anchor = torch.tensor(a).double()[:, None], torch.tensor(b).double()[:, None]
    assert anchor_divergence(online, anchor).item() == pytest.approx(want, abs=1e-6)


def test_padding_changes_neither_value_nor_gradient() -> None:
    torch.manual_seed(0)
    online = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    anchor = torch.randn(2, 5, 3, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    value = anchor_divergence(online, anchor, mask)
    singles = [
        anchor_divergence(online[0], anchor[0]),
        anchor_divergence(online[1, :2], anchor[1, :2]),
    ]
    assert value.item() == pytest.approx((singles[0] + singles[1]).item() / 2)
    (gradient,) = torch.autograd.grad(value, online)
    assert torch.isfinite(gradient).all()
    assert gradient[1, 2:].abs().sum() == 0


@pytest.mark.parametrize("case", read("asmil_query")["plain"])
def test_agrees_with_the_official_expression_summed_over_tiles(case: dict[str, Any]) -> None:
    """The official numbers are [head, query, tile] and averaged over the tiles."""
    online = torch.tensor(case["online"], dtype=torch.float64).flatten(0, 1).T
    anchor = torch.tensor(case["anchor"], dtype=torch.float64).flatten(0, 1).T
    nsf = torch.tensor(case["nsf"], dtype=torch.float64).flatten(0, 1).T
    temperature = case["temperature"]
    torch.testing.assert_close(normalised_sigmoid(anchor / temperature), nsf, rtol=0, atol=1e-12)
    got = anchor_divergence(online, anchor, temperature=temperature).item()
    assert got == pytest.approx(case["loss_mean"] * len(online), abs=1e-9)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"beta": -1.0}, "beta: -1.0 is negative; choose 0 or more"),
        ({"temperature": 0.0}, "temperature: 0.0 is not positive; choose e.g. 0.5"),
        ({"momentum": 1.1}, "momentum: 1.1 is not a share; choose between 0 and 1"),
    ],
)
def test_bad_settings_are_named(setting: dict[str, float], message: str) -> None:
    with pytest.raises(FociError) as refusal:
        ASMIL(6, 2, d=4, hidden=4).make_objective(**setting)
    assert str(refusal.value) == message
