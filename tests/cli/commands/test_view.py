"""``foci view``: what it says before it serves."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from foci.viewer import serve as module
from tests.cli.invoke import Foci
from tests.makers.synthetic import Plan, make


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = []

    def instead(catalogue: object, marks: object, **settings: Any) -> None:
        calls.append({"catalogue": catalogue, "marks": marks, **settings})

    monkeypatch.setattr(module, "serve", instead)
    return calls


def test_it_serves_an_audit(foci: Foci, served: list[dict[str, Any]], tmp_path: Path) -> None:
    make(tmp_path / "audit", Plan(n_slides=3, k_max=8, names=()))
    done = foci("view", tmp_path / "audit", "--no-browser", "--port", "9000")
    assert (done.code, done.out) == (0, "3 slides, 0 with an image\n")
    (call,) = served
    assert (call["host"], call["port"], call["browser"]) == ("127.0.0.1", 9000, False)
    assert call["marks"].path == tmp_path / "audit" / "reader-marks.csv"


def test_slides_are_found_in_a_folder(
    foci: Foci, served: list[dict[str, Any]], tmp_path: Path
) -> None:
    audit = make(tmp_path / "audit", Plan(n_slides=3, k_max=8, names=()))
    folder = tmp_path / "slides"
    folder.mkdir()
    (folder / f"{audit.curves.slide_ids[1]}.svs").write_bytes(b"x")
    done = foci("view", tmp_path / "audit", "--slides", folder)
    assert done.out == "3 slides, 1 with an image\n"
    assert served[0]["browser"] is True


def test_what_is_no_audit_is_one_line(
    foci: Foci, served: list[dict[str, Any]], tmp_path: Path
) -> None:
    line = foci.refused("view", tmp_path)
    assert line == f"foci: {tmp_path}: has no manifest.json; give the folder of foci audit --out\n"
    make(tmp_path / "audit", Plan(n_slides=3, k_max=8, names=()))
    lost = foci.refused("view", tmp_path / "audit", "--slides", tmp_path / "nowhere")
    assert "does not exist; give the folder of the whole-slide images" in lost
    assert served == []
