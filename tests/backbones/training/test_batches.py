"""Order, balance, strides and padding of training batches."""

from collections import Counter
from pathlib import Path

import numpy as np
import torch

from foci import Bag
from foci.backbones.training.loop import batch_of, epoch_order, stride
from foci.bags import Slide
from tests.makers.cohorts import toy_cohort
from tests.makers.features import contour_grid


def test_an_epoch_sees_every_slide_once() -> None:
    slides = [Slide(str(i), str(i), "a") for i in range(30)]
    order = epoch_order(slides, balanced=False, rng=np.random.default_rng(0))
    assert order != slides
    assert sorted(order, key=lambda s: int(s.slide_id)) == slides


def test_balanced_draws_classes_equally_often() -> None:
    slides = [Slide(str(i), str(i), "rare" if i < 5 else "common") for i in range(2000)]
    drawn = epoch_order(slides, balanced=True, rng=np.random.default_rng(0))
    counts = Counter(s.label for s in drawn)
    assert len(drawn) == 2000
    assert abs(counts["rare"] - 1000) < 100


def test_batches_are_padded_and_labelled(tmp_path: Path) -> None:
    cohort = toy_cohort(tmp_path)
    first = batch_of(cohort, cohort.slides[:2])
    assert first.labels.tolist() == [0, 1]
    assert first.mask.sum(1).tolist() == [9, 8]
    assert first.coords is not None
    assert first.strides is not None
    assert first.strides.tolist() == [256, 256]
    torch.testing.assert_close(first.features[1, :8], cohort.bag("s01").x)
    assert first.features[1, 8].abs().sum() == 0


def test_stride_is_the_spacing_and_else_the_tile_size() -> None:
    x = np.ones((12, 2), np.float32)
    assert stride(Bag("s", x, contour_grid(512), patch_size=600)) == 512
    lone = Bag("s", x[:1], np.array([[5, 7]]), patch_size=300)
    assert stride(lone) == 300
