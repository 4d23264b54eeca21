"""Evidence columns against the ranking, a slow reference and finite differences."""

import math

import pytest
import torch

from foci import rankings
from foci.backbones import CallableBackbone
from foci.reveal import EmbeddedBag
from foci.reveal.pooled import PooledTiles
from foci.selectors.evidence import (
    EXPONENTS,
    FORWARDED,
    POOLED,
    _row_columns,
    column_names,
    columns_of,
    evidence_columns,
    log_odds,
)
from tests.backbones.every import D_IN, small

SEVEN = ("abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil")


def bag(seed: int = 0, n: int = 12) -> torch.Tensor:
    return torch.randn(n, D_IN, generator=torch.Generator().manual_seed(seed))


def test_log_odds_of_three_classes_by_hand() -> None:
    found = log_odds(torch.tensor([[1.0, 2.0, 4.0]]))
    want = [1 - math.log(math.e**2 + math.e**4), 2 - math.log(math.e + math.e**4),
            4 - math.log(math.e + math.e**2)]  # fmt: skip
    assert found[0].tolist() == pytest.approx(want)
    assert torch.allclose(
        torch.sigmoid(found), torch.softmax(torch.tensor([1.0, 2.0, 4.0]), -1).double()
    )


@pytest.mark.parametrize("name", SEVEN)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_first_column_is_the_ranking_evidence(name: str, classes: int) -> None:
    model = small(name, "paper", classes).eval()
    with torch.no_grad():
        opened = EmbeddedBag(model, bag())
        columns = columns_of(opened)
        assert columns.shape == (12, classes, len(column_names(model)))
        for target in range(classes):
            want = rankings.score("evidence", model, opened, target=target).scores
            ratio = columns[:, target, 0].numpy() / want
            assert ratio == pytest.approx(ratio[0], rel=1e-9)  # the same up to one scale
            assert ratio[0] > 0
        again = evidence_columns(model, model.embed(bag()))
        assert torch.allclose(again, columns, rtol=1e-6)
        assert columns.square().mean(dim=0) == pytest.approx(1, abs=1e-9)


def test_columns_by_classifier() -> None:
    assert column_names(small("acmil", "paper", 2)) == POOLED
    assert POOLED[0] == "tile 0.5"
    assert column_names(small("transmil", "paper", 2)) == FORWARDED
    function = CallableBackbone(lambda x: x[:, :2].mean(dim=0), d_in=D_IN, n_classes=2)
    assert column_names(function) == FORWARDED


@pytest.mark.parametrize("name", ["abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil"])
def test_parts_of_rows_add_up_to_the_log_odds(name: str) -> None:
    """Sum over tiles and rows of weight times part, whatever the readout."""
    model = small(name, "paper", 3).eval()
    with torch.no_grad():
        pooled = PooledTiles(model, model.embed(bag()))  # type: ignore[arg-type]
        shares = _row_columns(pooled)[EXPONENTS.index(1.0)]
        assert torch.allclose(shares.mean(dim=0), log_odds(pooled.full()), rtol=1e-5, atol=1e-6)
