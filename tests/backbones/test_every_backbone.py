"""Every registered preset, whoever registered it, keeps the contract and can be trained."""

from dataclasses import replace

import pytest
import torch

from foci import backbones
from foci.backbones import ARCHITECTURES, Backbone, Batch
from foci.testing import check_backbone
from tests.backbones.every import D_IN, EVERY, small


@pytest.mark.parametrize("name", list(ARCHITECTURES))
def test_it_is_at_most_three_classes_deep(name: str) -> None:
    """Backbone, one shared base, the model."""

    def depth(cls: type) -> int:
        parents = [base for base in cls.__bases__ if issubclass(base, Backbone)]
        return 1 + max(map(depth, parents), default=0)

    assert depth(ARCHITECTURES[name]) <= 3


def two_bags(n_classes: int) -> Batch:
    """Seven and four tiles of a grid, padded."""
    generator = torch.Generator().manual_seed(1)
    bags = [torch.randn(n, D_IN, generator=generator, dtype=torch.float64) for n in (7, 4)]
    grid = torch.cartesian_prod(torch.arange(3), torch.arange(3)) * 256
    return backbones.pad(
        bags, labels=[0, n_classes - 1], coords=[grid[:7], grid[:4]], strides=[256, 256]
    )


def reached(model: Backbone) -> set[str]:
    """Parameters whose gradient is more than rounding."""
    return {
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().max() > 1e-12
    }


TWO_CLASSES = [
    ("abmil", "paper"),
    ("transmil", "paper"),
    ("transmil", "official"),
    ("dsmil", "official-negative"),
    ("mil-fc", "official"),
]
"""One preset of every engine, and those that treat two classes in their own way."""


@pytest.mark.parametrize(
    ("name", "preset", "n_classes"),
    [*((*one, 3) for one in EVERY), *((*one, 2) for one in TWO_CLASSES)],
)
def test_it_keeps_every_claim(name: str, preset: str, n_classes: int) -> None:
    check_backbone(small(name, preset, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_its_objective_trains_whatever_shapes_the_prediction(
    name: str, preset: str, n_classes: int
) -> None:
    model = small(name, preset, n_classes).double()
    batch = two_bags(n_classes)
    weights = torch.randn(2, n_classes, dtype=torch.float64)
    (weights * model.eval()(batch.features, batch.mask)).sum().backward()
    shaping = reached(model)
    model.zero_grad()

    loss = model.train().make_objective()(batch)
    loss.backward()

    assert loss.shape == ()
    assert torch.isfinite(loss)
    assert len(shaping) > 1
    assert shaping <= reached(model)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_a_padded_batch_costs_the_mean_of_its_bags_whatever_the_padding(
    name: str, preset: str
) -> None:
    model = small(name, preset, 3).double().eval()
    clean = two_bags(3)
    absent = ~clean.mask[..., None]
    assert clean.coords is not None
    features = clean.features.masked_fill(absent, 50.0)
    coords = clean.coords.masked_fill(absent, 256)
    together, one_by_one = model.make_objective(), model.make_objective()

    loss = together(replace(clean, features=features, coords=coords))

    alone = []
    for b, keep in enumerate(clean.mask):
        bag, label = clean.features[b, keep], int(clean.labels[b])
        alone.append(one_by_one(backbones.pad([bag], [label], [clean.coords[b, keep]], [256])))
    torch.testing.assert_close(loss, torch.stack(alone).mean(), rtol=0, atol=1e-12)
    torch.testing.assert_close(together.state_dict(), one_by_one.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_a_fresh_objective_takes_over_from_a_killed_one(name: str, preset: str) -> None:
    model = small(name, preset, 2).double().train()
    batch = two_bags(2)
    objective = model.make_objective()
    for stage in objective.stages:
        objective.begin_stage(stage, total_steps=3)
        objective.begin_epoch()
        assert torch.isfinite(objective(batch))
        objective.after_step()

    fresh = model.make_objective()
    fresh.load_state_dict(objective.state_dict())

    losses = []
    for candidate in (objective, fresh):
        torch.manual_seed(2)
        losses.append(candidate(batch).item())
    assert losses[0] == losses[1]
