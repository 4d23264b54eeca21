"""What is refused before the first epoch."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foci import selectors
from foci.backbones import Backbone, CallableBackbone
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.selectors.fitting import check_gradient, check_seed
from foci.selectors.gated import gate_backbone
from foci.selectors.prepared import PreparedBags
from tests.backbones.every import EVERY, small
from tests.makers.cohorts import D
from tests.makers.fits import per_class, same, short


def labels_of_train(cohort: Cohort, *labels: str) -> Cohort:
    slides = tuple(s for s in cohort if s.split != "train" or s.label in labels)
    return dataclasses.replace(cohort, slides=slides)


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
    one = labels_of_train(cohort, "b")
    model = small("abmil", "paper", 2)
    message = r"^split 'train': has only slides of class b, and paper-ste .* every class; "
    with pytest.raises(CohortError, match=message):
        selectors.fit(model, one, per_class(1))
    assert selectors.fit(model, one, short("paper-ste", 1)).notes == ()


def first_column(x: Tensor) -> Tensor:
    """Always class 0."""
    return torch.stack([6 + x[:, 0].mean(), x[:, 1].mean(), x[:, 2].mean()])


@pytest.mark.parametrize("memory_gb", [1.0, 0.0])
def test_untrained_classes_are_named(cohort: Cohort, tmp_path: Path, memory_gb: float) -> None:
    model = CallableBackbone(first_column, D, 3)
    plan = per_class(1)
    fitted = selectors.fit(model, cohort, plan, target="prediction", memory_gb=memory_gb,
                           out=tmp_path / "two")  # fmt: skip
    wanted = ("no training slide had class 1, 2 as target: scores for it are untrained",)
    assert fitted.notes == wanted
    assert selectors.load(tmp_path / "two", model).notes == wanted
    three = dataclasses.replace(cohort, classes=("a", "b", "c"))
    labelled = selectors.fit(model, three, plan)
    assert labelled.notes == (
        "no training slide had class c as target: scores for it are untrained",
    )
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

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        return super().aggregate(tokens, mask, gate).detach()


def cut() -> Backbone:
    return Cut(d_in=D, n_classes=2, d=8, hidden=4)


@pytest.mark.parametrize("name", ["paper-ste", "default"])
@pytest.mark.parametrize("source", [detached, by_numpy, without_grad, cut])
def test_a_classifier_without_gradients_is_refused(source: Any, name: str, cohort: Cohort) -> None:
    model = cut() if source is cut else CallableBackbone(source, D, 2)
    message = (
        rf"^backbone {model.architecture}: passes no gradient from its logits to the features.*; "
        r"declare differentiable=False, or remove no_grad, detach and NumPy from its forward pass$"
    )
    epochs: list[int] = []
    with pytest.raises(FociError, match=message):
        selectors.fit(model, cohort, short(name), report=lambda e: epochs.append(e.epoch))
    assert not epochs
    assert all(p.requires_grad for p in model.parameters())


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_every_classifier_passes_at_every_site(name: str, preset: str, cohort: Cohort) -> None:
    model = small(name, preset, 2).eval().requires_grad_(False)
    for site in model.capabilities.gate_sites:
        view = gate_backbone(model, site)
        bags = PreparedBags(cohort, view, "label", memory_gb=1)
        with torch.no_grad():
            check_gradient(view, bags.batch(cohort.slides[:1]))
