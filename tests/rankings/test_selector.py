"""Any function of the tokens as a ranking."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foci import rankings
from foci.errors import FociError
from foci.selectors.heads import SelectorHead
from foci.selectors.selector import Identity, Selector
from tests.rankings.trials import features, make


def test_one_score_per_tile_with_or_without_a_trailing_axis() -> None:
    model, x = make("abmil", "paper"), features(5)
    tokens = model.embed(x)
    for head in (lambda t: t.sum(dim=1), lambda t: t.sum(dim=1, keepdim=True)):
        got = rankings.score("selector", model, x, selector=head).scores
        np.testing.assert_array_equal(got, tokens.sum(dim=1))


def test_a_class_conditional_head_is_read_at_the_target() -> None:
    model, x = make("abmil", "paper"), features(5)
    head = nn.Linear(model.d_token, 3).double()
    want = head(model.embed(x)).detach()
    for target in range(3):
        got = rankings.score("selector", model, x, target=target, selector=head).scores
        np.testing.assert_array_equal(got, want[:, target])
    predicted = int(model.predict(x).argmax())
    got = rankings.score("selector", model, x, selector=head).scores
    np.testing.assert_array_equal(got, want[:, predicted])


def test_a_module_is_used_in_eval_mode_and_gets_its_mode_back() -> None:
    model, x = make("abmil", "paper"), features(5)
    head = nn.Sequential(nn.Linear(model.d_token, 1), nn.Dropout(0.9)).double().train()
    first = rankings.score("selector", model, x, selector=head).scores
    np.testing.assert_array_equal(rankings.score("selector", model, x, selector=head).scores, first)
    np.testing.assert_allclose(first, head[0](model.embed(x)).detach()[:, 0])
    assert head.training
    assert head[1].training


@pytest.mark.parametrize("shape", [(5, 2), (4,), (1, 5), ()])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    def head(tokens: Tensor) -> Tensor:
        return torch.zeros(shape)

    message = r"^selector of slide bag: returned shape .* for 5 tiles and 3 classes; return \[5\], "
    with pytest.raises(FociError, match=message):
        rankings.score("selector", make("abmil", "paper"), features(5), selector=head)


def test_a_fitted_selector_refuses_another_classifier() -> None:
    model, other, x = make("abmil", "paper"), make("abmil", "paper"), features(5)
    head = SelectorHead(model.d_token, 1).double()
    fitted = Selector(head, model, Identity.of(model))
    with torch.no_grad():
        next(iter(other.parameters())).add_(0.5)
    rankings.score("selector", model, x, selector=fitted)
    rankings.score("selector", copy.deepcopy(model), x, selector=fitted)
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        rankings.score("selector", other, x, selector=fitted)
