"""What the page carries, and how much it weighs."""

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.metrics import aukc, msk, restricted
from foci.reports import write_report
from foci.reports.models import AuditPayload
from foci.reports.notebook import framed
from foci.reports.payload import payload, to_json
from tests.makers.synthetic import Plan, make
from tests.reports.test_report import data_of


@pytest.fixture(scope="module")
def data(audit: StoredAudit) -> AuditPayload:
    return payload(audit, audit.summary, audit.manifest.settings)


def test_it_is_plain_json(data: AuditPayload) -> None:
    assert AuditPayload.model_validate_json(to_json(data)) == data


def test_the_table_holds_the_means_over_seeds(audit: StoredAudit, data: AuditPayload) -> None:
    measures = data.slides.measures["prediction"]
    for ranking in audit.curves.rankings:
        every = audit.curves.every_seed(ranking)
        for row in range(len(audit.slides)):
            curves = [curves[row] for curves in every]
            target = int(curves[0].full.argmax())
            counts = [msk(c.probs, c.ks, target) for c in curves]
            areas = [aukc(c.probs, c.ks, c.n_tiles, target) for c in curves]
            found = measures[ranking]
            assert found.k[row] == pytest.approx(restricted(counts).mean(), abs=1e-4)
            assert found.reach[row] == pytest.approx(
                np.mean([c is not None for c in counts]), abs=1e-4
            )
            assert found.aukc[row] == pytest.approx(np.mean(areas), abs=1e-4)


def test_slides_keep_their_facts(audit: StoredAudit, data: AuditPayload) -> None:
    slides = data.slides
    assert slides.id == [slide.slide_id for slide in audit.slides]
    assert [data.classes[label] for label in slides.label] == [s.label for s in audit.slides]
    assert slides.n == [slide.n_tiles for slide in audit.slides]


def test_figures_get_the_numbers_of_the_summary(audit: StoredAudit, data: AuditPayload) -> None:
    for view, by_ranking in audit.summary.views.items():
        for ranking, numbers in by_ranking.items():
            found = data.numbers[view][ranking]
            assert found.restricted.estimate == pytest.approx(numbers.restricted.estimate, abs=1e-4)
            assert found.mean_curve.mean == pytest.approx(numbers.mean_curve.mean, abs=1e-4)


def test_rankings_name_their_columns(data: AuditPayload, unlabelled: StoredAudit) -> None:
    assert [ranking.model_dump() for ranking in data.rankings] == [
        {"name": "native", "columns": ["native"]},
        {"name": "selector", "columns": ["selector-0", "selector-1", "selector-2"]},
        {"name": "random", "columns": []},
    ]
    assert data.headline == "selector"
    other = payload(unlabelled, unlabelled.summary, unlabelled.manifest.settings)
    assert other.headline == "native"
    assert set(other.slides.measures) == {"prediction"}


def test_too_little_room_keeps_the_most_interesting(audit: StoredAudit) -> None:
    full = payload(audit, audit.summary, audit.manifest.settings)
    small = payload(audit, audit.summary, audit.manifest.settings, limit=40_000)
    kept = {int(row) for row in small.details}
    assert 0 < len(kept) < len(audit.slides)
    assert sum(len(to_json(detail)) for detail in small.details.values()) <= 40_000
    assert small.slides == full.slides, "the table is whole"
    needed = np.array(full.slides.measures["prediction"]["selector"].k)
    assert int(needed.argmax()) in kept
    assert any(needed[row] == needed.min() for row in kept)


def test_two_hundred_slides_of_1024_tiles_are_below_two_megabytes(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("large")
    large = make(folder, Plan(n_slides=200, n_tiles=1024, random_orders=2))
    page = write_report(large)
    assert page.stat().st_size < 2_000_000
    assert len(data_of(page)["details"]) == 200, "every slide can be opened"
    assert framed(page.read_text(encoding="utf-8"), "report").startswith("<iframe"), "in Jupyter"
