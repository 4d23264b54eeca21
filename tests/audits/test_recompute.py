"""The same audit at another threshold, budget or view."""

from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.audit import recompute
from foci.errors import FociError
from tests.makers.curves import Counts, Settings, summary_of
from tests.makers.folders import write_folder

COUNTS: Counts = {
    "native": [[4, None, 8]],
    "selector": [[2, 2, None], [4, 6, 4]],
    "random": [[6, 10, None], [2, 6, 8]],
}
CASES = ["P1", "P1", "P2"]


@pytest.fixture
def audit(tmp_path: Path) -> StoredAudit:
    return write_folder(tmp_path / "audit", COUNTS, CASES, ["tumour", None, "benign"])


def test_nothing_differs(audit: StoredAudit) -> None:
    assert recompute(audit) is audit.summary
    assert recompute(audit, kappa=0.9, k_max=256) is audit.summary


def test_another_threshold_and_budget_are_read_from_the_stored_curves(audit: StoredAudit) -> None:
    before = {p: p.read_bytes() for p in audit.folder.rglob("*") if p.is_file()}
    found = recompute(audit, kappa=0.8, k_max=5)
    want = summary_of(
        COUNTS,
        CASES,
        ["tumour", None, "benign"],
        Settings(kappa=0.8, k_max=5, n_boot=50, kappas=(0.7, 0.8, 0.9, 0.95)),
    )
    assert found.views == want.views
    assert found.answers == want.answers
    assert (found.kappa, found.k_max, found.n_skipped) == (0.8, 5, 1)
    assert {p: p.read_bytes() for p in audit.folder.rglob("*") if p.is_file()} == before


def test_relative_answers_are_added_and_nothing_else_changes(audit: StoredAudit) -> None:
    found = recompute(audit, kappa="relative")
    assert [one.share for one in found.answers.relative] == [0.8, 0.9, 0.95, 0.99]
    assert found.carried.relative == 0.95
    same = {
        "answers": found.answers.model_copy(update={"relative": []}),
        "carried": found.carried.model_copy(update={"relative": None}),
    }
    assert found.model_copy(update=same) == audit.summary


def test_another_view_only_changes_which_stands_first(audit: StoredAudit) -> None:
    assert recompute(audit, view="label") == audit.summary.model_copy(
        update={"first_view": "label"}
    )
    assert recompute(audit, view="label", kappa=0.8).first_view == "label"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"k_max": 300}, "--k-max: is 300, but curves were stored up to 256 tiles; give at most"),
        ({"k_max": 0}, "--k-max: is 0; give 1 or more"),
        ({"kappa": 1.2}, "--kappa: is 1.2; give a confidence between 0 and 1"),
    ],
)
def test_what_curves_cannot_answer(audit: StoredAudit, asked: dict[str, float], says: str) -> None:
    with pytest.raises(FociError) as refused:
        recompute(audit, **asked)  # type: ignore[arg-type]
    assert str(refused.value).startswith(says)


def test_the_label_view_needs_labels(tmp_path: Path) -> None:
    audit = write_folder(tmp_path / "audit", COUNTS, CASES, [None] * 3)
    with pytest.raises(FociError, match="--view label: no audited slide has a label"):
        recompute(audit, view="label")
