"""CLAM, its objective and the smooth SVM loss, against the published code and by hand."""

from functools import lru_cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones import pad
from foci.backbones.models.clam import (
    CLAM,
    CLAMMB,
    CLAMSB,
    smooth_top1_svm,
)
from tests.backbones.golden_weights import features, golden, linear, published

D_IN = 24
NAMES = ("clam_sb", "clam_mb")
CASES = [(name, case) for name in NAMES for case in golden(name)["cases"]]
LOSSES = [(name, loss) for name in NAMES for loss in golden(name)["losses"]]


@lru_cache
def official(
    name: str, n_classes: int, gated: bool, hidden: int = 256, dropout: float = 0.0
) -> CLAM:
    """Official widths on features of width 24; shared, so do not change it."""
    net, rows = "attention_net.3", n_classes if name == "clam_mb" else 1
    keys = linear("attention_net.0", 512, D_IN)
    if gated:
        keys |= linear(f"{net}.attention_a.0", hidden, 512)
        keys |= linear(f"{net}.attention_b.0", hidden, 512)
        keys |= linear(f"{net}.attention_c", rows, hidden)
    else:
        keys |= linear(f"{net}.module.0", hidden, 512)
        keys |= linear(f"{net}.module.{3 if dropout else 2}", rows, hidden)
    for c in range(n_classes):
        keys |= linear(f"instance_classifiers.{c}", 2, 512)
        keys |= linear(f"classifiers.{c}", 1, 512) if name == "clam_mb" else {}
    model: CLAM = published(
        keys if name == "clam_mb" else keys | linear("classifiers", n_classes, 512)
    )
    return model


@pytest.mark.parametrize(("name", "case"), CASES)
@torch.no_grad()
def test_published_logits_and_attention(name: str, case: dict[str, Any]) -> None:
    model, x = official(name, **case["variant"]), features(case["n_tiles"], D_IN)
    logits, tokens = model(x), model.embed(x)
    rows = case["attention"] if name == "clam_mb" else [case["attention"]]
    predicted = int(torch.tensor(case["logits"]).argmax()) if name == "clam_mb" else 0

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-8)
    want = torch.tensor(rows, dtype=torch.float64).T
    torch.testing.assert_close(model.attend(tokens), want, rtol=0, atol=1e-8)
    assert model.scores(tokens).tolist() == pytest.approx(rows[predicted], abs=1e-8)


@pytest.mark.parametrize(("dropout", "attention"), [(0.0, 0.0), (0.1, 0.25), (0.25, 0.25)])
def test_attention_dropout_is_a_quarter_whenever_there_is_dropout(
    dropout: float, attention: float
) -> None:
    model = CLAMSB(5, 2, d=4, hidden=3, dropout=dropout)
    assert model.attention.dropout.p == attention
    assert model.projection[2].p == dropout


@torch.no_grad()
def test_instance_classifiers_play_no_part_in_a_prediction() -> None:
    model = CLAMSB(5, 2, d=4, hidden=3)
    x = torch.randn(6, 5)
    before = model(x)
    for classifier in model.instance_classifiers:
        torch.nn.init.constant_(classifier.weight, 9.0)
    assert torch.equal(model(x), before)


def small(cls: type[CLAMSB] | type[CLAMMB] = CLAMSB, n_classes: int = 3) -> CLAM:
    torch.manual_seed(0)
    return cls(5, n_classes, d=8, hidden=4).double()


def bags(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in lengths]


@pytest.mark.parametrize(("name", "want"), LOSSES)
def test_published_losses(name: str, want: dict[str, Any]) -> None:
    model = official(name, want["n_classes"], want["gated"])
    weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    batch = pad([features(want["n_tiles"], D_IN)], [want["label"]])
    try:
        for classifier in model.instance_classifiers:
            classifier.weight.data *= want["classifier_scale"]
        settings = {key: want[key] for key in ("subtyping", "instance_loss")}
        objective = model.make_objective(**settings)
        total = objective(batch)
        (gradient,) = torch.autograd.grad(
            total,
            [model.instance_classifiers[want["label"]].bias],
        )
        svm_bag = model.make_objective(bag_loss="svm", bag_weight=1.0)(batch)
    finally:
        model.load_state_dict(weights)

    assert total.item() == pytest.approx(want["total"], abs=1e-7)
    assert objective.terms["bag"] == pytest.approx(0.7 * want["bag_ce"], abs=1e-7)
    assert objective.terms["instance"] == pytest.approx(0.3 * want["instance"], abs=1e-7)
    if "bias_gradient" in want:
        expected = [0.3 * g for g in want["bias_gradient"]]
        assert gradient.tolist() == pytest.approx(expected, abs=1e-7)
    if "bag_svm" in want:
        assert svm_bag.item() == pytest.approx(want["bag_svm"], abs=1e-7)


