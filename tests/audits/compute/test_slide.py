"""One slide: its results equal those of direct calls to the engine and the rankings."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci import rankings
from foci.audits.jobs import RankingJob
from foci.audits.reveal import RevealedSlide, SlideReveal
from foci.backbones import Backbone, CallableBackbone
from foci.errors import FociError
from foci.reveal import Revealer, curve
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, read

UNITS = (RankingJob("native"), RankingJob("greedy-insertion"), RankingJob("random", orders=2))


def reveal(files: Path, slide_id: str, backbone: Backbone, **changes: Any) -> RevealedSlide:
    cohort = read(files)
    work = SlideReveal(backbone, settings(**changes))
    return work(cohort[slide_id], cohort.bag(slide_id), UNITS)


@pytest.mark.parametrize("name", ["abmil", "clam-sb"])
@pytest.mark.parametrize("slide_id", ["s09", "s10", "s11"])
def test_curves_and_scores(files: Path, slide_id: str, name: str) -> None:
    backbone, bag = model(name), read(files).bag(slide_id)
    found = reveal(files, slide_id, backbone)
    n = len(bag)
    engine = Revealer(backbone, recheck=settings().kappas).open(bag.x)
    wanted = [("native", None, {}), ("greedy-insertion", None, {})]
    wanted += [("random", seed, {"seed": seed}) for seed in (0, 1)]
    for ranking, seed, options in wanted:
        order = rankings.score(ranking, backbone, bag, **options).order
        own = found.curves[ranking]
        insert, delete = (
            next(c for c in own if (c.seed, c.direction) == (seed, d)) for d in ("insert", "delete")
        )
        assert insert.ks.tolist() == list(range(1, min(8, n) + 1))
        assert delete.ks.tolist() == list(range(1, min(8, n - 1) + 1))
        np.testing.assert_array_equal(insert.probs, engine.curve(order, insert.ks).numpy())
        direct = curve(backbone, bag.x, order, insert.ks)
        np.testing.assert_allclose(insert.probs, direct, rtol=0, atol=1e-6)
        if n > 1:
            direct = engine.curve(order, delete.ks, "delete")
            np.testing.assert_array_equal(delete.probs, direct.numpy())
        assert delete.probs.shape == (len(delete.ks), 2)
        for one in (insert, delete):
            assert (one.slide_id, one.ranking, one.n_tiles) == (slide_id, ranking, n)
            np.testing.assert_allclose(one.full, backbone.predict(bag.x), rtol=0, atol=1e-6)
    native = rankings.score("native", backbone, bag)
    np.testing.assert_array_equal(found.scores["native"], native.scores)
    assert found.scores["random"] is None


def test_facts_of_a_slide_above_the_cap(files: Path) -> None:
    bag = read(files).bag("s11")
    found = reveal(files, "s11", model())
    assert (found.slide.n_tiles, found.slide.n_total, found.slide.patch_size) == (9, 12, 256)
    assert (found.slide.case_id, found.slide.label, found.slide.skipped) == ("c11", "b", None)
    digest = hashlib.sha256(bag.features.astype("<f4").tobytes()).hexdigest()
    assert found.slide.features_sha256 == digest
    np.testing.assert_array_equal(found.tiles, bag.tiles)
    assert found.coords is not None
    np.testing.assert_array_equal(found.coords, bag.coords)


def test_a_bag_is_embedded_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = model()
    calls: list[int] = []
    embed = backbone.embed
    monkeypatch.setattr(backbone, "embed", lambda x: calls.append(len(x)) or embed(x))
    reveal(files, "s12", backbone, kappa=1 - 1e-9)
    assert calls == [7]


def test_a_class_aware_ranking_never_sees_the_label(files: Path) -> None:
    backbone, bag = model(), read(files).bag("s09")
    predicted = int(backbone.predict(bag.x).argmax())
    found = reveal(files, "s09", backbone).scores["greedy-insertion"]
    for target in (0, 1):
        aimed = rankings.score("greedy-insertion", backbone, bag, target=target).scores
        assert np.array_equal(found, aimed) == (target == predicted)


class Torn(torch.nn.Module):
    """Model whose output is not finite for a bag of three tiles."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(0)[:2] / (len(x) != 3)


def test_a_model_without_an_answer_is_refused_by_slide(files: Path) -> None:
    backbone = CallableBackbone(Torn(), D_IN, 2, scores=lambda x: x[:, 0])
    with pytest.raises(FociError, match="s09: the model answers NaN; check its weights"):
        reveal(files, "s09", backbone)


def test_on_a_cpu_a_bag_is_read_as_it_is(files: Path) -> None:
    cohort = read(files)
    bag = cohort.bag(cohort.slides[0].slide_id)
    assert SlideReveal(model(), settings()).staged(bag) is bag
