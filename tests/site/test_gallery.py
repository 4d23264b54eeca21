"""The maps of the gallery have the fault that the page names."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tools.site import gallery
from tools.site.gallery import CONTRARY, EXHIBITS, MARKER
from tools.site.pages import DOCS

import foci
from foci.backbones import Backbone
from foci.backbones.saved import save
from tests.makers import audits


@pytest.fixture(scope="module")
def model() -> Backbone:
    torch.manual_seed(0)
    return foci.backbones.create("abmil", d_in=8, n_classes=2)


@pytest.fixture(scope="module")
def bag() -> foci.Bag:
    features = np.random.default_rng(0).normal(size=(90, 8)).astype(np.float32)
    return foci.Bag("slide-1", features)


@pytest.fixture(scope="module")
def alone(model: Backbone, bag: foci.Bag) -> np.ndarray:
    """Probability of the predicted class from every tile alone."""
    target = int(model.predict(bag.x).argmax())
    return np.array([float(model.predict(tile[None])[target]) for tile in bag.x])


def order(scores: np.ndarray) -> list[int]:
    return np.argsort(-scores, kind="stable").tolist()


def test_the_page_shows_every_exhibit_once() -> None:
    page = (DOCS / "gallery.md").read_text(encoding="utf-8")
    assert sorted(MARKER.findall(page)) == sorted(EXHIBITS)


def test_upside_down_is_the_reverse(model: Backbone, bag: foci.Bag) -> None:
    assert order(gallery.upside_down(model, bag)) == order(gallery.native(model, bag))[::-1]


def test_contrary_tiles_come_first_then_evidence(
    model: Backbone, bag: foci.Bag, alone: np.ndarray
) -> None:
    first, rest = (found := order(gallery.contrary_first(model, bag)))[:CONTRARY], found[CONTRARY:]
    assert set(first) == set(np.argsort(alone)[:CONTRARY].tolist())
    assert rest == [tile for tile in order(gallery.evidence(model, bag)) if tile not in first]


def test_the_decision_survives_the_loss_of_all_first_tiles() -> None:
    model = audits.model(seed=1)
    features = np.random.default_rng(0).normal(size=(90, model.d_in)).astype(np.float32)
    bag = foci.Bag("slide-1", features)
    scores = gallery.never_flips(model, bag)
    assert len(set(scores)) == len(bag), "an order without ties"
    found, target = order(scores), int(model.predict(bag.x).argmax())
    best = order(gallery.evidence(model, bag))
    assert found[0] == best[0], "the decision survives the loss of the best tile"
    assert found != best, "but not of all of them"
    kept = [int(model.predict(bag.x[sorted(found[k:])]).argmax()) for k in range(1, len(bag))]
    assert kept == [target] * (len(bag) - 1)


def test_a_softened_classifier_decides_the_same_and_is_less_sure(
    model: Backbone, bag: foci.Bag, tmp_path: Path
) -> None:
    save(model, tmp_path / "model", classes=["A", "B"])
    softer = foci.backbones.load(gallery.soften(tmp_path / "model", tmp_path / "softened"))
    before, after = (np.log(one.predict(bag.x).numpy()) for one in (model, softer))
    assert np.diff(after) == pytest.approx(np.diff(before) / gallery.SOFTENED, rel=1e-5)
    assert after.argmax() == before.argmax()


def test_a_direction_is_the_same_on_all_slides(model: Backbone, bag: foci.Bag) -> None:
    twice = foci.Bag("slide-2", np.concatenate([bag.features, bag.features]))
    own = gallery.random_direction(model, bag)
    assert np.allclose(gallery.random_direction(model, twice), np.tile(own, 2))


def test_random_orders_differ_between_slides(model: Backbone, bag: foci.Bag) -> None:
    other = foci.Bag("slide-2", bag.features)
    found = order(gallery.random_order(model, bag))
    assert found == order(gallery.random_order(model, bag))
    assert found != order(gallery.random_order(model, other))


def test_another_answer_ends_the_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = SimpleNamespace(
        map=SimpleNamespace(answer="inconclusive"), order=SimpleNamespace(answer="headroom")
    )
    monkeypatch.setattr(gallery, "_audited", lambda *_: SimpleNamespace(answers=told))
    with pytest.raises(RuntimeError, match="gallery: yes is 'inconclusive', 'headroom'"):
        gallery._shown("yes", tmp_path, tmp_path)
