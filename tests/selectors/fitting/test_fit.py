import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor

from foci import selectors
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.selectors import FitEpoch, Selector, SelectorRecipe
from foci.selectors.fitting import new_head
from tests.backbones.every import small
from tests.makers.cohorts import D, planted
from tests.makers.fits import judge_by, per_class, same, short

SEVEN = ("abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil")


def column_means(x: Tensor) -> Tensor:
    """Class c is the mean of column c, sharpened; every noise tile dilutes it."""
    return 6 * x[:, :2].mean(dim=0)


@pytest.mark.parametrize("name", selectors.RECIPES)
@pytest.mark.parametrize("backbone", SEVEN)
def test_the_classifier_stays_as_it_is_to_the_last_bit(
    backbone: str, name: str, cohort: Cohort
) -> None:
    model = small(backbone, "paper", 2)
    model.train()
    before = fingerprint(model)
    with torch.no_grad():
        model.eval()
        logits = [model(bag.x) for bag in cohort.bags()]
        model.train()
    fitted = selectors.fit(model, cohort, short(name))
    assert model.training
    assert all(p.requires_grad for n, p in model.named_parameters() if "anchor" not in n)
    assert fingerprint(model) == before
    with torch.no_grad():
        model.eval()
        for bag, logit in zip(cohort.bags(), logits, strict=True):
            assert torch.equal(model(bag.x), logit)
    assert all(p.grad is None for p in model.parameters())
    if fitted.recipe.start != "tuned":  # its best may be its start
        untouched = fingerprint(new_head(model, fitted.recipe, seed=0))
        learned = bool(fitted.recipe.weights.active)
        assert (fingerprint(fitted.best.head) != untouched) == learned


@pytest.mark.parametrize("name", selectors.RECIPES)
def test_every_recipe_reports_its_terms(name: str, cohort: Cohort) -> None:
    seen: list[FitEpoch] = []
    model = small("abmil", "paper", 2)
    fitted = selectors.fit(model, cohort, short(name), report=seen.append)
    assert fitted.history == tuple(seen)
    learns = bool(list(fitted.best.head.parameters()))  # a mix of columns has nothing to learn
    assert [epoch.epoch for epoch in seen] == ([1, 2] if learns else [1])
    w = fitted.recipe.weights
    for epoch in seen:
        for loss, terms in ((epoch.loss, epoch.terms), (epoch.val_loss, epoch.val_terms)):
            assert set(terms) >= {"suff", "hinge", "excl", "contig", "budget", "full"}
            want = sum(getattr(w, term) * value for term, value in terms.items() if term != "full")
            assert loss == pytest.approx(want, rel=1e-4, abs=1e-6)
    labels = [
        cohort.target(bag.slide_id) if fitted.target == "label" else int(model(bag.x).argmax())
        for bag in cohort.split("val").bags()
    ]
    full = [model.predict(bag.x)[y].log() for bag, y in zip(cohort.split("val").bags(), labels,
                                                            strict=True)]  # fmt: skip
    assert seen[-1].val_terms["full"] == pytest.approx(-sum(full).item() / len(full), rel=1e-5)


FEW = {"schedule.peak": 3e-3, "gate.centred": True}


@pytest.mark.parametrize(
    "plan", [short("paper-ste", 12, **FEW, **{"budget.k": 2}), per_class(12, **FEW)]
)
def test_it_finds_the_planted_tiles(plan: SelectorRecipe, cohort: Cohort) -> None:
    model = CallableBackbone(column_means, d_in=D, n_classes=2)
    fitted = selectors.fit(model, cohort, plan)
    for bag in cohort.split("val").bags():
        top = fitted.rank(bag.x).argsort(descending=True)[:2]
        assert set(top.tolist()) == {0, 1}


