"""What chooses the epoch."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import selectors
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.errors import FociError
from foci.metrics import aukc
from foci.reveal import curve
from foci.selectors.criterion import ValidationAukc, ValidationDecisive
from foci.selectors.evidence import read_orders
from foci.selectors.gated import gate_backbone
from foci.selectors.heads import EvidenceHead
from foci.selectors.prepared import PreparedBags
from tests.backbones.every import small
from tests.makers.cohorts import planted
from tests.makers.fits import per_class, short


def prepared(model: Backbone, cohort: Cohort, target: Any, memory_gb: float = 1.0) -> PreparedBags:
    return PreparedBags(cohort, gate_backbone(model, "attention"), target, memory_gb)


def test_validation_aukc_is_the_mean_over_slides(tmp_path: Path) -> None:
    cohort = planted(tmp_path).split("val")
    model = small("abmil", "paper", 2).eval()
    predicted = {bag.slide_id: int(model(bag.x).argmax()) for bag in cohort.bags()}
    assert any(cohort.target(name) != y for name, y in predicted.items())
    for target, outputs in product(("label", "prediction"), (1, 2)):
        head = selectors.SelectorHead(model.d_token, outputs)
        selector = selectors.Selector(head, model, None)  # type: ignore[arg-type]
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


def test_bags_in_memory_are_not_embedded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, model = planted(tmp_path).split("val"), small("abmil", "paper", 2).eval()
    selector = selectors.Selector(
        selectors.SelectorHead(model.d_token, 2),
        model,
        None,  # type: ignore[arg-type]
    )
    bags = prepared(model, cohort, "label")
    bags.batch(cohort.slides)
    embed, calls = model.embed, []
    monkeypatch.setattr(model, "embed", lambda x: calls.append(len(x)) or embed(x))
    ValidationAukc(bags, cohort)(selector)
    assert calls == []
    few = prepared(model, cohort, "label", memory_gb=0.0)
    for slide in cohort:
        few.target_of(slide)
    calls.clear()
    ValidationAukc(few, cohort)(selector)
    assert len(calls) == len(cohort)


def test_aukc_chooses_the_epoch_unless_told_otherwise(cohort: Cohort) -> None:
    model, plan = small("abmil", "paper", 2), per_class(4)
    fitted = selectors.fit(model, cohort, plan)
    assert fitted.history == selectors.fit(model, cohort, plan, criterion="aukc").history
    assert all(0 <= epoch.score <= 1 for epoch in fitted.history)
    assert fitted.best_epoch == 1 + int(np.argmax([epoch.score for epoch in fitted.history]))
    by_loss = selectors.fit(model, cohort, plan, criterion="loss")
    assert [epoch.score for epoch in by_loss.history] == [-e.val_loss for e in by_loss.history]
    assert [e.val_loss for e in by_loss.history] == [e.val_loss for e in fitted.history]


def test_decisive_sets_choose_where_the_recipe_says_so(cohort: Cohort) -> None:
    model, plan = small("transmil", "paper", 2), short("tuned", 3, start="random")
    fitted = selectors.fit(model, cohort, plan)
    assert fitted.history == selectors.fit(model, cohort, plan, criterion="decisive").history
    best = max(fitted.history, key=lambda epoch: epoch.score)
    assert fitted.best_epoch == best.epoch


def test_evidence_has_no_net_gain_over_itself(cohort: Cohort) -> None:
    model = small("acmil", "paper", 2).eval()
    gated = gate_backbone(model, "attention")
    bags = PreparedBags(cohort, gated, "prediction", 1.0, evidence=True)
    judge, areas = ValidationDecisive(bags, cohort.split("val")), []
    head = EvidenceHead(model.d_token, 2, 0, 10)
    got = judge(selectors.Selector(head, model, None))  # type: ignore[arg-type]
    with torch.no_grad():
        for slide in cohort.split("val"):
            target = bags.predicted_of(slide)
            order = bags[slide].tiles["evidence"][:, target, 0].argsort(descending=True)
            areas.append(read_orders(bags.opened(slide, target), [order], target)[0].area)
    assert got == pytest.approx(1e-3 * np.nanmean(areas))
    other = selectors.Selector(selectors.SelectorHead(model.d_token, 2), model, None)  # type: ignore[arg-type]
    assert -2 <= judge(other) <= 1


def test_an_unknown_criterion_is_refused_in_one_line(cohort: Cohort, tmp_path: Path) -> None:
    message = r"^auck: is not a known criterion; did you mean 'aukc'\? Known: aukc, decisive, loss$"
    with pytest.raises(FociError, match=message):
        selectors.fit(small("abmil", "paper", 2), cohort, criterion="auck", out=tmp_path / "o")
    assert not (tmp_path / "o").exists()
