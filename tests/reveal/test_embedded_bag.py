"""One bag, embedded once, for curves, candidates and rankings."""

from collections.abc import Callable

import pytest
import torch

import foci
from foci import rankings
from foci.audits import Curve
from foci.backbones import Backbone
from foci.reveal import EmbeddedBag, Revealer
from tests.rankings.trials import OTHERS, POOLED, bag_of, features, logits_of, make


def counted(model: Backbone, monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Grows by one entry with every call of a method."""
    calls: list[int] = []
    method: Callable[..., object] = getattr(model, name)
    monkeypatch.setattr(model, name, lambda *a, **k: calls.append(1) or method(*a, **k))
    return calls


@pytest.mark.parametrize(("name", "preset"), [*POOLED, *OTHERS])
def test_curves_candidates_and_rankings_share_one_embedding(
    name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, bag = make(name, preset), bag_of(6)
    calls = counted(model, monkeypatch, "embed")
    opened = Revealer(model, recheck=()).open(bag)
    assert calls == []  # nothing is computed before it is needed
    full = opened.full()
    aimed = opened.with_target(int(full.argmax()))
    for direction in ("insert", "delete"):
        aimed.curve(range(6), direction=direction)
    aimed.single_tiles()
    works = set(rankings.available(model))
    for ranking in works & {"native", "single-tile", "leave-one-out", "greedy-insertion"}:
        rankings.score(ranking, model, aimed)
        rankings.score(ranking, model, opened, target=0)
    assert len(calls) == 1


def test_what_is_prepared_for_a_curve_serves_every_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = make("abmil", "paper")
    opened = Revealer(model).open(features(6))
    opened.curve(range(6))
    calls = counted(model, monkeypatch, "attend")
    opened.with_target(1).curve(range(6))
    opened.with_target(2).full()
    assert calls == []


@pytest.mark.parametrize(("name", "preset"), [*POOLED, *OTHERS])
def test_single_tiles_are_the_logits_of_every_tile_alone(name: str, preset: str) -> None:
    model, x = make(name, preset), features(5)
    want = torch.stack([logits_of(model, x, [tile]) for tile in range(5)])
    bag = EmbeddedBag(model, x)
    torch.testing.assert_close(bag.single_tiles(), want, rtol=0, atol=1e-10)
    assert bag.single_tiles() is bag.single_tiles()


def test_one_class_under_every_public_name() -> None:
    assert foci.rankings.EmbeddedBag is foci.reveal.EmbeddedBag
    assert type(Revealer(make("abmil", "paper")).open(features(2))) is EmbeddedBag
    assert foci.reveal.Curve is Curve
