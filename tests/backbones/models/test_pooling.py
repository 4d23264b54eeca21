"""Pooling without attention: one tile decides at every count, or the mean of all."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foci.backbones.models.pooling import BestTile, MaxMIL, MeanMIL, MILfc
from foci.errors import FociError
from foci.reveal import curve

CLASSES = [(MaxMIL, 2), (MaxMIL, 3), (MILfc, 2), (MILfc, 3)]


def small(cls: type[BestTile], n_classes: int, **settings: Any) -> BestTile:
    torch.manual_seed(0)
    return cls(5, n_classes, d=4, **settings).double().eval().requires_grad_(False)


def mean_mil() -> MeanMIL:
    torch.manual_seed(0)
    return MeanMIL(5, 3, d=4).double().eval().requires_grad_(False)


def bag(n: int) -> Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize(("cls", "n_classes"), CLASSES)
def test_every_count_in_both_directions(
    cls: type[BestTile], n_classes: int, ascending: bool, direction: str
) -> None:
    model, x = small(cls, n_classes), bag(60)
    order = model.scores(model.embed(x)).argsort(descending=not ascending)
    got = curve(model, x, order, direction=direction)
    want = curve(model, x, order, direction=direction, engine="reference")
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("cls", "n_classes"), CLASSES)
def test_the_native_order_needs_one_tile(cls: type[BestTile], n_classes: int) -> None:
    """Its first tile decides the predicted class, and all classes of MIL_fc."""
    model, x = small(cls, n_classes), bag(30)
    first = int(model.scores(model.embed(x)).argmax())
    full, alone = model(x), model(x[first : first + 1])
    predicted = int(full.argmax())
    classes = [predicted] if cls is MaxMIL else list(range(n_classes))
    torch.testing.assert_close(alone[classes], full[classes], rtol=0, atol=1e-12)


def test_probabilities_that_round_to_one_do_not_tie() -> None:
    model = small(MILfc, 2)
    model.head.weight.mul_(1e4)
    x = bag(40)
    logits = model.head(model.embed(x))
    confident = torch.softmax(logits.float(), dim=-1)[:, 1] == 1
    assert int(confident.sum()) > 1
    best = int((logits[:, 1] - logits[:, 0]).argmax())
    for tiles in (x, x.flip(0)):
        torch.testing.assert_close(model(tiles), logits[best], rtol=1e-9, atol=0)


@pytest.mark.parametrize("cls", [MaxMIL, MILfc])
def test_there_is_no_weight_to_gate(cls: type[BestTile]) -> None:
    model = small(cls, 2)
    tokens = model.embed(bag(3)).unsqueeze(0)
    with pytest.raises(
        FociError, match=r"has no attention weight per tile.*use the gate site 'fea"
    ):
        model.aggregate(tokens, gate=torch.ones(1, 3, dtype=torch.float64))


def test_the_stand_in_is_the_logit_of_the_predicted_class() -> None:
    model, x = mean_mil(), bag(9)
    assert model.capabilities.score == "proxy"
    predicted = int(model(x).argmax())
    want = [float(model(x[i : i + 1])[predicted]) for i in range(9)]
    assert model.scores(model.embed(x)).tolist() == pytest.approx(want, abs=1e-12)
