"""Figures of a study: their data by hand, and the same bytes every time."""

import csv
import io
from pathlib import Path

import pytest

from foci.studies.figures import StudyFigure, figures, write
from foci.studies.folder import StudyFolder
from foci.studies.tables import StudyTables


@pytest.fixture(scope="module")
def drawn(study: Path, built: StudyTables) -> dict[str, StudyFigure]:
    return {figure.label: figure for figure in figures(StudyFolder(study), built.numbers)}


def rows(figure: StudyFigure, **wanted: object) -> list[dict[str, str]]:
    lines = csv.DictReader(io.StringIO(figure.to_csv()))
    return [line for line in lines if all(line[k] == str(v) for k, v in wanted.items())]


def test_every_figure_is_there(drawn: dict[str, StudyFigure]) -> None:
    assert [*drawn] == ["auc_vs_shi", "srp_curve", "srp_extended", "k_distribution", "deletion"]
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


def test_tiles_needed(drawn: dict[str, StudyFigure]) -> None:
    """Native counts of both seeds: 4, 6, 6, 8, 12 and three slides that never reach."""
    where = {"cohort": "nsclc", "backbone": "transmil", "ranking": "native"}
    for k, reached in ((3, 0), (4, 1), (6, 3), (8, 4), (12, 5), (256, 5)):
        (point,) = rows(drawn["k_distribution"], **where, k=k)
        assert float(point["share"]) == reached / 8


def test_deletion(drawn: dict[str, StudyFigure]) -> None:
    (point,) = rows(drawn["deletion"], cohort="brca", backbone="abmil", ranking="selector", k=128)
    assert float(point["drop"]) == pytest.approx(0.3 / 2 * 128 / 256)
    assert float(point["std"]) == 0.0


def test_the_same_bytes_every_time(study: Path, built: StudyTables) -> None:
    folder = StudyFolder(study)

    def content() -> dict[str, bytes]:
        write(folder, built.numbers)
        return {path.name: path.read_bytes() for path in (study / "figures").iterdir()}

    first = content()
    labels = ("auc_vs_shi", "srp_curve", "srp_extended", "k_distribution", "deletion")
    assert {*first} == {f"{name}.{end}" for name in labels for end in ("svg", "pdf", "csv")}
    assert content() == first
