"""Records and folders that were changed since they were written."""

import json
from pathlib import Path

import pytest

from foci import backbones, selectors
from foci.errors import CheckpointError
from foci.files.hashes import changed_files, file_digest, was_changed, with_own_hash
from tests.makers.audits import model
from tests.makers.cohorts import make_files, read
from tests.makers.fits import short

FIX = "copy the folder again; if you edited it on purpose, delete its entry own_sha256"


def test_a_record_survives_json_and_nothing_else() -> None:
    record = {"b": (1, 2.5), "a": {"ä": None, "10": 1}, "name": "x"}
    stored = json.loads(json.dumps(with_own_hash(record), indent=2))
    # NaN differs from itself, so the text is compared
    assert json.dumps(with_own_hash(stored)) == json.dumps(with_own_hash(record))
    plain = json.loads(json.dumps(with_own_hash({"b": (1, 2.5), "a": {"ä": None}})))
    assert not was_changed(plain)
    assert was_changed({**plain, "b": [1, 2.6]})
    assert was_changed({**plain, "more": 1})
    assert was_changed({k: v for k, v in plain.items() if k != "a"})


def test_files_are_named_one_by_one(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    hashes = {name: file_digest(tmp_path / name) for name in ("a", "b", "c")}
    assert changed_files(tmp_path, hashes) == ()
    (tmp_path / "b").write_text("other")
    (tmp_path / "c").unlink()
    assert changed_files(tmp_path, hashes) == ("b", "c (missing)")


def test_a_model_folder(tmp_path: Path) -> None:
    folder = backbones.save(model(), tmp_path / "model", classes=["tumour", "normal"])
    path = folder / "backbone.json"
    facts = json.loads(path.read_text())
    facts["classes"].reverse()
    path.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError) as refused:
        backbones.load(folder)
    assert str(refused.value) == f"{path}: was changed since it was written; {FIX}"
    del facts["own_sha256"]
    path.write_text(json.dumps(facts))
    assert backbones.load(folder).n_classes == 2


def test_a_selector_folder(tmp_path: Path) -> None:
    cohort = read(make_files(tmp_path))
    selectors.fit(model(), cohort, short("default"), out=tmp_path / "out")
    path = tmp_path / "out" / "selector.json"
    facts = json.loads(path.read_text())
    facts["history"][0]["val_loss"] = 0.0
    path.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError) as refused:
        selectors.load(tmp_path / "out", model())
    assert str(refused.value) == f"{path}: was changed since it was written; {FIX}"
    del facts["own_sha256"]
    path.write_text(json.dumps(facts))
    assert selectors.load(tmp_path / "out", model()).history[0].val_loss == 0.0


def test_a_loaded_selector_is_saved_with_a_hash_of_its_own(tmp_path: Path) -> None:
    cohort = read(make_files(tmp_path))
    selectors.fit(model(), cohort, short("default"), out=tmp_path / "out")
    loaded = selectors.load(tmp_path / "out", model())
    selectors.save(loaded, tmp_path / "again")
    names = ("selector.json", "selector.safetensors")
    before, after = ([(tmp_path / f / n).read_bytes() for n in names] for f in ("out", "again"))
    assert before == after
