"""The first tiles of several rankings on the same slides, by their coordinates."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import RankedTiles
from foci.audits.folder import RANKINGS
from foci.audits.stored import scores_to_arrow
from foci.errors import FociError
from foci.studies.figures import explainability
from foci.studies.folder import StudyFolder
from foci.studies.read import Place, audit_folders
from tests.makers.finished_study import finished

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
    pq.write_table(pa.concat_tables(slides), audit / RANKINGS)
    assert json.loads((audit / "manifest.json").read_text())["status"] == "complete"
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
    assert explainability(finished(tmp_path, overlays=OVERLAYS)) is None
