"""Packed numbers and tile positions come back; cut numbers show the same digits; types."""

import base64
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foci.reports.models import (
    COARSE,
    FINE,
    AuditPayload,
    ComparisonPayload,
    pack,
    pack_probabilities,
    page_schema,
    unpack,
    write_schema,
)
from foci.reports.payload import cut_to, place, rounded
from foci.viewer.models import viewer_schema
from foci.words import decimals


@given(st.integers(1, 24).flatmap(
    lambda bits: st.tuples(st.just(bits), st.lists(st.integers(0, 2**bits - 1)))
))  # fmt: skip
def test_numbers_come_back(drawn: tuple[int, list[int]]) -> None:
    bits, numbers = drawn
    packed = pack(numbers, bits)
    assert packed[:2] == (bits, len(numbers))
    assert unpack(packed).tolist() == numbers
    assert len(base64.b64decode(str(packed[2]))) == -(-bits * len(numbers) // 8)


@pytest.mark.parametrize(("largest", "bits"), [(0, 1), (1, 1), (2, 2), (255, 8), (1023, 10)])
def test_the_largest_number_sets_the_width(largest: int, bits: int) -> None:
    assert pack([0, largest])[0] == bits


@pytest.mark.parametrize("bits", [COARSE, FINE])
def test_probabilities_are_rounded_to_the_nearest_step(bits: int) -> None:
    values = np.random.default_rng(0).random(500)
    top = 2**bits - 1
    found = unpack(pack_probabilities(values, bits)) / top
    assert np.abs(found - values).max() <= 0.5 / top + 1e-12
    assert unpack(pack_probabilities([0.0, 1.0], bits)).tolist() == [0, top]


def corners(placed: dict) -> NDArray[np.int64]:  # type: ignore[type-arg]
    steps = np.column_stack([unpack(placed.x), unpack(placed.y)])
    return placed.origin + placed.step * steps


def test_a_lattice_comes_back_exactly() -> None:
    rng = np.random.default_rng(1)
    coords = np.column_stack([rng.integers(0, 60, 400), rng.integers(0, 90, 400)]) * 224 + 17
    placed = place(coords, 224)
    assert placed.exact
    assert placed.step == 224
    assert placed.side == 224
    assert (corners(placed) == coords).all()


def test_tiles_that_overlap_keep_their_side() -> None:
    coords = np.array([[0, 0], [128, 0], [256, 128], [384, 128]])
    placed = place(coords, 256)
    assert (placed.step, placed.side) == (128, 256)
    assert (corners(placed) == coords).all()


def test_off_the_lattice_corners_are_rounded() -> None:
    rng = np.random.default_rng(2)
    coords = rng.integers(0, 100_003, (300, 2))
    placed = place(coords, 256)
    assert not placed.exact
    assert max(placed.x[0], placed.y[0]) <= 12
    assert np.abs(corners(placed) - coords).max() <= placed.step / 2


@pytest.mark.parametrize(
    ("coords", "side"),
    [
        ([[0, 0], [256, 0], [768, 0], [1024, 256]], 256),
        ([[5, 5]], 1),
        ([[10, 10], [10, 10]], 1),
    ],
)
def test_without_a_patch_size_the_spacing_is_the_side(coords: list[list[int]], side: int) -> None:
    placed = place(np.array(coords), None)
    assert placed.side == side
    assert (corners(placed) == coords).all()


numbers = st.floats(-300, 300, allow_nan=False)


@given(numbers, st.integers(0, 3))
def test_a_cut_number_is_shown_like_the_full_one(value: float, digits: int) -> None:
    assert decimals(cut_to(value, 5), digits) == decimals(value, digits)
    assert math.isclose(cut_to(value, 5), value, abs_tol=1.1e-5)


@given(st.integers(0, 400), st.integers(1, 400))
def test_a_cut_share_is_shown_like_the_full_one(part: int, whole: int) -> None:
    share = min(part / whole, 1.0)
    assert decimals(100 * cut_to(share, 5), 0) == decimals(100 * share, 0)


def test_rounding_twice_is_what_it_avoids() -> None:
    assert decimals(round(0.10046, 4), 3) == "0.101"
    assert decimals(cut_to(0.10046, 4), 3) == decimals(0.10046, 3) == "0.100"
    assert rounded({"a": [0.5, 2.0, None]}, 3) == {"a": [0.5, 2, None]}


WEB = Path(__file__).parents[2] / "web"


@pytest.mark.parametrize(
    ("file", "folder", "schema"),
    [("schema.json", "page", page_schema), ("viewer-schema.json", "viewer", viewer_schema)],
)
def test_the_built_types_are_those_of_the_models(
    file: str, folder: str, schema: Callable[[], str]
) -> None:
    built = (WEB / file).read_text(encoding="utf-8")
    assert built == schema(), "run python3 dev.py check, which builds the page anew"
    types = (WEB / "src" / folder / "types.generated.ts").read_text(encoding="utf-8")
    for name in json.loads(built)["$defs"]:
        assert f"export interface {name} {{" in types


def test_every_field_of_a_payload_is_required() -> None:
    defined = json.loads(page_schema())["$defs"]
    for model in (AuditPayload, ComparisonPayload):
        assert set(defined[model.__name__]["required"]) == set(model.model_fields)


def test_a_schema_that_is_there_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    assert write_schema(path)
    assert not write_schema(path)
    path.write_text("{}")
    assert write_schema(path)
    assert path.read_text() == page_schema()
