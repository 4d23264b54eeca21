"""What the page of an audit carries, which slides in full, and how much it weighs."""

import base64
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from foci.audits import AuditedSlide, RankedTiles, StoredAudit
from foci.audits.audit import changed_settings, recompute
from foci.metrics import aukc, msk, restricted
from foci.reports import write_report
from foci.reports.models import COARSE, FINE, AuditPayload, unpack
from foci.reports.payload import (
    COARSEST,
    PICTURE_BYTES,
    by_interest,
    map_side,
    payload,
    slide_map,
    slide_measures,
    to_json,
    within_bytes,
)
from foci.reports.report import framed
from foci.slides.find import _INDEX, INDEX, THUMBNAILS, Thumbnail
from foci.slides.image import Box
from tests.makers.synthetic import Plan, make
from tests.reports.test_report import data_of


@pytest.mark.parametrize("n", [1, 2, 3, 7, 50, 333])
def test_every_slide_is_named_once(n: int) -> None:
    assert sorted(by_interest(np.random.default_rng(n).permutation(n))) == list(range(n))


def test_ends_and_middle_come_early() -> None:
    order = by_interest(range(100))
    assert order[:3] == [0, 99, 50]
    first = sorted(order[:24])
    assert set(range(8)) < set(first)
    assert set(range(92, 100)) < set(first)
    assert np.diff(first).max() <= 20, "the middle is not left empty"


def test_slides_are_taken_until_the_limit() -> None:
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 60) == [1, 3]
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 70) == [0, 1, 3]
    assert within_bytes([3, 1, 0, 2], [10, 20, 30, 40], 1000) == [0, 1, 2, 3]


def test_one_slide_at_least() -> None:
    assert within_bytes([1, 0], {0: 10, 1: 99}, 5) == [1]


def test_hardest_first_is_by_tiles_and_then_by_area(audit: StoredAudit) -> None:
    found = audit.measured()
    keys = []
    for row in range(len(audit.slides)):
        curves = [seeds[row] for seeds in audit.curves.every_seed("selector")]
        target = int(curves[0].full.argmax())
        needed = restricted([msk(c.probs, c.ks, target) for c in curves]).mean()
        area = np.mean([aukc(c.probs, c.ks, c.n_tiles, target) for c in curves])
        keys.append((-needed, area))
    assert found.hardest_first.tolist() == sorted(range(len(keys)), key=lambda row: keys[row])


def test_the_headline_is_the_selector_or_what_there_is(
    audit: StoredAudit, unlabelled: StoredAudit
) -> None:
    assert audit.measured().headline == "selector"
    assert unlabelled.measured().headline == "native"
    assert set(unlabelled.measured().tables) == {"prediction"}


def payload_of(audit: StoredAudit) -> AuditPayload:
    return payload(audit, audit.summary, audit.manifest.settings)


@pytest.fixture(params=["audit", "multiclass", "unlabelled"])
def any_audit(request: pytest.FixtureRequest) -> StoredAudit:
    found: StoredAudit = request.getfixturevalue(request.param)
    return found


def test_orders_are_the_first_tiles_of_every_ranking(any_audit: StoredAudit) -> None:
    data = payload_of(any_audit)
    for row, tiles in enumerate(any_audit.tiles()):
        detail = data.details[str(row)]
        assert set(detail.orders) == set(tiles.scores)
        for name, packed in detail.orders.items():
            kept = min(data.k_max, len(tiles))
            assert unpack(packed).tolist() == tiles.order(name)[:kept].tolist()


