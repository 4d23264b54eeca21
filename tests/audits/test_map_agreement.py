"""Agreement of the maps of two trainings, against sets and scipy on every slide."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from foci.audits import StoredAudit
from foci.audits.compare import agreement_csv, compare, map_agreement
from foci.audits.folder import MANIFEST
from tests.makers.synthetic import Plan, make


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[StoredAudit]:
    """The second audit ranks the tiles of the first by its selector."""
    folder = tmp_path_factory.mktemp("pair")
    return [make(folder / name, Plan(n_slides=6, k_max=32, names=())) for name in ("a", "b")]


def test_one_map_agrees_with_itself(pair: list[StoredAudit]) -> None:
    (found,) = map_agreement(pair, ["a", "b"])
    assert (found.shared8.estimate, found.shared32.estimate) == (1, 1)
    assert found.spearman.estimate == pytest.approx(1)


def test_agreement_is_that_of_sets_and_ranks(
    pair: list[StoredAudit], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    columns = {id(first): "native", id(second): "selector-0"}
    monkeypatch.setattr("foci.audits.compare._map_column", lambda audit: columns[id(audit)])
    (found,) = map_agreement(pair, ["a", "b"])
    eights, thirty, correlations, chances = [], [], [], []
    for tiles in first.tiles():
        one, two = tiles.scores["native"], tiles.scores["selector-0"]
        n = len(one)
        orders = [sorted(range(n), key=lambda i: (-own[i], i)) for own in (one, two)]
        shared = [
            len(set(orders[0][:k]) & set(orders[1][:k])) / k if k <= n else None for k in (8, 32)
        ]
        correlation = spearmanr(one, two).statistic if n > 1 else np.nan
        assert found.slides[tiles.slide_id][:2] == tuple(shared)
        if shared[0] is not None:
            eights.append(shared[0])
            chances.append(8 / n)
        thirty += [] if shared[1] is None else [shared[1]]
        correlations += [] if np.isnan(correlation) else [correlation]
    assert found.shared8.estimate == pytest.approx(np.mean(eights))
    assert found.chance8 == pytest.approx(np.mean(chances))
    assert found.shared32.estimate == pytest.approx(np.mean(thirty))
    assert found.spearman.estimate == pytest.approx(np.mean(correlations))
    for interval in (found.shared8, found.shared32, found.spearman):
        assert interval.low is not None
        assert interval.low <= interval.estimate <= interval.high
    rows = list(csv.DictReader(agreement_csv([found]).splitlines()))
    assert [row["slide_id"] for row in rows] == list(found.slides)
    assert [float(r["shared8"]) for r in rows if r["shared8"]] == pytest.approx(eights)


def test_random_orders_share_what_chance_says() -> None:
    from foci.audits.compare import _shared

    rng = np.random.default_rng(0)
    drawn = np.array([_shared(rng.random((2, 120))) for _ in range(2000)])
    assert drawn[:, :2].mean(axis=0) == pytest.approx([8 / 120, 32 / 120], abs=0.006)
    assert drawn[:, 2].mean() == pytest.approx(0, abs=0.01)
    assert drawn[0, 3:].tolist() == [8 / 120, 32 / 120]


def test_other_architectures_have_none(pair: list[StoredAudit], tmp_path: Path) -> None:
    shutil.copytree(pair[1].folder, tmp_path / "c")
    manifest = json.loads((tmp_path / "c" / MANIFEST).read_text())
    manifest["backbone"]["architecture"] = "transmil"
    (tmp_path / "c" / MANIFEST).write_text(json.dumps(manifest))
    stranger = StoredAudit.load(tmp_path / "c")
    assert map_agreement([pair[0], stranger], ["a", "b"]) == []
    assert compare(pair).agreement != ()
