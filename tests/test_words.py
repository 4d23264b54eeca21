"""One rounding rule: equal to exact arithmetic, and to what the page's script shows."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import dist, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.words import COLOURS, colour_of, decimals
from tests.makers.colours import contrast, linear_rgb, luminance

HALVES = [0.5, 1.5, 2.5, 12.5, 92.5, 0.125, -0.125, -2.5, 0.375, 1.005, -0.0004, 7.25]


@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_halves_go_away_from_zero(value: float, digits: int) -> None:
    scaled = abs(Fraction(value)) * 10**digits
    whole = floor(scaled + Fraction(1, 2))
    text = decimals(value, digits)
    assert Fraction(text) == (1 if value >= 0 else -1) * Fraction(whole, 10**digits)
    assert len(text.partition(".")[2]) == digits
    assert (text.startswith("-")) == (value < 0 and whole > 0)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_the_script_of_the_page_rounds_alike(digits: int) -> None:
    script = f"console.log(JSON.stringify({json.dumps(HALVES)}.map((v) => v.toFixed({digits}))))"
    shown = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    texts = json.loads(shown.stdout)
    unsigned_zero = [text.lstrip("-") if float(text) == 0 else text for text in texts]
    assert [decimals(value, digits) for value in HALVES] == unsigned_zero


SEEN_AS = {  # Machado, Oliveira and Fernandes (2009), severity 1: linear RGB as seen
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
}


def shares_of(colour: str) -> list[float]:
    """Red, green and blue of ``#rrggbb``, from 0 to 1."""
    return [part / 255 for part in bytes.fromhex(colour[1:])]


def seen(colour: str, matrix: Sequence[Sequence[float]]) -> list[float]:
    """CIELAB coordinates of a colour as a colour-blind reader sees it."""
    linear = linear_rgb(shares_of(colour))
    r, g, b = (sum(w * c for w, c in zip(row, linear, strict=True)) for row in matrix)
    xyz = (
        (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505,
        0.2126 * r + 0.7152 * g + 0.0722 * b,
        (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089,
    )
    x, y, z = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz)
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)]


@pytest.mark.parametrize(
    ("dark", "ground"), [(False, 1.0), (True, luminance(shares_of("#14171c")))]
)
def test_colours_of_rankings_can_be_read_and_told_apart(dark: bool, ground: float) -> None:
    for name in COLOURS:
        assert contrast(luminance(shares_of(colour_of(name, dark))), ground) >= 4.5, name
    assert len({colour_of(name, dark) for name in COLOURS}) == len(COLOURS)
    for kind, matrix in SEEN_AS.items():
        for one, other in combinations(list(COLOURS)[:5], 2):
            apart = dist(seen(colour_of(one, dark), matrix), seen(colour_of(other, dark), matrix))
            assert apart >= 15, (kind, one, other, apart)
