"""AttriMIL: ranking, constraints, neighbourhoods and queues by hand and as published."""

from collections import deque
from decimal import Context, Decimal
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones import pad
from foci.backbones.models.attrimil import (
    AttriMIL,
    TileQueues,
    neighbourhoods,
    rank_constraint,
    spatial_constraint,
)
from tests.backbones.golden_weights import features, golden, linear, published

D_IN = 24
GOLDEN = golden("attrimil")


def official(n_classes: int, bias_shift: float = 0.0) -> AttriMIL:
    """On features of width 24; ``bias_shift`` is added to every scorer."""
    keys = {"bias": (n_classes,), **linear("adaptor.0", 12, D_IN), **linear("adaptor.2", D_IN, 12)}
    for c in range(n_classes):
        keys |= linear(f"attention_nets.{c}.attention_a.0", 12, D_IN)
        keys |= linear(f"attention_nets.{c}.attention_b.0", 12, D_IN)
        keys |= linear(f"attention_nets.{c}.attention_c", 1, 12)
        keys |= linear(f"classifiers.{c}", 1, D_IN)
    model: AttriMIL = published(keys)
    for scorer in model.scorers.children():
        scorer.bias.data += bias_shift
    return model


@pytest.mark.parametrize("case", GOLDEN["cases"])
def test_published_logits_and_ranking(case: dict[str, Any]) -> None:
    model = official(case["n_classes"])
    x = features(case["n_tiles"], D_IN)
    want = torch.tensor(case["attributes"], dtype=torch.float64)

    with torch.no_grad():
        tokens = model.embed(x)
        attributes = (model.values(tokens).squeeze(-1) * model.attend(tokens).exp()).T
        logits, scores = model(x), model.scores(tokens)

    assert logits.tolist() == pytest.approx(case["logits"], abs=1e-8)
    torch.testing.assert_close(attributes, want, rtol=0, atol=1e-8)
    assert scores.argsort().tolist() == want.amax(dim=0).argsort().tolist()


@torch.no_grad()
def spread_attention(model: AttriMIL, x: Tensor, spread: float) -> None:
    scale = spread / model.attend(model.embed(x)).std()
    for net in model.attention:
        net.w.weight *= scale
        net.w.bias *= scale


def exact_attributes(model: AttriMIL, tokens: Tensor) -> list[Decimal]:
    """Largest s e^a of every tile with fifty digits and no bound on the exponent."""
    fifty = Context(prec=50, Emax=10**9, Emin=-(10**9))
    scores, logits = model.values(tokens).squeeze(-1).tolist(), model.attend(tokens).tolist()
    return [
        max(fifty.multiply(Decimal(s), fifty.exp(Decimal(a))) for s, a in zip(*rows, strict=True))
        for rows in zip(scores, logits, strict=True)
    ]


