import pytest
import torch

from foci import rankings
from foci.backbones import Backbone
from foci.errors import FociError
from foci.selectors import Selector, SelectorHead
from foci.selectors.frozen import Identity
from tests.backbones.every import D_IN, small


def selector_for(model: Backbone, outputs: int) -> Selector:
    torch.manual_seed(1)
    return Selector(SelectorHead(model.d_token, outputs), model, Identity.of(model))


def test_scores_are_columns_of_the_head() -> None:
    model, bag = small("abmil", "paper", 3).eval(), torch.randn(6, D_IN)
    tokens = model.embed(bag)
    conditional = selector_for(model, 3)
    columns = conditional(tokens)
    assert columns.shape == (6, 3)
    for c in range(3):
        assert torch.equal(conditional.scores(tokens, c), columns[:, c])
    predicted = int(model(bag).argmax())
    assert torch.equal(conditional.scores(tokens), columns[:, predicted])
    assert torch.equal(conditional.rank(bag), columns[:, predicted])
    plain = selector_for(model, 1)
    for target in (None, 0, 2):
        assert torch.equal(plain.scores(tokens, target), plain(tokens)[:, 0])
    assert not columns.requires_grad


@pytest.mark.parametrize("outputs", [1, 2])
def test_it_is_a_ranking(outputs: int) -> None:
    model, bag = small("abmil", "paper", 2).eval(), torch.randn(6, D_IN)
    selector = selector_for(model, outputs)
    for target in (0, 1):
        got = rankings.score("selector", model, bag, target=target, selector=selector)
        want = selector.rank(bag, target).tolist()
        assert got.scores.tolist() == pytest.approx(want)


def test_another_backbone_is_refused() -> None:
    model, other = small("abmil", "paper", 2), small("clam-sb", "paper", 2)
    selector = selector_for(model, 1)
    selector.check(model)
    with pytest.raises(FociError, match="clam-sb: is not the one that the selector was fitted on"):
        selector.check(other)