def test_curves_follow_the_target_of_every_view(any_audit: StoredAudit) -> None:
    data = payload_of(any_audit)
    classes = any_audit.manifest.classes
    seen = set()
    for row, slide in enumerate(any_audit.slides):
        views = data.details[str(row)].views
        for ranking in data.rankings:
            for name, curves in zip(
                ranking.columns, any_audit.curves.every_seed(ranking.name), strict=False
            ):
                curve = curves[row]
                predicted = int(curve.full.argmax())
                targets = {"prediction": predicted}
                if slide.label is not None and classes.index(slide.label) != predicted:
                    targets["label"] = classes.index(slide.label)
                assert set(views) == set(targets)
                for view, target in targets.items():
                    found = unpack(views[view].curves[name]) / (2**FINE - 1)
                    assert np.abs(found - curve.probs[:, target]).max() <= 0.5 / (2**FINE - 1)
                    assert views[view].msk[name] == msk(curve.probs, curve.ks, target)
                    seen.add(view)
    assert seen >= ({"prediction", "label"} if any_audit.slides[0].label else {"prediction"})


def test_the_band_spans_the_random_orders(audit: StoredAudit) -> None:
    detail = payload_of(audit).details["0"]
    orders = [curves[0] for curves in audit.curves.every_seed("random")]
    target = int(orders[0].full.argmax())
    probs = np.stack([curve.probs[:, target] for curve in orders])
    band = detail.views["prediction"].random
    low, mean, high = (unpack(v) / (2**COARSE - 1) for _, v in band)
    step = 0.5 / (2**COARSE - 1)
    assert np.abs(low - probs.min(axis=0)).max() <= step + 1e-12
    assert np.abs(mean - probs.mean(axis=0)).max() <= step + 1e-12
    assert np.abs(high - probs.max(axis=0)).max() <= step + 1e-12


def test_places_are_exact_and_may_be_missing(audit: StoredAudit) -> None:
    details = payload_of(audit).details
    for row, tiles in enumerate(audit.tiles()):
        placed = details[str(row)].placement
        if tiles.coords is None:
            assert placed is None
            continue
        steps = np.column_stack([unpack(placed.x), unpack(placed.y)])
        assert (np.array(placed.origin) + placed.step * steps == tiles.coords).all()
    assert details["3"].placement is None


def test_a_smaller_budget_cuts_curves_and_orders(audit: StoredAudit) -> None:
    settings = changed_settings(audit, k_max=10)
    data = payload(audit, recompute(audit, k_max=10), settings)
    detail = data.details["0"]
    assert data.ks == list(range(1, 11))
    assert detail.orders["native"][1] == 10
    assert detail.views["prediction"].curves["selector-2"][1] == 10


def test_a_slide_with_counts_of_its_own_carries_them(tmp_path: Path) -> None:
    counts = (1, 2, 4, 8, 16, 32, 64)
    small = make(tmp_path, Plan(n_slides=3, k_max=64, counts=counts))
    data = payload_of(small)
    assert data.ks == list(counts)
    for row, slide in enumerate(small.slides):
        ks = data.details[str(row)].ks
        assert ks == (
            None
            if slide.n_tiles >= 64
            else [*(k for k in counts if k < slide.n_tiles), slide.n_tiles]
        )


@pytest.fixture(scope="module")
def data(audit: StoredAudit) -> AuditPayload:
    return payload_of(audit)


def test_it_is_plain_json(data: AuditPayload) -> None:
    assert AuditPayload.model_validate_json(to_json(data)) == data


def test_the_table_holds_the_means_over_seeds(audit: StoredAudit) -> None:
    measures = slide_measures(audit.measured())
    for ranking in audit.curves.rankings:
        every = audit.curves.every_seed(ranking)
        for row in range(len(audit.slides)):
            curves = [curves[row] for curves in every]
            target = int(curves[0].full.argmax())
            counts = [msk(c.probs, c.ks, target) for c in curves]
            found = measures[ranking]
            assert found.k[row] == pytest.approx(restricted(counts).mean(), abs=1e-4)
            assert found.reach[row] == pytest.approx(
                np.mean([c is not None for c in counts]), abs=1e-4
            )


def test_slides_keep_their_facts(audit: StoredAudit, data: AuditPayload) -> None:
    slides = data.slides
    assert slides.id == [slide.slide_id for slide in audit.slides]
    assert [data.classes[label] for label in slides.label] == [s.label for s in audit.slides]
    assert slides.n == [slide.n_tiles for slide in audit.slides]


