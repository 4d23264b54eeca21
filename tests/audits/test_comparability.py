"""What keeps audits from being compared."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import Audit
from foci.audits.compare import compare
from foci.audits.slides import SCHEMA
from foci.errors import FociError
from tests.audits.cohorts import Counts
from tests.audits.folders import write_folder
from tests.audits.test_compare import FAST, folder


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kappa": 0.8}, "kappa differs (a 0.9; b 0.8): counts answer different questions."),
        ({"k_max": 64}, "k_max differs (a 256; b 64): restricted means end at different counts."),
        ({"target": "label"}, "target differs (a prediction; b label): selectors support"),
        ({"recipe": "paper-ste"}, "recipe differs (a default; b paper-ste): selectors were fitted"),
    ],
)
def test_other_settings_are_said(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    audits = [folder(tmp_path / "a", name="a"), folder(tmp_path / "b", name="b", change=change)]
    (note,) = compare(audits).notes
    assert note.startswith(says)


def test_other_slides_features_and_rankings_are_said(tmp_path: Path) -> None:
    fewer: Counts = {name: [seed[:1] for seed in seeds] for name, seeds in FAST.items()}
    del fewer["random"]  # type: ignore[attr-defined]
    small = write_folder(
        tmp_path / "b", fewer, ["P1"], ["tumour"], name="b", n_tiles=[100], drops={}
    )
    found = compare([folder(tmp_path / "a", name="a"), small])
    assert found.notes == (
        "slides differ (a 2; b 1; 1 in common): means are over different slides.",
        "features differ on 1 of the shared slides: a tile is not the same tile in each.",
        "random was not run in b.",
    )
    assert found.rows[1]["restricted:random"] is None
    assert found.rows[1]["verdict"] is None
    assert found.rows[1]["auc"] is None
    assert found.to_markdown().splitlines()[3].endswith("| - |")


def renamed(audit: Audit, classes: list[str], slide: str | None = None) -> Audit:
    """The same audit of other classes, and of other slides if a name is given."""
    path = audit.folder / "summary.json"
    path.write_text(json.dumps({**audit.summary, "classes": classes}))
    if slide is not None:
        table = pq.read_table(audit.folder / "slides.parquet").to_pylist()
        for number, row in enumerate(table):
            row["slide_id"] = f"{slide}-{number}"
        pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), audit.folder / "slides.parquet")
    return Audit.load(audit.folder)


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
