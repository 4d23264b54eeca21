"""The proven minimum against brute force over all subsets, and cases worked by hand."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.errors import FociError
from foci.metrics import MinimalSet, efficiencies, efficiency, minimal_decisive
from foci.metrics.minimal import least_ratios
from foci.parts import Parts
from tests.backbones.every import D_IN, EVERY, small

Floats = NDArray[np.float64]
some = settings(max_examples=40, deadline=None)


# Brute force: every subset forwarded, none of the code under test


def every_subset(n: int) -> NDArray[np.bool_]:
    """``[2^n - 1, n]``: row i - 1 has the bits of i."""
    return (np.arange(1, 2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def logits_of_subsets(parts: Parts) -> Floats:
    """By the equation, row by row."""
    present = every_subset(len(parts.attention))
    n_rows, shared = parts.attention.shape[1], parts.evidence.shape[1] == 1
    total: Any = 0.0
    for row in range(n_rows):
        scores = np.where(present, parts.attention[:, row], -np.inf)
        values = parts.evidence[:, 0 if shared else row]
        if parts.hard:
            pooled = values[scores.argmax(axis=1)]
        else:
            if parts.empty is not None:
                scores = np.hstack([scores, np.zeros((len(scores), 1))])
                values = np.vstack([values, parts.empty[0 if shared else row]])
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            pooled = weights @ values / weights.sum(axis=1, keepdims=True)
        total = total + pooled / (n_rows if shared else 1)
    if parts.output is not None:
        total = np.maximum(total, 0.0) @ parts.output[:, :-1].T + parts.output[:, -1]
    return np.asarray(total)


@dataclass(frozen=True)
class Truth:
    """Smallest flipping and smallest decisive set, by trying all."""

    flip: float
    decisive: float
    sets: set[frozenset[int]]
    decided: bool


def brute_force(logits: Floats, target: int, kappa: float) -> Truth:
    n = len(logits).bit_length()
    present = every_subset(n)
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    sufficient = (logits.argmax(axis=1) == target) & (p[:, target] >= kappa)
    sizes = present[:-1].sum(axis=1)
    flips = (logits.argmax(axis=1) != target)[:-1][::-1]  # row i's complement is row -2 - i
    decisive = flips & sufficient[:-1]
    least = [float(sizes[marks].min()) if marks.any() else np.inf for marks in (flips, decisive)]
    smallest = np.flatnonzero(decisive & (sizes == least[1]))
    sets = {frozenset(np.flatnonzero(present[i]).tolist()) for i in smallest}
    return Truth(least[0], least[1], sets, bool(sufficient[-1]))


def agrees(found: MinimalSet, truth: Truth) -> None:
    if found.kind == "exact":
        assert found.k == truth.decisive
        assert frozenset(found.tiles.tolist()) in truth.sets
    elif found.kind == "lower bound":
        assert found.k <= truth.flip
    else:
        assert (found.kind, found.k) == ("none, proven", None)
        assert truth.flip == np.inf
    if found.kind != "exact" and found.theorem != "T1" and found.theorem != "T2":
        assert not found.tiles.size


# Random bags of every structure


KINDS = ("one row", "plus one", "averaged", "own", "own plus one", "any rows", "relu", "max", "fc")


def draw_parts(kind: str, rng: np.random.Generator, n: int, c: int, *, coarse: bool) -> Parts:
    """Attention of any sharpness, evidence around a mean of any sign; ``coarse`` makes ties."""

    def numbers(*shape: int, scale: float = 3.0) -> Floats:
        values = rng.normal(size=shape) * scale
        return np.round(values) if coarse else values

    def diagonal(values: Floats) -> Floats:
        return values[..., None] * np.eye(c)

    mean = numbers(c, scale=float(rng.choice([0.0, 2.0])))
    attention = numbers(n, 1, scale=float(rng.choice([0.3, 1.0, 3.0, 30.0])))
    rows = numbers(n, {"averaged": 3, "any rows": 2}.get(kind, c), scale=float(rng.choice([1, 9])))
    logits = numbers(n, c) + mean
    if kind == "one row":
        return Parts(attention, logits[:, None])
    if kind == "plus one":
        return Parts(attention, logits[:, None], numbers(1, c, scale=2.0))
    if kind == "averaged":
        return Parts(rows, logits[:, None])
    if kind == "own":
        return Parts(rows, diagonal(logits))
    if kind == "own plus one":
        return Parts(rows, diagonal(logits), diagonal(numbers(c, scale=1.0)))
    if kind == "any rows":
        return Parts(rows, numbers(n, 2, c) + mean)
    if kind == "relu":
        return Parts(attention, numbers(n, 1, 6, scale=2.0), output=numbers(c, 7, scale=2.0))
    if kind == "max":
        return Parts(logits, diagonal(logits), hard=True)
    others = [np.logaddexp.reduce(np.delete(logits, k, axis=1), axis=1) for k in range(c)]
    odds = logits - np.stack(others, axis=1)
    scores = odds[:, 1:] if c == 2 else odds.max(axis=1, keepdims=True)
    return Parts(scores, logits[:, None], hard=True)


@st.composite
def cases(draw: st.DrawFn, kind: str) -> tuple[Parts, int, float, bool]:
    """Parts, a target (mostly the prediction), kappa, and whether there are ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, c, coarse = draw(st.integers(1, 10)), draw(st.integers(2, 4)), draw(st.booleans())
    parts = draw_parts(kind, rng, n, c, coarse=coarse)
    predicted = int(parts.logits(np.ones(n, dtype=bool)).argmax())
    target = draw(st.sampled_from([predicted, predicted, predicted, c - 1]))
    return parts, target, draw(st.sampled_from([0.5, 0.9, 0.99])), coarse


