"""Features follow their equation: projections give back the planted amounts."""

import numpy as np
import pytest

from foci.demo.cohort import (
    KINDS,
    TUMOUR,
    WIDTH,
    Palette,
    TissueMap,
    class_amounts,
    encode,
    mix_palette,
)


@pytest.fixture(scope="module")
def palette() -> Palette:
    return mix_palette(np.random.default_rng(0), classes=3, sites=2)


def tissue(n: int = 400) -> TissueMap:
    """A quarter tumour, with 20 witnesses and 20 distractors."""
    kind = np.arange(n) % (len(KINDS) - 2)
    kind[: n // 4] = TUMOUR
    index = np.arange(n)
    return TissueMap(kind, index < 20, (index >= 20) & (index < 40))


def test_prototypes_and_class_directions_are_orthogonal(palette: Palette) -> None:
    directions = np.concatenate([palette.kinds, palette.classes])
    gram = directions @ directions.T
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(palette.classes, axis=1), 1)
    lengths = dict(zip(KINDS, np.linalg.norm(palette.kinds, axis=1), strict=True))
    assert min(lengths["pen"], lengths["fold"]) > 1.5 * max(
        length for kind, length in lengths.items() if kind not in ("pen", "fold")
    )


@pytest.mark.parametrize("hard", [False, True])
def test_features_are_prototype_amounts_shift_and_noise(palette: Palette, hard: bool) -> None:
    shown = tissue()
    amounts = class_amounts(np.random.default_rng(5), shown, label=1, classes=3, hard=hard)
    x = encode(np.random.default_rng(5), palette, shown, label=1, site=1, hard=hard)
    assert x.dtype == np.float32
    assert x.shape == (len(shown.kind), WIDTH)
    rest = x - palette.kinds[shown.kind] - amounts @ palette.classes
    shift = rest.mean(axis=0)
    assert np.std(rest - shift) == pytest.approx(0.5, rel=0.02)
    assert np.std(shift - palette.sites[1]) == pytest.approx(0.1, rel=0.3)


def test_only_the_witnesses_depend_on_the_class() -> None:
    shown = tissue()
    as_a, as_b = (
        class_amounts(np.random.default_rng(7), shown, label=label, classes=2, hard=False)
        for label in (0, 1)
    )
    np.testing.assert_array_equal(as_a[~shown.witness], as_b[~shown.witness])
    planted = (as_a - as_b)[shown.witness]
    np.testing.assert_allclose(planted[:, 0], -planted[:, 1])
    assert (planted[:, 0] > 2.6).all()
    assert (planted[:, 0] < 4.2).all()


def test_distractors_hint_at_any_class_and_less_than_witnesses_tell() -> None:
    shown = tissue()
    hinted = []
    for seed in range(40):
        amounts = class_amounts(np.random.default_rng(seed), shown, label=0, classes=2, hard=False)
        ordinary = (shown.kind == TUMOUR) & ~shown.witness & ~shown.distractor
        extra = amounts[shown.distractor].mean(axis=0) - amounts[ordinary].mean(axis=0)
        hinted.append(int(np.argmax(extra)))
        assert 1.4 < extra.max() < 2.8
        assert abs(extra.min()) < 0.3
    assert 8 <= sum(hinted) <= 32


def test_hard_slides_carry_less() -> None:
    shown = tissue()

    def strength(hard: bool) -> list[float]:
        found = []
        for seed in range(20):
            a, b = (
                class_amounts(np.random.default_rng(seed), shown, label=y, classes=2, hard=hard)
                for y in (0, 1)
            )
            found.append(float((a - b)[shown.witness, 0].mean()))
        return found

    assert max(strength(True)) < min(strength(False))
