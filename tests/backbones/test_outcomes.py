"""Losses of risks, numbers and labels against hand-worked values; every backbone learns them."""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from foci import backbones
from foci.audits.outputs import outcome_split_scores
from foci.backbones.outcomes import OutcomeTask, cox_loss, hazards_loss, time_edges
from foci.backbones.saved import read_record
from foci.backbones.training import TrainingRecipe, training_recipe
from foci.backbones.training.run import train_into
from foci.bags.importers import Outcomes
from foci.errors import CohortError, FociError
from foci.metrics.outcomes import macro_auc
from tests.backbones.every import narrow
from tests.makers.outcomes import planted

COLUMNS = {
    "cox": Outcomes.named("days", "died"),
    "hazards": Outcomes.named("days", "died"),
    "regression": Outcomes.named(value="score"),
    "multilabel": Outcomes.named(labels=("died", "high")),
}


def test_partial_likelihood_by_hand() -> None:
    """Three patients, the second censored: the first death has all three at risk, the last one."""
    risk = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64, requires_grad=True)
    time, event = torch.tensor([2.0, 3.0, 5.0]), torch.tensor([1.0, 0.0, 1.0])
    at_risk = math.log(math.exp(0.5) + math.exp(-1) + math.exp(2))
    loss = cox_loss(risk, time, event)
    assert loss.item() == pytest.approx((at_risk - 0.5) / 2)
    assert cox_loss(risk, time, torch.zeros(3)).item() == 0
    loss.backward()
    share = math.exp(0.5 - at_risk)
    assert float(risk.grad[0]) == pytest.approx((share - 1) / 2)


def test_partial_likelihood_against_a_slow_reference_with_ties() -> None:
    rng = np.random.default_rng(3)
    f, t = rng.normal(size=12), rng.integers(1, 6, size=12).astype(float)
    seen = rng.integers(0, 2, size=12).astype(float)
    total = 0.0
    for i in range(12):
        if seen[i]:
            total -= f[i] - math.log(sum(math.exp(f[j]) for j in range(12) if t[j] >= t[i]))
    ours = cox_loss(*(torch.from_numpy(one) for one in (f, t, seen)))
    assert float(ours) == pytest.approx(total / seen.sum(), abs=1e-12)


def test_partial_likelihood_is_that_of_lifelines() -> None:
    lifelines = pytest.importorskip("lifelines")
    import pandas as pd

    rng = np.random.default_rng(1)
    x = rng.normal(size=80)
    t, seen = rng.exponential(np.exp(-x)) + 0.01, (rng.random(80) < 0.7).astype(float)
    fitted = lifelines.CoxPHFitter().fit(pd.DataFrame({"x": x, "t": t, "e": seen}), "t", "e")
    risk = torch.from_numpy(x * fitted.params_["x"])
    loss = cox_loss(risk, torch.from_numpy(t), torch.from_numpy(seen))
    assert -float(loss) * seen.sum() == pytest.approx(fitted.log_likelihood_, abs=1e-9)


def test_hazards_by_hand() -> None:
    """Bins (0, 2], (2, 4], (4, inf): an event in the second, a censored time in the first."""
    logits = torch.tensor([[0.3, -0.7, 1.1], [0.2, 0.4, -0.5]], dtype=torch.float64)
    h = torch.sigmoid(logits).numpy()
    event = -math.log(1 - h[0, 0]) - math.log(h[0, 1])
    censored = -math.log(1 - h[1, 0])
    times, seen = torch.tensor([3.0, 1.0]), torch.tensor([1.0, 0.0])
    ours = hazards_loss(logits, times, seen, [2.0, 4.0])
    assert float(ours) == pytest.approx((event + censored) / 2)
    # the likelihoods of all bins, and of outliving them, are those of one slide that must end
    every = [hazards_loss(logits[:1], torch.tensor([t]), torch.ones(1), [2.0, 4.0])
             for t in (1.0, 3.0, 9.0)]  # fmt: skip
    outlives = hazards_loss(logits[:1], torch.tensor([9.0]), torch.zeros(1), [2.0, 4.0])
    assert sum(math.exp(-float(one)) for one in (*every, outlives)) == pytest.approx(1)


def test_bins_hold_equal_shares_of_the_events() -> None:
    rng = np.random.default_rng(0)
    times, seen = rng.exponential(size=400), rng.integers(0, 2, size=400)
    edges = [0, *time_edges(times, seen, 4), math.inf]
    shares = [int(((times > a) & (times <= b) & (seen == 1)).sum()) for a, b in pairwise(edges)]
    assert max(shares) - min(shares) <= 1
    with pytest.raises(CohortError, match="too few different event times for 4 bins; give fewer"):
        time_edges([1.0, 1.0, 2.0], [1, 1, 1])
    with pytest.raises(CohortError, match="no event to learn from: all its slides are censored"):
        time_edges([1.0, 1.0, 2.0], [0, 0, 0])


