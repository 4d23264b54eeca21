"""Rankings against a truth from outside: numbers by hand, sources of every kind, bad input."""

import csv
import itertools
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from foci.audits import AuditedSlide, RankedTiles, StoredAudit
from foci.audits.truth import MarkedTiles, attach, localise, read_truth, truth_rows
from foci.errors import CohortError, FociError
from foci.metrics import average_precision, froc
from foci.metrics.ranking import chance_of_average_precision, chance_of_froc
from foci.metrics.stats import spearman_interval
from foci.slides.image import Box
from tests.makers.folders import bare_manifest

GRID = np.array([[0, 0], [100, 0], [300, 0], [400, 0], [0, 300], [100, 300]])
SCORES = np.array([9.0, 1.0, 5.0, 3.0, 2.0, 0.5])


class Ranked(StoredAudit):
    """An audit whose tiles are given: slides a and b with positions, c without an annotation."""

    slides = tuple(  # type: ignore[assignment]
        AuditedSlide(name, name.upper(), n_tiles=6, patch_size=100) for name in "abc"
    )
    manifest = bare_manifest("x")  # type: ignore[assignment]

    def tiles(self, slide_ids: Any = None) -> Iterator[RankedTiles]:
        for name in "abc":
            yield RankedTiles(name, np.arange(6), GRID, {"native": SCORES, "selector-0": -SCORES})

    def measured(self, settings: Any = None) -> Any:
        decisive = np.array([[2.0, np.nan, 1.0], [4.0, 3.0, 1.0]])
        orders = [("native", None), ("selector", 0)]
        return SimpleNamespace(
            tables={"prediction": SimpleNamespace(orders=orders, decisive=decisive)}
        )


MARKS = {"a": np.array([1.0, 0, 0, 1, 0, 1]), "b": np.zeros(6)}


def test_by_hand(tmp_path: Path) -> None:
    found = localise(Ranked(tmp_path), MarkedTiles("by hand", MARKS))
    assert (found.n_slides, found.n_cases, found.n_tiles) == (1, 1, 6)
    assert (found.n_unmarked, found.n_without, found.n_unknown) == (1, 1, 0)
    native, other = found.rankings["native"], found.rankings["selector-0"]
    # native's order is 0, 2, 3, 4, 1, 5: true, no, true, no, no, true
    assert native.average_precision.estimate == pytest.approx((1 + 2 / 3 + 3 / 6) / 3)
    assert native.precision8.estimate == native.precision8.chance == 0.5  # all six tiles
    assert found.precision8 == {"native": 0.5, "selector-0": 0.5}
    assert found.chance == 0.5
    # true tiles 0, 3, 5 touch nobody: three regions. Two of them come before the second and third
    # tile outside, and there is no fourth
    assert [one.estimate for one in native.froc] == pytest.approx([2 / 3, 2 / 3, 1, 1])
    # its first two tiles decide: one of them is true
    assert native.deciding.estimate == 0.5
    assert other.deciding.estimate == 0.5
    assert native.average_precision.low is None  # one patient: no interval


def by_all_orders(function: Any, truth: list[int]) -> float:
    scores = itertools.permutations(range(len(truth)))
    return float(np.mean([function(np.array(one, float), truth) for one in scores]))


@pytest.mark.parametrize("truth", [[1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0], [1, 1], [1]])
def test_chance_of_average_precision_is_the_mean_of_all_orders(truth: list[int]) -> None:
    want = by_all_orders(average_precision, truth)
    assert chance_of_average_precision(len(truth), sum(truth)) == pytest.approx(want)


@pytest.mark.parametrize("lesions", [[0, 0, 1, 2, 2], [1, 1, 0, 0, 0], [1, 2, 0], [1, 1]])
@pytest.mark.parametrize("allowed", [0, 1, 2])
def test_chance_of_froc_is_the_mean_of_all_orders(lesions: list[int], allowed: int) -> None:
    want = by_all_orders(lambda scores, truth: froc(scores, truth, allowed), lesions)
    outside, *sizes = np.bincount(lesions).tolist()
    assert chance_of_froc(sizes, outside, allowed) == pytest.approx(want)


def test_touching_tiles_are_one_region(tmp_path: Path) -> None:
    marks = {"a": np.array([1.0, 1, 1, 1, 0, 0])}  # 0 and 1 touch, 2 and 3 touch
    found = localise(Ranked(tmp_path), MarkedTiles("", marks))
    assert found.rankings["selector-0"].froc[0].estimate == 0.5  # 5, 1 | 4: only the left one
    assert found.rankings["native"].froc[0].estimate == 1


