"""Specificity against the strongest other class."""

import pytest
from hypothesis import given

from foci.metrics import Specificity, msk, specific_share, specificity
from tests.metrics.strategies import Curve, curves, kappas, quick


@pytest.mark.parametrize(
    ("target", "rival", "specific"),
    [(1, None, True), (1, 2, True), (2, 1, False), (None, 1, False), (None, None, False)],
)
def test_specific_means_target_first(target: int | None, rival: int | None, specific: bool) -> None:
    assert Specificity(target, rival, 0).specific is specific


def test_the_rival_is_the_strongest_of_the_full_bag_not_of_the_curve() -> None:
    curve = [[0.95, 0.0, 0.05], [0.0, 0.05, 0.95]]
    result = specificity(curve, [1, 2], target=2, full=[0.1, 0.2, 0.7])
    assert result == Specificity(target_msk=2, rival_msk=None, rival=1)


@quick
@given(curves(), kappas)
def test_both_counts_are_msk_of_their_class(curve: Curve, kappa: float) -> None:
    probs, ks, target = curve
    result = specificity(probs, ks, target, probs[-1], kappa)
    assert result.rival != target
    assert result.target_msk == msk(probs, ks, target, kappa)
    assert result.rival_msk == msk(probs, ks, result.rival, kappa)
    assert specific_share([result]) == float(result.specific)
