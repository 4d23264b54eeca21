"""Thresholds: one for all slides, or a share of each slide's own confidence."""

import numpy as np
import pytest

from foci.audits.measure import Threshold, ViewSlides, absolute, few_decided, relative
from tests.makers.curves import Settings


def group(*sure: float) -> ViewSlides:
    full = np.array([[1 - p, p] for p in sure])
    n = len(sure)
    return ViewSlides(
        rows=np.arange(n),
        targets=full.argmax(axis=1),
        labels=np.full(n, -1),
        full=full,
        n_tiles=np.full(n, 9),
        cases=tuple(f"P{i}" for i in range(n)),
    )


def test_an_absolute_threshold_asks_the_same_of_every_slide() -> None:
    slides = group(0.95, 0.2, 0.7)
    assert Threshold(0.8).needed(slides).tolist() == [0.8, 0.8, 0.8]
    assert Threshold(0.8).decided(slides).tolist() == [True, True, False]


def test_a_share_follows_the_predicted_class_and_decides_every_slide() -> None:
    slides = group(0.95, 0.2, 0.7)
    half = Threshold(0.5, relative=True)
    assert half.needed(slides).tolist() == pytest.approx([0.475, 0.4, 0.35])
    assert half.decided(slides).all()


def test_the_own_threshold_is_among_those_of_the_sensitivity() -> None:
    found = absolute(Settings(kappa=0.6, kappas=(0.9, 0.7)))
    assert found == (Threshold(0.6), Threshold(0.7), Threshold(0.9))


@pytest.mark.parametrize(("sure", "few"), [((0.95, 0.5, 0.5), False), ((0.95, *[0.5] * 3), True)])
def test_shares_where_fewer_than_a_third_is_decided(sure: tuple[float, ...], few: bool) -> None:
    assert few_decided(group(*sure), Settings()) is few
    assert bool(relative(group(*sure), Settings())) is few
    assert len(relative(group(*sure), Settings(relative=True))) == 4
