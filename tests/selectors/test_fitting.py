"""What a fit refuses, what it learns, what it leaves alone, and the key by which it resumes."""

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foci import selectors
from foci.backbones import CallableBackbone, fingerprint
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.selectors import FitEpoch, SelectorRecipe, recipe, vary
from foci.selectors.fitting import check_seed, new_head, run_key
from foci.selectors.selector import Identity
from tests.backbones.every import small
from tests.makers.cohorts import D, planted
from tests.makers.fits import per_class, same, short

SEVEN = ("abmil", "acmil", "asmil", "attrimil", "clam-sb", "mhim-mil", "transmil")


def column_means(x: Tensor) -> Tensor:
    """Class c is the mean of column c, sharpened; every noise tile dilutes it."""
    return 6 * x[:, :2].mean(dim=0)


EVERY_RECIPE_ON_ONE = [("abmil", name) for name in selectors.RECIPES]
EVERY_CLASSIFIER = [(backbone, name) for backbone in SEVEN[1:] for name in ("paper-ste", "tuned")]


@pytest.mark.parametrize(("backbone", "name"), EVERY_RECIPE_ON_ONE + EVERY_CLASSIFIER)
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


def test_cohorts_and_backbones_that_do_not_fit_are_refused(cohort: Cohort, tmp_path: Path) -> None:
    three = small("abmil", "paper", 3)
    with pytest.raises(CohortError, match="have 2 classes, the backbone has 3"):
        selectors.fit(three, cohort, "paper-ste")
    with pytest.raises(CohortError, match="split 'val'"):
        selectors.fit(small("abmil", "paper", 2), cohort.split("train"))
    narrow = planted(tmp_path, d=8)
    with pytest.raises(FociError, match="features are 8 wide, the backbone reads 32"):
        selectors.fit(small("abmil", "paper", 2), narrow)
    opaque = CallableBackbone(column_means, D, 2, differentiable=False)
    with pytest.raises(FociError, match="no selector can be fitted"):
        selectors.fit(opaque, cohort)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None])
def test_a_seed_is_a_whole_number(seed: Any, cohort: Cohort) -> None:
    message = r"^seed: is .*; give a whole number, 0 or more$"
    with pytest.raises(FociError, match=message):
        selectors.fit(small("abmil", "paper", 2), cohort, short("default"), seed=seed)


def test_a_seed_of_numpy_is_a_plain_one(cohort: Cohort, tmp_path: Path) -> None:
    assert type(check_seed(np.int64(3))) is int  # type: ignore[arg-type]
    model, plan = small("abmil", "paper", 2), short("default", 1)
    numpy = selectors.fit(model, cohort, plan, seed=np.int64(3), out=tmp_path)  # type: ignore[arg-type]
    assert same(numpy.best, selectors.fit(model, cohort, plan, seed=3).best)
    assert selectors.load(tmp_path, model).seed == 3


def test_a_target_is_label_or_prediction(cohort: Cohort) -> None:
    with pytest.raises(FociError, match="target: is 'truth'; choose label or prediction"):
        selectors.fit(small("abmil", "paper", 2), cohort, target="truth")  # type: ignore[arg-type]


def test_one_class_alone_teaches_no_class_conditional_head(cohort: Cohort) -> None:
    slides = tuple(s for s in cohort if s.split != "train" or s.label == "b")
    one, model = dataclasses.replace(cohort, slides=slides), small("abmil", "paper", 2)
    message = r"^split 'train': has only slides of class b, and paper-ste .* every class; "
    with pytest.raises(CohortError, match=message):
        selectors.fit(model, one, per_class(1))
    assert selectors.fit(model, one, short("paper-ste", 1)).notes == ()


def first_column(x: Tensor) -> Tensor:
    """Always class 0."""
    return torch.stack([6 + x[:, 0].mean(), x[:, 1].mean(), x[:, 2].mean()])


