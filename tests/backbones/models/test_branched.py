"""What ACMIL and ASMIL with several branches share: the official models and their queries."""

from typing import Any

import pytest
import torch

from foci.backbones.models.acmil import ACMILMultiHead
from foci.backbones.models.asmil import ASMILQuery
from tests.backbones.golden_weights import features, golden, published

FORMS = ("acmil", "acmil_mha", "asmil_query")
CASES = [(form, case) for form in FORMS for case in golden(form)["cases"]]


@pytest.mark.parametrize(("form", "case"), CASES)
@torch.no_grad()
def test_agrees_with_the_official_model(form: str, case: dict[str, Any]) -> None:
    keys = golden(form)["variants"][case["variant"]]["keys"]
    model, soft = (
        published(keys, scaled=case.get("scaled"), score=score) for score in ("logits", "softmax")
    )
    x = features(case["n_tiles"], model.d_in)
    tokens, branches = model.embed(x), torch.tensor(case["branch_logits"], dtype=torch.float64)

    assert model(x).tolist() == pytest.approx(case["logits"], abs=1e-9)
    got = model.branch_logits(torch.softmax(model.attend(tokens), dim=0).T @ tokens)
    torch.testing.assert_close(got, branches, rtol=0, atol=1e-9)
    assert model.scores(tokens).tolist() == pytest.approx(case["mean_of_logits"], abs=1e-9)
    assert soft.scores(tokens).tolist() == pytest.approx(case["mean_of_softmax"], abs=1e-9)


def queried(cls: type[ACMILMultiHead | ASMILQuery], branches: int, heads: int) -> Any:
    torch.manual_seed(0)
    model = cls(6, 3, d=8, branches=branches, heads=heads).double().eval().requires_grad_(False)
    model.branches.queries.normal_()
    return model


@pytest.mark.parametrize("cls", [ACMILMultiHead, ASMILQuery])
@pytest.mark.parametrize(("branches", "heads"), [(1, 1), (3, 1), (1, 4), (3, 2)])
def test_values_of_tiles_and_of_pooled_tokens_agree(
    cls: type[ACMILMultiHead | ASMILQuery], branches: int, heads: int
) -> None:
    model = queried(cls, branches, heads)
    tokens = model.embed(torch.randn(7, 6, dtype=torch.float64))
    weights = torch.softmax(model.attend(tokens), dim=0)
    assert weights.shape == (7, branches * heads)

    before = torch.einsum("nr,nre->re", weights, model.project(tokens.unsqueeze(-2)))
    after = model.project(weights.T @ tokens)

    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.read(before), model.aggregate(tokens[None])[0])
    torch.testing.assert_close(model.prefixes(tokens)[-1], model.read(before))


@pytest.mark.parametrize("cls", [ACMILMultiHead, ASMILQuery])
def test_tiles_beyond_the_last_count_are_not_read(cls: type[ACMILMultiHead | ASMILQuery]) -> None:
    model = queried(cls, 3, 2)
    tokens = model.embed(torch.randn(7, 6, dtype=torch.float64))
    tokens[4:] = torch.nan
    logits = model.prefixes(tokens, torch.tensor([4, 1]))
    torch.testing.assert_close(logits[0], model.aggregate(tokens[None, :4])[0])
    torch.testing.assert_close(logits[1], model.aggregate(tokens[None, :1])[0])
