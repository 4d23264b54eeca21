"""CLAM-MB: counts, closed form, the predicted class's row, and the published implementation."""

from typing import Any

import pytest
import torch

from foci.backbones import create
from foci.backbones.models.clam import CLAM, CLAMMB
from foci.errors import FociError
from tests.backbones import golden_clam
from tests.backbones.golden_weights import features


@pytest.mark.parametrize("n_classes", [2, 5])
def test_parameter_counts(n_classes: int) -> None:
    model = create("clam-mb", "official", d_in=1536, n_classes=n_classes)
    trunk = (1536 + 1) * 512 + 2 * (512 + 1) * 256
    per_class = (256 + 1) + (512 + 1) + 2 * (512 + 1)
    assert sum(p.numel() for p in model.parameters()) == trunk + n_classes * per_class


def test_there_is_no_paper_preset() -> None:
    with pytest.raises(FociError, match="clam-mb: has no preset 'paper'; choose one of official"):
        create("clam-mb", d_in=8, n_classes=2)


@pytest.mark.parametrize("case", golden_clam.golden("clam_mb")["cases"])
def test_published_logits_and_attention(case: dict[str, Any]) -> None:
    model = golden_clam.model(CLAMMB, **case["variant"])
    x = features(case["n_tiles"], golden_clam.D_IN)
    predicted = max(range(len(case["logits"])), key=case["logits"].__getitem__)

    with torch.no_grad():
        logits, tokens = model(x), model.embed(x)
        rows, scores = model.attend(tokens).T, model.scores(tokens)

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-8)
    assert len(rows) == len(case["attention"])
    for row, want in zip(rows, case["attention"], strict=True):
        assert row.tolist() == pytest.approx(want, abs=1e-8)
    assert scores.tolist() == pytest.approx(case["attention"][predicted], abs=1e-8)


@pytest.mark.parametrize("winner", [0, 1, 2])
@torch.no_grad()
def test_scores_follow_the_predicted_class(winner: int) -> None:
    torch.manual_seed(0)
    model = CLAMMB(5, 3, d=4, hidden=3).double()
    model.heads[winner].bias += 100.0
    tokens = model.embed(torch.randn(7, 5, dtype=torch.float64))
    assert torch.equal(model.scores(tokens), model.attend(tokens)[:, winner])


@pytest.mark.parametrize("spread", [1.0, 400.0])
@torch.no_grad()
def test_prefixes_equal_forwarding_the_subset(spread: float) -> None:
    torch.manual_seed(0)
    model = create("clam-mb", "official", d_in=12, n_classes=3).double().eval()
    assert isinstance(model, CLAM)
    x = torch.randn(120, 12, dtype=torch.float64)
    model.attention.w.weight *= spread / model.attend(model.embed(x)).std()
    ks = torch.tensor([1, 2, 3, 50, 119, 120])

    got = model.prefixes(model.embed(x), ks)

    want = torch.stack([model(x[:k]) for k in ks.tolist()])
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)
