"""Embedded bags of a fit."""

import pytest
import torch

from foci.backbones import CallableBackbone
from foci.backbones.base import GateSite
from foci.bags import Cohort
from foci.errors import FociError
from foci.selectors import Target
from foci.selectors.gated import gate_backbone
from foci.selectors.objective import unit_box
from foci.selectors.prepared import PreparedBags
from tests.backbones.every import small

MODEL = small("abmil", "paper", 2).eval()


def prepared(
    cohort: Cohort, site: GateSite, target: Target = "label", memory_gb: float = 1.0
) -> PreparedBags:
    return PreparedBags(cohort, gate_backbone(MODEL, site), target, memory_gb)


def test_a_batch_holds_what_the_single_bags_hold(cohort: Cohort) -> None:
    bags, model = prepared(cohort, "attention"), MODEL
    batch = bags.batch(cohort.slides[:3])
    lengths = [len(cohort.bag(s.slide_id)) for s in cohort.slides[:3]]
    assert batch.n_tiles.tolist() == lengths
    assert batch.mask.shape[1] == max(lengths)  # the longest bag, not n_cap
    assert batch.targets.tolist() == [0, 1, 0]
    for i, slide in enumerate(cohort.slides[:3]):
        bag, n = cohort.bag(slide.slide_id), lengths[i]
        tokens = model.embed(bag.x)
        torch.testing.assert_close(batch.tiles["tokens"][i, :n], tokens)
        torch.testing.assert_close(batch.tiles["attention"][i, :n], model.attend(tokens))
        torch.testing.assert_close(batch.full[i], model(bag.x))
        assert torch.equal(batch.coords[i, :n], unit_box(torch.from_numpy(bag.coords)))
        assert bool((batch.coords[i, n:] == 0).all())
    assert not any(tensor.requires_grad for tensor in batch.tiles.values())


def test_memory_is_bounded_and_makes_no_difference(cohort: Cohort) -> None:
    slides = cohort.slides
    one = prepared(cohort, "feature")[slides[0]]
    assert one.n_bytes == 4 * len(one.coords) * (MODEL.d_token + 2)
    tight = prepared(cohort, "feature", memory_gb=(one.n_bytes + 1) / 1e9)
    first, second = tight[slides[0]], tight[slides[1]]
    assert tight[slides[1]] is not second
    assert torch.equal(tight[slides[1]].tiles["tokens"], second.tiles["tokens"])
    assert tight[slides[0]] is first
    pooled = prepared(cohort, "attention")[slides[0]]  # values that are tokens count once
    assert pooled.n_bytes == 4 * len(pooled.coords) * (MODEL.d_token + 1 + 2)


def test_targets_stay_known_when_the_bag_does_not(cohort: Cohort) -> None:
    model = CallableBackbone(lambda x: x.mean(0)[:2], d_in=32, n_classes=2)
    bags = PreparedBags(cohort, gate_backbone(model, "feature"), "prediction", memory_gb=0)
    assert [bags.target_of(slide) for slide in cohort.slides[:3]] == [0, 1, 0]
    bags.batch(cohort.slides[3:])
    bags.cohort = None  # type: ignore[assignment]  # nothing is read again
    assert [bags.target_of(slide) for slide in cohort] == [0, 1] * 6


def test_a_classifier_that_answers_nan_is_refused(cohort: Cohort) -> None:
    model = CallableBackbone(lambda x: (x - 10).sqrt().mean(0)[:2], d_in=32, n_classes=2)
    bags = PreparedBags(cohort, gate_backbone(model, "feature"), "label", memory_gb=1)
    with pytest.raises(FociError, match="backbone callable: answers NaN for slide s3; fix it"):
        bags.batch(cohort.slides[3:4])