@pytest.mark.parametrize("spread", [0.1, 1.0, 400.0, 4000.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@torch.no_grad()
def test_ranking_is_exact_far_beyond_what_a_float_can_hold(
    spread: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(2)
    model = AttriMIL(12, 3).to(dtype)
    x = torch.randn(400, 12, dtype=dtype)
    spread_attention(model, x, spread)
    tokens = model.embed(x)
    exact = exact_attributes(model, tokens)

    scores = model.scores(tokens)

    assert scores.dtype == torch.float64
    assert torch.isfinite(scores).all()
    want = sorted(range(len(exact)), key=exact.__getitem__)
    assert scores.argsort(stable=True).tolist() == want
    assert (scores > 0).tolist() == [a > 0 for a in exact]


@torch.no_grad()
def test_scores_of_zero_and_one_stay_put() -> None:
    model = AttriMIL(2, 1).double()
    for parameter in model.parameters():
        parameter.zero_()
    model.scorers[0].weight.copy_(torch.tensor([[1.0, 0.0]]))
    x = torch.tensor([[0.0, 5.0], [1.0, 5.0], [-1.0, 5.0]], dtype=torch.float64)
    assert model.scores(model.embed(x)).tolist() == [0.0, 1.0, -1.0]


GRID = 256 * torch.cartesian_prod(torch.arange(3), torch.arange(3))


def test_published_spatial_constraint_on_given_scores() -> None:
    given = GOLDEN["spatial_by_hand"]
    around = neighbourhoods(torch.tensor(given["coords"]), 256)
    scores = torch.tensor(given["attributes"], dtype=torch.float64)[:, 1:]
    assert spatial_constraint(scores, around).item() == pytest.approx(given["loss"], abs=1e-9)


@pytest.mark.parametrize(
    ("of_class", "negative_class", "v", "u", "want"),
    [
        (True, False, 2.0, 3.0, 1.0 + 0.0 + 3.0),
        (True, False, -2.0, -5.0, 0.0 + 2.0 + 0.0),
        (True, False, -2.0, 1.0, 3.0 + 2.0 + 1.0),
        (True, True, 2.0, 3.0, 0.0 + 3.0),
        (True, True, -2.0, -5.0, 2.0 + 0.0),
        (False, False, 2.0, 3.0, 0.0 + 2.0),
        (False, False, 2.0, -3.0, 5.0 + 2.0),
        (False, False, -2.0, -3.0, 1.0 + 0.0),
        (False, True, 2.0, 3.0, 2.0 + 0.0),
        (False, True, 2.0, -3.0, 2.0 + 3.0),
        (False, True, -2.0, 3.0, 0.0),
    ],
)
def test_rank_constraint_by_hand(
    of_class: bool, negative_class: bool, v: float, u: float, want: float
) -> None:
    loss = rank_constraint(torch.tensor(v), torch.tensor(u), of_class, negative_class)
    assert loss.item() == want


def small(n_classes: int = 2) -> AttriMIL:
    torch.manual_seed(0)
    return AttriMIL(6, n_classes).double()


def bags(*lengths: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(n, 6, generator=generator, dtype=torch.float64) for n in lengths]


@pytest.mark.parametrize("want", GOLDEN["spatial"])
def test_published_spatial_constraint(want: dict[str, Any]) -> None:
    model = official(want["n_classes"])
    coords = torch.tensor(want["coords"])
    batch = pad([features(len(coords), D_IN)], [0], [coords], [want["stride"]])
    objective = model.make_objective(rank_weight=0.0)

    loss = objective(batch) - model.make_objective(rank_weight=0.0, spatial_weight=0.0)(batch)
    loss.backward()

    assert objective.terms["spatial"] == pytest.approx(want["loss"], abs=1e-8)
    gradient = model.scorers[1].bias.grad
    assert gradient.item() == pytest.approx(want["scorer_bias_gradient"], abs=1e-8)


@pytest.mark.parametrize("sequence", GOLDEN["rank"])
def test_published_rank_constraint_and_queues(sequence: dict[str, Any]) -> None:
    model = official(sequence["n_classes"], sequence["bias_shift"])
    objective = model.make_objective()
    seen: list[Tensor] = []
    for b, step in enumerate(sequence["steps"]):
        seen.append(features(step["n_tiles"], D_IN, name=f"bag{b}"))
        objective(pad([seen[-1]], [step["label"]]))

        assert objective.terms["bag"] == pytest.approx(step["ce"], abs=1e-8)
        assert objective.terms["rank"] == pytest.approx(5 * step["rank"], abs=1e-8)
        assert objective.terms["spatial"] == 0.0
        for queues, want in (
            (objective.positive, step["positive"]),
            (objective.negative, step["negative"]),
        ):
            for c, entries in enumerate(want):
                assert queues.size(c) == len(entries) <= 4
                for held, (bag, tile) in zip(queues.tiles[c], entries, strict=False):
                    assert torch.equal(held, seen[bag][tile])


@pytest.mark.parametrize("want", GOLDEN["total"])
def test_published_total(want: dict[str, Any]) -> None:
    model = official(want["n_classes"])
    objective = model.make_objective()
    for c in range(want["n_classes"]):
        objective.positive.append(c, features(1, D_IN, name=f"posq{c}")[0])
        objective.negative.append(c, features(1, D_IN, name=f"negq{c}")[0])
    x, coords = features(want["n_tiles"], D_IN), torch.tensor(want["coords"])

    total = objective(pad([x], [want["label"]], [coords], [256]))

    assert objective.terms["spatial"] == pytest.approx(want["spatial"], abs=1e-8)
    assert objective.terms["rank"] == pytest.approx(5 * want["rank"], abs=1e-8)
    assert total.item() == pytest.approx(want["total"], abs=1e-7)


def test_an_old_tile_is_scored_by_the_present_weights() -> None:
    model = small()
    objective = model.make_objective(spatial_weight=0.0)
    objective(pad(bags(5), [1]))
    queued = {c: (objective.positive, objective.negative)[c == 0].tiles[c, 0] for c in (0, 1)}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
        x = bags(5, 4)[1]
        h = model.embed(x)
        top = (model.values(h).squeeze(-1) * model.attend(h).exp()).amax(dim=0)
        old = {c: model.embed(tile[None]) for c, tile in queued.items()}
        u = {c: model.values(h)[0, c, 0] * model.attend(h)[0, c].exp() for c, h in old.items()}
    # A bag of class 0: its own class is the negative one, class 1 is not its class.
    want = rank_constraint(top[0], u[0], True, True) + rank_constraint(top[1], u[1], False, False)

    objective(pad([x], [0]))

    assert objective.terms["rank"] == pytest.approx(5 * want.item() / 2, abs=1e-12)


def test_symmetric_gives_class_0_the_constraints_of_every_other_class() -> None:
    model = small()
    batch = pad(bags(9), [0], [GRID], [256])
    h = model.embed(batch.features[0])
    attributes = model.values(h).squeeze(-1) * model.attend(h).exp()
    around = neighbourhoods(GRID, 256)
    terms = {}
    for symmetric in (False, True):
        objective = model.make_objective(symmetric=symmetric, rank_weight=1.0)
        objective(pad(bags(200), [1]))
        u = model.embed(objective.negative.tiles[:1, 0])
        objective(batch)
        terms[symmetric] = objective.terms
    class_0 = spatial_constraint(attributes[:, :1], around).item()
    assert terms[True]["spatial"] - terms[False]["spatial"] == pytest.approx(class_0, abs=1e-12)
    other = (model.values(u)[0, 0, 0] * model.attend(u)[0, 0].exp()).item()
    extra = (other - attributes[:, 0].max().item()) / 2
    assert extra > 0
    assert terms[True]["rank"] - terms[False]["rank"] == pytest.approx(extra, abs=1e-12)


def test_a_new_epoch_starts_with_empty_queues() -> None:
    objective = small().make_objective()
    objective(pad(bags(5, 4), [0, 1]))
    assert objective.positive.counts.tolist() == [1, 1]
    objective.begin_epoch()
    assert objective.positive.counts.tolist() == objective.negative.counts.tolist() == [0, 0]
    assert not objective.positive.tiles.any()
    assert objective(pad(bags(5), [0])).item() == pytest.approx(objective.terms["bag"])


STRIDE = 512
OFFSETS = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]


def all_pairs(coords: Tensor) -> list[list[int]]:
    places = [tuple(place) for place in coords.tolist()]
    return [
        [
            places.index(wanted) if (wanted := (x + dx * STRIDE, y + dy * STRIDE)) in places else i
            for dx, dy in OFFSETS
        ]
        for i, (x, y) in enumerate(places)
    ]


cells = st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from([0, 0, 0, 1, 200]))


@settings(deadline=None)
@given(st.lists(cells, min_size=1, max_size=30, unique=True))
def test_equals_comparing_all_pairs(tiles: list[tuple[int, int, int]]) -> None:
    """The third number shifts a tile off the grid, as a second tissue contour would."""
    coords = torch.tensor([[x * STRIDE + shift, y * STRIDE + shift] for x, y, shift in tiles])
    assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords)


