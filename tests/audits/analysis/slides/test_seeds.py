"""Seeds measured in one go, against each of them alone, bit by bit."""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

from foci.audits import Curve, CurveTable
from foci.audits import measure as module
from foci.audits.measure import followed_once, measure_rankings, measure_seeds, slides_by_view
from foci.audits.measure import relative as shares_of
from tests.makers.curves import CLASSES, Settings, slides

SIZES = [40, 300, 40, 7, 1]


def made(n_deleted: int, *, meeting: bool = True) -> CurveTable:
    """Five random orders of five slides; tiles are deleted under the first of them only."""
    rng = np.random.default_rng(3)
    full = {n: rng.dirichlet([1, 3]) for n in range(len(SIZES))}
    curves = []
    for seed in range(5):
        for n, size in enumerate(SIZES):
            last = min(size, 256)
            every, grid = np.arange(1, last + 1), np.array([k for k in (1, 2, 4, 32) if k <= last])
            ks = every if seed % 2 else grid
            gone = np.array([k for k in ((1, 3, 16) if meeting or seed else (3, 5)) if k < size])
            for direction, counts in (("insert", ks), ("delete", gone)):
                if direction == "delete" and seed >= n_deleted:
                    continue
                probs = rng.dirichlet([0.2, 0.5], size=len(counts)).reshape(-1, 2)
                curves.append(
                    Curve(f"s{n}", "random", seed, direction, size, counts, probs, full[n])
                )
    return CurveTable.of(curves)


B, T = CLASSES
LABELS: list[list[str | None]] = [
    [B, T, B, T, B], [T] * 5, [B, None, T, T, None], [None, None, B, None, None],
]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("relative", [False, True])
def test_views_together_and_alone(labels: list[str | None], relative: bool) -> None:
    curves = made(2)
    views = slides_by_view(curves, slides(list("ABCDE"), labels, SIZES), CLASSES)
    settings = Settings(kappas=(0.6, 0.8), relative=relative)
    together = measure_rankings(curves, views, settings)["random"]
    assert list(together) == ["prediction", "label"]
    for view in together:
        alone = measure_rankings(curves, {view: views[view]}, settings)["random"][view]
        assert same(together[view], alone)
    followed, places = followed_once([views["prediction"]])
    assert len(followed) == len(SIZES)
    assert places == [slice(0, len(SIZES))]


def same(a: Any, b: Any) -> bool:
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return bool(a == b)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("n_deleted", [0, 2, 5])
def test_together_and_alone(
    n_deleted: int, relative: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves = made(n_deleted)
    group = slides_by_view(curves, slides(list("ABCDE"), [None] * 5, SIZES), CLASSES)["prediction"]
    settings = Settings(kappas=(0.6, 0.8), relative=relative)
    ks = np.array([1, 2, 4])
    together = measure_seeds(curves, curves.orders, group, settings, ks, shares_of(group, settings))
    monkeypatch.setattr(module, "_TOGETHER", 1)
    alone = measure_seeds(curves, curves.orders, group, settings, ks, shares_of(group, settings))
    assert len(together) == len(alone) == 5
    assert all(same(a, b) for a, b in zip(together, alone, strict=True))
    assert [one.sampling.n_deleted for one in together] == [1] * n_deleted + [0] * (5 - n_deleted)


@pytest.mark.parametrize("most", [1, 12, 4096])
def test_rankings_together_and_alone(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rankings whose tiles were deleted at every count, and one on a grid."""
    rng, size = np.random.default_rng(5), 6
    deleted = {"native": range(1, size), "evidence": range(1, size), "random": (1, 4)}
    curves = []
    for ranking, gone in deleted.items():
        for n in range(4):
            for direction, counts in (("insert", range(1, size + 1)), ("delete", gone)):
                ks = np.array(counts)
                probs = rng.dirichlet([0.2, 0.5], size=len(ks))
                seed = 0 if ranking == "random" else None
                full = np.array([0.1, 0.9])
                curves.append(Curve(f"s{n}", ranking, seed, direction, size, ks, probs, full))
    every = CurveTable.of(curves)
    views = slides_by_view(every, slides(list("ABCD"), [B, T, B, T], [size] * 4), CLASSES)
    monkeypatch.setattr(module, "_TOGETHER", most)
    found = measure_rankings(every, views, Settings())
    assert list(found) == list(deleted)
    for name in deleted:
        one = CurveTable.of([curve for curve in curves if curve.ranking == name])
        assert same(found[name], measure_rankings(one, views, Settings())[name])
        decisive = found[name]["prediction"].decisive
        assert decisive is not None
        assert decisive.exact.all() == (name != "random")


def test_one_seed_without_shared_counts_leaves_the_others() -> None:
    curves = made(5, meeting=False)
    group = slides_by_view(curves, slides(list("ABCDE"), [None] * 5, SIZES), CLASSES)["prediction"]
    found = measure_seeds(curves, curves.orders, group, Settings(), np.array([1]), ())
    assert [one.decisive is None for one in found] == [True, False, False, False, False]
