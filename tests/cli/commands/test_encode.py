"""``foci encode``, ``foci doctor --slides`` and ``foci audit --slides``, from the command line."""

import json
from pathlib import Path

import pytest

from tests.cli.commands.test_audit import QUICK
from tests.cli.invoke import Foci
from tests.makers.slides import squares, write_slide
from tests.reports.test_report import data_of

FEATURES = Path("out/20x_256px_0px_overlap/features_toy")


@pytest.fixture
def slides(tmp_path: Path) -> Path:
    for number in range(8):
        write_slide(tmp_path / "slides" / f"s{number}.tiff", squares(4, 2 + number % 3, 256))
    return tmp_path / "slides"


def test_from_slides_to_a_report_with_tissue(foci: Foci, slides: Path, tmp_path: Path) -> None:
    (slides / "text.svs").write_text("a text")
    done = foci.done("encode", slides, "--out", "out", "--encoder", "toy")
    assert done.out.splitlines()[0].startswith("skipped text: ")
    assert done.out.splitlines()[-1] == f"8 slides, 92 tiles in {FEATURES}"
    split = [*["test"] * 4, *["train"] * 2, *["val"] * 2]
    rows = [f"s{n},p{n},{'ab'[n % 2]},{split[n]}" for n in range(8)]
    Path("labels.csv").write_text("\n".join(["slide_id,case_id,label,split", *rows]) + "\n")
    places = ("--features", "out", "--labels", "labels.csv")
    checked = foci("doctor", "out", "--labels", "labels.csv", "--slides", slides, "--json")
    statuses = {check["name"]: check["status"] for check in json.loads(checked.out)}
    assert [statuses[n] for n in ("slides", "slide files", "tiles on slides", "tile size")] == [
        "PASS"
    ] * 4
    foci.done("train", "abmil", *places, "--epochs", "1", "--out", "m")
    audit = ("audit", "--model", "m", *places, "--out", "a", *QUICK, "--rankings", "native,random")
    (slides / "s1.tiff").unlink()
    done = foci.done(*audit, "--slides", slides)
    assert "no picture of s1: no image of this name" in done.out
    maps = data_of(Path("a/report.html"))["gallery"]["maps"]
    assert sum(drawn["tissue"] is not None for drawn in maps) == 3
    assert foci("report", "a", "--kappa", "0.7").code == 0, "the pictures stay with the audit"
    assert "tissue" in Path("a/report-kappa-0.7.html").read_text()
    done = foci.done("export", "a", "--to", "png,geojson,csv", "--slide", "s0", "--k", "2")
    assert sorted(path.name for path in Path("a/exports").iterdir()) == [
        "s0.csv",
        "s0.native.geojson",
        "s0.png",
    ]
    done = foci("export", "a", "--to", "csv", "--slide", "s1", "--k", "2", "--out", "e")
    assert "note: no image of s1" in done.out


def test_refusals_are_one_line(foci: Foci, slides: Path, tmp_path: Path) -> None:
    encode = ("encode", slides, "--out", "out", "--encoder")
    assert "did you mean 'uni2-h'" in foci.refused(*encode, "uni2")
    assert "needs its weights" in foci.refused(*encode, "uni2-h")
    assert "tile" in foci.refused(*encode, "toy", "--tile", "8")
    assert "does not exist" in foci.refused("encode", "none", "--out", "o", "--encoder", "toy")
    (tmp_path / "text.svs").write_text("a text")
    line = foci.refused("encode", tmp_path / "text.svs", "--out", "o", "--encoder", "toy")
    assert "no slide that could be encoded" in line
    foci.done("encode", slides, "--out", "out", "--encoder", "toy")
    assert "other settings" in foci.refused(*encode, "toy", "--min-tissue", "0.9")
    assert "no manifest.json" in foci.refused("export", "out")