@pytest.mark.parametrize("kind", KINDS)
@some
@given(data=st.data())
def test_agrees_with_brute_force(kind: str, data: st.DataObject) -> None:
    parts, target, kappa, ties = data.draw(cases(kind))
    truth = brute_force(logits_of_subsets(parts), target, kappa)
    tell = data.draw(st.booleans())
    known = sorted(next(iter(truth.sets))) if tell and truth.sets else None
    found = minimal_decisive(parts, target, kappa, known=known)
    agrees(found, truth)
    if ties or len(parts.attention) == 1:
        return
    if kind in ("one row", "plus one"):
        assert (found.k or np.inf) == truth.flip
    biased = kind == "plus one" and np.asarray(parts.empty)[0].argmax() != target
    if truth.decided and parts.n_classes == 2 and kind in ("one row", "plus one") and not biased:
        assert found.kind != "lower bound"  # T2
    if truth.decided and parts.hard:
        assert found.kind != "lower bound"
    if kind == "averaged" and truth.flip == np.inf:
        assert found.kind == "none, proven"  # none if and only if all margins are positive


@pytest.mark.parametrize("kind", KINDS)
def test_one_large_bag_of_every_kind(kind: str) -> None:
    for seed in range(3):
        parts = draw_parts(kind, np.random.default_rng(seed), 12, 3, coarse=False)
        logits = logits_of_subsets(parts)
        target = int(logits[-1].argmax())
        agrees(minimal_decisive(parts, target, 0.5), brute_force(logits, target, 0.5))


def test_bounds_are_worth_having() -> None:
    """Share of decided bags on which the minimum is exact or proven to be none."""
    shares = {}
    for kind in KINDS:
        kinds = []
        for seed in range(120):
            rng = np.random.default_rng(seed)
            parts = draw_parts(kind, rng, 9, 2 + seed % 2, coarse=False)
            full = parts.logits(np.ones(9, dtype=bool))
            if full.max() - np.partition(full, -2)[-2] > 2.5:
                kinds.append(minimal_decisive(parts, int(full.argmax())).kind)
        shares[kind] = np.mean([one != "lower bound" for one in kinds])
    assert shares["one row"] > 0.97
    assert shares["max"] == shares["fc"] == 1
    assert min(shares.values()) > 0.2


# Worked by hand


