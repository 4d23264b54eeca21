"""Any classifier: the subsets that are forwarded are the right ones, in bag order."""

import pytest
import torch

from foci.errors import FociError
from foci.rankings import EmbeddedBag
from foci.reveal.pooled import ForwardedCandidates
from tests.rankings.trials import OTHERS, features, logits_of, make


@pytest.mark.parametrize("budget", [1, 9, 10_000])
@pytest.mark.parametrize(("name", "preset"), OTHERS)
def test_every_choice_equals_forwarding_the_subset(name: str, preset: str, budget: int) -> None:
    x = features(6)
    model = make(name, preset)
    with torch.no_grad():
        candidates = ForwardedCandidates(model, model.embed(x), budget)
        full = candidates.full()
        present = torch.tensor([False, True, False, False, True, True])
        added = candidates.adding(present, torch.tensor([0, 2, 3]))
        alone = candidates.adding(~torch.ones(6, dtype=torch.bool), torch.arange(6))
        removed = candidates.removing(present, torch.tensor([4, 1]))
    torch.testing.assert_close(full, logits_of(model, x, range(6)))
    members = [1, 4, 5]
    want = torch.stack([logits_of(model, x, [*members, i]) for i in (0, 2, 3)])
    torch.testing.assert_close(added, want)
    torch.testing.assert_close(alone, torch.stack([logits_of(model, x, [i]) for i in range(6)]))
    want = torch.stack([logits_of(model, x, [1, 5]), logits_of(model, x, [4, 5])])
    torch.testing.assert_close(removed, want)


def test_never_more_tokens_at_once_than_the_budget() -> None:
    model = make("transmil", "paper")
    seen: list[int] = []
    inner = model.aggregate

    def counting(tokens: torch.Tensor) -> torch.Tensor:
        seen.append(tokens.shape[0] * tokens.shape[1])
        return inner(tokens)

    model.aggregate = counting  # type: ignore[method-assign, assignment]
    candidates = ForwardedCandidates(model, model.embed(features(7)), budget=13)
    candidates.removing(torch.ones(7, dtype=torch.bool), torch.arange(7))
    assert seen == [12, 12, 12, 6]


def test_a_budget_without_tokens_is_refused() -> None:
    with pytest.raises(FociError, match=r"^budget: 0 is too few; give at least 1$"):
        EmbeddedBag(make("transmil", "paper"), features(3)).candidates(budget=0)