def test_rank_correlation_against_scipy() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 9, 30).astype(float), rng.normal(size=30)
    cases = rng.permutation(np.arange(30) % 12)
    got = spearman_interval(first, second, cases, n_boot=50, seed=3)
    assert got.estimate == pytest.approx(spearmanr(first, second).statistic)
    draws = []
    weights = np.random.default_rng(3).multinomial(12, np.full(12, 1 / 12), size=50)
    for drawn in weights:
        rows = np.repeat(np.arange(30), drawn[np.unique(cases, return_inverse=True)[1]])
        draws.append(spearmanr(first[rows], second[rows]).statistic)
    assert (got.low, got.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
    assert math.isnan(spearman_interval(np.ones(4), np.arange(4.0), list("abcd")).estimate)


def test_intervals_are_over_patients_and_bag_size_is_told_apart(audited: StoredAudit) -> None:
    rng = np.random.default_rng(1)
    marks = {s.slide_id: (rng.random(s.n_total) < 0.3).astype(float) for s in audited.slides}
    found = localise(audited, MarkedTiles("drawn", marks))
    assert found.n_slides == sum(bool(one.any()) for one in marks.values())
    for own in found.rankings.values():
        one = own.average_precision
        assert one.low < one.estimate < one.high  # type: ignore[operator]
        assert own.froc == [] or len(own.froc) == 4
    rows = truth_rows(found)
    assert {row["measure"] for row in rows} >= {"average_precision", "precision8", "precision32"}


def test_it_is_stored_with_the_audit(audited: StoredAudit, tmp_path: Path) -> None:
    folder = shutil.copytree(audited.folder, tmp_path / "audit")
    marks = {s.slide_id: np.arange(s.n_total) % 3 == 0.0 for s in audited.slides}
    done = attach(StoredAudit.load(folder), MarkedTiles("drawn", marks))  # type: ignore[arg-type]
    truth = StoredAudit.load(folder).manifest.truth
    assert truth == done.manifest.truth
    assert truth.what == "drawn"
    with (folder / "tables" / "truth.csv").open(newline="") as file:
        rows = {(row["ranking"], row["measure"]): row for row in csv.DictReader(file)}
    own = truth.rankings["native"].precision8
    row = rows["native", "precision8"]
    assert [float(row[name]) for name in ("estimate", "low", "high", "chance")] == [
        own.estimate, own.low, own.high, own.chance,
    ]  # fmt: skip


# Sources


def square(x: float, y: float, side: float, name: str | None = "Tumor") -> dict[str, Any]:
    ring = [[x, y], [x + side, y], [x + side, y + side], [x, y + side], [x, y]]
    own = {} if name is None else {"classification": {"name": name}}
    geometry = {"type": "Polygon", "coordinates": [ring]}
    return {"type": "Feature", "geometry": geometry, "properties": own}


def outlined(folder: Path, **slides: list[dict[str, Any]]) -> Path:
    place = folder / "outlines"
    place.mkdir(exist_ok=True)
    for name, features in slides.items():
        content = {"type": "FeatureCollection", "features": features}
        (place / f"{name}.svs.geojson").write_text(json.dumps(content))
    return place


def test_outlines(tmp_path: Path) -> None:
    place = outlined(tmp_path, a=[square(0, 0, 149), square(300, 0, 9, "Stroma")], b=[])
    audit = Ranked(tmp_path)
    with pytest.raises(
        FociError, match=r"several classes: Stroma, Tumor; choose with --truth-class"
    ):
        read_truth(place)
    with pytest.raises(FociError, match=r"holds no outline of tumour; --truth-class: Stroma"):
        read_truth(place, name="tumour")
    for share, true in ((0.5, 1), (0.49, 2), (1, 1)):
        truth = read_truth(place, name="Tumor", share=share)
        marks = truth.of(audit.slides[0], next(audit.tiles()), None)
        assert marks.sum() == true
    found = localise(audit, read_truth(place, name="Tumor"))
    assert (found.n_slides, found.n_without, found.n_unmarked) == (1, 1, 1)
    assert found.what == "Outlines of Tumor (outlines); tiles with at least 50% inside."
    alone = read_truth(place / "a.svs.geojson", name="Stroma", share=0.001)
    assert localise(audit, alone).n_unmarked == 2


def test_outlines_begin_at_the_scanned_part(tmp_path: Path) -> None:
    audit = Ranked(tmp_path)
    truth = read_truth(outlined(tmp_path, a=[square(0, 0, 100)]))
    marks = truth.of(audit.slides[0], next(audit.tiles()), Box(300, 0, 200, 400))
    assert marks.tolist() == [0, 0, 1, 0, 0, 0]


def test_outlines_need_positions_and_a_slide_of_their_own(tmp_path: Path) -> None:
    place, audit = outlined(tmp_path, a=[square(0, 0, 100)]), Ranked(tmp_path)
    tiles = RankedTiles("a", np.arange(6), None, {"native": SCORES})
    with pytest.raises(FociError, match="a: has no tile positions in level-0 pixels"):
        read_truth(place).of(audit.slides[0], tiles, None)
    far = read_truth(outlined(tmp_path, a=[square(9000, 0, 100)]))
    with pytest.raises(FociError, match=r"a\.svs\.geojson: has 100 % of its area far from all"):
        localise(audit, far)
    (place / "a.geojson").write_text("[]")
    with pytest.raises(FociError, match=r"is of the same slide as a\.geojson"):
        read_truth(place)


def test_empty_outlines(tmp_path: Path) -> None:
    truth = read_truth(outlined(tmp_path, a=[], b=[]))
    with pytest.raises(FociError, match="marks no tile of any audited slide"):
        localise(Ranked(tmp_path), truth)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(FociError, match="holds no GeoJSON files"):
        read_truth(tmp_path / "nothing")


TABLE = {"slide_id": list("baab"), "tile": [1, 1, 0, 0], "witness": [True, False, True, False]}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tables_are_read_in_any_order(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"truth.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table(TABLE), path)
    else:
        rows = zip(*TABLE.values(), strict=True)
        path.write_text("slide_id,tile,witness\n" + "\n".join(",".join(map(str, r)) for r in rows))
    truth = read_truth(path)
    assert isinstance(truth, MarkedTiles)
    assert {name: m.tolist() for name, m in truth.marks.items()} == {"a": [1, 0], "b": [0, 1]}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"slide_id": ["a"], "tile": [0]}, "is no table of marked tiles"),
        ({"slide_id": ["a"], "tile": [1], "witness": [True]}, "every tile of a exactly once"),
        ({"slide_id": ["a"] * 2, "tile": [0, 0], "witness": [True] * 2}, "exactly once"),
        ({"slide_id": ["a"], "tile": [0], "witness": ["perhaps"]}, "is no table of marked tiles"),
    ],
)
def test_wrong_tables(tmp_path: Path, table: dict[str, list[object]], message: str) -> None:
    pq.write_table(pa.table(table), tmp_path / "truth.parquet")
    with pytest.raises(FociError, match=message):
        read_truth(tmp_path / "truth.parquet")


