"""Audits side by side, the differences that make them incomparable, and agreement of their maps."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import spearmanr

from foci.audits import StoredAudit
from foci.audits.compare import ComparisonRow, agreement_csv, compare, distinct_names, map_agreement
from foci.audits.folder import MANIFEST, SLIDE_SCHEMA
from foci.audits.manifest import write_manifest
from foci.audits.records import Alarm
from foci.cli.commands.compare import comparison_text
from foci.errors import FociError
from foci.reports import write_comparison
from foci.selectors import DEFAULT
from tests.makers.curves import Counts
from tests.makers.folders import write_folder
from tests.makers.synthetic import Plan, make

FAST: Counts = {"native": [[4, 8]], "selector": [[1, 2], [1, 4]], "random": [[4, 6], [8, 10]]}
SLOW: Counts = {"native": [[9, None]], "selector": [[3, 5]], "random": [[7, 7]]}
CASES, LABELS = ["P1", "P2"], ["tumour", "benign"]


def folder(path: Path, counts: Counts = FAST, **how: Any) -> StoredAudit:
    how = {"targets": [1, 0], "drops": {"native": 0.256}, **how}
    return write_folder(path, counts, CASES[: len(counts["native"][0])], LABELS, **how)


def value(row: ComparisonRow, name: str) -> float | None:
    key, ranking = name.split(":")
    return row.interval(key, ranking).estimate


def test_a_row_holds_the_numbers_of_the_prediction_view(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "a"), folder(tmp_path / "b", SLOW, name="clam")]
    found = compare(audits)
    first, second = found.rows
    assert (first.name, first.architecture) == ("abmil", "abmil")
    assert first.summary.full_bag.auc == 1.0
    assert (first.summary.n_slides, first.summary.n_cases, first.summary.kappa) == (2, 2, 0.9)
    assert value(first, "restricted:native") == value(first, "msk_cond:native") == 6
    assert value(first, "msk_cond:selector") == 2
    assert value(first, "shi_native:selector") == pytest.approx(4 / 6)
    assert value(first, "shi_random:selector") == pytest.approx(5 / 7)
    assert value(first, "shi_native:native") is None
    assert value(first, "faithfulness:native") == pytest.approx(0.001 * 255 / 2)
    assert (value(second, "restricted:native"), value(second, "reach:native")) == (132.5, 0.5)
    for key in ("restricted", "shi_native", "faithfulness"):
        ends = first.interval(key, "selector")
        assert ends.low <= ends.estimate <= ends.high
    for question in ("map", "tiles", "order"):
        assert first.answer(question) == getattr(audits[0].answers, question).answer
    assert found.notes == ()
    assert found.rankings == ("native", "selector", "random")


def test_csv_and_markdown(tmp_path: Path) -> None:
    found = compare([folder(tmp_path / "a", name="a|b"), folder(tmp_path / "b", SLOW, name="c")])
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["name"] for row in rows] == ["a|b", "c"]
    assert float(rows[0]["shi_native:selector"]) == value(found.rows[0], "shi_native:selector")
    assert rows[0]["shi_native:native"] == ""
    header, line, first, second = found.to_markdown().splitlines()[:4]
    assert header.startswith("| model | architecture | AUC | tiles, native | tiles, selector |")
    assert set(line) == set("| -")
    assert first.startswith(r"| a\|b | abmil | 1.000 | 6.0 (100% reach) | 2.0 (100% reach) |")
    assert "| 0.67 (" in first
    assert "132.5 (50% reach)" in second
    assert header.count("|") == first.count("|") - 1 == second.count("|")


def test_maps_from_files_keep_their_names(tmp_path: Path) -> None:
    def mapped(name: str) -> StoredAudit:
        counts = {name: FAST["native"], **{k: v for k, v in FAST.items() if k != "native"}}
        settings = {"map": f"{name}=from-file:{tmp_path}/m.csv", "rankings": tuple(FAST)}
        return write_folder(
            tmp_path / name, counts, CASES, LABELS, targets=[1, 0], name=name, change=settings
        )

    alone = compare([mapped("lrp"), mapped("cam")])
    assert alone.map == "the map"
    header = alone.to_markdown().splitlines()[0]
    assert "| SHI of selector vs the map | SHI of selector vs random |" in header
    assert "SHI of lrp" not in header, "a map is not tested against itself"
    assert any("the first answer is about different maps" in note for note in alone.notes)
    said = comparison_text(alone, width=200)
    assert said.count("the map") >= 2, "SHI and Faithfulness, whatever the map is called"
    assert compare([folder(tmp_path / "a", name="a"), folder(tmp_path / "b")]).map == "native"


def test_equal_names_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "x" / "audit"), folder(tmp_path / "y" / "audit")]
    audits += [folder(tmp_path / "z"), folder(tmp_path / "w", name="clam")]
    names = distinct_names(audits)
    assert names[2:] == ["abmil (z)", "clam"]
    assert len(set(names)) == 4
    assert names[0] == f"abmil ({(tmp_path / 'x' / 'audit').resolve()})"


def test_fewer_than_two_and_twice_the_same_are_refused(tmp_path: Path) -> None:
    audit = folder(tmp_path / "a")
    with pytest.raises(FociError, match="needs two or more audits"):
        compare([audit])
    with pytest.raises(FociError, match="is given twice"):
        compare([audit, StoredAudit.load(audit.folder / ".." / "a")])


def test_alarms_of_every_audit_come_first(tmp_path: Path) -> None:
    audits = [folder(tmp_path / "a"), folder(tmp_path / "b", name="clam")]
    alarm = Alarm(kind="zero tiles", sentence="Half of s1 is zero.", slides=["s1"])
    manifest = audits[1].manifest.model_copy(update={"alarms": [alarm]})
    write_manifest(audits[1].folder, manifest)
    found = compare([audits[0], StoredAudit.load(audits[1].folder)])
    assert [row.alarms for row in found.rows] == [(), (alarm,)]
    assert found.to_markdown().startswith("**Alarm, zero tiles, clam:** Half of s1 is zero.\n\n| m")
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [row["alarms"] for row in rows] == ["", "zero tiles"]
    assert comparison_text(found).startswith("ALARM, zero tiles, clam: Half of s1 is zero.\n")
    page = write_comparison([a.folder for a in audits], tmp_path / "c.html").read_text()
    assert page.index("<b>Zero tiles in clam.</b> Half of s1 is zero.") < page.index('id="table"')
    assert "1 alarm: read this before any number" in page


def test_one_patient_has_no_interval_to_show(tmp_path: Path) -> None:
    one: Counts = {"native": [[4]], "selector": [[2]], "random": [[4]]}
    audits = [write_folder(tmp_path / n, one, ["P1"], ["tumour"], name=n) for n in "ab"]
    header, *rows = compare(audits).cells()
    assert rows[0][header.index("SHI of selector vs native")] == "0.50"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kappa": 0.8}, "kappa differs (a 0.9; b 0.8): counts answer different questions."),
        ({"k_max": 64}, "k_max differs (a 256; b 64): restricted means end at different counts."),
        (
            {"fit_target": "label"},
            "fit_target differs (a prediction; b label): selectors support different classes.",
        ),
        (
            {"recipe": "paper-soft", "choose_by": "decisive", "fit_target": "prediction"},
            "recipe differs (a default; b paper-soft): selectors were fitted",
        ),
        (
            {"recipe_settings": {"schedule.epochs": 4, "schedule.warmup": 1}},
            "recipe differs (a default; b default with schedule.epochs=4, schedule.warmup=1): sel",
        ),
        ({"choose_by": "loss"}, "choose_by differs (a decisive; b loss): epochs were chosen"),
        ({"seeds": (0,)}, "seeds differ (a 0,1,2; b 0): selectors are of different fits."),
        ({"random_orders": 3}, "random_orders differs (a 10; b 3): means of random are over"),
        ({"null_maps": 0}, "null_maps differs (a 139; b 0): maps had to beat different numbers"),
        ({"deletion": (1, 2)}, "deletion differs (a 1,2,4,8,16,32,64,128,256; b 1,2): drops are"),
    ],
)
def test_other_settings_are_said(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    audits = [folder(tmp_path / "a", name="a"), folder(tmp_path / "b", name="b", change=change)]
    (note,) = compare(audits).notes
    assert note.startswith(says)


def test_what_nothing_depends_on_is_not_said(tmp_path: Path) -> None:
    named = {"recipe": DEFAULT, "recipe_settings": {}}  # what default stands for
    first = folder(tmp_path / "a", name="a")
    assert compare([first, folder(tmp_path / "b", name="b", change=named)]).notes == ()
    view = {"target": "label"}  # both views are always there
    assert compare([first, folder(tmp_path / "c", name="c", change=view)]).notes == ()
    bare: Counts = {"native": FAST["native"]}
    changes = [{"seeds": (5,), "recipe": "paper-ste", "random_orders": 2}, {}]
    audits = [folder(tmp_path / f"n{i}", bare, change=c) for i, c in enumerate(changes)]
    assert compare(audits).notes == ()


def test_three_audits_say_which_pair_shares_what(tmp_path: Path) -> None:
    first = folder(tmp_path / "a", name="a")
    other = folder(tmp_path / "b", name="b", n_tiles=[500, 300])
    stranger = renamed(folder(tmp_path / "c", name="c"), ["benign", "tumour"], slide="x")
    assert compare([first, other, stranger]).notes == (
        "slides differ (a 2; b 2; c 2; 0 in all of them): means are over different slides.",
        "features differ (a and b on 1 of 2 shared): a tile is not the same tile in each.",
    )


def test_other_slides_features_and_rankings_are_said(tmp_path: Path) -> None:
    fewer: Counts = {name: [seed[:1] for seed in seeds] for name, seeds in FAST.items()}
    del fewer["random"]  # type: ignore[attr-defined]
    small = write_folder(
        tmp_path / "b", fewer, ["P1"], ["tumour"], name="b", n_tiles=[100], drops={}
    )
    found = compare([folder(tmp_path / "a", name="a"), small])
    assert found.notes == (
        "slides differ (a 2; b 1; 1 in common): means are over different slides.",
        "features differ (a and b on 1 of 1 shared): a tile is not the same tile in each.",
        "random was not run in b.",
    )
    assert found.rows[1].numbers("random") is None
    assert found.rows[1].answer("order") == "not assessable"
    assert found.rows[1].summary.full_bag.auc is None
    assert found.to_markdown().splitlines()[3].endswith("| not assessable |")


def renamed(audit: StoredAudit, classes: list[str], slide: str | None = None) -> StoredAudit:
    """The same audit of other classes, and of other slides if a name is given."""
    path = audit.folder / "summary.json"
    path.write_text(audit.summary.model_copy(update={"classes": classes}).to_json())
    if slide is not None:
        table = pq.read_table(audit.folder / "slides.parquet").to_pylist()
        for number, row in enumerate(table):
            row["slide_id"] = f"{slide}-{number}"
        pq.write_table(
            pa.Table.from_pylist(table, schema=SLIDE_SCHEMA), audit.folder / "slides.parquet"
        )
    return StoredAudit.load(audit.folder)


def test_other_classes_are_said_and_nothing_in_common_is_refused(tmp_path: Path) -> None:
    first = folder(tmp_path / "a", name="a")
    other = renamed(folder(tmp_path / "b", name="b"), ["LUAD", "LUSC"])
    (note,) = compare([first, other]).notes
    assert note == "classes differ (a benign, tumour; b LUAD, LUSC): AUC is of different tasks."
    stranger = renamed(folder(tmp_path / "c", name="c"), ["LUAD", "LUSC"], slide="x")
    with pytest.raises(FociError) as refused:
        compare([first, stranger])
    assert str(refused.value) == (
        "a, c: share neither a slide nor a class; compare audits of one task"
    )
    cousin = renamed(folder(tmp_path / "d", name="d"), ["benign", "tumour"], slide="x")
    assert any("0 in common" in note for note in compare([first, cousin]).notes)


# Agreement of the maps of two trainings, against sets and scipy on every slide


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
