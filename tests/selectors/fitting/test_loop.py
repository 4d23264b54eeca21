"""Epochs: stopped, resumed, chosen."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foci import selectors
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import FitEpoch, FittedSelector, Selector, SelectorHead, SelectorRecipe
from foci.selectors.fitting import new_head
from foci.selectors.loop import randomness
from tests.backbones.every import small
from tests.makers.cohorts import D
from tests.makers.fits import judge_by, per_class, same, short


def weights_of(selector: Selector) -> dict[str, Tensor]:
    return selector.head.state_dict()


class KilledError(Exception):
    pass


@pytest.mark.parametrize("plan", [short("paper-soft", 4), per_class(4)])
def test_a_killed_fit_resumes_to_the_same_bytes(
    plan: SelectorRecipe, cohort: Cohort, tmp_path: Path
) -> None:
    model = small("clam-sb", "paper", 2)
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
    assert same(resumed.best, fresh.best)
    assert resumed.history == fresh.history
    with pytest.raises(FociError, match="already holds a fitted selector; choose another --out"):
        selectors.fit(model, cohort, short("paper-ste"), seed=1, out=tmp_path)


def test_the_criterion_chooses_the_epoch(cohort: Cohort) -> None:
    marks = iter([0.2, 0.9, 0.9, 0.1])
    seen: list[dict[str, Tensor]] = []

    def criterion(selector: Selector) -> float:
        seen.append({k: v.clone() for k, v in weights_of(selector).items()})
        return next(marks)

    model = small("abmil", "paper", 2)
    with pytest.MonkeyPatch.context() as patch:
        judge_by(patch, criterion)
        fitted = selectors.fit(model, cohort, short("paper-ste", 4))
    assert fitted.best_epoch == 2
    assert [epoch.best for epoch in fitted.history] == [True, True, False, False]
    assert [epoch.score for epoch in fitted.history] == [0.2, 0.9, 0.9, 0.1]
    assert all(torch.equal(v, seen[1][k]) for k, v in weights_of(fitted.best).items())
    plain = selectors.fit(model, cohort, short("paper-ste", 4), criterion="loss")
    assert [e.score for e in plain.history] == [-e.val_loss for e in plain.history]
    assert plain.best_epoch == 1 + min(range(4), key=lambda i: plain.history[i].val_loss)


def test_a_criterion_that_gives_no_number_is_refused(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_by(monkeypatch, lambda selector: math.nan)
    with pytest.raises(FociError, match=r"was judged nan after epoch 1"):
        selectors.fit(small("abmil", "paper", 2), cohort, short("paper-ste"))


def test_patience_ends_a_fit_early_only_if_asked(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_by(monkeypatch, lambda selector: 0.0)

    def fit(**changes: Any) -> FittedSelector:
        plan = short("paper-ste", 6, **changes)
        return selectors.fit(small("abmil", "paper", 2), cohort, plan)

    assert len(fit().history) == 6
    assert len(fit(**{"schedule.patience": 2}).history) == 3


def slow_reference(
    model: Backbone, cohort: Cohort, plan: SelectorRecipe, seed: int
) -> SelectorHead:
    """A fit of a feature-gated function, bag by bag, as the paper would have written it."""
    head = new_head(model, plan, seed)
    schedule, train = plan.schedule, list(cohort.split("train"))
    optimizer = torch.optim.AdamW(head.parameters(), weight_decay=schedule.weight_decay)
    steps = math.ceil(len(train) / schedule.batch_size)
    for epoch in range(1, schedule.epochs + 1):
        root = np.random.SeedSequence([seed, epoch])
        noise = torch.Generator().manual_seed(int(root.generate_state(1)[0]))
        order = [train[i] for i in np.random.default_rng(root).permutation(len(train))]
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = schedule.rate((epoch - 1) * steps + step, steps)
            slides = order[step * schedule.batch_size : (step + 1) * schedule.batch_size]
            longest = max(len(cohort.bag(s.slide_id)) for s in slides)
            eps = torch.rand(len(slides), longest, generator=noise).clamp(1e-7, 1 - 1e-7)
            loss = torch.zeros(())
            for slide, u in zip(slides, eps, strict=True):
                x, y = cohort.bag(slide.slide_id).x, cohort.target(slide.slide_id)
                logit = head(x)[:, 0] + torch.logit(u[: len(x)])
                z = torch.sigmoid(logit / plan.gate.temperature)[:, None]
                keep, drop = (torch.softmax(model(g * x), 0)[y] for g in (z, 1 - z))
                w = plan.weights
                loss = loss - w.suff * keep.log() + w.hinge * (w.tau - keep).clamp(min=0)
                loss = loss + w.excl * (drop - w.beta).clamp(min=0) + w.budget * z.sum()
            optimizer.zero_grad()
            (loss / len(slides)).backward()
            optimizer.step()
    return head


def test_a_fit_is_what_the_slow_reference_does(
    cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = iter(range(3))
    judge_by(monkeypatch, lambda selector: next(later))  # the last epoch is the best
    model = CallableBackbone(lambda x: 6 * x[:, :2].mean(0), D, 2)
    weights = {"weights.contig": 0.0, "weights.entropy": 0.0}
    plan = short("paper-soft", 3, **{"schedule.batch_size": 3, "schedule.peak": 5e-3}, **weights)
    fitted = selectors.fit(model, cohort, plan, seed=4)
    reference = slow_reference(model, cohort, plan, seed=4)
    drawn = new_head(model, plan, 4)
    for name, value in reference.state_dict().items():
        torch.testing.assert_close(weights_of(fitted.best)[name], value, rtol=1e-3, atol=1e-5)
        if name != "score.bias":
            assert float((value - drawn.state_dict()[name]).abs().max()) > 1e-3


def test_validation_has_no_noise(cohort: Cohort) -> None:
    model = CallableBackbone(lambda x: 6 * x[:, :2].mean(0), D, 2)
    fitted = selectors.fit(model, cohort, short("paper-soft", 1))
    losses = []
    for slide in cohort.split("val"):
        x, y = cohort.bag(slide.slide_id).x, cohort.target(slide.slide_id)
        z = torch.sigmoid(fitted.best.rank(x) / 0.5)[:, None]
        losses.append(-torch.log_softmax(model(z * x), 0)[y].item())
    assert fitted.history[0].val_terms["suff"] == pytest.approx(np.mean(losses), rel=1e-5)


def test_every_epoch_has_draws_and_a_rate_of_its_own(cohort: Cohort) -> None:
    draws = [randomness(seed, epoch) for seed in (0, 1) for epoch in (1, 2, 3)]
    assert len({tuple(rng.permutation(20)) for rng, _ in draws}) == 6
    assert len({float(torch.rand(1, generator=generator)) for _, generator in draws}) == 6
    again = randomness(1, 3)
    assert torch.equal(
        torch.rand(2, generator=again[1]), torch.rand(2, generator=randomness(1, 3)[1])
    )
    plan = short("paper-ste", 4)
    history = selectors.fit(small("abmil", "paper", 2), cohort, plan).history
    wanted = [plan.schedule.rate(4 * epoch - 1, 4) for epoch in (1, 2, 3, 4)]  # 8 slides by 2
    assert [entry.rate for entry in history] == pytest.approx(wanted)
    assert len(set(wanted)) > 2


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_without_losses_the_head_stays_as_it_was_drawn(name: str, cohort: Cohort) -> None:
    model = small(name, "paper", 2)
    fitted = selectors.fit(model, cohort, short("freeze-only", 3), seed=2)
    drawn = fingerprint(new_head(model, fitted.recipe, seed=2))
    assert fingerprint(fitted.best.head) == drawn


@pytest.mark.parametrize("guard", [torch.no_grad, torch.inference_mode])
def test_a_caller_without_gradients_gets_the_same_selector(guard: Any, cohort: Cohort) -> None:
    model, plan = small("abmil", "paper", 2), short("default", 1)
    wanted = selectors.fit(model, cohort, plan)
    with guard():
        got = selectors.fit(model, cohort, plan)
    assert same(got.best, wanted.best)
    assert got.history == wanted.history
