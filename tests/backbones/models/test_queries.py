from typing import TypeAlias

import pytest
import torch

from foci.backbones.models.acmil import ACMILMultiHead
from foci.backbones.models.asmil import ASMILQuery

Queried: TypeAlias = ACMILMultiHead | ASMILQuery


def make(cls: type[Queried], branches: int, heads: int) -> Queried:
    torch.manual_seed(0)
    model = cls(6, 3, d=8, branches=branches, heads=heads).double().eval()
    with torch.no_grad():
        model.branches.queries.normal_()
    return model.requires_grad_(False)


@pytest.mark.parametrize("cls", [ACMILMultiHead, ASMILQuery])
@pytest.mark.parametrize(("branches", "heads"), [(1, 1), (3, 1), (1, 4), (3, 2)])
def test_values_of_tiles_and_of_pooled_tokens_agree(
    cls: type[Queried], branches: int, heads: int
) -> None:
    model = make(cls, branches, heads)
    tokens = model.embed(torch.randn(7, 6, dtype=torch.float64))
    weights = torch.softmax(model.attend(tokens), dim=0)
    assert weights.shape == (7, branches * heads)

    before = torch.einsum("nr,nre->re", weights, model.project(tokens.unsqueeze(-2)))
    after = model.project(weights.T @ tokens)

    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    torch.testing.assert_close(model.read(before), model.aggregate(tokens[None])[0])
    torch.testing.assert_close(model.prefixes(tokens)[-1], model.read(before))


@pytest.mark.parametrize("cls", [ACMILMultiHead, ASMILQuery])
def test_tiles_beyond_the_last_count_are_not_read(cls: type[Queried]) -> None:
    model = make(cls, 3, 2)
    tokens = model.embed(torch.randn(7, 6, dtype=torch.float64))
    tokens[4:] = torch.nan
    logits = model.prefixes(tokens, torch.tensor([4, 1]))
    torch.testing.assert_close(logits[0], model.aggregate(tokens[None, :4])[0])
    torch.testing.assert_close(logits[1], model.aggregate(tokens[None, :1])[0])