def test_figures_get_the_numbers_of_the_summary(audit: StoredAudit, data: AuditPayload) -> None:
    for view, by_ranking in audit.summary.views.items():
        for ranking, numbers in by_ranking.items():
            found = data.numbers[view][ranking]
            assert found.median_k == numbers.median_k
            assert found.drops.mean == pytest.approx(numbers.drops.mean, abs=1e-4)
            assert found.mean_curve.mean == pytest.approx(numbers.mean_curve.mean, abs=1e-4)


def test_rankings_name_their_columns(data: AuditPayload, unlabelled: StoredAudit) -> None:
    assert [ranking.model_dump() for ranking in data.rankings] == [
        {"name": "native", "columns": ["native"]},
        {"name": "selector", "columns": ["selector-0", "selector-1", "selector-2"]},
        {"name": "random", "columns": []},
    ]
    assert data.headline == "selector"
    assert payload_of(unlabelled).headline == "native"


def test_too_little_room_keeps_the_most_interesting(audit: StoredAudit, data: AuditPayload) -> None:
    small = payload(audit, audit.summary, audit.manifest.settings, limit=40_000)
    kept = {int(row) for row in small.details}
    assert 0 < len(kept) < len(audit.slides)
    assert sum(len(to_json(detail)) for detail in small.details.values()) <= 40_000
    assert small.slides == data.slides, "the table is whole"
    assert data.gallery is not None
    assert set(data.gallery.first) <= kept
    hardest = audit.measured().hardest_first
    assert {int(hardest[0]), int(hardest[-1])} & kept


BOX = Box(1024, 512, 48 * 256, 40 * 256)


def picture(audit: StoredAudit, quality: int) -> None:
    """Give every slide a noisy thumbnail, as large as thumbnails get."""
    folder = audit.folder / THUMBNAILS
    folder.mkdir()
    rng = np.random.default_rng(0)
    index = {}
    for number, slide in enumerate(audit.slides):
        noise = Image.fromarray(rng.integers(0, 256, size=(427, 512, 3), dtype=np.uint8))
        noise.save(folder / f"{number}.jpg", quality=quality)
        index[slide.slide_id] = Thumbnail(
            file=f"{number}.jpg", image=Path("x.svs"), how="name", box=BOX, mpp=0.5
        )
    (folder / INDEX).write_bytes(_INDEX.dump_json(index))


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    audit = make(tmp_path_factory.mktemp("pictured"), Plan(n_slides=8, k_max=40))
    picture(audit, 50)
    return audit


def test_a_small_audit_shows_every_slide_that_has_positions(pictured: StoredAudit) -> None:
    data = payload(pictured, pictured.summary, pictured.manifest.settings)
    assert data.gallery is not None
    maps = [one for one in data.gallery.maps if one is not None]
    assert len(maps) == 8
    assert {one.tissue is not None for one in maps} == {True, False}
    assert all((one.tissue is None) == (one.box is None) for one in maps)
    first = maps[0].tissue
    assert first is not None
    assert first.box == BOX
    stored = (pictured.folder / THUMBNAILS / "0.jpg").read_bytes()
    assert base64.b64decode(first.jpeg) == stored


def test_without_room_the_most_interesting_slides_keep_theirs(pictured: StoredAudit) -> None:
    own = (pictured, pictured.summary, pictured.manifest.settings)
    full, size = payload(*own), 4 * len((pictured.folder / THUMBNAILS / "0.jpg").read_bytes()) // 3
    data = payload(*own, picture_limit=4 * size)
    assert len(to_json(data)) < len(to_json(full)) - 2 * size
    assert data.gallery is not None
    shown = [row for row, one in enumerate(data.gallery.maps) if one and one.tissue]
    assert 0 < len(shown) <= 4
    assert data.details.keys() == full.details.keys(), "curves keep their space"
    placed = [row for row in data.gallery.first if data.gallery.maps[row].box]  # type: ignore[union-attr]
    assert set(shown) <= set(placed), "the first screen comes first"


