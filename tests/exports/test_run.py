"""Exporting an audit: which slides, which tiles, which files."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from foci.audits import StoredAudit
from foci.errors import FociError
from foci.exports import export
from foci.exports.tables import (
    SURVIVES,
    columns_to_export,
    ranked_slides,
    read_names,
    slides_to_export,
)
from foci.slides.image import file_name
from tests.makers.synthetic import HOSTILE, Plan, make

UNPLACED, PLAIN = "TCGA-53-4003", "TCGA-55-4005"


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    return make(tmp_path_factory.mktemp("audit"), Plan(n_slides=8, k_max=40))


def test_the_most_telling_slides_are_the_hardest_and_the_most_compact(audit: StoredAudit) -> None:
    hardest = audit.measured().hardest_first
    names = audit.curves.slide_ids
    assert slides_to_export(audit, most_telling=2) == [names[hardest[0]], names[hardest[-1]]]
    assert slides_to_export(audit, [PLAIN, PLAIN]) == [PLAIN]
    with pytest.raises(FociError, match="nobody: is not in"):
        slides_to_export(audit, ["nobody"])
    with pytest.raises(FociError, match=r"unreadable: was skipped \(unreadable.h5: is truncated"):
        slides_to_export(audit, ["unreadable"])


def test_a_list_of_slides(tmp_path: Path) -> None:
    plain, table = tmp_path / "a.txt", tmp_path / "b.csv"
    plain.write_text("s1\n\ns2\n")
    table.write_text("case_id,slide_id\nP1,s1\nP2,s2\n")
    assert read_names(plain) == read_names(table) == ["s1", "s2"]
    (tmp_path / "c.txt").touch()
    with pytest.raises(FociError, match="names no slide"):
        read_names(tmp_path / "c.txt")


def test_rankings_by_name_and_seed(audit: StoredAudit) -> None:
    measured = audit.measured()
    assert columns_to_export(measured) == [("native", None), ("selector", 0)]
    assert columns_to_export(measured, ["selector-2"]) == [("selector", 2)]
    with pytest.raises(FociError, match="random: is not a stored ranking"):
        columns_to_export(measured, ["random"])


def test_counts_scores_and_delta_p_are_the_audit_s(audit: StoredAudit) -> None:
    columns = columns_to_export(audit.measured(), ["native"])
    (slide,) = ranked_slides(audit, [PLAIN], columns, "32")
    (native,) = slide.columns
    row = audit.curves.slide_ids.index(PLAIN)
    inserted = audit.curves.get("native")[row]
    deleted = audit.curves.deletions("native", None)[row]
    target = int(inserted.full.argmax())
    assert native.revealed.tolist() == inserted.probs[:32, target].tolist()
    scores = slide.tiles.scores["native"][native.order]
    assert (np.diff(scores) <= 0).all()
    for count, probs in zip(deleted.ks, deleted.probs, strict=True):
        if 1 <= count <= 32:
            assert native.delta_p[count - 1] == inserted.full[target] - probs[target]
    assert np.isnan(native.delta_p).sum() == 32 - ((deleted.ks >= 1) & (deleted.ks <= 32)).sum()


def test_msk_tiles_or_32_with_a_note(
    audit: StoredAudit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = audit.curves.slide_ids
    done = export(audit, tmp_path, ["csv"], names, rankings=["native"])
    msk = audit.measured().of("native").msk[0]
    n = audit.measured().slides.n_tiles
    for name, count, most in zip(names, msk, n, strict=True):
        path = tmp_path / f"{file_name(name)}.csv"
        assert path in done.files
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == (min(32, most) if np.isnan(count) else count)
        assert [int(row["rank"]) for row in rows] == list(range(1, len(rows) + 1))
    lacking = [name for name, count in zip(names, msk, strict=True) if np.isnan(count)]
    assert len(caplog.messages) == len(lacking)
    assert all("no msk under native; the first" in line for line in caplog.messages)


def test_a_slide_without_positions_costs_only_itself(
    audit: StoredAudit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done = export(audit, tmp_path, ["geojson", "csv", "svg"], [UNPLACED, PLAIN], k="4")
    assert list(done.skipped) == [UNPLACED]
    assert caplog.messages == [
        f"skipped {UNPLACED}: {UNPLACED}: has no tile positions in level-0 pixels; "
        "audit features that store coordinates"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{PLAIN}.csv",
        f"{PLAIN}.native.geojson",
        f"{PLAIN}.selector-0.geojson",
        f"{PLAIN}.svg",
    ]


def test_slides_without_positions_have_a_figure_of_curves(
    audit: StoredAudit, tmp_path: Path
) -> None:
    done = export(audit, tmp_path, ["pdf", "csv"], [UNPLACED], k="decisive")
    assert [path.name for path in done.files] == [f"{UNPLACED}.pdf", f"{UNPLACED}.csv"]
    assert not done.skipped


def test_where_no_tiles_decide_none_is_shown_and_it_is_said_why(
    audit: StoredAudit, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    measured, names = audit.measured(), audit.curves.slide_ids
    decisive = measured.of("native").decisive[0]
    columns = columns_to_export(measured, ["native"])
    reasons = set()
    for row, slide in enumerate(ranked_slides(audit, names, columns, "decisive")):
        (native,) = slide.columns
        if not np.isnan(decisive[row]):
            assert (len(native), native.why_none) == (decisive[row], "")
            continue
        assert len(native) == 0
        sure = measured.slides.full[row].max() >= audit.manifest.settings.kappa
        target = int(measured.slides.full[row].argmax())
        kept = audit.curves.deletions("native", None)[row].probs.argmax(axis=1) == target
        want = "model not sure" if not sure else SURVIVES if kept.all() else "no deciding tiles"
        assert native.why_none == want
        reasons.add(want)
    assert SURVIVES in reasons
    export(audit, tmp_path, ["geojson"], names[4:], rankings=["native"], k="decisive")
    lines = [line for line in caplog.messages if line.endswith(f"{SURVIVES} under native")]
    assert lines
    name = file_name(lines[0].split(":")[0])
    assert json.loads((tmp_path / f"{name}.native.geojson").read_text())["features"] == []


def test_hostile_names_stay_in_the_folder(audit: StoredAudit, tmp_path: Path) -> None:
    done = export(audit, tmp_path / "out", ["geojson"], HOSTILE, k="2", rankings=["native"])
    assert len(done.files) == len(HOSTILE)
    assert {path.parent for path in done.files} == {tmp_path / "out"}
    for path in done.files:
        assert len(json.loads(path.read_text())["features"]) == 2


def test_an_unknown_format_or_count_is_refused(audit: StoredAudit, tmp_path: Path) -> None:
    with pytest.raises(FociError, match=r"--to jpg: is not a format; known: geojson, csv, png"):
        export(audit, tmp_path, ["jpg"], [PLAIN])
    with pytest.raises(FociError, match=r"--k some: is not a number of tiles"):
        export(audit, tmp_path, ["csv"], [PLAIN], k="some")


def test_what_a_killed_export_left_is_removed(audit: StoredAudit, tmp_path: Path) -> None:
    (tmp_path / ".writing-abc12345").write_bytes(b"half")
    (tmp_path / ".writing-of-mine.txt").write_bytes(b"mine")
    export(audit, tmp_path, ["csv"], audit.curves.slide_ids[:1], k="3")
    left = [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"]
    assert left == [".writing-of-mine.txt"]
