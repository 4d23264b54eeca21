"""CLAM's objective against the published losses, a slow reference, and itself without padding."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from foci.backbones import Batch, pad
from foci.backbones.models.clam import CLAM, CLAMMB, CLAMSB, InstanceClustering
from foci.errors import FociError
from tests.backbones import golden_clam
from tests.backbones.golden_weights import features

CLASSES: dict[str, type[CLAMSB] | type[CLAMMB]] = {"clam_sb": CLAMSB, "clam_mb": CLAMMB}
LOSSES = [(name, loss) for name in CLASSES for loss in golden_clam.golden(name)["losses"]]


def small(cls: type[CLAMSB] | type[CLAMMB] = CLAMSB, n_classes: int = 3) -> CLAM:
    torch.manual_seed(0)
    return cls(5, n_classes, d=8, hidden=4).double()


def bags(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(n, 5, generator=generator, dtype=torch.float64) for n in lengths]


@pytest.mark.parametrize(("name", "want"), LOSSES)
def test_published_losses(name: str, want: dict[str, Any]) -> None:
    model = golden_clam.model(CLASSES[name], want["n_classes"], want["gated"])
    weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    batch = pad([features(want["n_tiles"], golden_clam.D_IN)], [want["label"]])
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


@pytest.mark.parametrize("cls", [CLAMSB, CLAMMB])
@pytest.mark.parametrize("instance_loss", ["ce", "svm"])
@pytest.mark.parametrize("bag_loss", ["ce", "svm"])
def test_padded_batch_is_the_mean_of_its_bags(
    cls: type[CLAMSB] | type[CLAMMB], instance_loss: str, bag_loss: str
) -> None:
    model = small(cls)
    objective = model.make_objective(subtyping=True, instance_loss=instance_loss, bag_loss=bag_loss)
    both, labels = bags(3, 20), [1, 2]

    together = objective(pad(both, labels))

    alone = [objective(pad([x], [y])) for x, y in zip(both, labels, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone).mean(), rtol=0, atol=1e-12)


def test_padding_is_inert_whatever_it_contains() -> None:
    objective = small().make_objective(subtyping=True)
    clean = pad(bags(3, 20), [1, 2])
    rubbish = torch.where(clean.mask[..., None], clean.features, 50.0)
    dirty = Batch(rubbish, clean.mask, clean.labels)
    torch.testing.assert_close(objective(clean), objective(dirty), rtol=0, atol=1e-12)


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
    model.objective(pad(bags(20), [1]))
    assert len(calls) == 2


def test_unknown_loss_is_refused_by_name() -> None:
    with pytest.raises(FociError, match="instance_loss: 'hinge' is not a loss; choose one of ce"):
        small().make_objective(instance_loss="hinge")
    with pytest.raises(FociError, match="bag_loss: 'mse' is not a loss"):
        InstanceClustering(small(), bag_loss="mse")


def test_no_instances_are_refused() -> None:
    with pytest.raises(FociError, match="n_instances: is 0; choose at least one tile"):
        small().make_objective(n_instances=0)
