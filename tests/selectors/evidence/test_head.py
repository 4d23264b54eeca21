"""A head that starts as evidence."""

from pathlib import Path

import pytest
import torch

from foci import selectors
from foci.backbones import fingerprint
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import Selector, SelectorRecipe, recipe, vary
from foci.selectors.evidence import evidence_columns
from foci.selectors.heads import EvidenceHead
from tests.backbones.every import small
from tests.makers.fits import judge_by, short


def test_it_is_its_first_column_at_first_and_mixes_by_hand() -> None:
    torch.manual_seed(0)
    head, tokens, columns = EvidenceHead(8, 2, 4, 3), torch.randn(1, 5, 8), torch.randn(1, 5, 2, 3)
    assert torch.equal(head(tokens, columns), columns[..., 0])
    assert torch.equal(head.at(tokens, torch.tensor([1]), columns), columns[:, :, 1, 0])
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
