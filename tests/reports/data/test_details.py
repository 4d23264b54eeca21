"""Curves, orders and places of single slides, unpacked again and compared with the audit."""

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.audits.audit import changed_settings
from foci.metrics import msk
from foci.reports.models import COARSE, FINE, AuditPayload, unpack
from foci.reports.payload import payload


def data_of(audit: StoredAudit) -> AuditPayload:
    return payload(audit, audit.summary, audit.manifest.settings)


@pytest.fixture(params=["audit", "multiclass", "unlabelled"])
def any_audit(request: pytest.FixtureRequest) -> StoredAudit:
    found: StoredAudit = request.getfixturevalue(request.param)
    return found


def test_orders_are_the_first_tiles_of_every_ranking(any_audit: StoredAudit) -> None:
    data = data_of(any_audit)
    for row, tiles in enumerate(any_audit.tiles()):
        detail = data.details[str(row)]
        assert set(detail.orders) == set(tiles.scores)
        for name, packed in detail.orders.items():
            kept = min(data.k_max, len(tiles))
            assert unpack(packed).tolist() == tiles.order(name)[:kept].tolist()


def test_curves_follow_the_target_of_every_view(any_audit: StoredAudit) -> None:
    data = data_of(any_audit)
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
    detail = data_of(audit).details["0"]
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
    details = data_of(audit).details
    for row, tiles in enumerate(audit.tiles()):
        placed = details[str(row)].placement
        if tiles.coords is None:
            assert placed is None
            continue
        steps = np.column_stack([unpack(placed.x), unpack(placed.y)])
        assert (np.array(placed.origin) + placed.step * steps == tiles.coords).all()
    assert details["3"].placement is None


def test_a_smaller_budget_cuts_curves_and_orders(audit: StoredAudit) -> None:
    from foci.audits.audit import recompute

    settings = changed_settings(audit, k_max=10)
    data = payload(audit, recompute(audit, k_max=10), settings)
    detail = data.details["0"]
    assert data.ks == list(range(1, 11))
    assert detail.orders["native"][1] == 10
    assert detail.views["prediction"].curves["selector-2"][1] == 10


def test_a_slide_with_counts_of_its_own_carries_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from tests.makers.synthetic import Plan, make

    counts = (1, 2, 4, 8, 16, 32, 64)
    small = make(tmp_path_factory.mktemp("grid"), Plan(n_slides=3, k_max=64, counts=counts))
    data = data_of(small)
    assert data.ks == list(counts)
    for row, slide in enumerate(small.slides):
        ks = data.details[str(row)].ks
        assert ks == (
            None
            if slide.n_tiles >= 64
            else [*(k for k in counts if k < slide.n_tiles), slide.n_tiles]
        )
