"""Figures of a study: their data by hand, and the same bytes every time."""

import csv
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import RankedTiles, StoredAudit
from foci.audits.folder import RANKINGS, part_name, scores_to_arrow
from foci.audits.records import Carried, CarriedLine
from foci.errors import FociError
from foci.studies.figures import StudyFigure, carried_curves, explainability, figures
from foci.studies.plan import StudyFolder
from foci.studies.read import Place, audit_folders
from foci.studies.tables import StudyTables
from tests.makers.finished_study import finished

LABELS = ["carried", "auc_vs_shi", "srp_curve", "srp_extended", "deletion"]


@pytest.fixture(scope="module")
def drawn(study: Path, built: StudyTables) -> dict[str, StudyFigure]:
    return {figure.label: figure for figure in figures(StudyFolder(study), built.numbers)}


def rows(figure: StudyFigure, **wanted: object) -> list[dict[str, str]]:
    lines = csv.DictReader(io.StringIO(figure.to_csv()))
    return [line for line in lines if all(line[k] == str(v) for k, v in wanted.items())]


def test_every_figure_is_there(drawn: dict[str, StudyFigure]) -> None:
    assert [*drawn] == LABELS
    assert all(figure.caption.endswith(".") for figure in drawn.values())


def test_auc_against_shi(drawn: dict[str, StudyFigure]) -> None:
    (point,) = rows(drawn["auc_vs_shi"], backbone="transmil", cohort="nsclc")
    assert float(point["auc"]) == 0.75
    assert float(point["shi"]) == pytest.approx(5 / 7)
    assert point["seeds"] == "2"


def test_reveal_curves(drawn: dict[str, StudyFigure]) -> None:
    """After five tiles the selector has reached on three slides in both seeds; the wrong slide has
    0.05 from its first tile on."""
    where = {"cohort": "nsclc", "backbone": "transmil", "ranking": "selector"}
    (point,) = rows(drawn["srp_extended"], **where, k=5)
    assert float(point["mean"]) == pytest.approx((3 * 0.95 + 0.05) / 4)
    assert float(point["std"]) == pytest.approx(0.0, abs=1e-12)
    (first,) = rows(drawn["srp_extended"], **where, k=1)
    seeds = ((3 * 0.6 + 0.05) / 4, (3 * 0.95 + 0.05) / 4)
    assert float(first["mean"]) == pytest.approx(sum(seeds) / 2)
    assert float(first["std"]) == pytest.approx((seeds[1] - seeds[0]) / 2)
    assert rows(drawn["srp_curve"], **where, k=5)[0]["mean"] == point["mean"]
    assert rows(drawn["srp_curve"], cohort="nsclc", backbone="abmil", ranking="selector") == []


def test_carried_slides(study: Path, built: StudyTables, monkeypatch: pytest.MonkeyPatch) -> None:
    """Means over seeds, by hand; where the map itself is in use it is the best order, too."""

    def chart(best: str | None, shares: dict[str, list[float]]) -> Carried:
        lines = {name: CarriedLine(share=own, low=own, high=own) for name, own in shares.items()}
        return Carried(
            ks=[1, 3, 8], n_slides=10, n_cases=10, relative=None, map="native", best=best,
            typical=3, lines=lines, minimum=None,
        )  # fmt: skip

    known = {
        "42": chart(
            "evidence", {"native": [0, 0.2, 1], "evidence": [0.5, 1, 1], "random": [0] * 3}
        ),
        "43": chart(None, {"native": [0.1, 0.4, 0.4], "random": [0, 0.1, 0.2]}),
    }
    place = Place("nsclc", "transmil")
    monkeypatch.setattr(
        "foci.studies.figures.audit_folders", lambda folder: {place: {s: Path(s) for s in known}}
    )
    monkeypatch.setattr(
        StoredAudit,
        "load",
        lambda path: SimpleNamespace(summary=SimpleNamespace(carried=known[path.name])),
    )
    figure = carried_curves(StudyFolder(study), built.numbers)
    where = {"cohort": "nsclc", "backbone": "transmil"}
    for line, k, mean, std in (
        ("map", 2, 0.05, 0.05),
        ("map", 3, 0.3, 0.1),
        ("best order", 5, 0.7, 0.3),
        ("random", 8, 0.1, 0.1),
    ):
        (point,) = rows(figure, **where, ranking=line, k=k)
        assert (float(point["mean"]), float(point["std"])) == pytest.approx((mean, std))


def test_deletion(drawn: dict[str, StudyFigure]) -> None:
    (point,) = rows(drawn["deletion"], cohort="brca", backbone="abmil", ranking="selector", k=128)
    assert float(point["drop"]) == pytest.approx(0.3 / 2 * 128 / 256)
    assert float(point["std"]) == 0.0


OVERLAYS = {
    "cohort": "nsclc", "slides": ["s1", "s0"], "top": 4,
    "rankings": ["transmil/native", "transmil/selector"],
}  # fmt: skip


def placed(folder: Path, overlays: dict[str, object]) -> StudyFolder:
    """A study whose tiles stand in a row, the last the best for native, the first for selector."""
    study = finished(folder, overlays=overlays)
    audit = audit_folders(study)[Place("nsclc", "transmil")]["42"]
    corners = np.stack([np.arange(500) * 256, np.zeros(500, dtype=np.int64)], axis=1)
    scores = {"native": np.arange(500.0), "selector-0": -np.arange(500.0)}
    slides = [
        scores_to_arrow(RankedTiles(f"s{i}", np.arange(500), corners, scores)) for i in range(4)
    ]
    pq.write_table(pa.concat_tables(slides), audit / part_name(RANKINGS, 0))
    return study


def test_first_tiles_of_every_ranking(tmp_path: Path) -> None:
    figure = explainability(placed(tmp_path, OVERLAYS))
    assert figure is not None
    first = [row for row in figure.rows if row[0] == "s0" and row[1] == "transmil/native"]
    assert first == [
        ("s0", "transmil/native", rank, (500 - rank) * 256, 0) for rank in (1, 2, 3, 4)
    ]
    chosen = [row for row in figure.rows if row[1] == "transmil/selector"]
    assert [row[3] for row in chosen if row[0] == "s1"] == [0, 256, 512, 768]
    drawn = figure.draw()
    assert [axes.get_title().split("\n")[0] for axes in drawn.axes] == ["s1", "s1", "s0", "s0"]
    assert "MSK 8" in drawn.axes[2].get_title()


def test_a_ranking_that_was_not_audited(tmp_path: Path) -> None:
    study = placed(tmp_path, {**OVERLAYS, "rankings": ["transmil/evidence"]})
    with pytest.raises(FociError, match="transmil/evidence: is not among the audited rankings"):
        explainability(study)


def test_no_coordinates_no_figure(tmp_path: Path) -> None:
    figure = explainability(finished(tmp_path, overlays=OVERLAYS))
    assert figure is not None
    assert not figure.rows
