"""Records and folders that were changed since they were written."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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


def edited(path: Path, edit: Callable[[dict[str, Any]], object], load: Callable[[], Any]) -> Any:
    """What is loaded after an edit, which is refused as long as the record has its hash."""
    record = json.loads(path.read_text())
    edit(record)
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError) as refused:
        load()
    assert str(refused.value) == f"{path}: was changed since it was written; {FIX}"
    del record["own_sha256"]
    path.write_text(json.dumps(record))
    return load()


def test_a_model_folder(tmp_path: Path) -> None:
    folder = backbones.save(model(), tmp_path / "model", classes=["tumour", "normal"])
    load = partial(backbones.load, folder)
    found = edited(folder / "backbone.json", lambda record: record["classes"].reverse(), load)
    assert found.n_classes == 2


def test_a_selector_folder(tmp_path: Path) -> None:
    cohort, out, again = read(make_files(tmp_path)), tmp_path / "out", tmp_path / "again"
    selectors.fit(model(), cohort, short("default"), out=out)
    selectors.save(selectors.load(out, model()), again)
    for name in ("selector.json", "selector.safetensors"):
        assert (out / name).read_bytes() == (again / name).read_bytes()
    load = partial(selectors.load, out, model())
    found = edited(
        out / "selector.json", lambda record: record["history"][0].update(val_loss=0.0), load
    )
    assert found.history[0].val_loss == 0.0
