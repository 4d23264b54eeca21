"""What the viewer serves: files of a slide, marks of readers; and it never loads torch."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.audits.truth import localise, read_truth
from foci.exports import export
from foci.viewer.marks import MarkBook
from foci.viewer.slides import Catalogue
from tests.viewer.conftest import ADDRESS
from tests.viewer.test_security import MARK


@pytest.mark.parametrize("kind", ["geojson", "csv"])
def test_they_are_the_bytes_of_an_export(
    client: TestClient, catalogue: Catalogue, tmp_path: Path, kind: str
) -> None:
    name = catalogue.audit.curves.slide_ids[5]
    done = export(
        catalogue.audit, tmp_path / "out", [kind], [name], rankings=["native"], k="7",
        images=catalogue.paths,
    )  # fmt: skip
    answer = client.get(f"/api/slides/5/export/{kind}?k=7&rankings=native")
    assert answer.content == done.files[0].read_bytes()
    assert answer.headers["content-disposition"].endswith(done.files[0].name)


def test_a_table_holds_both_rankings_and_geojson_one(client: TestClient) -> None:
    query = "k=7&rankings=native,selector-1"
    table = client.get(f"/api/slides/5/export/csv?{query}").text
    assert [row["ranking"] for row in csv.DictReader(io.StringIO(table))] == (
        ["native"] * 7 + ["selector-1"] * 7
    )
    objects = json.loads(client.get(f"/api/slides/5/export/geojson?{query}").content)
    names = {one["properties"]["classification"]["name"] for one in objects["features"]}
    assert names == {"FOCI native"}


def test_a_figure_is_a_picture(client: TestClient) -> None:
    pytest.importorskip("matplotlib")
    answer = client.get("/api/slides/5/export/png?k=3&rankings=native")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")


def test_what_cannot_be_exported_says_why(client: TestClient, images: dict[str, Path]) -> None:
    assert client.get("/api/slides/5/export/docx").json() == {
        "error": "docx: is not a format; known: png, svg, pdf, geojson, csv"
    }
    list(images.values())[1].unlink()
    answer = client.get("/api/slides/5/export/geojson?k=3")
    assert answer.status_code == 422
    assert "cannot be exported" in answer.json()["error"]


def test_labels_are_appended(client: TestClient, catalogue: Catalogue, marks: MarkBook) -> None:
    tiles = catalogue.tiles(5)
    first, second = (int(tile) for tile in tiles.order("native")[:2])
    for tile, label in ((first, "tumour"), (second, " my\nown ")):
        sent = {**MARK, "tile": tile, "label": label, "reader": '=Dr, "A"'}
        answer = client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
        assert answer.status_code == 204
    with marks.path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["label"] for row in rows] == ["tumour", "my own"]
    assert [int(row["tile"]) for row in rows] == [first, second]
    assert {row["reader"] for row in rows} == {'\'=Dr, "A"'}, "no formula for a spreadsheet"
    assert {row["slide_id"] for row in rows} == {tiles.slide_id}
    assert tiles.coords is not None
    assert [int(rows[0]["x"]), int(rows[0]["y"])] == tiles.coords[first].tolist()
    text = client.get("/api/labels.csv").text
    results = list(csv.DictReader(text.splitlines()))
    assert [row["rank:native"] for row in results] == ["1", "2"]
    order = tiles.order("selector-0").tolist()
    assert [int(row["rank:selector-0"]) for row in results] == [
        order.index(first) + 1, order.index(second) + 1,
    ]  # fmt: skip


def test_a_study_mixes_first_and_random_tiles_in_the_reader_s_own_order(
    client: TestClient, catalogue: Catalogue, marks: MarkBook
) -> None:
    asked = client.get("/api/study", params={"reader": "R1", "first": "4"}).json()
    assert asked["labels"] == ["tumour", "stroma", "artefact", "cannot tell"]
    shown = {one["slide"] for one in asked["tiles"]}
    assert shown == {0, 5, 6}, "slides with an image"
    for number in shown:
        tiles = catalogue.tiles(number)
        own = {one["tile"] for one in asked["tiles"] if one["slide"] == number}
        for name in ("native", "selector-0"):
            assert own >= set(tiles.order(name)[:4].tolist())
        assert len(own) <= 12
    places = [(one["slide"], one["tile"]) for one in asked["tiles"]]
    assert len(set(places)) == len(places)
    assert places != sorted(places)
    again = client.get("/api/study", params={"reader": "R1", "first": "4"}).json()
    assert again == asked
    other = client.get("/api/study", params={"reader": "R2", "first": "4"}).json()
    assert sorted(places) == sorted((one["slide"], one["tile"]) for one in other["tiles"])
    assert other["tiles"] != asked["tiles"]
    slide, tile = places[0]
    sent = {"reader": "R1", "slide": slide, "tile": tile, "label": "fat"}
    client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
    after = client.get("/api/study", params={"reader": "R1", "first": "4"}).json()
    assert after["tiles"][0]["label"] == "fat"
    assert after["labels"][-1] == "fat"
    assert all(one["label"] is None for one in after["tiles"][1:])


@pytest.mark.parametrize("query", ["", "reader=R", "reader=R&first=0", "reader=R&first=99"])
def test_a_study_of_nobody_or_of_too_much_is_refused(client: TestClient, query: str) -> None:
    answer = client.get(f"/api/study?{query}")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("study: ")


def test_a_tile_that_is_not_there_is_refused(client: TestClient, marks: MarkBook) -> None:
    answer = client.post("/api/marks", json={**MARK, "tile": 10**6}, headers={"Origin": ADDRESS})
    assert answer.status_code == 422
    assert answer.json() == {"error": "mark: is of a tile that is not there; reload the page"}
    assert not marks.path.exists()


def test_labels_are_a_truth(
    client: TestClient, catalogue: Catalogue, marks: MarkBook, audit: StoredAudit
) -> None:
    """What readers call tumour, foci report --truth compares with the rankings."""
    first = [int(tile) for tile in catalogue.tiles(5).order("native")[:3]]
    for tile, label in zip(first, ("tumour", "stroma", "tumour"), strict=True):
        sent = {**MARK, "tile": tile, "label": label}
        client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
    found = localise(audit, read_truth(marks.path))
    assert (found.n_slides, found.n_tiles) == (1, 3)
    assert found.rankings["native"].average_precision.estimate == pytest.approx((1 + 2 / 3) / 2)


def test_large_pictures_and_thumbnails(client: TestClient) -> None:
    for path, size in (
        ("/api/slides/5/tiles/0.jpeg?around=1", (1024, 1024)),
        ("/api/slides/5/tiles/0.jpeg", (192, 192)),
        ("/api/slides/5/thumbnail.jpeg", (192, 155)),
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        with Image.open(io.BytesIO(answer.content)) as picture:
            assert picture.size == size
    assert client.get("/api/slides/1/thumbnail.jpeg").status_code == 404
    assert client.get("/api/slides/99/thumbnail.jpeg").status_code == 404


EVERY_REQUEST = """
import json, sys
from pathlib import Path
from starlette.testclient import TestClient
import foci.viewer.serve
from foci.audits import StoredAudit
from foci.viewer.app import viewer_app
from foci.viewer.slides import Catalogue
from foci.viewer.marks import MarkBook

audit = StoredAudit(Path(sys.argv[1]))
catalogue = Catalogue(audit, {audit.curves.slide_ids[0]: Path(sys.argv[2])})
app = viewer_app(catalogue, MarkBook(Path(sys.argv[3])), "token")
client = TestClient(app, base_url="http://127.0.0.1:8765", follow_redirects=False)
answer = client.get("/", params={"token": "token"})
client.base_url = client.base_url.join(answer.headers["location"])
finest = client.get("/api/slides/0/image").json()["pyramid"]["finest"]
asked = [
    "/api/cohort",
    "/api/slides/0",
    f"/api/slides/0/parts/{finest}/0_0.jpeg",
    "/api/slides/0/tiles/0.jpeg",
    "/api/slides/0/export/csv?rankings=native&k=8",
    "/api/slides/0/export/png?rankings=native&k=8",
]
status = {path: client.get(path).status_code for path in asked}
print(json.dumps({"status": status, "torch": "torch" in sys.modules}))
"""


def test_the_server_never_loads_torch(audit: StoredAudit, image: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_REQUEST, audit.folder, image, tmp_path / "marks.csv"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["status"].values()) == {200}
    assert found["torch"] is False