def slow_instance_loss(model: CLAM, x: Tensor, label: int, size: int, subtyping: bool) -> Tensor:
    """One tile at a time, tiles chosen by sorting."""
    tokens = model.embed(x)
    attention = model.attend(tokens)
    k = min(size, len(x))
    losses = []
    for c, classifier in enumerate(model.instance_classifiers):
        row = attention[:, c if attention.shape[1] > 1 else 0].tolist()
        order = sorted(range(len(x)), key=lambda i, row=row: -row[i])
        labelled = [(i, 1) for i in order[:k]] + [(i, 0) for i in order[-k:]]
        if c != label:
            labelled = [(i, 0) for i in order[:k]] if subtyping else []
        terms = [
            F.softplus(1 + u[1 - t] - u[t]) for i, t in labelled for u in [classifier(tokens[i])]
        ]
        if terms:
            losses.append(torch.stack(terms).mean())
    return torch.stack(losses).sum() / (model.n_classes if subtyping else 1)


@pytest.mark.parametrize("cls", [CLAMSB, CLAMMB])
@pytest.mark.parametrize("subtyping", [False, True])
@pytest.mark.parametrize("n", [1, 3, 7, 20])
def test_instance_loss_equals_a_slow_reference(
    cls: type[CLAMSB] | type[CLAMMB], subtyping: bool, n: int
) -> None:
    model = small(cls)
    x, batch = bags(n)[0], pad(bags(n), [2])
    objective = model.make_objective(subtyping=subtyping, n_instances=4, bag_weight=0.0)
    want = slow_instance_loss(model, x, label=2, size=4, subtyping=subtyping)
    torch.testing.assert_close(objective(batch), want, rtol=0, atol=1e-12)


def test_instance_gradient_reaches_the_projection_but_not_the_attention() -> None:
    model = small()
    model.make_objective(bag_weight=0.0)(pad(bags(20), [1])).backward()
    norms = {
        name: 0.0 if p.grad is None else float(p.grad.abs().sum())
        for name, p in model.named_parameters()
    }
    assert norms["projection.0.weight"] > 0
    assert norms["instance_classifiers.1.weight"] > 0
    assert norms["instance_classifiers.0.weight"] == 0
    assert all(norms[name] == 0 for name in norms if name.startswith(("attention", "head")))


def test_dropout_is_drawn_once_for_both_terms() -> None:
    torch.manual_seed(0)
    model = CLAMSB(5, 2, d=64, hidden=8, dropout=0.5).double().train()
    calls: list[int] = []
    model.projection.register_forward_hook(lambda *_: calls.append(1))
    model.attention.register_forward_hook(lambda *_: calls.append(1))
    model.make_objective()(pad(bags(20), [1]))
    assert len(calls) == 2


ROWS = golden("smooth_svm")["rows"]


def test_huge_scores_stay_finite_in_value_and_gradient() -> None:
    u = torch.tensor([[3e4, -3e4], [-3e4, 3e4]], requires_grad=True)
    loss = smooth_top1_svm(u, torch.tensor([0, 0]))
    loss.backward()
    assert loss.item() == pytest.approx((0 + 60001) / 2)
    assert u.grad is not None
    assert u.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['scores']}-{row['label']}")
def test_published_values(row: dict[str, list[float]]) -> None:
    u = torch.tensor([row["scores"]], dtype=torch.float64, requires_grad=True)
    loss = smooth_top1_svm(u, torch.tensor([row["label"]]))
    assert loss.item() == pytest.approx(row["loss"], abs=1e-9)
    if "gradient" in row:
        loss.backward()
        assert u.grad is not None
        assert u.grad[0].tolist() == pytest.approx(row["gradient"], abs=1e-9)