def test_other_wrong_sources(tmp_path: Path) -> None:
    (tmp_path / "truth.csv").write_text("slide_id,tile\na,0\n")
    with pytest.raises(CohortError, match="witness"):
        read_truth(tmp_path / "truth.csv")
    with pytest.raises(FociError, match="does not exist"):
        read_truth(tmp_path / "nowhere")
    with pytest.raises(FociError, match=r"--truth-share: is 0; give a share above 0"):
        read_truth(tmp_path / "truth.csv", share=0)
    with pytest.raises(FociError, match="marks no tile of any audited slide"):
        localise(Ranked(tmp_path), MarkedTiles("", {"z": np.ones(3)}))
    with pytest.raises(FociError, match="marks 3 tiles, the feature file has at least 6"):
        localise(Ranked(tmp_path), MarkedTiles("", {"a": np.ones(3)}))


def test_labels_of_readers(tmp_path: Path) -> None:
    """Each reader's last label counts, most readers decide, and nobody's tiles are unknown."""
    path = tmp_path / "reader-marks.csv"
    rows = [
        ("ann", 0, "stroma"), ("ann", 0, "tumour"), ("bob", 0, "tumour"), ("ann", 2, "stroma"),
        ("ann", 3, "tumour"), ("bob", 3, "stroma"), ("ann", 4, "cannot tell"), ("bob", 4, "tumour"),
    ]  # fmt: skip
    text = "\n".join(f"2026-01-01,{reader},a,{tile},{label}" for reader, tile, label in rows)
    path.write_text("time,reader,slide_id,tile,label\n" + text + "\n")
    found = localise(Ranked(tmp_path), read_truth(path))
    # tile 3 is a tie; known are 0 (tumour), 2 (stroma), 4 (tumour): native orders them 0, 2, 4
    assert (found.n_tiles, found.n_unknown, found.n_unmarked) == (3, 3, 2)
    native = found.rankings["native"]
    assert native.average_precision.estimate == pytest.approx((1 + 2 / 3) / 2)
    assert native.deciding is None  # not every tile of the slide was read
    stroma = localise(Ranked(tmp_path), read_truth(path, name="stroma"))
    assert stroma.rankings["native"].average_precision.estimate == 0.5
    with pytest.raises(FociError, match=r"holds no tile that is necrosis; --truth-class: cannot"):
        read_truth(path, name="necrosis")
