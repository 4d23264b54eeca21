import pytest
import torch
from torch import Tensor

from foci import rankings
from foci.backbones import Backbone
from foci.errors import FociError
from foci.selectors import Selector, SelectorHead
from foci.selectors.selector import Identity
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


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("target", [-1, 3, 5, 0.5, "a"])
def test_a_class_that_there_is_not_is_refused(outputs: int, target: int) -> None:
    model, bag = small("abmil", "paper", 3), torch.randn(4, D_IN)
    selector = selector_for(model, outputs)
    message = r"^target: is .*; give a class index from 0 to 2, or None for the predicted class$"
    with pytest.raises(FociError, match=message):
        selector.rank(bag, target)
    with pytest.raises(FociError, match=message):
        selector.scores(model.embed(bag), target)


def test_a_backbone_in_training_is_read_out_in_eval_mode() -> None:
    model, bag = small("clam-sb", "official", 2), torch.randn(40, D_IN)
    selector = selector_for(model.eval(), 2)
    wanted, tokens = selector.rank(bag), model.embed(bag)
    answers: list[Tensor] = []
    aggregate = model.aggregate
    model.aggregate = lambda t, *rest: answers.append(aggregate(t, *rest)) or answers[-1]
    model.train()
    for _ in range(3):
        assert torch.equal(selector.rank(bag), wanted)
        selector.predicted(tokens)
    assert all(torch.equal(answer, answers[0]) for answer in answers)
    assert not any(answer.requires_grad for answer in answers)
    assert model.training
