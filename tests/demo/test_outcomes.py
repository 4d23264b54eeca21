"""Demos of a risk, a number and three labels: the planted tiles are the deciding ones."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.settings import AuditSettings
from foci.bags.tables import read_table
from foci.demo.cohort import TISSUE
from foci.demo.folder import COHORT, RECORD, TRUTH, make, truth_of
from foci.demo.run import run_outcome_demo
from foci.errors import FociError
from tests.cli.invoke import Foci

SETTINGS = AuditSettings(seeds=(0,), null_maps=0, n_boot=100, rankings=("native", "minimal"))


def deciding(audit: StoredAudit, truth: Path, *, positive: bool = False) -> list[tuple[float, ...]]:
    """Size over the planted size, precision and recall of the deciding tiles of sure slides."""
    table = pq.read_table(truth).to_pandas()
    planted = {name: set(own.tile[own.witness]) for name, own in table.groupby("slide_id")}
    measured, found = audit.measured(), []
    slides, tiles = measured.slides, {one.slide_id: one for one in audit.tiles()}
    counts = measured.of("minimal").decisive[0]
    for row, (name, count) in enumerate(zip(slides.ids, counts, strict=True)):
        sure = slides.sure[row] >= 0.9 and (slides.predictions[row] == 1 or not positive)
        if not sure or np.isnan(count) or not planted[name]:
            continue
        own = tiles[name]
        first = set(own.tiles[own.order("minimal")[: int(count)]].tolist())
        hits, size = len(first & planted[name]), len(planted[name])
        found.append((count / size, hits / count, hits / size))
    return found


@pytest.mark.parametrize("output", ["cox", "regression"])
def test_the_witnesses_decide(output: str, tmp_path: Path) -> None:
    (audit,) = run_outcome_demo(tmp_path / "d", output, slides=160, settings=SETTINGS)
    found = np.array(deciding(audit, tmp_path / "d" / TRUTH))
    full = audit.summary.full_bag
    assert len(found) >= 15
    assert 0.75 <= np.median(found[:, 0]) <= 1.25
    assert found[:, 1:].mean(axis=0).min() >= 0.7
    assert (full.c_index or full.r_squared).low > 0.6


def test_each_label_is_decided_in_its_own_tissue(tmp_path: Path) -> None:
    audits = run_outcome_demo(tmp_path / "d", "multilabel", slides=160, settings=SETTINGS)
    assert [audit.manifest.settings.target_class for audit in audits] == list(TISSUE)
    for audit, (label, tissue) in zip(audits, TISSUE.items(), strict=True):
        own = np.array(deciding(audit, tmp_path / "d" / truth_of(label), positive=True))
        assert len(own) >= 5
        assert own[:, 1].mean() >= 0.9  # precision
        table = pq.read_table(tmp_path / "d" / truth_of(label)).to_pandas()
        assert set(table.tissue[table.witness]) == {tissue}
        assert audit.summary.classes == [f"no {label}", label]
        assert audit.summary.full_bag.auc > 0.9
    scores = [audit.summary.full_bag.macro_auc for audit in audits]
    assert scores[0].low > 0.9
    assert scores == scores[:1] * 3


def test_a_cohort_of_a_risk_has_times_and_events_and_no_label(tmp_path: Path) -> None:
    make(tmp_path / "d", slides=16, output="cox")
    table = read_table(tmp_path / "d" / COHORT)
    assert table.columns == ("slide_id", "case_id", "days", "died", "split", "site")
    by_case = {row["case_id"]: row["days"] for row in table.rows}
    assert all(by_case[row["case_id"]] == row["days"] for row in table.rows)
    assert '"output": "cox"' in (tmp_path / "d" / RECORD).read_text()
    with pytest.raises(FociError, match="holds a demo with other parameters"):
        make(tmp_path / "d", slides=16)
    with pytest.raises(FociError, match="classes=3: mean nothing for output cox; leave out"):
        make(tmp_path / "e", slides=16, classes=3, output="cox")


def test_the_cohort_alone(foci: Foci, tmp_path: Path) -> None:
    foci.done("demo", tmp_path / "d", "--number", "16", "--output", "cox", "--cohort-only")
    assert sorted(path.name for path in (tmp_path / "d").iterdir()) == [
        "README.md", "cohort.csv", "demo.json", "features_demo", "tile_truth.parquet",
    ]  # fmt: skip
    refused = foci.refused("demo", tmp_path / "e", "--output", "cox", "--slides")
    assert "--output cox: is planted in features alone, not in images" in refused
