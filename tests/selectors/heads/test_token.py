import math

import pytest
import torch

from foci.selectors import SelectorHead
from foci.selectors.heads import paper_width


def size(head: SelectorHead) -> int:
    return sum(p.numel() for p in head.parameters())


@pytest.mark.parametrize(("d", "outputs", "parameters"), [(512, 1, 132_609), (256, 1, 66_561)])
def test_parameters(d: int, outputs: int, parameters: int) -> None:
    assert size(SelectorHead(d, outputs)) == parameters


@pytest.mark.parametrize(("d", "hidden"), [(512, 256), (256, 512), (128, 1018)])
def test_the_papers_size_on_other_tokens(d: int, hidden: int) -> None:
    head = SelectorHead(d, hidden=hidden)
    assert paper_width(d) == head.hidden == hidden
    assert abs(size(head) - 132_609) <= d // 2 + 1
    assert (size(head) == 132_609) == (d in (256, 512))


def test_no_other_width_is_nearer_to_the_papers_size() -> None:
    for d in (2, 3, 64, 384, 768, 1536):
        around = range(max(1, paper_width(d) - 2), paper_width(d) + 3)
        sizes = {hidden: size(SelectorHead(d, hidden=hidden)) for hidden in around}
        assert abs(sizes[paper_width(d)] - 132_609) == min(abs(n - 132_609) for n in sizes.values())
    assert paper_width(10**6) == 1


def test_it_is_the_papers_network() -> None:
    torch.manual_seed(0)
    head = SelectorHead(6).double()
    tokens = torch.randn(1, 3, 6, dtype=torch.float64)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    got = head.at(tokens, torch.tensor([0]))[0]
    for t, score in zip(tokens[0], got, strict=True):
        normed = (t - t.mean()) / torch.sqrt(t.var(unbiased=False) + 1e-5)
        normed = normed * head.norm.weight + head.norm.bias
        hidden = head.widen.weight @ normed + head.widen.bias
        gelu = [h * 0.5 * (1 + math.erf(h / math.sqrt(2))) for h in hidden.tolist()]
        want = head.score.weight[0] @ torch.tensor(gelu).to(tokens) + head.score.bias[0]
        assert score.item() == pytest.approx(want.item(), rel=1e-6)


def test_a_class_conditional_head_is_read_at_each_bags_own_class() -> None:
    torch.manual_seed(0)
    head, tokens = SelectorHead(6, outputs=3), torch.randn(4, 5, 6)
    targets = torch.tensor([2, 0, 1, 2])
    scores = head.at(tokens, targets)
    for row, target in enumerate(targets):
        one = SelectorHead(6)
        state = dict(head.state_dict())
        state["score.weight"] = state["score.weight"][target][None]
        state["score.bias"] = state["score.bias"][target][None]
        one.load_state_dict(state)
        torch.testing.assert_close(scores[row], one(tokens[row])[:, 0])
