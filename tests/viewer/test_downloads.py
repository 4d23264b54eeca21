"""Files of what is on the screen are those of ``foci export``."""

import csv
import io
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from foci.exports.run import export
from foci.viewer.slides import Catalogue


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
