"""A selector, the backbone it belongs to, and how that stays frozen."""

import math

import pytest
import torch
from torch import Tensor

from foci import rankings
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.errors import ChangedError, FociError
from foci.selectors import Selector, SelectorHead
from foci.selectors.selector import Identity, keep_frozen
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


def bags() -> list[Tensor]:
    return [torch.randn(5, D_IN), torch.randn(3, D_IN)]


def test_modes_and_gradients_come_back() -> None:
    model = small("clam-sb", "official", 2).train()
    model.attention.eval()
    model.head.requires_grad_(False)
    modes = {name: module.training for name, module in model.named_modules()}
    learning = {name: p.requires_grad for name, p in model.named_parameters()}
    with keep_frozen(model, bags()):
        assert not any(module.training for module in model.modules())
        assert not any(p.requires_grad for p in model.parameters())
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert {name: p.requires_grad for name, p in model.named_parameters()} == learning
    with pytest.raises(KeyError), keep_frozen(model, bags()):
        raise KeyError
    assert {name: p.requires_grad for name, p in model.named_parameters()} == learning


def test_a_change_of_weights_buffers_or_logits_is_an_error_however_small() -> None:
    model, shift = small("abmil", "paper", 2), [0.0]
    model.register_buffer("calls", torch.zeros(1))
    function = CallableBackbone(lambda x: x.mean(0)[:2] + shift[0], D_IN, 2)
    changed = "abmil: parameters or buffers .*changed"
    with pytest.raises(FociError, match=changed), keep_frozen(model, bags()):
        first = next(model.attention.parameters()).view(-1)
        first[0] = torch.nextafter(first[0], torch.tensor(9.0))
    changed = "abmil: parameters or buffers changed"
    with pytest.raises(FociError, match=changed), keep_frozen(model, bags()):
        model.calls += 1
    changed = "callable: full-bag logits changed"
    with pytest.raises(FociError, match=changed), keep_frozen(function, bags()):
        shift[0] = 1e-3


def test_identity_tells_classifiers_apart() -> None:
    model = small("clam-sb", "official", 2)
    own = Identity.of(model.train())  # dropout plays no part
    assert model.training
    assert own.fingerprint == fingerprint(model)
    assert own.matches(Identity.of(model.eval()))
    with torch.no_grad():
        model.head.bias[0] += 1e-7
    assert not own.matches(Identity.of(model))
    one, same, other = (
        CallableBackbone(lambda x, c=column: x.mean(0)[c : c + 2], D_IN, 2) for column in (0, 0, 1)
    )
    assert Identity.of(one).matches(Identity.of(same))
    assert not Identity.of(one).matches(Identity.of(other))
    assert not Identity.of(one).matches(own)


def test_the_comparison_can_be_made_on_the_way() -> None:
    model = small("abmil", "paper", 2)
    with pytest.raises(ChangedError), keep_frozen(model, bags()) as compare:
        compare()
        next(model.parameters()).mul_(1.01)
        with pytest.raises(ChangedError, match="parameters or buffers and full-bag logits"):
            compare()


def test_no_answer_is_an_answer_too() -> None:
    """A function that the random probe leads out of its domain is recognised all the same."""
    model = CallableBackbone(lambda x: (x + 0.1).log().mean(0)[:2], D_IN, 2)
    own = Identity.of(model)
    assert all(math.isnan(value) for value in own.probe)
    assert own.matches(Identity.of(model))
    own.check(model)
    one = Identity("a", "f", (math.nan, math.inf, 1.0))
    assert one.matches(Identity("a", "f", (math.nan, math.inf, 1.0005)))
    others = [
        (1.0, math.inf, 1.0),
        (math.nan, -math.inf, 1.0),
        (math.nan, 1e9, 1.0),
        (math.nan, math.inf, 1.01),
        (math.nan, math.inf),
        (math.inf, math.nan, 1.0),
    ]
    for other in others:
        assert not one.matches(Identity("a", "f", other))


@pytest.mark.parametrize(
    ("fitted_on", "given"),
    [(torch.float32, torch.float64), (torch.float64, torch.float32), (torch.half, torch.float32)],
)
def test_another_precision_is_called_so(fitted_on: torch.dtype, given: torch.dtype) -> None:
    model = small("abmil", "paper", 2)
    model.register_buffer("count", torch.tensor(3))
    own = Identity.of(model.to(fitted_on))
    names = [str(dtype).removeprefix("torch.") for dtype in (given, fitted_on)]
    message = rf"^backbone abmil: computes in {names[0]}, .* fitted on it in {names[1]}; "
    with pytest.raises(FociError, match=message + rf"convert .*\.to\({fitted_on}\)$"):
        own.check(model.to(given))
    own.check(model.to(fitted_on))
    with torch.no_grad():
        next(model.parameters()).view(-1)[0] += 1
    with pytest.raises(FociError, match="is not the one"):
        own.check(model.to(given))
