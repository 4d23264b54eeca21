"""A run that is refused before its first block leaves nothing behind."""

from pathlib import Path

import pytest

from foci.audits.folder import MANIFEST, seed_folder
from foci.audits.run_folder import clear, locked_run_folder
from foci.errors import FociError
from foci.files.run_log import LOG
from foci.selectors.saved import METADATA
from tests.makers.audits import audit

DECIDED, VERSIONS = {"kappa": 0.9}, {"foci": "1"}


def refuse(out: Path, *made: Path) -> None:
    with (
        pytest.raises(FociError, match="slide: is bad"),
        locked_run_folder(out, DECIDED, VERSIONS, force=False),
    ):
        for path in (out / MANIFEST, out / LOG, *made):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
        raise FociError("slide", "is bad", "mend it")


def test_a_folder_that_the_run_made_goes_and_one_that_was_there_stays(tmp_path: Path) -> None:
    refuse(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "old").mkdir()
    refuse(tmp_path / "old")
    assert list((tmp_path / "old").iterdir()) == []


def test_results_stay_with_their_manifest(tmp_path: Path) -> None:
    for name, kept in {
        "block": "parts/native/00000.parquet",
        "fit": f"{seed_folder(Path(), 0)}/{METADATA}",
    }.items():
        out = tmp_path / name
        refuse(out, out / kept)
        assert (out / kept).exists()
        assert (out / MANIFEST).exists()


def test_an_unfinished_fit_goes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    refuse(out, seed_folder(out, 0) / "fitting.safetensors")
    assert not out.exists()


def test_any_other_end_leaves_what_can_be_resumed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with (
        pytest.raises(KeyboardInterrupt),
        locked_run_folder(out, DECIDED, VERSIONS, force=False),
    ):
        (out / MANIFEST).write_text("{}")
        raise KeyboardInterrupt
    assert (out / MANIFEST).exists()


def test_after_a_refusal_other_settings_need_no_force(files: Path) -> None:
    learned = [files / "features" / f"s{i:02d}.h5" for i in range(9)]
    whole = [path.read_bytes() for path in learned]
    for path in learned:
        path.write_bytes(b"cut")
    with pytest.raises(FociError, match="cohort: no slide can be read"):
        audit(files)
    assert not (files / "out").exists()
    for path, content in zip(learned, whole, strict=True):
        path.write_bytes(content)
    done = audit(files, changes={"kappa": 0.7})
    assert done.summary.kappa == 0.7
    clear(done.folder)
