"""Orders read both ways, against one-slide metrics on reference curves."""

import math

import numpy as np
import pytest
import torch

from foci.metrics import decisive_k, msk
from foci.reveal import EmbeddedBag, curve
from foci.selectors.evidence import OrderReading, net_gain, read_orders
from tests.backbones.every import D_IN, small

NONE = math.nan


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_readings_are_those_of_the_metrics(name: str) -> None:
    model = small(name, "paper", 2).eval()
    x = 4 * torch.randn(9, D_IN, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        bag = EmbeddedBag(model, x)
        target, kappa = bag.target, 0.5
        orders = [torch.arange(9), torch.arange(9).flip(0)]
        found = read_orders(bag, orders, target, kappa=kappa)
        ks = [1, 2, 3, 4, 5, 6, 7, 8] if name == "abmil" else [1, 2, 3, 4, 6, 8]
        full = bag.full().numpy()[target]
        for order, reading in zip(orders, found, strict=True):
            up = curve(model, x, order, ks).numpy()
            down = curve(model, x, order, ks, direction="delete").numpy()
            first, both = (
                msk(up, ks, target, kappa=kappa),
                decisive_k(up, ks, down, ks, target, kappa),
            )
            assert reading.msk == pytest.approx(NONE if first is None else first, nan_ok=True)
            assert reading.decisive == pytest.approx(NONE if both is None else both, nan_ok=True)
            area = np.trapezoid(full - down[:, target], ks) / ks[-1]
            assert reading.area == pytest.approx(area, abs=1e-6)


def test_net_gain_by_hand() -> None:
    base = [OrderReading(1, 10, 0.5), OrderReading(2, 4, 0.5), OrderReading(1, NONE, NONE)]
    same = net_gain(base, base)
    assert same == pytest.approx(1e-3 * (0.5 + 0.5) / 3)
    fewer = [OrderReading(1, 9, 0.5), OrderReading(2, 4, 0.5), OrderReading(1, 7, NONE)]
    assert net_gain(fewer, base) == pytest.approx(2 / 3 + same)
    paid = [OrderReading(2, 9, 0.5), OrderReading(3, 4, 0.5), OrderReading(2, 7, NONE)]
    assert net_gain(paid, base) == pytest.approx(2 / 3 - 1 + same)
    sooner = [OrderReading(1, 11, 0.5), OrderReading(1, 4, 0.5), OrderReading(1, NONE, NONE)]
    assert net_gain(sooner, base) == pytest.approx(-1 / 3 + same)  # sufficiency buys nothing
