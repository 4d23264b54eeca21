"""Epochs: stopped, resumed, chosen; fits that come to nothing."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from foci import selectors
from foci.backbones import Backbone, CallableBackbone, fingerprint
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import FitEpoch, FittedSelector, Selector, SelectorHead, SelectorRecipe
from foci.selectors.fitting import STATE, new_head
from tests.backbones.every import small
from tests.makers.cohorts import D
from tests.makers.fits import judge_by, per_class, same, short


class KilledError(Exception):
    pass


def killed_after(number: int) -> Any:
    def report(epoch: FitEpoch) -> None:
        if epoch.epoch == number:
            raise KilledError

    return report


def fit_twice(first: dict[str, Any], second: dict[str, Any], out: Path) -> list[int]:
    """Kill one fit after two of three epochs; which epochs another one then goes through."""
    given = {"backbone": small("abmil", "paper", 2), "recipe": per_class(3)}
    with pytest.raises(KilledError):
        selectors.fit(**{**given, **first}, out=out, report=killed_after(2))
    assert (out / STATE).exists()
    assert not (out / "selector.json").exists()
    seen: list[int] = []
    fitted = selectors.fit(
        **{**given, **second}, out=out, report=lambda epoch: seen.append(epoch.epoch)
    )
    fresh = selectors.fit(**{**given, **second})
    assert same(fitted.best, fresh.best)
    assert fitted.history == fresh.history
    return seen


def weights_of(selector: Selector) -> dict[str, Tensor]:
    return selector.head.state_dict()


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


def test_every_epoch_has_a_rate_of_its_own(cohort: Cohort) -> None:
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


@pytest.mark.parametrize(
    ("backbone", "plan"),
    [
        ("clam-sb", short("paper-soft", 3)),
        ("clam-sb", per_class(3)),
        ("transmil", short("tuned", 3)),
    ],
)
def test_a_killed_fit_resumes_to_the_same_bytes(
    backbone: str, plan: SelectorRecipe, cohort: Cohort, tmp_path: Path
) -> None:
    model = small(backbone, "paper", 2)
    given = {"backbone": model, "cohort": cohort, "recipe": plan, "seed": 3}
    selectors.fit(**given, out=tmp_path / "whole")
    assert fit_twice(given, given, tmp_path / "cut") == [3]
    assert all(p.requires_grad for p in model.parameters())
    files = {p.name for p in (tmp_path / "cut").iterdir()}
    assert files == {"selector.safetensors", "selector.json"}
    for file in files:
        assert (tmp_path / "cut" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    with pytest.raises(FociError, match="already holds a fitted selector; choose another --out"):
        selectors.fit(**given, out=tmp_path / "cut")


@pytest.mark.parametrize(
    ("second", "seen"),
    [
        ({"recipe": per_class(3, **{"weights.suff": 0.25})}, [1, 2, 3]),
        ({"seed": 1}, [1, 2, 3]),
        ({"target": "prediction"}, [1, 2, 3]),
        ({"backbone": small("abmil", "official", 2)}, [1, 2, 3]),
        ({"criterion": "loss"}, [1, 2, 3]),
        ({"criterion": "decisive"}, [1, 2, 3]),
        ({"memory_gb": 0.0}, [3]),
    ],
)
def test_only_the_same_fit_resumes(
    second: dict[str, Any], seen: list[int], cohort: Cohort, tmp_path: Path
) -> None:
    first = {"cohort": cohort, "criterion": "aukc"}
    assert fit_twice(first, {**first, **second}, tmp_path) == seen


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_voided_fit_leaves_nothing_to_resume(
    at: int, cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit is found before the state of its epoch is written."""
    calls: list[int] = []

    def edits(selector: Selector) -> float:
        calls.append(1)
        if len(calls) == at:
            for parameter in selector.backbone.parameters():
                parameter.mul_(1.5)
        return 0.0

    def fit(**more: Any) -> FittedSelector:
        return selectors.fit(small("transmil", "paper", 2), cohort, short("paper-ste", 3), **more)

    judge_by(monkeypatch, lambda selector: 0.0)
    clean = fit()
    judge_by(monkeypatch, edits)
    seen: list[int] = []
    with pytest.raises(FociError, match="changed while it was read out"):
        fit(out=tmp_path, report=lambda epoch: seen.append(epoch.epoch))
    assert list(tmp_path.iterdir()) == []
    assert seen == list(range(1, at))
    judge_by(monkeypatch, lambda selector: 0.0)
    again = fit(out=tmp_path)
    assert same(again.best, clean.best)
    assert again.history == clean.history


def test_an_edit_after_the_last_epoch_voids_the_fit_too(cohort: Cohort, tmp_path: Path) -> None:
    model, plan = small("abmil", "paper", 2), short("paper-ste", 1)

    def report(epoch: FitEpoch) -> None:
        assert (tmp_path / STATE).exists()
        next(model.parameters()).mul_(1.5)

    with pytest.raises(FociError, match="changed while it was read out"):
        selectors.fit(model, cohort, plan, out=tmp_path, report=report)
    assert list(tmp_path.iterdir()) == []


def test_losses_that_are_not_finite_end_the_fit(cohort: Cohort, tmp_path: Path) -> None:
    plan = per_class(3, **{"schedule.peak": 1e30})
    message = r"^selector paper-ste \(.*\), epoch 1: the training loss is nan; lower schedule.peak "
    with pytest.raises(FociError, match=message + r"\(it is 1e\+30\)$"):
        selectors.fit(small("abmil", "paper", 2), cohort, plan, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_half_precision_is_called_the_cause_where_it_is(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2).half()
    with pytest.raises(FociError, match=r"epoch 1: the .*; fit it on the backbone in float32"):
        selectors.fit(model, cohort, per_class(2))


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_weights_that_are_not_finite_end_the_fit(name: str, cohort: Cohort) -> None:
    """In the only step of the epoch: the training loss was still finite."""
    changes = {"schedule.peak": 1e30, "schedule.batch_size": 64, "weights.contig": 0.0}
    plan = per_class(1, **changes, **{"schedule.warmup": 0, "schedule.weight_decay": 1e30})
    message = r"epoch 1: the weights are not finite; lower schedule.peak"
    with pytest.raises(FociError, match=message):
        selectors.fit(small(name, "paper", 2), cohort, plan)


@pytest.mark.parametrize("plan", [per_class(), short("tuned")])  # the latter has no parameters
def test_a_validation_loss_that_is_not_finite_ends_the_fit(
    plan: SelectorRecipe, cohort: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.selectors.fitting.validate", lambda fit: (math.inf, {}))
    message = r"epoch 1: the validation loss is inf; lower schedule.peak"
    with pytest.raises(FociError, match=message):
        selectors.fit(small("abmil", "paper", 2), cohort, plan)


@pytest.mark.parametrize("run", ["{}", "[]", '"text"', "3"])
def test_a_state_that_is_no_fits_is_not_resumed_from(
    run: str, cohort: Cohort, tmp_path: Path
) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / STATE, {"run": run})
    plain = selectors.fit(small("abmil", "paper", 2), cohort, per_class(1))
    found = selectors.fit(small("abmil", "paper", 2), cohort, per_class(1), out=tmp_path)
    assert found.history == plain.history
    assert not (tmp_path / STATE).exists()


def test_half_written_files_are_cleaned_up(cohort: Cohort, tmp_path: Path) -> None:
    for name in (".writing-abc", "mine.txt"):
        (tmp_path / name).write_bytes(b"half")
    selectors.fit(small("abmil", "paper", 2), cohort, per_class(1), out=tmp_path)
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"selector.json", "selector.safetensors", "mine.txt"}
