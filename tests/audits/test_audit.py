"""Folders that are opened: finished ones, and all the others."""

import json
import shutil
from pathlib import Path

import pytest

from foci.audits import Audit
from foci.errors import FociError


def test_a_finished_audit_opens(audited: Audit) -> None:
    again = Audit.load(str(audited.folder))
    assert again.curves.slide_ids == tuple(slide.slide_id for slide in again.slides)
    assert [tiles.slide_id for tiles in again.tiles()] == list(again.curves.slide_ids)
    assert again.skipped == ()
    assert again.verdict == again.manifest["verdict"] == again.summary["verdict"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "has no manifest.json; give the folder of foci audit --out"),
        ("{", "is not JSON"),
        ('{"format": 1, "status": "running"}', "holds an unfinished audit; give the foci audit"),
        ('{"format": 99, "status": "complete"}', "is of format 99; update foci"),
    ],
)
def test_others_are_refused(tmp_path: Path, text: str | None, says: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(FociError, match=says):
        Audit.load(tmp_path)


def test_a_moved_folder_is_the_same_audit(audited: Audit, tmp_path: Path) -> None:
    shutil.copytree(audited.folder, tmp_path / "moved")
    moved = Audit.load(tmp_path / "moved")
    assert moved.summary == audited.summary
    assert json.dumps(moved.manifest) == json.dumps(audited.manifest)
