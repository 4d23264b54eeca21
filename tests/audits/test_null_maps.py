"""Maps that know nothing: how they are drawn, deleted, stored and compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from foci.audits import CurveTable, StoredAudit, null_maps
from foci.audits.folder import CURVES, parts_of
from foci.audits.measure import REFERENCES
from foci.audits.null_maps import FEW_MAPS, draw_null_maps
from foci.audits.run import RunOptions, run
from foci.audits.settings import null_counts
from foci.audits.sources import Sources
from foci.bags import Cohort
from foci.metrics.answers import BELIEVED
from foci.rankings import uniform_scores
from foci.rankings.controls import null_directions
from foci.reveal import EmbeddedBag, Revealer, pooled
from tests.audits.test_resume import Killed, dies_before, without_places
from tests.backbones.every import EVERY
from tests.makers.attention import AttentionCohort
from tests.makers.audits import audit, content, model, settings
from tests.makers.cohorts import D_IN, planted, read
from tests.rankings.trials import features, make


def test_directions_are_seeded_normal_and_in_the_units_of_the_features() -> None:
    spread = np.array([1.0, 0.25, 0.0, 8.0])
    found = null_directions(2000, spread).numpy()
    np.testing.assert_array_equal(found, null_directions(2000, spread).numpy())
    assert not np.array_equal(found, null_directions(2000, spread, seed=1).numpy())
    np.testing.assert_array_equal(found[:, 2], 0)  # never varies: no say
    standard = found[:, [0, 1, 3]] * spread[[0, 1, 3]]
    assert np.abs(standard.mean(axis=0)).max() < 4 / np.sqrt(2000)
    assert np.abs(standard.std(axis=0) - 1).max() < 4 / np.sqrt(4000)
    # the first ones do not depend on how many are drawn
    np.testing.assert_array_equal(null_directions(5, spread).numpy(), found[:5])


POOLING = [pair for pair in EVERY if pooled.pools(make(*pair))]


def test_every_pooling_architecture_and_softmax_plus_one_are_tried() -> None:
    assert {name for name, _ in POOLING} == {
        "abmil", "acmil", "asmil", "attrimil", "clam-mb", "clam-sb", "mean-mil", "mhim-mil"
    }  # fmt: skip
    assert any(make(*pair).plus_one for pair in POOLING)  # type: ignore[attr-defined]


@pytest.mark.parametrize("large", [False, True], ids=["kept", "in blocks"])
@pytest.mark.parametrize("extreme", [False, True], ids=["usual", "extreme"])
@pytest.mark.parametrize(("name", "preset"), POOLING)
def test_without_the_first_tiles_is_the_deletion_curve_of_every_order(
    name: str, preset: str, extreme: bool, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:
        monkeypatch.setattr(pooled, "_MOST_TERMS", 0)
        monkeypatch.setattr(pooled, "_TILES_AT_ONCE", 5)
    backbone, n = make(name, preset), 12
    bag = EmbeddedBag(backbone, features(n), revealer=Revealer(backbone, recheck=()))
    tiles = bag.pooled
    assert tiles is not None
    if extreme:
        tiles.attention = tiles.attention + 50 * features(n, seed=1)[:, :1]
    heaviest = torch.argsort(tiles.attention.mean(dim=1), descending=True)
    drawn = [torch.from_numpy(np.argsort(uniform_scores("s", n, i))) for i in range(3)]
    orders, ks = torch.stack([heaviest, heaviest.flip(0), *drawn]), [1, 2, 5, 11]
    summed: list[int] = []
    pool = pooled.pool
    monkeypatch.setattr(pooled, "pool", lambda *given: summed.append(1) or pool(*given))
    found = bag.without_first(orders, ks)
    # subtraction would cancel where one tile has all the weight: what is left is summed instead
    assert summed or not extreme
    for order, own in zip(orders, found, strict=True):
        torch.testing.assert_close(own, bag.curve(order, ks, "delete"), rtol=0, atol=1e-9)
    torch.testing.assert_close(bag.without_first(orders[:, :5], ks[:3]), found[:, :3])


@pytest.mark.parametrize(("name", "preset"), [("dsmil", "official"), ("transmil", "paper")])
def test_other_classifiers_delete_order_by_order(name: str, preset: str) -> None:
    backbone = make(name, preset)
    bag = EmbeddedBag(backbone, features(9), revealer=Revealer(backbone, recheck=()))
    orders = torch.stack([torch.arange(9), torch.arange(9).flip(0)])
    found = bag.without_first(orders, [1, 4, 8])
    for order, own in zip(orders, found, strict=True):
        torch.testing.assert_close(own, bag.curve(order, [1, 4, 8], "delete"))


def test_a_pooling_classifier_deletes_every_slide_at_the_same_counts(
    audited: StoredAudit,
) -> None:
    """Stored rows, against orders along the same directions that are deleted one by one."""
    backbone, cohort = model(), read(audited.folder.parent)
    bags = {slide.slide_id: cohort.bag(slide.slide_id) for slide in audited.slides}
    spread = np.concatenate([bag.features for bag in bags.values()]).astype(np.float64).std(axis=0)
    directions = null_directions(139, spread).numpy()
    assert audited.curves.rankings == ("native", "selector", "random")
    for curve in audited.curves.null_maps:
        bag = bags[curve.slide_id]
        x, length = bag.features, np.linalg.norm(bag.features, axis=1)
        assert curve.ks.tolist() == [k for k in np.unique(null_counts(len(bag))).tolist() if k]
        for row, scores in enumerate([*(directions @ x.T), length, -length]):
            own = curve.probs.reshape(139 + len(REFERENCES), len(curve.ks), 2)[row]
            if len(curve.ks):
                order = np.argsort(-scores, kind="stable")
                want = Revealer(backbone, recheck=()).open(bag).curve(order, curve.ks, "delete")
                np.testing.assert_allclose(own, want, rtol=0, atol=1e-5)


def test_scaled_features_give_the_same_maps(files: Path) -> None:
    """Directions are standardised: a column in other units changes no order."""
    cohort = read(files).split("test")
    every = [cohort.bag(slide.slide_id) for slide in cohort]

    class Scaled:
        """A store of the same bags, in other units."""

        def __init__(self, units: Any) -> None:
            self.bags = {b.slide_id: replace(b, features=b.features * units) for b in every}

        def bag(self, slide: Any) -> Any:
            return self.bags[slide.slide_id]

    revealer, units = Revealer(model(), recheck=()), 2.0 ** np.arange(-4, 4).astype(np.float32)
    orders = []
    for store in (Scaled(np.ones(D_IN, np.float32)), Scaled(units)):
        drawn = draw_null_maps(settings(), revealer, cohort.slides, store)  # type: ignore[arg-type]
        x = torch.from_numpy(store.bags["s11"].features)
        orders.append(drawn._first(x, len(x))[:139])
    assert torch.equal(*orders)


def test_none_are_drawn_where_none_are_wanted(files: Path) -> None:
    cohort = read(files).split("test")
    revealer = Revealer(model(), recheck=())
    assert draw_null_maps(settings(null_maps=0), revealer, cohort.slides, cohort.store) is None
    found = audit(files, changes={"rankings": ("native", "random"), "null_maps": 0})
    assert found.curves.null_maps == ()
    assert found.answers.map.null is None
    assert found.summary.views["prediction"]["native"].null is None


TRANSFORMER = model("transmil", depth=1, heads=2)


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    """Ten slides of 41 to 190 tiles to audit; of eight the model is 0.9 sure."""
    made = planted(tmp_path_factory.mktemp("transformer"), slides=10, d=D_IN, tiles=(20, 200))
    return replace(made, slides=tuple(replace(slide, split="test") for slide in made.slides))


@pytest.mark.parametrize(
    "changes", [{}, {"dense": True}, {"k_max": 300, "deletion": (5, 6)}, {"profile": "paper"}]
)
def test_a_transformer_deletes_a_sample_of_sure_slides_at_three_counts(
    changes: dict[str, Any], cohort: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever else is deleted: the rankings are compared at these counts, too."""
    monkeypatch.setattr(null_maps, "SAMPLE", 6)
    monkeypatch.setattr("foci.audits.jobs.EVERY_COUNT_UP_TO", 100)
    chosen = settings(**{"rankings": ("native", "random"), "kappa": 0.9, "n_boot": 200, **changes})
    found = run(Sources(TRANSFORMER, cohort), chosen, tmp_path / "out")
    sure = found.measured().slides.sure >= 0.9
    assert sure.sum() == 8
    sampled = np.array([len(curve.ks) > 0 for curve in found.curves.null_maps])
    assert sampled.sum() == 6
    assert not (sampled & ~sure).any()
    for curve in found.curves.null_maps:
        wanted = (
            [k for k in np.unique(null_counts(curve.n_tiles)).tolist() if k]
            if len(curve.ks)
            else []
        )
        assert curve.ks.tolist() == wanted
        assert len(curve.probs) == len(wanted) * (FEW_MAPS + len(REFERENCES))
    null = found.answers.map.null
    assert (null.n_maps, null.n_slides, null.sampled) == (FEW_MAPS, 6, True)
    wins, cases = found.measured().null_wins("native"), found.measured().slides.cases
    assert not np.isnan(wins[sampled]).any()
    own = [[wins[i] for i in np.flatnonzero(sampled) if cases[i] == one] for one in set(cases)]
    assert null.d == pytest.approx(np.mean([np.mean(one) for one in own if one]))


