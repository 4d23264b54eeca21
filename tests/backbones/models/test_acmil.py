"""ACMIL's loss against the official code, its masks and its diversity with several heads."""

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci import backbones
from foci.backbones.models.acmil import (
    ACMIL,
    ACMILObjective,
    diversity,
    stochastic_topk_mask,
)
from tests.backbones.golden_weights import features, golden, published

FORMS = ("acmil", "acmil_mha")
LOSSES = [(form, case) for form in FORMS for case in golden(form)["losses"]]
HIDDEN = [(form, case) for form in FORMS for case in golden(form)["top10_hidden"]]


@pytest.mark.parametrize(("form", "case"), LOSSES)
def test_agrees_with_the_official_loss(form: str, case: dict[str, Any]) -> None:
    keys = golden(form)["variants"][case["variant"]]["keys"]
    model = published(keys, scaled=case.get("scaled"))
    batch = backbones.pad([features(case["n_tiles"], model.d_in)], [case["label"]])
    objective = model.make_objective(n_mask=0)
    total = objective(batch).item()
    assert total == pytest.approx(case["total"], abs=1e-9)
    assert objective.terms.get("bag") == pytest.approx(case["slide_ce"], abs=1e-9)
    assert objective.terms.get("branch", 0.0) == pytest.approx(case["branch_ce"], abs=1e-9)
    assert objective.terms.get("diversity", 0.0) == pytest.approx(case["diversity"], abs=1e-9)


@pytest.mark.parametrize(("form", "case"), HIDDEN)
def test_hiding_all_ten_strongest_tiles_agrees_with_the_official_model(
    form: str, case: dict[str, Any]
) -> None:
    model = published(golden(form)["variants"][case["variant"]]["keys"], scaled=case.get("scaled"))
    for dropout in (part for part in model.modules() if isinstance(part, torch.nn.Dropout)):
        dropout.p = 0.0
    batch = backbones.pad([features(case["n_tiles"], model.d_in)], [1])
    objective = model.train().make_objective(mask_drop=1.0)
    objective(batch)
    slide = torch.tensor([case["logits"]], dtype=torch.float64)
    branches = torch.tensor(case["branch_logits"], dtype=torch.float64)
    label = torch.tensor([1])
    assert objective.terms["bag"] == pytest.approx(F.cross_entropy(slide, label).item(), abs=1e-9)
    if len(branches) > 1:
        want = F.cross_entropy(branches, label.expand(len(branches))).item()
        assert objective.terms["branch"] == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("case", golden("acmil")["masked_counts"])
def test_masks_as_many_tiles_as_the_official_code(case: dict[str, Any]) -> None:
    n = case["n_tiles"]
    hidden = stochastic_topk_mask(
        torch.randn(1, n, 5),
        torch.ones(1, n, dtype=torch.bool),
        n_mask=case["n_mask"],
        mask_drop=case["mask_drop"],
    )
    assert hidden.sum(dim=1).tolist() == [[min(case["masked"], n - 1)] * 5]


@given(
    st.integers(0, 10_000),
    st.lists(st.integers(1, 25), min_size=1, max_size=3),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.29, 0.6, 1.0]),
)
def test_stkim_hides_a_share_of_each_rows_strongest_real_tiles(
    seed: int, lengths: list[int], n_mask: int, mask_drop: float
) -> None:
    torch.manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    logits = torch.randn(len(lengths), max(lengths), 3)
    hidden = stochastic_topk_mask(logits, mask, n_mask=n_mask, mask_drop=mask_drop)
    for n, bag_logits, bag_hidden in zip(lengths, logits, hidden, strict=True):
        count = min(math.floor(min(n_mask, n) * mask_drop), n - 1)
        assert not bag_hidden[n:].any()
        for row in range(3):
            strongest = set(bag_logits[:n, row].topk(min(n_mask, n)).indices.tolist())
            chosen = set(bag_hidden[:, row].nonzero().flatten().tolist())
            assert len(chosen) == count
            assert chosen <= strongest


def test_rows_hide_different_tiles() -> None:
    torch.manual_seed(0)
    logits = torch.arange(20.0)[None, :, None].expand(1, 20, 5)
    hidden = stochastic_topk_mask(logits, torch.ones(1, 20, dtype=torch.bool))
    assert len({tuple(row) for row in hidden[0].T.tolist()}) > 1


def cosine(first: Tensor, second: Tensor) -> float:
    return float(first @ second / (first.norm() * second.norm()))


def test_diversity_compares_equal_heads_of_different_branches() -> None:
    weights = torch.softmax(3 * torch.randn(2, 7, 3 * 4, dtype=torch.float64), dim=1)
    rows = weights.reshape(2, 7, 3, 4)
    pairs = itertools.combinations(range(3), 2)
    want = [
        cosine(rows[bag, :, r, head], rows[bag, :, s, head])
        for r, s in pairs
        for bag in range(2)
        for head in range(4)
    ]
    assert diversity(weights, 3).item() == pytest.approx(sum(want) / len(want))


def test_hiding_is_random_in_training_and_off_in_evaluation() -> None:
    torch.manual_seed(0)
    model = ACMIL(6, 2, d=4, hidden=4, branches=3)
    batch = backbones.pad([3 * torch.randn(30, 6)], [0])
    objective = ACMILObjective(model)
    training = {objective(batch).item() for _ in range(5)}
    model.eval()
    evaluation = {objective(batch).item() for _ in range(5)}
    assert len(training) > 1
    assert evaluation == {ACMILObjective(model.train(), n_mask=0)(batch).item()}
