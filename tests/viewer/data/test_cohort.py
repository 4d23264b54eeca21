"""The cohort that the viewer sends is the audit's, flag by flag."""

import json

import numpy as np
from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.viewer.slides import FIRST, Catalogue, cohort_of, compared
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
        assert shared[row] == round(len(first & second) / len(first | second), 4)


def test_images_are_marked(catalogue: Catalogue) -> None:
    assert cohort_of(catalogue).flags.image == [i in (0, 5, 6) for i in range(8)]


def test_an_audit_of_one_ranking_has_nothing_to_compare_with(tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    plan = Plan(n_slides=4, k_max=16, rankings=("native", "random"), names=())
    cohort = cohort_of(Catalogue(make(tmp_path, plan)))
    assert (cohort.native, cohort.best) == ("native", None)
    assert cohort.flags.shared == [None] * 4


def test_changed_files_are_named(audit: StoredAudit) -> None:
    changed = StoredAudit(audit.folder, changed=("curves.parquet",))
    alarms = cohort_of(Catalogue(changed)).alarms
    assert alarms[0].startswith("Changed since the audit wrote it: curves.parquet")
