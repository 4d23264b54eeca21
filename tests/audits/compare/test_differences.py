"""Differences that make audits incomparable."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from foci.audits import StoredAudit
from foci.audits.compare import compare
from foci.audits.folder import SLIDE_SCHEMA
from foci.errors import FociError
from foci.selectors import DEFAULT
from tests.audits.compare.test_table import FAST, folder
from tests.makers.curves import Counts
from tests.makers.folders import write_folder


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
