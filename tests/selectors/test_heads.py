"""The paper's head, and the head that starts as evidence."""

import math
from pathlib import Path

import pytest
import torch

from foci import selectors
from foci.backbones import fingerprint
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import Selector, SelectorHead, SelectorRecipe, recipe, vary
from foci.selectors.evidence import evidence_columns
from foci.selectors.recipes import paper_width
from foci.selectors.selector import EvidenceHead, scores_at
from tests.backbones.every import small
from tests.makers.fits import judge_by, short


def size(head: SelectorHead) -> int:
    return sum(p.numel() for p in head.parameters())


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
    assert size(SelectorHead(256)) == 66_561  # at the default width


def test_it_is_the_papers_network() -> None:
    torch.manual_seed(0)
    head = SelectorHead(6).double()
    tokens = torch.randn(1, 3, 6, dtype=torch.float64)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    got = scores_at(head, {"tokens": tokens}, torch.tensor([0]))[0]
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
    scores = scores_at(head, {"tokens": tokens}, targets)
    for row, target in enumerate(targets):
        one = SelectorHead(6)
        state = dict(head.state_dict())
        state["score.weight"] = state["score.weight"][target][None]
        state["score.bias"] = state["score.bias"][target][None]
        one.load_state_dict(state)
        torch.testing.assert_close(scores[row], one(tokens[row])[:, 0])


def test_it_is_its_first_column_at_first_and_mixes_by_hand() -> None:
    torch.manual_seed(0)
    head, tokens, columns = EvidenceHead(8, 2, 4, 3), torch.randn(1, 5, 8), torch.randn(1, 5, 2, 3)
    assert torch.equal(head(tokens, columns), columns[..., 0])
    tiles = {"tokens": tokens, "evidence": columns}
    assert torch.equal(scores_at(head, tiles, torch.tensor([1])), columns[:, :, 1, 0])
    head.mix.copy_(torch.tensor([1.0, -2.0, 0.5]))
    want = columns[..., 0] - 2 * columns[..., 1] + 0.5 * columns[..., 2]
    assert torch.allclose(head(tokens, columns), want)
    head.correction.score.bias.data += torch.tensor([0.0, 3.0])  # type: ignore[union-attr]
    assert torch.allclose(head(tokens, columns), want + torch.tensor([0.0, 3.0]))


def test_the_correction_learns_from_the_first_step() -> None:
    head, tokens, columns = EvidenceHead(8, 2, 4, 1), torch.randn(1, 5, 8), torch.randn(1, 5, 2, 1)
    head(tokens, columns).square().sum().backward()
    assert head.correction is not None
    assert bool(head.correction.score.weight.grad.any())
    assert [name for name, _ in EvidenceHead(8, 2, 0, 3).named_parameters()] == []


def test_evidence_needs_one_score_per_class() -> None:
    with pytest.raises(ValueError, match="start: evidence is about a class"):
        SelectorRecipe(name="x", note="", start="tuned")
    with pytest.raises(FociError, match="start: evidence is about a class"):
        vary(recipe("tuned"), {"class_conditional": False})


def test_an_epoch_that_does_not_gain_leaves_evidence(
    cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small("transmil", "paper", 2).eval()
    worse, seen = iter(range(0, -100, -1)), []

    def judge(selector: Selector) -> float:
        seen.append(fingerprint(selector.head))
        return next(worse)

    judge_by(monkeypatch, judge)
    fitted = selectors.fit(model, cohort, short("tuned"), out=tmp_path)
    assert fitted.best_epoch == 0
    assert [epoch.best for epoch in fitted.history] == [False, False]
    assert len(set(seen)) == 3  # the start and two epochs that did learn
    assert fingerprint(fitted.best.head) == seen[0]
    again = selectors.load(tmp_path, model)
    assert again.best_epoch == 0
    for bag in cohort.split("val").bags():
        with torch.no_grad():
            tokens = model.embed(bag.x)
            want = evidence_columns(model, tokens)[:, 1, 0]
            for one in (fitted, again):
                assert torch.equal(one.scores(tokens, 1), want)


@pytest.mark.parametrize("backbone", ["clam-sb", "transmil"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_saved_selector_scores_alike(
    backbone: str, dtype: torch.dtype, cohort: Cohort, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    better = iter(range(100))
    judge_by(monkeypatch, lambda selector: next(better))  # not the start but the last epoch
    model = small(backbone, "paper", 2).to(dtype).eval()
    fitted = selectors.fit(model, cohort, short("tuned"), out=tmp_path)
    again, x = selectors.load(tmp_path, model), cohort.bag("s1").x
    assert fitted.best_epoch == len(fitted.history)
    assert torch.equal(fitted.rank(x, 0), again.rank(x, 0))
    assert fingerprint(fitted.best.head) == fingerprint(again.best.head)
    assert {p.dtype for p in again.best.head.parameters()} <= {dtype}


def test_a_correction_only_where_tiles_interact(cohort: Cohort) -> None:
    pooling, transformer = small("asmil", "paper", 2), small("transmil", "paper", 2)
    mixed = selectors.fit(pooling, cohort, short("tuned", 3))
    assert [epoch.epoch for epoch in mixed.history] == [1]  # nothing to learn
    assert mixed.best.head.hidden == 0
    learned = selectors.fit(transformer, cohort, short("tuned", 3))
    assert len(learned.history) == 3
    assert learned.best.head.hidden == 256