def test_a_class_conditional_selector_is_read_at_the_class_asked_for(cohort: Cohort) -> None:
    model = CallableBackbone(column_means, d_in=D, n_classes=2)
    fitted = selectors.fit(model, cohort, per_class())
    bag = cohort.bag("s1").x
    predicted = int(model(bag).argmax())
    assert torch.equal(fitted.rank(bag), fitted.rank(bag, target=predicted))
    assert not torch.equal(fitted.rank(bag), fitted.rank(bag, target=1 - predicted))
    one = selectors.fit(model, cohort, short("paper-ste"))
    assert torch.equal(one.rank(bag, target=0), one.rank(bag, target=1))


def test_same_seed_same_bytes_other_seed_other_bytes(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2)
    state = torch.get_rng_state()
    first, again, other = (
        selectors.fit(model, cohort, per_class(), seed=seed) for seed in (1, 1, 2)
    )
    assert torch.equal(torch.get_rng_state(), state)
    assert same(first.best, again.best)
    assert first.history == again.history
    assert not same(first.best, other.best)


def test_memory_makes_no_difference(cohort: Cohort) -> None:
    model = small("acmil", "paper", 2)
    all_kept, none_kept = (
        selectors.fit(model, cohort, short("paper-soft"), memory_gb=gb) for gb in (1.0, 0.0)
    )
    assert same(all_kept.best, none_kept.best)
    assert all_kept.history == none_kept.history


@pytest.mark.parametrize("fit", [partial(short, "paper-ste"), per_class])
def test_a_bag_is_embedded_once_however_many_epochs(
    fit: Callable[[int], SelectorRecipe], cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    model = small("abmil", "paper", 2)
    embed = model.embed
    monkeypatch.setattr(model, "embed", lambda x: calls.append(len(x)) or embed(x))
    counts = []
    for epochs in (1, 3):
        calls.clear()
        selectors.fit(model, cohort, fit(epochs))
        counts.append(len(calls))
    assert counts[0] == counts[1] <= len(cohort) + 2 * 4 + 2


def test_predictions_as_targets_need_no_labels(cohort: Cohort) -> None:
    blank = dataclasses.replace(
        cohort, classes=(), slides=tuple(dataclasses.replace(s, label=None) for s in cohort)
    )
    model = CallableBackbone(column_means, d_in=D, n_classes=2)
    unlabelled = selectors.fit(model, blank, per_class(), target="prediction")
    assert unlabelled.target == "prediction"
    labelled = selectors.fit(model, cohort, per_class())
    assert labelled.target == "label"
    assert same(unlabelled.best, labelled.best)  # this classifier is always right
    with pytest.raises(CohortError, match="labels: have 0 classes, the backbone has 2"):
        selectors.fit(model, blank, per_class())


def test_a_backbone_that_is_edited_meanwhile_voids_the_fit(
    cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = small("abmil", "paper", 2)

    def edits(selector: Selector) -> float:
        next(selector.backbone.parameters()).mul_(1.01)
        return 0.0

    judge_by(monkeypatch, edits)
    with pytest.raises(FociError, match="changed while it was read out"):
        selectors.fit(model, cohort, short("paper-ste"), out=tmp_path / "out")
    assert not (tmp_path / "out" / "selector.json").exists()


def test_cohorts_that_do_not_fit_are_refused(cohort: Cohort, tmp_path: Path) -> None:
    three = small("abmil", "paper", 3)
    with pytest.raises(CohortError, match="have 2 classes, the backbone has 3"):
        selectors.fit(three, cohort, "paper-ste")
    with pytest.raises(CohortError, match="split 'val'"):
        selectors.fit(small("abmil", "paper", 2), cohort.split("train"))
    narrow = planted(tmp_path, d=8)
    with pytest.raises(FociError, match="features are 8 wide, the backbone reads 32"):
        selectors.fit(small("abmil", "paper", 2), narrow)


def model_without_gradient() -> Backbone:
    return CallableBackbone(column_means, D, 2, differentiable=False)


def test_a_model_without_gradients_is_refused(cohort: Cohort) -> None:
    with pytest.raises(FociError, match="no selector can be fitted"):
        selectors.fit(model_without_gradient(), cohort)
