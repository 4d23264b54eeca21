"""Outlines of QuPath: which share of a tile lies inside, and files that cannot be used."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.errors import FociError
from foci.slides.annotations import (
    Polygon,
    check_place,
    inside_shares,
    of_class,
    polygon,
    read_outlines,
)
from foci.slides.image import Box

ROWS = 60_001  # per tile


def rasterised(shapes: list[list[NDArray[Any]]], corner: tuple[float, float], side: float) -> float:
    """Share of a tile inside any shape: many thin rows, the length inside each by even and odd."""
    left, top = corner
    y = top + (np.arange(ROWS) + 0.5) / ROWS * side
    spans = []
    for rings in shapes:
        crossings = []
        for ring in rings:
            for (x0, y0), (x1, y1) in zip(ring, np.roll(ring, -1, axis=0), strict=True):
                if y0 != y1:
                    at = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
                    crossings.append(np.where((y0 <= y) != (y1 <= y), at, np.inf))
        crossed = np.sort(np.array(crossings), axis=0)
        spans += list(zip(crossed[::2], crossed[1::2], strict=False))
    ends = np.clip(np.array(spans), left, left + side)
    order = np.argsort(ends[:, 0], axis=0)
    starts, stops = (np.take_along_axis(ends[:, one], order, axis=0) for one in (0, 1))
    total, reached = np.zeros(ROWS), np.full(ROWS, left, float)
    for start, stop in zip(starts, stops, strict=True):
        total += np.clip(stop - np.maximum(start, reached), 0, None)
        reached = np.maximum(reached, stop)
    return float(total.mean() / side)


def star(rng: np.random.Generator, n: int, centre: Any, radius: float) -> NDArray[np.float64]:
    """A ring that never crosses itself: its points go once around the centre."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, n))
    radii = rng.uniform(0.5, 1, n) * radius
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1) * radii[:, None]
    return np.asarray(centre) + points


TILES = np.array([[x, y] for x in range(0, 400, 100) for y in range(0, 400, 100)])


@pytest.mark.parametrize("seed", range(4))
def test_one_polygon_with_a_hole_against_a_raster(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rings = [star(rng, 12, (190, 210), 180), star(rng, 7, (190, 210), 30)]
    got = inside_shares([polygon(rings)], TILES, 100)
    want = [rasterised([rings], tuple(corner), 100) for corner in TILES.tolist()]
    np.testing.assert_allclose(got, want, atol=1e-6)
    assert 0 < got.min() + got.max() < 2


@pytest.mark.parametrize("seed", range(3))
def test_overlapping_polygons_count_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = [[star(rng, 6, centre, 130)] for centre in ((150, 150), (220, 180), (180, 260))]
    got = inside_shares([polygon(rings) for rings in shapes], TILES, 100)
    want = [rasterised(shapes, tuple(corner), 100) for corner in TILES.tolist()]
    np.testing.assert_allclose(got, want, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1e5, 1e5), st.floats(0.5, 900))
def test_areas_of_all_tiles_add_up(seed: int, shift: float, side: float) -> None:
    """A cover of tiles holds the whole area, and the union of a shape with itself is the shape."""
    rng = np.random.default_rng(seed)
    shape = polygon([star(rng, 9, (0, 0), 450)]).shifted(shift, -shift)
    tiles = (np.indices((8, 8)).reshape(2, -1).T - 4) * 128.0 + [shift, -shift]
    shares = inside_shares([shape], tiles, 128)
    assert shares.sum() * 128**2 == pytest.approx(shape.area, rel=1e-6)
    twice = inside_shares([shape, shape], tiles, 128)
    np.testing.assert_allclose(twice, shares, atol=1e-6)
    turned = polygon([shape.starts[::-1]])
    np.testing.assert_allclose(
        inside_shares([turned], tiles, side), inside_shares([shape], tiles, side), atol=1e-9
    )


def test_squares_by_hand() -> None:
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]])  # closed, as QuPath writes it
    hole = np.array([[1, 1], [3, 1], [3, 3], [1, 3]])
    tile = np.array([[0, 0]])
    assert inside_shares([polygon([square, hole])], tile, 4)[0] == 12 / 16
    assert inside_shares([polygon([square]), polygon([square + 2])], tile, 8)[0] == 28 / 64
    assert inside_shares([polygon([square]), polygon([square + 4])], tile, 8)[0] == 32 / 64
    assert inside_shares([], tile, 8).tolist() == [0]
    assert inside_shares([polygon([square])], np.array([[4, 0], [-4, 0], [0, 4]]), 4).sum() == 0