def linear(margins: list[float], weights: list[float] | None = None) -> Parts:
    """One row, two classes, target 1."""
    attention = np.log(weights or [1.0] * len(margins))[:, None]
    return Parts(attention, [[[0.0, margin]] for margin in margins])


def summary(found: MinimalSet) -> tuple[int | None, list[int], str, str]:
    return found.k, found.tiles.tolist(), found.kind, found.theorem


def test_t1_equal_weights() -> None:
    """6 in total, 2 without the first 4, -2 without two of them."""
    found = minimal_decisive(linear([4, -3, 4, -3, 4]), 1)
    assert summary(found) == (2, [0, 2], "exact", "T2")


def test_t1_weights_times_margins() -> None:
    """g = 8, 10, -3, -6: without the second -1, though the first has the largest margin."""
    found = minimal_decisive(linear([8, 5, -3, -3], [1, 2, 1, 2]), 1, 0.8)
    assert summary(found) == (1, [1], "exact", "T2")


def test_no_set_decides_where_all_margins_are_positive() -> None:
    assert summary(minimal_decisive(linear([4, 3, 2]), 1)) == (None, [], "none, proven", "T2")
    assert summary(minimal_decisive(linear([4]), 1)) == (None, [], "none, proven", "one tile")


def test_an_undecided_slide_has_a_smallest_flip_that_is_not_sufficient() -> None:
    """M(X) = 0.5: T2 asks for a decided slide."""
    found = minimal_decisive(linear([1.0, 1.0, -0.5]), 1, 0.9)
    assert summary(found) == (2, [0, 1], "lower bound", "T2")
    assert minimal_decisive(linear([1.0, 1.0, -0.5]), 1, 0.7).kind == "exact"


def test_three_classes_can_have_a_smallest_flip_that_is_not_sufficient() -> None:
    """Each tile alone is of another class; together they are of class 0 with p = 0.69."""
    parts = Parts([[0.0], [0.0]], [[[4.0, 0.0, 4.5]], [[3.0, 3.5, 0.0]]])
    found = minimal_decisive(parts, 0, 0.6)
    assert (found.k, found.kind, found.theorem) == (1, "lower bound", "T1")
    assert brute_force(logits_of_subsets(parts), 0, 0.6).decisive == np.inf


def test_softmax_plus_one_adds_the_bias_as_one_more_term() -> None:
    """g = 3, -1 and the constant: with -1 the sum is 1, with 2 even what is left is positive."""
    evidence = [[[0.0, 3.0]], [[0.0, -1.0]]]
    against = Parts([[0.0], [0.0]], evidence, [[0.0, -1.0]])
    assert summary(minimal_decisive(against, 1, 0.55)) == (1, [0], "exact", "T1")
    towards = Parts([[0.0], [0.0]], evidence, [[0.0, 2.0]])
    assert summary(minimal_decisive(towards, 1, 0.55)) == (None, [], "none, proven", "T1")


def test_softmax_plus_one_with_a_bias_for_the_rival_needs_more_than_the_flip() -> None:
    """g = 5, 5, -1 and -3: without one tile 1 is left, -4 without both; alone both have 7 / 3."""
    parts = Parts([[0.0]] * 3, [[[0.0, m]] for m in (5.0, 5.0, -1.0)], [[0.0, -3.0]])
    assert summary(minimal_decisive(parts, 1, 0.8)) == (2, [0, 1], "exact", "T1")
    light = Parts([[0.0], [-4.0]], [[[0.0, 4.0]], [[0.0, -9.0]]], [[0.0, -1.0]])
    truth = brute_force(logits_of_subsets(light), 1, 0.8)
    assert minimal_decisive(light, 1, 0.8).kind == "exact"
    assert truth.decisive == 1


def test_t4_averaged_rows() -> None:
    """Each row weighs another tile; without one of them a row falls to 1.5, the other stays."""
    attention = np.log([[100.0, 1.0], [1.0, 100.0], [1.0, 1.0]])
    parts = Parts(attention, [[[0.0, 4.0]], [[0.0, 4.0]], [[0.0, -1.0]]])
    found = minimal_decisive(parts, 1)
    assert (found.k, sorted(found.tiles), found.kind, found.theorem) == (2, [0, 1], "exact", "T4")


