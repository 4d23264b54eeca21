"""The mix of columns, against a search by hand."""

import pytest
import torch

from foci.bags import Cohort
from foci.selectors import loop
from foci.selectors.evidence import net_gain, read_orders
from foci.selectors.gated import gate_backbone
from foci.selectors.heads import EvidenceHead
from foci.selectors.prepared import PreparedBags
from tests.backbones.every import small


def sure(backbone: str, factor: float = 60.0) -> torch.nn.Module:
    """A small classifier whose logits are far apart, so that slides are decided."""
    model = small(backbone, "paper", 2).eval()
    last = [m for m in model.modules() if isinstance(m, torch.nn.Linear) and m.out_features <= 2][
        -1
    ]
    last.weight.data *= factor
    return model


@pytest.mark.parametrize("backbone", ["acmil", "abmil"])
def test_the_best_column_or_pair_of_training_slides(backbone: str, cohort: Cohort) -> None:
    model = sure(backbone)
    bags = PreparedBags(cohort, gate_backbone(model, "attention"), "prediction", 1.0, evidence=True)
    train = cohort.split("train").slides
    head = EvidenceHead(model.d_token, 2, 0, 10)
    loop.tune(head, bags, train, torch.Generator().manual_seed(0))
    kept = [s for s in train if torch.softmax(bags[s].full.double(), -1).max() >= 0.9]
    assert kept
    single = torch.eye(10, dtype=torch.float64)

    def gain(mix: torch.Tensor) -> float:
        readings, base = [], []
        with torch.no_grad():
            for slide in kept:
                target = bags.predicted_of(slide)
                columns = bags[slide].tiles["evidence"][:, target]
                bag = bags.opened(slide, target)
                orders = [
                    (columns @ m).argsort(descending=True, stable=True) for m in (mix, single[0])
                ]
                ours, theirs = read_orders(bag, orders, target)
                readings.append(ours)
                base.append(theirs)
        return net_gain(readings, base)

    gains = [gain(one) for one in single]
    best = max(range(10), key=gains.__getitem__)
    pairs = [single[best] + single[p] for p in range(10) if p != best]
    every = {gain(mix): mix for mix in reversed([single[best], *pairs])}
    assert gain(head.mix.double()) == pytest.approx(max([*every, gains[0]]))


def test_undecided_slides_and_single_columns_change_nothing(cohort: Cohort) -> None:
    model = small("abmil", "paper", 2).eval()
    bags = PreparedBags(cohort, gate_backbone(model, "attention"), "prediction", 1.0, evidence=True)
    head = EvidenceHead(model.d_token, 2, 0, 10)
    loop.tune(head, bags, cohort.split("train").slides, torch.Generator())
    assert head.mix.tolist() == [1.0] + [0.0] * 9
