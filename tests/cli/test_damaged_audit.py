"""An audit folder of which a part is missing or damaged is refused in one line."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.invoke import Foci
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

COUNTS: Counts = {"native": [[9, 8]], "random": [[6, 6]] * 2}
READ = {
    "report": ("manifest.json", "summary.json", "slides.parquet", "curves.parquet",
               "rankings.parquet"),
    "compare": ("manifest.json", "summary.json", "slides.parquet"),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audits") / "whole"
    return write_folder(folder, COUNTS, ["A", "B"], ["tumour", None]).folder


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command in READ for name in READ[command]]
)
def test_one_line(foci: Foci, whole: Path, tmp_path: Path, command: str, name: str) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(whole, folder)
    others = [whole] if command == "compare" else []
    page = tmp_path / "page.html"
    kinds = [None, b"garbage", b"PAR1 cut PAR1", b""] + [b"[]", b"{}"] * name.endswith("json")
    for content in kinds:
        (folder / name).unlink(missing_ok=True)
        if content is not None:
            (folder / name).write_bytes(content)
        done = foci(command, folder, *others, "--out", page)
        assert done.code == 2, (content, done.out)
        assert done.err.count("\n") == 1, (content, done.err)
        assert name in done.err
        assert not page.exists()


def test_a_file_that_the_manifest_names(foci: Foci, whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(whole, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"] = {"summary.json": "ab", "tables/slides.csv": "cd"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    done = foci("report", folder)
    lost = folder / "tables" / "slides.csv"
    assert (done.code, done.err) == (
        2, f"foci: {lost}: is missing; run foci audit again with --force\n",
    )  # fmt: skip