def test_t4_positive_margins_prove_nothing_where_rows_have_their_own_evidence() -> None:
    """Target scores 1, 10, 20 and rival scores 0.5, 9, 0; row t weighs tile 0, row r tile 1.

    Every tile alone speaks for the target, and the third decides. Without it 1 stands against 9.
    """
    rows = [[50.0, 0.0], [0.0, 50.0], [100.0, 100.0]]
    evidence = np.array([[1.0, 0.5], [10.0, 9.0], [20.0, 0.0]])[..., None] * np.eye(2)
    found = minimal_decisive(Parts(rows, evidence), 0)
    assert summary(found) == (1, [2], "exact", "T4")
    without = minimal_decisive(Parts(rows[:2], evidence[:2]), 0)
    assert without.kind != "none, proven"


def test_t5_by_hand() -> None:
    """M = 5 relu(x1) - 5 relu(x2): 5 of all, 5/3 without one of the first two, -5 without both."""
    hidden = [[[3.0, 0.0]], [[3.0, 0.0]], [[0.0, 1.0]], [[0.0, 1.0]]]
    parts = Parts([[0.0]] * 4, hidden, output=[[0.0, 0.0, 0.0], [5.0, -5.0, 0.0]])
    assert summary(minimal_decisive(parts, 1)) == (2, [0, 1], "exact", "T5")
    assert minimal_decisive(parts, 1, known=[1, 0]).tiles.tolist() == [1, 0]
    assert minimal_decisive(parts, 1, known=[0, 1, 2]).k == 2


def test_best_tile_by_hand() -> None:
    """The rival has 5 on the third tile: the tiles with 9 and 7 have to go."""
    logits = np.array([[0.0, 7.0], [0.0, 9.0], [5.0, 3.0]])
    maximum = Parts(logits, logits[..., None] * np.eye(2), hard=True)
    assert summary(minimal_decisive(maximum, 1)) == (2, [1, 0], "exact", "best tile")
    margins = logits[:, 1:] - logits[:, :1]
    single = Parts(margins, logits[:, None], hard=True)
    assert summary(minimal_decisive(single, 1)) == (2, [1, 0], "exact", "best tile")
    other = np.array([[2.0, 0.0], [3.0, 1.5]])  # the best tile of class 1 is none of it
    none = minimal_decisive(Parts(other[:, 1:] - other[:, :1], other[:, None], hard=True), 0)
    assert summary(none) == (None, [], "none, proven", "best tile")


# Near-ties, and numbers that no float holds


@pytest.mark.parametrize("excess", [-1e-12, 0.0, 1e-12])
def test_a_near_tie_is_a_lower_bound(excess: float) -> None:
    """Without the first tile the sum is the excess: one tile or two, by rounding."""
    found = minimal_decisive(linear([9.0, 4.0 + excess, -4.0]), 1)
    assert (found.k, found.kind) == (1, "lower bound")
    assert minimal_decisive(linear([9.0, 4.0 + 1e-6, -4.0]), 1).k == 2
    assert summary(minimal_decisive(linear([9.0, 4.0 - 1e-6, -4.0]), 1))[::2] == (1, "exact")


def test_a_margin_of_zero_is_no_proof_of_none() -> None:
    assert minimal_decisive(linear([4.0, 0.0]), 1).kind == "lower bound"
    assert minimal_decisive(linear([4.0, 1e-6]), 1).kind == "none, proven"