def test_nothing_is_believed_where_slides_are_too_small(cohort: Cohort, tmp_path: Path) -> None:
    small = replace(cohort, store=cohort.store.with_cap(7))
    chosen = settings(rankings=("native", "random"), n_boot=200)
    found = run(Sources(TRANSFORMER, small), chosen, tmp_path / "out").answers.map
    assert (found.null, found.answer in BELIEVED) == (None, False)


def bytes_of(audit: StoredAudit) -> list[bytes]:
    return [path.read_bytes() for path in parts_of(audit.folder, CURVES)]


def test_a_killed_transformer_audit_and_two_workers_store_the_same_maps(files: Path) -> None:
    chosen = settings(rankings=("native", "random"), kappa=0.51)
    sources = Sources(TRANSFORMER, read(files, n_cap=None))
    with dies_before("parts/00001.part"), pytest.raises(Killed):
        run(sources, chosen, files / "out")
    resumed, whole = run(sources, chosen, files / "out"), run(sources, chosen, files / "whole")
    assert any(len(curve.ks) for curve in whole.curves.null_maps)
    by_two = run(sources, chosen, files / "two", RunOptions(workers=2))
    assert bytes_of(by_two) == bytes_of(whole)
    assert without_places(content(resumed.folder)) == without_places(content(whole.folder))