def test_columns_do_not_wrap_around() -> None:
    """One pixel to the right, just where the next tile above or below would be."""
    for near in ([1, STRIDE - 1], [-1, 1]):
        coords = torch.tensor([[0, 0], [0, STRIDE], near])
        assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords)


def test_tiles_at_one_place_stay_their_own_centre() -> None:
    around = neighbourhoods(torch.tensor([[0, 0], [0, 0], [STRIDE, 0]]), STRIDE)
    assert around[:, 4].tolist() == [0, 1, 2]
    assert around[1, 7] == 2


def test_whole_numbered_floats_are_read_as_positions() -> None:
    coords = torch.tensor([[0.0, 0.0], [0.0, 512.0]], dtype=torch.float64)
    assert neighbourhoods(coords, STRIDE).tolist() == all_pairs(coords.long())


LENGTH = 4
moves = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(["append", "next"])), max_size=40)


@settings(deadline=None)
@given(moves)
def test_behaves_like_a_deque_and_never_exceeds_its_length(steps: list[tuple[int, str]]) -> None:
    queues = TileQueues(n_classes=2, length=LENGTH, d_in=1)
    reference: list[deque[float]] = [deque(maxlen=LENGTH) for _ in range(2)]
    for number, (c, move) in enumerate(steps):
        if move == "append":
            queues.append(c, torch.tensor([float(number)]))
            reference[c].append(float(number))
        elif reference[c]:
            want = reference[c].popleft()
            reference[c].append(want)
            assert queues.next(c).item() == want
        for k in range(2):
            held = queues.tiles[k, : queues.size(k), 0].tolist()
            assert held == list(reference[k])
            assert len(held) <= LENGTH


def test_queued_tiles_carry_no_gradient_and_survive_later_moves() -> None:
    queues = TileQueues(n_classes=1, length=1, d_in=1)
    queues.append(0, torch.ones(1, requires_grad=True))
    held = queues.next(0)
    queues.append(0, torch.zeros(1))
    assert not held.requires_grad
    assert held.item() == 1.0