@pytest.mark.parametrize("memory_gb", [1.0, 0.0])
def test_untrained_classes_are_named(cohort: Cohort, tmp_path: Path, memory_gb: float) -> None:
    model, plan = CallableBackbone(first_column, D, 3), per_class(1)
    note = "no training slide had class {} as target: scores for it are untrained"
    given = {"target": "prediction", "memory_gb": memory_gb, "out": tmp_path / "two"}
    assert selectors.fit(model, cohort, plan, **given).notes == (note.format("1, 2"),)
    assert selectors.load(tmp_path / "two", model).notes == (note.format("1, 2"),)
    three = dataclasses.replace(cohort, classes=("a", "b", "c"))
    assert selectors.fit(model, three, plan).notes == (note.format("c"),)
    plain = selectors.fit(model, cohort, short("paper-ste", 1), target="prediction")
    assert plain.notes == ()
    assert "notes" not in plain.metadata


def detached(x: Tensor) -> Tensor:
    return x.detach().mean(0)[:2]


def by_numpy(x: Tensor) -> Any:
    return x.numpy().mean(0)[:2]


@torch.no_grad()
def without_grad(x: Tensor) -> Tensor:
    return x.mean(0)[:2]


class Cut(type(small("abmil", "paper", 2))):  # type: ignore[misc]
    """A registered architecture whose aggregate has been cut off."""

    def aggregate(self, *given: Any) -> Tensor:
        return super().aggregate(*given).detach()


@pytest.mark.parametrize("name", ["paper-ste", "default"])
@pytest.mark.parametrize("source", [detached, by_numpy, without_grad, Cut])
def test_a_classifier_without_gradients_is_refused(source: Any, name: str, cohort: Cohort) -> None:
    own = source is Cut
    model = Cut(d_in=D, n_classes=2, d=8, hidden=4) if own else CallableBackbone(source, D, 2)
    message = (
        rf"^backbone {model.architecture}: passes no gradient from its logits to the features.*; "
        r"declare differentiable=False, or remove no_grad, detach and NumPy from its forward pass$"
    )
    epochs: list[int] = []
    with pytest.raises(FociError, match=message):
        selectors.fit(model, cohort, short(name), report=lambda e: epochs.append(e.epoch))
    assert not epochs
    assert all(p.requires_grad for p in model.parameters())


IDENTITY = Identity("abmil", "00ff", (0.5, -0.5))
PLAN = recipe("paper-ste")


def key(cohort: Cohort, **changes: Any) -> str:
    given: dict[str, Any] = {
        "identity": IDENTITY,
        "recipe": PLAN,
        "seed": 0,
        "target": "label",
        "site": "attention",
        "train": cohort.split("train"),
        "val": cohort.split("val"),
        "criterion": "loss",
    }
    return run_key(**{**given, **changes})


def test_another_fit_has_another_key(cohort: Cohort) -> None:
    train, val = cohort.split("train"), cohort.split("val")
    fewer = dataclasses.replace(train, slides=train.slides[1:])
    first = dataclasses.replace(val.slides[0], label="b")
    relabelled = dataclasses.replace(val, slides=(first, *val.slides[1:]))
    keys = [
        key(cohort),
        key(cohort, identity=dataclasses.replace(IDENTITY, fingerprint="00fe")),
        key(cohort, identity=dataclasses.replace(IDENTITY, probe=(0.5, 0.5))),
        key(cohort, recipe=vary(PLAN, {"weights.suff": 0.25})),
        key(cohort, recipe=vary(PLAN, {"width": 128})),
        key(cohort, seed=1),
        key(cohort, target="prediction"),
        key(cohort, site="feature"),
        key(cohort, train=fewer),
        key(cohort, train=dataclasses.replace(train, classes=("b", "a"))),
        key(cohort, val=relabelled),
        key(cohort, criterion="aukc"),
        key(cohort, criterion="aukc", target="prediction"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(cohort) == keys[0]