def test_a_confidence_at_the_threshold_is_a_lower_bound() -> None:
    margin = float(np.log(9.0))
    for shift, kind in ((0.0, "lower bound"), (1e-6, "exact"), (-1e-6, "lower bound")):
        assert minimal_decisive(linear([margin + shift, -1.0]), 1, 0.9).kind == kind
    assert minimal_decisive(linear([50.0, -1.0]), 1, 1.0).kind == "lower bound"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_what_is_claimed_holds_of_every_classifier_within_the_tolerance(
    kind: str, data: st.DataObject
) -> None:
    """All logits and scores are off by up to a fifth of the tolerance."""
    parts, target, kappa, _ = data.draw(cases(kind))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    found = minimal_decisive(parts, target, kappa, tolerance=0.02)
    size = 0.004 * np.abs(parts.evidence).max()

    def off(values: Any) -> Any:
        return None if values is None else values + rng.choice([-size, size], size=values.shape)

    evidence = off(parts.evidence)
    attention = parts.attention
    if parts.hard and attention.shape[1] > 1:
        evidence = evidence * np.eye(parts.n_classes)
        attention = np.einsum("ncc->nc", evidence)
    other = Parts(attention, evidence, off(parts.empty), parts.output, hard=parts.hard)
    agrees(found, brute_force(logits_of_subsets(other), target, kappa))


def test_weights_beyond_the_range_of_floats() -> None:
    """The first tile outweighs the others by e^800, e^800 by e^2000: still one tile flips."""
    for low in (-800.0, -2000.0):
        parts = Parts([[0.0], [low], [low]], [[[0.0, 4.0]], [[0.0, -1.0]], [[0.0, -1.0]]])
        assert summary(minimal_decisive(parts, 1)) == (1, [0], "exact", "T2")
        rows = np.repeat(parts.attention, 2, axis=1)
        found = minimal_decisive(Parts(rows, parts.evidence), 1)
        assert summary(found) == (1, [0], "exact", "T4")
        hidden = [[[1.0]], [[-1.0]], [[-1.0]]]
        relu = Parts(parts.attention, hidden, output=[[0.0, 1.0], [4.0, 0.0]])
        assert summary(minimal_decisive(relu, 1)) == (1, [0], "exact", "T5")


@some
@given(seed=st.integers(0, 2**32), n=st.integers(1, 6), plus_one=st.booleans())
def test_least_ratios_are_the_least_of_all_subsets(seed: int, n: int, plus_one: bool) -> None:
    rng = np.random.default_rng(seed)
    values, logits = np.round(rng.normal(size=(2, 3, 6)), 1) * [[[3.0]], [[4.0]]]
    weights = np.exp(logits - logits.max())
    extra, mass = rng.normal(size=3), np.full(3, 0.3 * plus_one)
    subsets = [list(s) for k in range(n, 7) for s in itertools.combinations(range(6), k)]
    for row, got in enumerate(least_ratios(values, weights, n, (extra, mass))):
        v, w = values[row], weights[row]
        means = [(w[s] @ v[s] + mass[row] * extra[row]) / (w[s].sum() + mass[row]) for s in subsets]
        assert got == pytest.approx(min(means), abs=1e-9)
        assert got <= min(means) + 1e-12


@pytest.mark.parametrize("spread", [1.0, 8.0, 60.0])
@pytest.mark.parametrize("n", [200, 280, 299])
def test_least_ratios_of_many_tiles_are_those_of_full_precision(spread: float, n: int) -> None:
    """Thresholds are searched in float32: beside a plain search that sorts in float64."""
    rng = np.random.default_rng(int(spread) + n)
    values, logits = rng.normal(size=(4, 300)) * 5, rng.normal(size=300) * spread
    weights = np.exp(logits - logits.max())
    for row, got in zip(values, least_ratios(values, weights[None], n), strict=True):
        rho, last = (row @ weights) / weights.sum(), np.inf
        while rho < last:
            order = np.argsort(weights * (row - rho))
            kept = order[: max(n, int((row < rho).sum()))]
            last, rho = rho, (row[kept] @ weights[kept]) / weights[kept].sum()
        assert got <= last + 1e-12
        if spread < 60:  # beyond, rounding of the heaviest tile outweighs the lightest
            assert got == pytest.approx(last, abs=1e-7)


# Real classifiers


