"""DSMIL's loss against the published one, and itself without padding."""

import json
from pathlib import Path

import pytest
import torch

from foci.backbones import Batch, pad
from foci.backbones.models.dsmil import DSMIL
from tests.backbones.golden_weights import features, fill

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "dsmil.json").read_text())
PUBLISHED = {"tile_classifier": "i_classifier.fc.0", "head": "b_classifier.fcc"}


def filled(outputs: int, n_classes: int) -> DSMIL:
    """The published weights for 24-wide features, current code."""
    model = DSMIL(24, n_classes, negative=n_classes > outputs).double().eval()
    for name, parameter in model.named_parameters():
        module, _, part = name.rpartition(".")
        theirs = PUBLISHED.get(module, module.replace("query", "b_classifier.q"))
        conv = (outputs, outputs, 24) if name == "head.weight" else tuple(parameter.shape)
        parameter.data = fill(f"{theirs}.{part}", conv).reshape(parameter.shape)
    return model


@pytest.mark.parametrize(("variant", "n_classes"), [("k1", 2), ("k2", 2), ("k2", 3)])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_published_losses(variant: str, n_classes: int, n: int) -> None:
    """With a class more than outputs one label has none: all outputs should be off."""
    (case,) = (c for c in GOLDEN["cases"] if (c["variant"], c["n_tiles"]) == (variant, n))
    model = filled(len(case["outputs"]), n_classes)
    for label, want in enumerate(case["losses"][:n_classes]):
        objective = model.make_objective()
        loss = objective(pad([features(n, 24)], [label]))
        assert loss.item() == pytest.approx(want, abs=1e-7)
        assert sum(objective.terms.values()) == pytest.approx(want, abs=1e-7)


def test_the_weight_moves_between_bag_and_tiles() -> None:
    model, batch = filled(2, 2), pad([features(7, 24)], [1])
    halves = model.make_objective()
    halves(batch)
    bag, tiles = (model.make_objective(bag_weight=w)(batch).item() for w in (1.0, 0.0))
    assert halves.terms == pytest.approx({"bag": bag / 2, "tiles": tiles / 2})


def test_padding_is_inert_whatever_it_contains() -> None:
    objective = filled(2, 3).make_objective()
    bags, labels = [features(3, 24), features(9, 24, "others")], [2, 0]
    clean = pad(bags, labels)
    rubbish = torch.where(clean.mask[..., None], clean.features, 50.0)
    together = objective(Batch(rubbish, clean.mask, clean.labels))
    alone = [objective(pad([x], [y])) for x, y in zip(bags, labels, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone).mean(), rtol=0, atol=1e-12)
