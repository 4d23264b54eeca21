"""The smooth SVM loss against its closed forms and the published implementation."""

import json
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.backbones.models.clam import HARD_FROM, smooth_top1_svm

ROWS = json.loads((Path(__file__).parents[1] / "golden" / "smooth_svm.json").read_text())["rows"]

scores = st.floats(-30, 30)


@settings(deadline=None)
@given(scores, st.floats(-6.9, 6.9))
def test_two_close_classes_have_a_softplus_margin(true: float, lead: float) -> None:
    u = torch.tensor([[true, true - lead]], dtype=torch.float64)
    want = F.softplus(torch.tensor(1.0 - lead, dtype=torch.float64))
    torch.testing.assert_close(smooth_top1_svm(u, torch.tensor([0])), want, rtol=0, atol=1e-12)


@settings(deadline=None)
@given(scores, st.floats(6.91, 60), st.booleans())
def test_two_distant_classes_have_a_hinge_margin(true: float, gap: float, right: bool) -> None:
    lead = gap if right else -gap
    u = torch.tensor([[true - lead, true]], dtype=torch.float64)
    loss = float(smooth_top1_svm(u, torch.tensor([1])))
    assert loss == pytest.approx(max(0.0, 1 - lead), abs=1e-12)


def test_switch_is_at_ln_1000() -> None:
    assert math.log(1000) == HARD_FROM
    below, above = HARD_FROM - 1e-9, HARD_FROM + 1e-9
    wrong = torch.tensor([[0.0, below], [0.0, above]], dtype=torch.float64)
    smooth, hard = (float(smooth_top1_svm(u[None], torch.tensor([0]))) for u in wrong)
    assert smooth == pytest.approx(math.log1p(math.exp(1 + below)), abs=1e-12)
    assert hard == pytest.approx(1 + above, abs=1e-12)
    assert smooth - hard > 3e-4


def test_switch_looks_at_the_two_best_classes_not_at_the_true_one() -> None:
    u = torch.tensor([[0.0, 20.0, 19.0]], dtype=torch.float64)
    want = math.log(1 + math.exp(21) + math.exp(20))
    assert float(smooth_top1_svm(u, torch.tensor([0]))) == pytest.approx(want, abs=1e-12)


def test_rows_are_averaged_each_in_its_own_form() -> None:
    u = torch.tensor([[0.5, -0.5], [0.0, 8.0]], dtype=torch.float64)
    want = (math.log(2) + 9.0) / 2
    assert float(smooth_top1_svm(u, torch.tensor([0, 0]))) == pytest.approx(want, abs=1e-12)


def test_huge_scores_stay_finite_in_value_and_gradient() -> None:
    u = torch.tensor([[3e4, -3e4], [-3e4, 3e4]], requires_grad=True)
    loss = smooth_top1_svm(u, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx((0 + 60001) / 2)
    assert u.grad is not None
    assert u.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scores']}-{row['label']}")
def test_published_values(row: dict[str, list[float]]) -> None:
    u = torch.tensor([row["scores"]], dtype=torch.float64, requires_grad=True)
    loss = smooth_top1_svm(u, torch.tensor([row["label"]]))
    assert loss.item() == pytest.approx(row["loss"], abs=1e-9)
    if "gradient" in row:
        loss.backward()
        assert u.grad is not None
        assert u.grad[0].tolist() == pytest.approx(row["gradient"], abs=1e-9)