def test_two_hundred_slides_of_1024_tiles_are_small(tmp_path: Path) -> None:
    """Below 2.3 MB with their maps, so that Jupyter shows them, and below 6 MB with pictures."""
    large = make(tmp_path, Plan(n_slides=200, n_tiles=1024, random_orders=2))
    page = write_report(large)
    assert page.stat().st_size < 2_300_000
    assert len(data_of(page)["details"]) == 200, "every slide can be opened"
    assert framed(page.read_text(encoding="utf-8"), "report").startswith("<iframe"), "in Jupyter"
    picture(large, 40)
    page = write_report(large)
    assert page.stat().st_size < 6_000_000
    data = data_of(page)
    pictures = [len(m["tissue"]["jpeg"]) for m in data["gallery"]["maps"] if m["tissue"]]
    assert sum(pictures) > PICTURE_BYTES * 0.9, "noise fills what there is"
    assert all(data["gallery"]["maps"]), "every slide has its map"
    assert len(data["details"]) == 200, "and every slide can be opened"


def test_ten_thousand_slides_are_below_ten_megabytes(tmp_path: Path) -> None:
    """The maps of a large cohort are coarse: one slide is copied, with tiles of every shade."""
    rng = np.random.default_rng(0)
    places = np.stack(np.meshgrid(np.arange(64), np.arange(64)), -1).reshape(-1, 2) * 256
    one = RankedTiles("s", np.arange(4096), places, {"native": rng.random(4096)})
    slide = AuditedSlide("s", "P", patch_size=256, n_tiles=4096)
    drawn = slide_map(one, "native", slide, 256, map_side(10_000))
    assert drawn.width == COARSEST
    assert 10_000 * len(to_json(drawn)) < 6_000_000


def test_of_a_large_cohort_some_slides_have_their_map(
    audit: StoredAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foci.reports.payload.MOST_MAPS", 3)
    gallery = payload_of(audit).gallery
    assert gallery is not None
    shown = {row for row, drawn in enumerate(gallery.maps) if drawn}
    ends = gallery.order[0], gallery.order[-1]
    assert {*gallery.first, *ends} <= shown
    assert len(shown - {*gallery.first}) <= 3 < len(gallery.maps)
    assert "3 have their map" not in write_report(audit).read_text(encoding="utf-8")


def test_a_map_has_a_pixel_per_tile_and_marks_those_that_decide(carried: StoredAudit) -> None:
    data = payload_of(carried)
    assert data.gallery is not None
    for row, tiles in enumerate(carried.tiles()):
        drawn = data.gallery.maps[row]
        assert drawn is not None
        assert (drawn.width, drawn.box) == (20, (0, 0, 20 * 256, 15 * 256))
        order = tiles.order("native")
        marked, levels = np.divmod(unpack(drawn.levels), 16)
        assert levels.shape == (300,)
        by_rank = levels[order]
        assert (by_rank[:-1] >= by_rank[1:]).all()
        assert (by_rank[0], by_rank[-1]) == (15, 1)
        count = data.gallery.counts["native"][row] or 0
        assert sorted(order[:count]) == np.flatnonzero(marked).tolist()


def test_tiles_without_positions_lie_in_rows(audit: StoredAudit) -> None:
    data = payload_of(audit)
    assert data.gallery is not None
    drawn = data.gallery.maps[3]
    assert drawn is not None
    assert drawn.box is None
    assert (unpack(drawn.levels) > 0).sum() == data.slides.n[3]


def test_removed_curves_are_those_of_the_audit(carried: StoredAudit) -> None:
    data = payload_of(carried)
    for row in range(12):
        for name, found in data.details[str(row)].removed.items():
            curve = carried.curves.deletions(name, None)[row]
            kept = curve.probs[:, 1]
            assert found.ks is None
            assert unpack(found.p) / (2**COARSE - 1) == pytest.approx(kept, abs=2e-3)
            flips = [int(k) for k, p in zip(curve.ks, kept, strict=True) if p < 0.5]
            assert found.flip == (flips[0] if flips else None)
        assert set(data.details[str(row)].removed) == {"native", "evidence"}
