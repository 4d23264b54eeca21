"""Epochs: stopped, resumed, chosen."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foci import selectors
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import FitEpoch, FittedSelector, Selector
from tests.backbones.every import small
from tests.selectors.quick import same, short


def weights(selector: Selector) -> dict[str, Tensor]:
    return selector.head.state_dict()


class KilledError(Exception):
    pass


@pytest.mark.parametrize("name", ["paper-soft", "class-conditional"])
def test_a_killed_fit_resumes_to_the_same_bytes(name: str, cohort: Cohort, tmp_path: Path) -> None:
    model, plan = small("clam-sb", "paper", 2), short(name, 4)
    selectors.fit(model, cohort, plan, seed=3, out=tmp_path / "whole")

    def die_after_two(epoch: FitEpoch) -> None:
        if epoch.epoch == 2:
            raise KilledError

    with pytest.raises(KilledError):
        selectors.fit(model, cohort, plan, seed=3, out=tmp_path / "cut", report=die_after_two)
    assert all(p.requires_grad for p in model.parameters())
    assert not (tmp_path / "cut" / "selector.json").exists()
    seen: list[int] = []
    selectors.fit(
        model, cohort, plan, seed=3, out=tmp_path / "cut", report=lambda e: seen.append(e.epoch)
    )
    assert seen == [3, 4]
    files = {p.name for p in (tmp_path / "cut").iterdir()}
    assert files == {"selector.safetensors", "selector.json"}
    for file in files:
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_state_of_another_run_is_not_resumed(cohort: Cohort, tmp_path: Path) -> None:
    def die(epoch: FitEpoch) -> None:
        raise KilledError

    model = small("abmil", "paper", 2)
    for seed in (1, 2):
        with pytest.raises(KilledError):
            selectors.fit(model, cohort, short("paper-ste"), seed=seed, out=tmp_path, report=die)
    resumed = selectors.fit(model, cohort, short("paper-ste"), seed=1, out=tmp_path)
    fresh = selectors.fit(model, cohort, short("paper-ste"), seed=1)
    assert same(resumed.last, fresh.last)
    with pytest.raises(FociError, match="already holds a fitted selector; choose another --out"):
        selectors.fit(model, cohort, short("paper-ste"), seed=1, out=tmp_path)


def test_the_criterion_chooses_the_epoch_and_both_are_kept(cohort: Cohort) -> None:
    marks = iter([0.2, 0.9, 0.9, 0.1])
    seen: list[dict[str, Tensor]] = []

    def criterion(selector: Selector) -> float:
        seen.append({k: v.clone() for k, v in weights(selector).items()})
        return next(marks)

    model = small("abmil", "paper", 2)
    fitted = selectors.fit(model, cohort, short("paper-ste", 4), criterion=criterion)
    assert fitted.best_epoch == 2
    assert [epoch.best for epoch in fitted.history] == [True, True, False, False]
    assert [epoch.score for epoch in fitted.history] == [0.2, 0.9, 0.9, 0.1]
    for chosen, epoch in ((fitted.best, 1), (fitted.last, 3)):
        assert all(torch.equal(v, seen[epoch][k]) for k, v in weights(chosen).items())
    plain = selectors.fit(model, cohort, short("paper-ste", 4))
    assert [e.score for e in plain.history] == [-e.val_loss for e in plain.history]
    assert plain.best_epoch == 1 + min(range(4), key=lambda i: plain.history[i].val_loss)


def test_a_criterion_that_gives_no_number_is_refused(cohort: Cohort) -> None:
    with pytest.raises(FociError, match=r"was judged nan after epoch 1"):
        selectors.fit(
            small("abmil", "paper", 2), cohort, short("paper-ste"), criterion=lambda s: math.nan
        )


def test_patience_ends_a_fit_early_only_if_asked(cohort: Cohort) -> None:
    def fit(**changes: Any) -> FittedSelector:
        plan = short("paper-ste", 6, **changes)
        return selectors.fit(small("abmil", "paper", 2), cohort, plan, criterion=lambda s: 0.0)

    assert len(fit().history) == 6
    assert len(fit(**{"schedule.patience": 2}).history) == 3