def feature(kind: str, coordinates: Any, name: Any = None) -> dict[str, Any]:
    own = {} if name is None else {"classification": {"name": name, "color": [200, 0, 0]}}
    geometry = {"type": kind, "coordinates": coordinates}
    return {
        "type": "Feature",
        "geometry": geometry,
        "properties": {"objectType": "annotation"} | own,
    }


SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
FAR = [[x + 9, y] for x, y in SQUARE]


def written(folder: Path, content: Any) -> Path:
    path = folder / "a.geojson"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_what_qupath_writes(tmp_path: Path) -> None:
    features = [
        feature("Polygon", [SQUARE, [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]], "Tumor"),
        feature("MultiPolygon", [[SQUARE], [FAR]], "Stroma"),
        feature("Polygon", [SQUARE], "Tumor: Positive"),
        feature("Polygon", [SQUARE]),
        feature("Point", [1, 1], "Tumor"),
    ]
    features[2]["properties"]["classification"] = {"names": ["Tumor", "Positive"]}
    for content in ({"type": "FeatureCollection", "features": features}, features):
        found = read_outlines(written(tmp_path, content))
        assert [one.name for one in found] == [
            "Tumor", "Stroma", "Stroma", "Tumor: Positive", None,
        ]  # fmt: skip
        assert [one.area for one in found] == [15, 16, 16, 16, 16]
        assert [one.area for one in of_class(found, "Tumor")] == [15, 16]
        assert len(of_class(found, None)) == 5
    alone = read_outlines(written(tmp_path, features[0]))
    assert [one.area for one in alone] == [15]
    nested = {"type": "GeometryCollection", "geometries": [features[1]["geometry"]]}
    assert len(read_outlines(written(tmp_path, {**features[1], "geometry": nested}))) == 2


@pytest.mark.parametrize("content", [[], {"type": "FeatureCollection", "features": []}])
def test_an_empty_file_has_no_outline(tmp_path: Path, content: Any) -> None:
    assert read_outlines(written(tmp_path, content)) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (3, "holds no GeoJSON features"),
        ([3], "object 1 is no outline"),
        ([feature("Polygon", [SQUARE]), feature("Circle", [])], "object 2 .*its type is Circle"),
        ([feature("Polygon", [[[0, 0], [1, 1]]])], "fewer than three points"),
        ([feature("Polygon", [[[0, 0], [1, "a"], [2, 2]]])], "could not convert string"),
        ([feature("Polygon", [[[0, 0], [1, float("nan")], [2, 2]]])], "a coordinate is no number"),
    ],
)
def test_damaged_files(tmp_path: Path, content: Any, message: str) -> None:
    with pytest.raises(FociError, match=message):
        read_outlines(written(tmp_path, content))
    (tmp_path / "b.geojson").write_text("{")
    with pytest.raises(FociError, match=r"b\.geojson: cannot be read"):
        read_outlines(tmp_path / "b.geojson")


def tumour(*rings: Any) -> list[Polygon]:
    return [polygon([np.array(ring) for ring in rings])]


def test_files_of_another_place_are_refused() -> None:
    path, tiles = (
        Path("a.geojson"),
        np.array([[x, y] for x in range(0, 900, 100) for y in (0, 100)]),
    )
    wide = tumour([[500, 20], [880, 20], [880, 180], [500, 180]])
    scan = Box(0, 0, 1000, 200)
    check_place(path, wide, tiles, 100, scan)
    check_place(path, wide, tiles, 100, None)
    check_place(path, [], tiles, 100, scan)
    turned = tumour([[20, 500], [20, 880], [180, 880], [180, 500]])
    with pytest.raises(
        FociError, match=r"reaches from 20, 500 to 180, 880, but the scan is 1000 x"
    ):
        check_place(path, turned, tiles, 100, scan)
    with pytest.raises(FociError, match=r"a\.geojson: has 100 % of its area far from all tiles"):
        check_place(path, turned, tiles, 100, None)
    shifted = [one.shifted(-700, 0) for one in wide]
    with pytest.raises(FociError, match="reaches from -200, 20"):
        check_place(path, shifted, tiles, 100, scan)
    with pytest.raises(FociError, match="of its area far from all tiles"):
        check_place(path, [one.shifted(700, 0) for one in wide], tiles, 100, None)