def test_numbers_are_learned_in_their_own_units() -> None:
    task = OutcomeTask.of("regression", [(10.0,), (30.0,)], ())
    assert task.units == (20.0, 10.0)
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert task.values(logits).squeeze().tolist() == [30.0, 10.0]
    assert float(task.loss(logits, torch.tensor([[30.0], [30.0]]))) == 2.0  # (0 + 2^2) / 2
    labels = OutcomeTask.of("multilabel", [(0.0, 1.0), (1.0, 0.0)], ("a", "b"))
    expected = -(math.log(1 - 1 / (1 + math.exp(-0.5))) + math.log(1 / (1 + math.exp(1)))) / 2
    found = labels.loss(torch.tensor([[0.5, -1.0]]), torch.tensor([[0.0, 1.0]]))
    assert float(found) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("output", "rows", "labels", "message"),
    [
        ("cox", [(1.0,)], (), "--output cox: learns from --time and --event; name the columns"),
        ("cox", [(1.0, 0.0)], (), "split train: has no event to learn from: all its slides are"),
        ("regression", [(1.0,), (1.0,)], (), "has the same value (1) on every slide; give a col"),
        ("multilabel", [(1.0,)], ("a",), "--label-columns: names a single label; give --label-c"),
        ("multilabel", [(1.0, 0.0), (0.0, 0.0)], ("a", "b"), "split train: has b 0 on every slide"),
        ("multilabel", [()], ("a", "b"), "--output multilabel: learns from --label-columns; name"),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_refused(output, rows, labels, message) -> None:
    with pytest.raises(CohortError) as caught:
        OutcomeTask.of(output, rows, labels)
    assert message in str(caught.value)


@pytest.mark.parametrize("output", list(COLUMNS))
@pytest.mark.parametrize("name", backbones.available())
def test_every_backbone_learns_it(name: str, output: str, tmp_path: Path) -> None:
    """Two epochs show that loss, scores, weights and record are those of the output."""
    cohort, _ = planted(tmp_path, COLUMNS[output], slides=16)
    preset = backbones.presets(name)[0]
    widths = narrow(name, preset)
    recipe = TrainingRecipe(epochs=2, lr=1e-3, batch_size=4)
    done = train_into(
        tmp_path / "m", name, cohort, recipe, preset=preset, widths=widths, output=output, bins=2,
        score=outcome_split_scores,
    )  # fmt: skip
    record = read_record(tmp_path / "m")
    assert record.output == output
    assert done.backbone.n_classes == 2
    chosen = {"regression": "R2", "multilabel": "macro AUC"}.get(output, "C-index")
    assert {epoch.scored for epoch in done.history} <= {chosen, "loss"}
    assert all(math.isfinite(epoch.loss) for epoch in done.history)
    assert set(record.metrics["test"]) >= {chosen, "loss"}


def test_the_planted_risk_is_learned_and_the_best_c_index_kept(tmp_path: Path) -> None:
    cohort, _ = planted(tmp_path, COLUMNS["cox"], slides=80)
    recipe, line = training_recipe("abmil", (), {"epochs": 8}, "cox")
    assert (recipe.batch_size, recipe.lr) == (16, 1e-3)
    assert "by comparing the slides of one step" in line
    done = train_into(tmp_path / "m", "abmil", cohort, recipe, output="cox", widths={"d": 32},
                      score=outcome_split_scores)  # fmt: skip
    val = [epoch.val_score for epoch in done.history]
    kept = [epoch for epoch in done.history if epoch.best][-1]
    assert kept.val_score == max(val)
    assert done.metrics["val"]["C-index"] == max(val)
    assert done.metrics["test"]["C-index"] > 0.7
    facts = json.loads((tmp_path / "m" / "backbone.json").read_text())
    assert (facts["output"], facts["classes"]) == ("cox", [])
    with pytest.raises(FociError, match="--balanced: means nothing for output cox; leave it out"):
        train_into(tmp_path / "n", "abmil", cohort, recipe.model_copy(update={"balanced": True}),
                   output="cox")  # fmt: skip


def test_macro_auc_is_the_mean_over_labels_that_differ() -> None:
    scores = np.array([[0.1, 5.0, 0.0], [0.4, 1.0, 1.0], [0.35, 2.0, 2.0], [0.8, 9.0, 3.0]])
    labels = np.array([[0, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 0]])
    assert macro_auc(scores, labels) == pytest.approx((0.75 + 1.0) / 2)
    assert math.isnan(macro_auc(scores[:, 2:], labels[:, 2:]))
