"""Chance that anyone can repeat."""

import hashlib

import numpy as np
import pytest

from foci import rankings
from foci.bags import Bag
from foci.errors import FociError
from foci.rankings.controls import uniform_scores
from tests.rankings.trials import bag_of, features, make


def test_known_numbers() -> None:
    """Written down once; another platform or NumPy must give the same."""
    want = [0.2829762284649602, 0.17664248884574707, 0.12943298292803518]
    assert uniform_scores("slide-1", 3, 0).tolist() == want


def test_equals_numpys_generator_seeded_by_the_digest() -> None:
    seed = int.from_bytes(hashlib.sha256(b"4\nTCGA-02").digest(), "big")
    want = np.random.Generator(np.random.PCG64(seed)).random(100)
    np.testing.assert_array_equal(uniform_scores("TCGA-02", 100, 4), want)


def test_other_seeds_and_slides_give_other_orders_and_features_do_not_matter() -> None:
    model = make("abmil", "paper")

    def draw(slide: str, seed: int, content: int = 0) -> list[float]:
        bag = Bag(slide, features(20, content).float().numpy())
        return rankings.score("random", model, bag, seed=seed).scores.tolist()

    assert draw("a", 0) == draw("a", 0, content=9)
    assert draw("a", 0) != draw("a", 1)
    assert draw("a", 0) != draw("b", 0)


def test_a_tile_keeps_its_number_when_a_pre_filter_drops_others() -> None:
    model = make("abmil", "paper")
    whole = Bag("s", features(10).float().numpy())
    kept = np.array([7, 2, 3])
    part = Bag("s", whole.features[kept], kept=kept, n_in_file=10)
    scores = rankings.score("random", model, whole).scores
    np.testing.assert_array_equal(rankings.score("random", model, part).scores, scores[kept])


def test_every_position_is_equally_likely_to_come_first() -> None:
    firsts = [int(uniform_scores("s", 5, seed).argmax()) for seed in range(2000)]
    counts = np.bincount(firsts, minlength=5)
    assert np.abs(counts - 400).max() < 4 * np.sqrt(2000 * 0.2 * 0.8)


def test_controls_are_the_seeded_rankings() -> None:
    model, bag = make("abmil", "paper"), bag_of(6)
    controls = rankings.random_controls(bag)
    assert [c.name for c in controls] == [f"random-{i}" for i in range(10)]
    for seed, control in enumerate(controls):
        want = rankings.score("random", model, bag, seed=seed).scores
        np.testing.assert_array_equal(control.scores, want)
        assert control.slide_id == "slide-1"


@pytest.mark.parametrize("seed", [1.5, "1", None, True])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(FociError, match=r"^seed: is .*; give a whole number$"):
        rankings.score("random", make("abmil", "paper"), features(3), seed=seed)
