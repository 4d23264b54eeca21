"""What the viewer serves: files of a slide, marks of readers; and it never loads torch."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from foci.audits import StoredAudit
from foci.exports.run import export
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


def test_marks_are_appended(client: TestClient, catalogue: Catalogue, marks: MarkBook) -> None:
    tiles = catalogue.tiles(5)
    first, second = (int(tile) for tile in tiles.order("native")[:2])
    for rank, tile, opinion in ((1, first, "relevant"), (2, second, "irrelevant")):
        sent = {**MARK, "tile": tile, "rank": rank, "opinion": opinion, "reader": '=Dr, "A"'}
        answer = client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
        assert answer.status_code == 204
    with marks.path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["opinion"] for row in rows] == ["relevant", "irrelevant"]
    assert [int(row["tile"]) for row in rows] == [first, second]
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {row["reader"] for row in rows} == {'\'=Dr, "A"'}
    assert {row["slide_id"] for row in rows} == {tiles.slide_id}
    assert tiles.coords is not None
    assert [int(rows[0]["x"]), int(rows[0]["y"])] == tiles.coords[first].tolist()


def test_a_rank_that_is_not_the_tiles_is_refused(
    client: TestClient, catalogue: Catalogue, marks: MarkBook
) -> None:
    order = catalogue.tiles(5).order("native")
    wrong = int(order[np.arange(len(order)) != 0][0])
    sent = {**MARK, "tile": wrong, "rank": 1}
    answer = client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
    assert answer.status_code == 422
    assert answer.json() == {"error": "mark: is of a tile that is not there; reload the page"}
    assert not marks.path.exists()


def test_a_name_is_no_formula(client: TestClient, catalogue: Catalogue, marks: MarkBook) -> None:
    tile = int(catalogue.tiles(5).order("native")[0])
    sent = {**MARK, "tile": tile, "reader": "=1+1"}
    assert client.post("/api/marks", json=sent, headers={"Origin": ADDRESS}).status_code == 204
    assert ",'=1+1," in marks.path.read_text(encoding="utf-8")


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