STRUCTURES = {
    "linear head": {"abmil/official", "clam-sb/official", "clam-sb/big", "mean-mil/official",
                    "mhim-mil/official", "mhim-mil/official-ungated"},
    "relu head": {"abmil/paper", "clam-sb/paper", "asmil/paper", "mhim-mil/paper"},
    "rows": {"acmil/paper", "acmil/official", "clam-mb/official", "clam-mb/plus-one",
             "attrimil/paper", "attrimil/official", "attrimil/aligned"},
    "best tile": {"max-mil/official", "mil-fc/official"},
    "none": {"acmil/mha", "asmil/official", "dsmil/official", "dsmil/official-negative",
             "mhim-mil/selfattn", "transmil/paper", "transmil/official"},
}  # fmt: skip


def test_every_preset_says_what_it_is_made_of() -> None:
    found: dict[str, set[str]] = {name: set() for name in STRUCTURES}
    for name, preset in EVERY:
        found[small(name, preset, 2).capabilities.structure].add(f"{name}/{preset}")
    assert found == STRUCTURES


CLAIMED = sorted(set().union(*STRUCTURES.values()) - STRUCTURES["none"])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("preset", CLAIMED)
def test_real_classifiers_agree_with_brute_force(preset: str, n_classes: int) -> None:
    """Random weights large enough that classes differ, every subset forwarded by the model."""
    name, _, kind = preset.partition("/")
    model = small(name, kind, n_classes).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(n_classes)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.copy_(noise if parameter.dim() < 2 else noise / parameter.shape[-1] ** 0.5 * 2)
    kinds = set()
    for n in (2, 6, 8, 9):
        x = torch.randn(n, D_IN, generator=generator, dtype=torch.float64)
        tokens = model.embed(x)
        masks = torch.from_numpy(every_subset(n))
        logits = model.aggregate(tokens.expand(len(masks), -1, -1), masks).numpy()
        target = int(logits[-1].argmax())
        truth = brute_force(logits, target, 0.5)
        found = minimal_decisive(model.parts(tokens), target, 0.5)
        agrees(found, truth)
        kinds.add(found.kind)
        exact = preset in STRUCTURES["linear head"] and n_classes == 2
        if truth.decided and (exact or preset in STRUCTURES["best tile"]):
            assert found.kind != "lower bound"
    assert kinds


# Efficiency, and what is refused


def test_efficiency_leaves_out_what_has_no_minimum_and_what_lies_beyond() -> None:
    least, found = [3, 4, None, 300, 5], [6, None, 7, None, 5]
    assert efficiency(least, found) == pytest.approx(0.5)
    np.testing.assert_array_equal(efficiencies(least, found), [0.5, 0, np.nan, np.nan, 1])
    assert efficiency(least, found, k_max=300) == pytest.approx(1.5 / 4)
    assert np.isnan(efficiency([None], [3]))


def test_a_count_below_the_minimum_is_refused() -> None:
    with pytest.raises(FociError, match=r"^k: is below the proven minimum on 1 slide\(s\)"):
        efficiency([3, 4], [3, 2])


@pytest.mark.parametrize("known", [[0, 0], [3], [0, 1, 2], [-1], [0.5]])
def test_no_set_of_tiles_is_refused(known: list[float]) -> None:
    with pytest.raises(FociError, match=r"^known: "):
        minimal_decisive(linear([1.0, 2.0, -1.0]), 1, known=known)


@pytest.mark.parametrize(
    "arguments",
    [
        {"attention": np.zeros((3, 1)), "evidence": np.zeros((2, 1, 2))},
        {"attention": np.zeros((3, 2)), "evidence": np.zeros((3, 3, 2))},
        {"attention": np.zeros((3, 1)), "evidence": np.zeros((3, 1, 2)), "empty": np.zeros((1, 3))},
        {"attention": np.zeros((3, 2)), "evidence": np.zeros((3, 1, 4)), "output": np.ones((2, 5))},
        {"attention": np.ones((3, 2)), "evidence": np.zeros((3, 2, 2)), "hard": True},
    ],
)
def test_parts_that_do_not_fit_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(FociError, match=r"^parts: of 3 tiles and \d rows do not fit evidence"):
        Parts(**arguments)


def test_parts_that_are_not_finite_are_refused() -> None:
    with pytest.raises(FociError, match=r"^parts: are not finite"):
        minimal_decisive(linear([1.0, np.nan]), 1)
