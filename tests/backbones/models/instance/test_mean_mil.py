"""Mean pooling: the mean of the tiles' logits; the stand-in for a native score."""

import pytest
import torch

from foci import rankings
from foci.backbones import create
from foci.backbones.models.pooling import MeanMIL


def small(**settings: bool) -> MeanMIL:
    torch.manual_seed(0)
    return MeanMIL(5, 3, d=4, **settings).double().eval().requires_grad_(False)


def bag(n: int) -> torch.Tensor:
    return torch.randn(n, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_logits_are_the_mean_of_the_tiles(n: int) -> None:
    model, x = small(), bag(n)
    alone = torch.stack([model(x[i : i + 1]) for i in range(n)])
    torch.testing.assert_close(model(x), alone.mean(dim=0), rtol=0, atol=1e-12)


def test_the_stand_in_is_the_logit_of_the_predicted_class() -> None:
    model, x = small(), bag(9)
    assert model.capabilities.score == "proxy"
    predicted = int(model(x).argmax())
    want = [float(model(x[i : i + 1])[predicted]) for i in range(9)]
    assert model.scores(model.embed(x)).tolist() == pytest.approx(want, abs=1e-12)


def test_attention_x_evidence_shares_the_log_odds_equally_weighted() -> None:
    model, x = MeanMIL(5, 2, d=4).double().eval().requires_grad_(False), bag(9)
    logits = model(x)
    scores = rankings.score("attention-x-evidence", model, x, target=1).scores
    assert scores.sum() == pytest.approx(float(logits[1] - logits[0]), abs=1e-10)


def test_parameter_count_and_homogeneity() -> None:
    model = create("mean-mil", "official", d_in=1024, n_classes=2)
    assert sum(p.numel() for p in model.parameters()) == (1024 + 1) * 512 + (512 + 1) * 2
    assert [small(projection_bias=b).capabilities.homogeneous for b in (True, False)] == [
        False,
        True,
    ]