def test_written_and_read_again(audited: StoredAudit) -> None:
    again = CurveTable.read(audited.folder)
    sizes = [len(curve.probs) for curve in again.null_maps]
    assert sizes == [141 * len(curve.ks) for curve in again.null_maps]
    assert again.up_to(1).null_maps is again.null_maps  # deletion is no budget


def test_p_is_that_of_a_slow_loop() -> None:
    """Net shares of the map and of every content-free map, patient by patient."""
    cohort = AttentionCohort.drawn(16, 60)
    cohort = replace(cohort, cases=tuple(f"P{i % 9}" for i in range(16)))
    table = cohort.table({"native": cohort.native})
    null = cohort.summary({"native": cohort.native}).answers.map.null

    def fallen(probs: Any, full: Any, n: int) -> float:
        """Mean loss of the prediction's probability over the counts."""
        target = int(full.argmax())
        ks, drops = null_counts(n).tolist(), [float(full[target] - p[target]) for p in probs]
        assert len(ks) == len(drops) == 3
        steps = (
            (b - a) * (x + y) / 2 for a, b, x, y in zip(ks, ks[1:], drops, drops[1:], strict=False)
        )
        return sum(steps) / ks[-1]

    def net_share(losses: list[float], chances: list[list[float]]) -> float:
        by_case: dict[str, list[float]] = {}
        for own, others, case in zip(losses, chances, cohort.cases, strict=True):
            signs = [0 if abs(own - one) <= 0.001 else np.sign(own - one) for one in others]
            by_case.setdefault(case, []).append(float(np.mean(signs)))
        return float(np.mean([np.mean(signs) for signs in by_case.values()]))

    def deleted(curve: Any) -> float:
        at = [int(np.flatnonzero(curve.ks == k)[0]) for k in null_counts(curve.n_tiles)]
        return fallen(curve.probs[at], curve.full, curve.n_tiles)

    orders = [table.get("random", seed, "delete") for seed in table.seeds("random")]
    chances = [[deleted(order[i]) for order in orders] for i in range(16)]
    native = net_share([deleted(c) for c in table.get("native", None, "delete")], chances)
    maps = [
        net_share(
            [
                fallen(c.probs.reshape(141, len(c.ks), 2)[row], c.full, c.n_tiles)
                for c in table.null_maps
            ],
            chances,
        )
        for row in range(141)
    ]
    beaten = sum(native > d + 1e-12 for d in maps[:139])
    assert (null.beaten, null.n_maps) == (beaten, 139)
    assert null.pvalue == (1 + 139 - beaten) / 140
    assert null.d == pytest.approx(native)
    assert null.best == pytest.approx(max(maps[:139]))
    assert list(null.references.values()) == pytest.approx(maps[139:])
    assert list(null.references) == list(REFERENCES)
    assert (null.n_slides, null.n_cases, null.sampled) == (16, 9, False)
