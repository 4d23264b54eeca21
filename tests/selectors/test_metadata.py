"""A selector.json that is not what a fit wrote is refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foci import selectors
from foci.errors import CheckpointError
from tests.backbones.every import small
from tests.makers.cohorts import planted
from tests.makers.fits import per_class

Facts = dict[str, Any]
REST = "columns=0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cohort = planted(tmp_path_factory.mktemp("planted"))
    out = tmp_path_factory.mktemp("fit") / "selector"
    selectors.fit(small("abmil", "paper", 2), cohort, per_class(), out=out)
    return out


def put(value: Any, *place: Any) -> Callable[[Facts], None]:
    def change(facts: Facts) -> None:
        branch: Any = facts
        for step in place[:-1]:
            branch = branch[step]
        branch[place[-1]] = value

    return change


def drop(*place: str) -> Callable[[Facts], None]:
    def change(facts: Facts) -> None:
        branch = facts
        for step in place[:-1]:
            branch = branch[step]
        del branch[place[-1]]

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop("fingerprint"), "fingerprint: Field required"),
        (drop("head", "hidden"), r"head\.hidden: Field required"),
        (drop("head", "columns"), r"head\.columns: Field required"),
        (put([], "fingerprint"), "fingerprint: Input should be a valid string"),
        (put(None, "head"), "head: Input should be an object"),
        (put("x", "head", "d"), r"head\.d: Input should be a valid integer"),
        (put(-1, "head", "d"), r"head\.d: Input should be greater than 0"),
        (put(1, "head", "z"), r"head\.z: Extra inputs are not permitted"),
        (put(["a", "b"], "backbone", "probe"), r"backbone\.probe\.0: .* valid number"),
        (put(["1", "2"], "backbone", "probe"), r"backbone\.probe\.0: .* valid number"),
        (put(3, "backbone", "fingerprint"), r"backbone\.fingerprint: .* valid string"),
        (put(1, "backbone", "z"), r"backbone\.z: Unexpected keyword"),
        (put(None, "backbone"), "backbone: Input should be an object"),
        (put("paper-ste", "recipe"), "recipe: Input should be an object"),
        (put(3, "recipe", "newer"), r"recipe\.newer: Extra inputs"),
        (put("zzz", "target"), "target: Input should be 'label' or 'prediction'"),
        (put("zzz", "site"), "site: Input should be 'feature' or 'attention'"),
        (put("a", "seed"), "seed: Input should be a valid integer"),
        (put(-1, "seed"), "seed: Input should be greater than or equal to 0"),
        (put([], "history"), "history: Tuple should have at least 1 item"),
        (put(1, "history", 0, "q"), r"history\.0\.q: Unexpected keyword"),
        (put(3, "history", 1, "epoch"), r"\(history does not count its epochs from 1\)"),
        (put(7, "best_epoch"), r"\(best_epoch is not the best of history\)"),
        (put(2**60, "head", "d"), rf"a head \(d={2**60} outputs=2 hidden=256 {REST}\) that"),
        (put(1, "head", "outputs"), rf"a head \(d=16 outputs=1 hidden=256 {REST}\) that"),
        (put(8, "head", "hidden"), rf"describes a head \(d=16 outputs=2 hidden=8 {REST}\) that"),
        (put(8, "head", "columns"), r"outputs=2 hidden=256 columns=8\) that"),
        (put(8, "recipe", "width"), rf"backbone and recipe \(d=16 outputs=2 hidden=8 {REST}\)"),
    ],
)  # fmt: skip
def test_damage_is_named(
    change: Callable[[Facts], None], message: str, folder: Path, tmp_path: Path
) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    facts = json.loads((tmp_path / "selector.json").read_text())
    change(facts)
    (tmp_path / "selector.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=message) as refusal:
        selectors.load(tmp_path, small("abmil", "paper", 2))
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).startswith(str(tmp_path / "selector.json"))
    assert str(refusal.value).endswith("; fit the selector again")


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (put(0, "format"), "is of format 0"),
        (put(2, "format"), "is of format 2"),
        (put("1", "format"), "has no format number"),
        (drop("format"), "has no format number"),
    ],
)
def test_another_format_is_refused_in_one_line(
    change: Callable[[Facts], None], found: str, folder: Path, tmp_path: Path
) -> None:
    facts = json.loads((folder / "selector.json").read_text())
    change(facts)
    path = tmp_path / "selector.json"
    path.write_text(json.dumps(facts))
    with pytest.raises(CheckpointError) as refusal:
        selectors.load(tmp_path, small("abmil", "paper", 2))
    assert str(refusal.value) == (
        f"{path}: {found}, this FOCI reads format 1; fit the selector again, or use the FOCI that "
        "wrote it"
    )


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    model = small("abmil", "paper", 2)
    (tmp_path / "selector.json").mkdir()
    with pytest.raises(CheckpointError, match=r"selector.json: cannot be read \(Is a directory\)"):
        selectors.load(tmp_path, model)
    (tmp_path / "selector.json").rmdir()
    for content in (b"{", b"\xff\xfe", b"[" * 100_000, b""):
        (tmp_path / "selector.json").write_bytes(content)
        with pytest.raises(CheckpointError, match=r"selector.json: is not JSON"):
            selectors.load(tmp_path, model)
    with pytest.raises(CheckpointError, match="does not exist; give a folder made by foci fit"):
        selectors.load(tmp_path / "selector.json", model)
