"""GeoJSON as QuPath's own reader asks for it."""

import itertools
import json
import math
import uuid
from typing import Any

import pytest

from foci.exports.tables import feature_collection, tile_uuid, to_text
from foci.words import colour_of
from tests.exports.ranked_squares import ORIGIN, SIDE, ranked


def check_as_qupath_does(text: str) -> list[dict[str, Any]]:
    """The rules of QuPath's reader (0.4 and later) for an object."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON number")

    content = json.loads(text, parse_constant=refuse)
    assert content["type"] == "FeatureCollection"
    for feature in content["features"]:
        assert feature["type"] == "Feature"
        assert str(uuid.UUID(feature["id"])) == feature["id"]
        assert feature["geometry"]["type"] == "Polygon"
        (ring,) = feature["geometry"]["coordinates"]
        assert ring[0] == ring[-1], "closed"
        assert len(ring) == 5
        assert all(len(point) == 2 for point in ring)
        area = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise(ring)) / 2
        assert area == SIDE**2
        properties = feature["properties"]
        assert properties["objectType"] in ("detection", "tile", "annotation")
        assert isinstance(properties["name"], str)
        assert isinstance(properties["isLocked"], bool)
        colour = properties["classification"]["color"]
        assert len(colour) == 3
        assert all(isinstance(part, int) and 0 <= part <= 255 for part in colour)
        for name, value in properties["measurements"].items():
            assert isinstance(name, str)
            assert not isinstance(value, bool)
            assert isinstance(value, int | float)
            assert math.isfinite(value)
    ids = [feature["id"] for feature in content["features"]]
    assert len(set(ids)) == len(ids)
    return content["features"]  # type: ignore[no-any-return]


def test_tiles_begin_where_qupath_counts_from() -> None:
    slide = ranked()
    native = slide.columns[0]
    text = to_text(feature_collection(slide, native, ORIGIN))
    features = check_as_qupath_does(text)
    assert len(features) == 9
    first = features[0]
    assert first["geometry"]["coordinates"][0][0] == [3 * SIDE, 2 * SIDE], "the last square"
    assert first["properties"]["name"] == "native 1"
    assert first["properties"]["classification"] == {
        "name": "FOCI native",
        "color": [0x1D, 0x5F, 0xA8],
    }
    assert first["properties"]["measurements"] == {
        "foci:rank": 1,
        "foci:score": 5.5,
        "foci:p revealed": 0.5,
    }, "delta p was not measured there"
    assert features[1]["properties"]["measurements"]["foci:delta p"] == pytest.approx(0.01)
    other = feature_collection(slide, slide.columns[1])["features"][0]["properties"]
    assert other["classification"]["color"] == list(bytes.fromhex(colour_of("selector")[1:]))
    unshifted = feature_collection(slide, native)["features"][0]
    assert unshifted["geometry"]["coordinates"][0][0] == [1000 + 3 * SIDE, 700 + 2 * SIDE]


def test_identifiers_are_stable_and_the_tile_s_own() -> None:
    slide = ranked()
    texts = [to_text(feature_collection(slide, slide.columns[0])) for _ in range(2)]
    assert texts[0] == texts[1]
    first = json.loads(texts[0])["features"][0]
    assert first["id"] == tile_uuid("s", "native", 111), "row 11 of the bag is tile 111 of the file"
    assert uuid.UUID(first["id"]).version == 5
    longer = feature_collection(ranked(12), ranked(12).columns[0])["features"]
    assert [f["id"] for f in longer[:9]] == [f["id"] for f in json.loads(texts[0])["features"]]
    other = feature_collection(slide, slide.columns[1])["features"]
    assert {f["id"] for f in other}.isdisjoint(f["id"] for f in longer)
