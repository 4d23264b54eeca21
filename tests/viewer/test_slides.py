"""Cohort and slides as the viewer sends them are the audit's."""

import json
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.reports.models import EXACT_P, unpack
from foci.viewer.pictures import SIDE
from foci.viewer.slides import FIRST, Catalogue, cohort_of, compared, images_of, slide_of
from tests.makers.synthetic import Plan, make


def test_it_is_sent_as_it_is(client: TestClient, catalogue: Catalogue) -> None:
    sent = client.get("/api/cohort").json()
    assert sent == json.loads(cohort_of(catalogue).model_dump_json()) | {"audit": sent["audit"]}
    assert sent["audit"]["details"] == {}
    assert sent["audit"]["slides"]["id"] == list(catalogue.audit.curves.slide_ids)


def test_the_answers_are_those_of_the_audit(catalogue: Catalogue) -> None:
    told = catalogue.audit.answers
    assert [one.short for one in cohort_of(catalogue).answers] == [
        told.map.answer, told.tiles.answer, told.order.answer,
    ]  # fmt: skip


def test_undecided_slides_are_those_below_kappa(catalogue: Catalogue) -> None:
    curves, kappa = catalogue.audit.curves, catalogue.audit.manifest.settings.kappa
    slow = [float(curve.full.max()) < kappa for curve in curves.get("native")]
    assert cohort_of(catalogue).flags.undecided == slow
    assert any(slow)
    assert not all(slow)


def test_slides_that_fall_back_reach_kappa_and_lose_it(catalogue: Catalogue) -> None:
    audit = catalogue.audit
    kappa, k_max = audit.manifest.settings.kappa, audit.manifest.settings.k_max
    native, best = compared(audit)
    assert (native, best) == ("native", "selector")
    slow = []
    for row in range(len(audit.curves.slide_ids)):
        back = False
        for name in (native, best):
            for curves in audit.curves.every_seed(name):
                curve = curves[row]
                target = int(curve.full.argmax())
                inside = curve.ks <= k_max
                enough = (curve.probs.argmax(1) == target) & (curve.probs[:, target] >= kappa)
                enough = enough[inside]
                back |= bool(enough.any() and not enough[enough.argmax() :].all())
        slow.append(back)
    assert cohort_of(catalogue).flags.falls_back == slow


def test_shared_tiles_are_counted_tile_by_tile(catalogue: Catalogue) -> None:
    shared = cohort_of(catalogue).flags.shared
    for row, tiles in enumerate(catalogue.audit.tiles()):
        first = set(np.argsort(-tiles.scores["native"], kind="stable")[:FIRST].tolist())
        second = set(np.argsort(-tiles.scores["selector-0"], kind="stable")[:FIRST].tolist())
        assert shared[row] == round(len(first & second) / min(FIRST, len(tiles)), 4)


def test_images_are_marked(catalogue: Catalogue) -> None:
    assert cohort_of(catalogue).flags.image == [i in (0, 5, 6) for i in range(8)]


def test_an_audit_of_one_ranking_has_nothing_to_compare_with(tmp_path: Path) -> None:
    plan = Plan(n_slides=4, k_max=16, rankings=("native", "random"), names=())
    cohort = cohort_of(Catalogue(make(tmp_path, plan)))
    assert (cohort.native, cohort.best) == ("native", None)
    assert cohort.flags.shared == [None] * 4


def test_changed_files_are_named(audit: StoredAudit) -> None:
    changed = StoredAudit(audit.folder, changed=("curves.parquet",))
    alarms = cohort_of(Catalogue(changed)).alarms
    assert alarms[0].startswith("Changed since the audit wrote it: curves.parquet")


def test_orders_and_positions_are_complete(catalogue: Catalogue) -> None:
    for number, tiles in enumerate(catalogue.audit.tiles()):
        detail = slide_of(catalogue, number).detail
        for name in tiles.scores:
            assert unpack(detail.orders[name]).tolist() == tiles.order(name).tolist()
        if tiles.coords is None:
            assert detail.placement is None
            continue
        assert detail.placement is not None
        placed = detail.placement
        x, y = unpack(placed.x), unpack(placed.y)
        corners = np.column_stack([x, y]) * placed.step + placed.origin
        assert corners.tolist() == tiles.coords.tolist()


def test_curves_are_those_of_the_audit(catalogue: Catalogue) -> None:
    curves = catalogue.audit.curves
    slide = slide_of(catalogue, 5)
    shown = slide.detail.views["prediction"]
    for name, ranking, seed in (("native", "native", None), ("selector-1", "selector", 1)):
        insert, delete = curves.get(ranking, seed)[5], curves.get(ranking, seed, "delete")[5]
        target = int(insert.full.argmax())
        probabilities = unpack(shown.curves[name]) / (2**EXACT_P - 1)
        kept = insert.probs[insert.ks <= 64, target]
        assert probabilities == pytest.approx(kept, abs=1e-7)
        assert slide.deletions["prediction"][name].ks == delete.ks.tolist()
        assert slide.deletions["prediction"][name].p == pytest.approx(
            delete.probs[:, target], abs=1e-6
        )
    assert shown.full == pytest.approx(float(insert.full.max()), abs=1e-5)


def test_a_misclassified_slide_has_both_views(catalogue: Catalogue) -> None:
    assert list(slide_of(catalogue, 6).deletions) == ["prediction", "label"]
    assert list(slide_of(catalogue, 5).deletions) == ["prediction"]


def test_the_image_is_described(catalogue: Catalogue, client: TestClient) -> None:
    slide = slide_of(catalogue, 5)
    assert slide.message is None
    assert slide.pyramid is not None
    assert (slide.pyramid.width, slide.pyramid.height) == (52 * 32, 42 * 32)
    assert slide.pyramid.origin == (0, 0)
    assert (slide.pyramid.side, slide.pyramid.coarsest, slide.pyramid.finest) == (SIDE, 9, 11)
    assert slide.pyramid.mpp == pytest.approx(0.5)
    sent = client.get("/api/slides/5").json()
    assert sent["pyramid"] == slide.model_dump(mode="json")["pyramid"]


def test_a_slide_without_an_image_has_neither_picture_nor_complaint(catalogue: Catalogue) -> None:
    slide = slide_of(catalogue, 7)
    assert (slide.pyramid, slide.message) == (None, None)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "slide-5.tif: has vanished; bring it back"),
        (lambda path: path.write_bytes(b""), "slide-5.tif: is empty"),
        (lambda path: path.write_bytes(path.read_bytes()[:3000]), "or is cut short"),
    ],
)
def test_an_image_that_cannot_be_read_is_a_message(
    catalogue: Catalogue, images: dict[str, Path], damage: object, said: str
) -> None:
    assert callable(damage)
    damage(list(images.values())[1])
    slide = slide_of(catalogue, 5)
    assert slide.pyramid is None
    assert slide.message is not None
    assert said in slide.message
    assert slide_of(catalogue, 6).pyramid is not None


def test_images_are_found_by_name_in_a_folder(catalogue: Catalogue, tmp_path: Path) -> None:
    name = catalogue.audit.curves.slide_ids[5]
    folder = tmp_path / "slides"
    folder.mkdir()
    (folder / f"{name}.tif").write_bytes(b"x")
    (folder / "stranger.tif").write_bytes(b"x")
    assert images_of(catalogue.audit, folder) == {name: folder / f"{name}.tif"}
    assert images_of(catalogue.audit, None) == {}
