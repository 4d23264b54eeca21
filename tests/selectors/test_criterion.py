"""Orders read both ways; what chooses the mix of columns and the epoch."""

import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from foci import selectors
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.errors import FociError
from foci.metrics import aukc, decisive_k, msk
from foci.reveal import EmbeddedBag, curve
from foci.selectors.criterion import (
    OrderReading,
    ValidationAukc,
    ValidationDecisive,
    net_gain,
    read_orders,
    tune,
)
from foci.selectors.gated import gate_backbone
from foci.selectors.prepared import PreparedBags
from foci.selectors.selector import EvidenceHead, Head, Selector, SelectorHead
from tests.backbones.every import D_IN, small
from tests.makers.fits import per_class, short

NONE = math.nan


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_readings_are_those_of_the_metrics(name: str) -> None:
    model = small(name, "paper", 2).eval()
    x = 4 * torch.randn(9, D_IN, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        bag = EmbeddedBag(model, x)
        target, kappa = bag.target, 0.5
        orders = [torch.arange(9), torch.arange(9).flip(0)]
        found = read_orders(bag, orders, target, kappa=kappa)
        ks = [1, 2, 3, 4, 5, 6, 7, 8] if name == "abmil" else [1, 2, 3, 4, 6, 8]
        full = bag.full().numpy()[target]
        for order, reading in zip(orders, found, strict=True):
            up = curve(model, x, order, ks).numpy()
            down = curve(model, x, order, ks, direction="delete").numpy()
            first, both = (
                msk(up, ks, target, kappa=kappa),
                decisive_k(up, ks, down, ks, target, kappa),
            )
            assert reading.msk == pytest.approx(NONE if first is None else first, nan_ok=True)
            assert reading.decisive == pytest.approx(NONE if both is None else both, nan_ok=True)
            area = np.trapezoid(full - down[:, target], ks) / ks[-1]
            assert reading.area == pytest.approx(area, abs=1e-6)


def test_net_gain_by_hand() -> None:
    base = [OrderReading(1, 10, 0.5), OrderReading(2, 4, 0.5), OrderReading(1, NONE, NONE)]
    same = net_gain(base, base)
    assert same == pytest.approx(1e-3 * (0.5 + 0.5) / 3)
    fewer = [OrderReading(1, 9, 0.5), OrderReading(2, 4, 0.5), OrderReading(1, 7, NONE)]
    assert net_gain(fewer, base) == pytest.approx(2 / 3 + same)
    paid = [OrderReading(2, 9, 0.5), OrderReading(3, 4, 0.5), OrderReading(2, 7, NONE)]
    assert net_gain(paid, base) == pytest.approx(2 / 3 - 1 + same)
    sooner = [OrderReading(1, 11, 0.5), OrderReading(1, 4, 0.5), OrderReading(1, NONE, NONE)]
    assert net_gain(sooner, base) == pytest.approx(-1 / 3 + same)  # sufficiency buys nothing


def prepared(
    model: Backbone, cohort: Cohort, target: Any, memory_gb: float = 1.0, *, evidence: bool = False
) -> PreparedBags:
    gated = gate_backbone(model, "attention")
    return PreparedBags(cohort, gated, target, memory_gb, evidence=evidence)


def selector_of(head: Head, model: Backbone) -> Selector:
    return Selector(head, model, None)  # type: ignore[arg-type]


def sure(backbone: str, factor: float = 60.0) -> Backbone:
    """A small classifier whose logits are far apart, so that slides are decided."""
    model = small(backbone, "paper", 2).eval()
    narrow = (m for m in model.modules() if isinstance(m, nn.Linear) and m.out_features <= 2)
    *_, last = narrow
    last.weight.data *= factor
    return model


@pytest.mark.parametrize("backbone", ["acmil", "abmil"])
def test_the_best_column_or_pair_of_training_slides(backbone: str, cohort: Cohort) -> None:
    model = sure(backbone)
    bags = prepared(model, cohort, "prediction", evidence=True)
    train = cohort.split("train").slides
    head = EvidenceHead(model.d_token, 2, 0, 10)
    tune(head, bags, train, torch.Generator().manual_seed(0))
    kept = [s for s in train if torch.softmax(bags[s].full.double(), -1).max() >= 0.9]
    assert kept
    single = torch.eye(10, dtype=torch.float64)

    def gain(mix: torch.Tensor) -> float:
        readings, base = [], []
        with torch.no_grad():
            for slide in kept:
                target = bags.predicted_of(slide)
                columns = bags[slide].tiles["evidence"][:, target]
                bag = bags.opened(slide, target)
                orders = [
                    (columns @ m).argsort(descending=True, stable=True) for m in (mix, single[0])
                ]
                ours, theirs = read_orders(bag, orders, target)
                readings.append(ours)
                base.append(theirs)
        return net_gain(readings, base)

    gains = [gain(one) for one in single]
    best = max(range(10), key=gains.__getitem__)
    pairs = [single[best] + single[p] for p in range(10) if p != best]
    every = {gain(mix): mix for mix in reversed([single[best], *pairs])}
    assert gain(head.mix.double()) == pytest.approx(max([*every, gains[0]]))


def test_undecided_slides_and_single_columns_change_nothing(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2).eval()
    bags = prepared(model, cohort, "prediction", evidence=True)
    head = EvidenceHead(model.d_token, 2, 0, 10)
    tune(head, bags, cohort.split("train").slides, torch.Generator())
    assert head.mix.tolist() == [1.0] + [0.0] * 9


def test_validation_aukc_is_the_mean_over_slides(cohort: Cohort) -> None:
    cohort, model = cohort.split("val"), small("abmil", "paper", 2).eval()
    predicted = {bag.slide_id: int(model(bag.x).argmax()) for bag in cohort.bags()}
    assert any(cohort.target(name) != y for name, y in predicted.items())
    for target, outputs in product(("label", "prediction"), (1, 2)):
        selector = selector_of(SelectorHead(model.d_token, outputs), model)
        want = []
        for bag in cohort.bags():
            y = predicted[bag.slide_id]
            if target == "label" and outputs == 1:  # two outputs are read at the prediction
                y = cohort.target(bag.slide_id)
            order = torch.argsort(selector.rank(bag.x, y), descending=True)
            ks = [k for k in (1, 2, 3, 4, 6, 8, 12) if k < len(bag)] + [len(bag)]
            want.append(aukc(curve(model, bag.x, order, ks).numpy(), ks, len(bag), y))
        for memory_gb in (1.0, 0.0):
            bags = prepared(model, cohort, target, memory_gb)
            for _ in range(2):  # before and after the bags are in memory
                got = ValidationAukc(bags, cohort)(selector)
                assert got == pytest.approx(np.mean(want), abs=1e-9)
                bags.batch(cohort.slides)


def test_aukc_chooses_the_epoch_unless_told_otherwise(cohort: Cohort) -> None:
    model, plan = small("abmil", "paper", 2), per_class(4)
    fitted = selectors.fit(model, cohort, plan)
    assert fitted.history == selectors.fit(model, cohort, plan, criterion="aukc").history
    assert all(0 <= epoch.score <= 1 for epoch in fitted.history)
    assert fitted.best_epoch == 1 + int(np.argmax([epoch.score for epoch in fitted.history]))
    by_loss = selectors.fit(model, cohort, plan, criterion="loss")
    assert [epoch.score for epoch in by_loss.history] == [-e.val_loss for e in by_loss.history]
    assert [e.val_loss for e in by_loss.history] == [e.val_loss for e in fitted.history]
    assert by_loss.best_epoch == 1 + int(np.argmin([e.val_loss for e in by_loss.history]))


def test_decisive_sets_choose_where_the_recipe_says_so(cohort: Cohort) -> None:
    model, plan = small("transmil", "paper", 2), short("tuned", 3, start="random")
    fitted = selectors.fit(model, cohort, plan)
    assert fitted.history == selectors.fit(model, cohort, plan, criterion="decisive").history
    best = max(fitted.history, key=lambda epoch: epoch.score)
    assert fitted.best_epoch == best.epoch


def test_evidence_has_no_net_gain_over_itself(cohort: Cohort) -> None:
    model = small("acmil", "paper", 2).eval()
    bags = prepared(model, cohort, "prediction", evidence=True)
    judge, areas = ValidationDecisive(bags, cohort.split("val")), []
    got = judge(selector_of(EvidenceHead(model.d_token, 2, 0, 10), model))
    with torch.no_grad():
        for slide in cohort.split("val"):
            target = bags.predicted_of(slide)
            order = bags[slide].tiles["evidence"][:, target, 0].argsort(descending=True)
            areas.append(read_orders(bags.opened(slide, target), [order], target)[0].area)
    assert got == pytest.approx(1e-3 * np.nanmean(areas))
    assert -2 <= judge(selector_of(SelectorHead(model.d_token, 2), model)) <= 1


def test_an_unknown_criterion_is_refused_in_one_line(cohort: Cohort, tmp_path: Path) -> None:
    message = r"^auck: is not a known criterion; did you mean 'aukc'\? Known: aukc, decisive, loss$"
    with pytest.raises(FociError, match=message):
        selectors.fit(small("abmil", "paper", 2), cohort, criterion="auck", out=tmp_path / "o")
    assert not (tmp_path / "o").exists()
