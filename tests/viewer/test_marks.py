"""A reader's marks end up in a CSV file, row by row."""

import csv

import numpy as np
from starlette.testclient import TestClient

from foci.viewer.marks import MarkBook
from foci.viewer.slides import Catalogue
from tests.viewer.conftest import ADDRESS
from tests.viewer.test_security import MARK


def test_marks_are_appended(client: TestClient, catalogue: Catalogue, marks: MarkBook) -> None:
    tiles = catalogue.tiles(5)
    first, second = (int(tile) for tile in tiles.order("native")[:2])
    for rank, tile, opinion in ((1, first, "relevant"), (2, second, "irrelevant")):
        sent = {**MARK, "tile": tile, "rank": rank, "opinion": opinion, "reader": 'Dr, "A"'}
        answer = client.post("/api/marks", json=sent, headers={"Origin": ADDRESS})
        assert answer.status_code == 204
    with marks.path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["opinion"] for row in rows] == ["relevant", "irrelevant"]
    assert [int(row["tile"]) for row in rows] == [first, second]
    assert [row["rank"] for row in rows] == ["1", "2"]
    assert {row["reader"] for row in rows} == {'Dr, "A"'}
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
