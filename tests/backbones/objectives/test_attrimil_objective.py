"""AttriMIL's objective against the published one, without padding, and across restarts."""

from typing import Any

import pytest
import torch
from torch import Tensor

from foci.backbones import Batch, pad
from foci.backbones.models.attrimil import (
    AttributeConstraints,
    AttriMIL,
    neighbourhoods,
    rank_constraint,
    spatial_constraint,
)
from foci.errors import FociError
from tests.backbones import golden_attrimil
from tests.backbones.golden_weights import features

GOLDEN = golden_attrimil.GOLDEN
D_IN = golden_attrimil.D_IN
GRID = 256 * torch.cartesian_prod(torch.arange(3), torch.arange(3))


def small(n_classes: int = 2) -> AttriMIL:
    torch.manual_seed(0)
    return AttriMIL(6, n_classes).double()


def bags(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in lengths]


def grids(*lengths: int) -> list[Tensor]:
    return [
        GRID[torch.randperm(9, generator=torch.Generator().manual_seed(n))[:n]] for n in lengths
    ]


@pytest.mark.parametrize("want", GOLDEN["spatial"])
def test_published_spatial_constraint(want: dict[str, Any]) -> None:
    model = golden_attrimil.model(want["n_classes"])
    coords = torch.tensor(want["coords"])
    batch = pad([features(len(coords), D_IN)], [0], [coords], [want["stride"]])
    objective = model.make_objective(rank_weight=0.0)

    loss = objective(batch) - model.make_objective(rank_weight=0.0, spatial_weight=0.0)(batch)
    loss.backward()

    assert objective.terms["spatial"] == pytest.approx(want["loss"], abs=1e-8)
    gradient = model.scorers[1].bias.grad
    assert gradient.item() == pytest.approx(want["scorer_bias_gradient"], abs=1e-8)


@pytest.mark.parametrize("sequence", GOLDEN["rank"])
def test_published_rank_constraint_and_queues(sequence: dict[str, Any]) -> None:
    model = golden_attrimil.model(sequence["n_classes"], sequence["bias_shift"])
    objective = model.make_objective()
    seen: list[Tensor] = []
    for b, step in enumerate(sequence["steps"]):
        seen.append(features(step["n_tiles"], D_IN, name=f"bag{b}"))
        objective(pad([seen[-1]], [step["label"]]))

        assert objective.terms["bag"] == pytest.approx(step["ce"], abs=1e-8)
        assert objective.terms["rank"] == pytest.approx(5 * step["rank"], abs=1e-8)
        assert objective.terms["spatial"] == 0.0
        for queues, want in (
            (objective.positive, step["positive"]),
            (objective.negative, step["negative"]),
        ):
            for c, entries in enumerate(want):
                assert queues.size(c) == len(entries) <= 4
                for held, (bag, tile) in zip(queues.tiles[c], entries, strict=False):
                    assert torch.equal(held, seen[bag][tile])


@pytest.mark.parametrize("want", GOLDEN["total"])
def test_published_total(want: dict[str, Any]) -> None:
    model = golden_attrimil.model(want["n_classes"])
    objective = model.make_objective()
    for c in range(want["n_classes"]):
        objective.positive.append(c, features(1, D_IN, name=f"posq{c}")[0])
        objective.negative.append(c, features(1, D_IN, name=f"negq{c}")[0])
    x, coords = features(want["n_tiles"], D_IN), torch.tensor(want["coords"])

    total = objective(pad([x], [want["label"]], [coords], [256]))

    assert objective.terms["spatial"] == pytest.approx(want["spatial"], abs=1e-8)
    assert objective.terms["rank"] == pytest.approx(5 * want["rank"], abs=1e-8)
    assert total.item() == pytest.approx(want["total"], abs=1e-7)


def test_first_bag_has_nothing_to_be_ranked_against() -> None:
    objective = small().make_objective()
    objective(pad(bags(5), [1]))
    assert objective.terms["rank"] == 0.0
    objective(pad(bags(5), [1]))
    assert objective.terms["rank"] == 0.0
    objective(pad(bags(5), [0]))
    assert objective.terms["rank"] > 0.0


def test_an_old_tile_is_scored_by_the_present_weights() -> None:
    model = small()
    objective = model.make_objective(spatial_weight=0.0)
    objective(pad(bags(5), [1]))
    queued = {c: (objective.positive, objective.negative)[c == 0].tiles[c, 0] for c in (0, 1)}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
        x = bags(5, 4)[1]
        h = model.embed(x)
        top = (model.values(h).squeeze(-1) * model.attend(h).exp()).amax(dim=0)
        old = {c: model.embed(tile[None]) for c, tile in queued.items()}
        u = {c: model.values(h)[0, c, 0] * model.attend(h)[0, c].exp() for c, h in old.items()}
    # A bag of class 0: its own class is the negative one, class 1 is not its class.
    want = rank_constraint(top[0], u[0], True, True) + rank_constraint(top[1], u[1], False, False)

    objective(pad([x], [0]))

    assert objective.terms["rank"] == pytest.approx(5 * want.item() / 2, abs=1e-12)


def test_symmetric_gives_class_0_the_constraints_of_every_other_class() -> None:
    model = small()
    batch = pad(bags(9), [0], [GRID], [256])
    h = model.embed(batch.features[0])
    attributes = model.values(h).squeeze(-1) * model.attend(h).exp()
    around = neighbourhoods(GRID, 256)
    terms = {}
    for symmetric in (False, True):
        objective = model.make_objective(symmetric=symmetric, rank_weight=1.0)
        objective(pad(bags(200), [1]))
        u = model.embed(objective.negative.tiles[:1, 0])
        objective(batch)
        terms[symmetric] = objective.terms
    class_0 = spatial_constraint(attributes[:, :1], around).item()
    assert terms[True]["spatial"] - terms[False]["spatial"] == pytest.approx(class_0, abs=1e-12)
    other = (model.values(u)[0, 0, 0] * model.attend(u)[0, 0].exp()).item()
    extra = (other - attributes[:, 0].max().item()) / 2
    assert extra > 0
    assert terms[True]["rank"] - terms[False]["rank"] == pytest.approx(extra, abs=1e-12)


def test_padded_batch_is_the_mean_of_its_bags_in_order() -> None:
    model, lengths, labels = small(3), (3, 9, 5), [1, 2, 0]
    together = model.make_objective()
    one_by_one = model.make_objective()
    each, places = bags(*lengths), grids(*lengths)

    loss = together(pad(each, labels, places, [256] * 3))

    alone = [
        one_by_one(pad([x], [y], [xy], [256]))
        for x, y, xy in zip(each, labels, places, strict=True)
    ]
    assert alone[2] > alone[0] > 0
    torch.testing.assert_close(loss, torch.stack(alone).mean(), rtol=0, atol=1e-12)
    torch.testing.assert_close(together.state_dict(), one_by_one.state_dict(), rtol=0, atol=0)


def test_padding_is_inert_whatever_it_contains() -> None:
    model, lengths = small(), (3, 9)
    clean = pad(bags(*lengths), [1, 0], grids(*lengths), [256] * 2)
    assert clean.coords is not None
    dirty = Batch(
        torch.where(clean.mask[..., None], clean.features, 50.0),
        clean.mask,
        clean.labels,
        torch.where(clean.mask[..., None], clean.coords, 256),
        clean.strides,
    )
    losses = [model.make_objective()(batch) for batch in (clean, dirty)]
    torch.testing.assert_close(losses[0], losses[1], rtol=0, atol=1e-12)


def test_a_new_epoch_starts_with_empty_queues() -> None:
    objective = small().make_objective()
    objective(pad(bags(5, 4), [0, 1]))
    assert objective.positive.counts.tolist() == [1, 1]
    objective.begin_epoch()
    assert objective.positive.counts.tolist() == objective.negative.counts.tolist() == [0, 0]
    assert objective(pad(bags(5), [0])).item() == pytest.approx(objective.terms["bag"])


def test_a_restarted_objective_goes_on_with_the_same_queues() -> None:
    model = small(3)
    running = model.make_objective()
    running(pad(bags(5, 4, 6), [0, 1, 2]))
    restarted = model.make_objective()
    restarted.load_state_dict(running.state_dict())
    batch = pad(bags(7, 3), [1, 0])
    assert torch.equal(restarted(batch), running(batch))


def test_the_objective_adds_no_parameters_and_takes_the_models_dtype() -> None:
    objective = small().make_objective(queue_length=2)
    assert isinstance(objective, AttributeConstraints)
    assert not list(objective.parameters())
    assert objective.positive.tiles.dtype == torch.float64
    assert objective.positive.tiles.shape == (2, 2, 6)
    assert objective.positive.counts.dtype == torch.long


def test_gradient_reaches_every_parameter() -> None:
    model = small()
    objective = model.make_objective()
    objective(pad(bags(9, 9), [1, 0], [GRID, GRID], [256] * 2)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all()
        assert parameter.grad.abs().sum() > 0, name


def test_a_queue_without_room_is_refused() -> None:
    with pytest.raises(FociError, match="queue_length: is 0; keep at least one tile"):
        small().make_objective(queue_length=0)
