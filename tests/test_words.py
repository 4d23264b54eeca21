"""One rounding rule: equal to exact arithmetic, and to what the page's script shows."""

import json
import shutil
import subprocess
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.words import decimals, in_percent

HALVES = [0.5, 1.5, 2.5, 12.5, 92.5, 0.125, -0.125, -2.5, 0.375, 1.005, -0.0004, 7.25]


@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_halves_go_away_from_zero(value: float, digits: int) -> None:
    scaled = abs(Fraction(value)) * 10**digits
    whole = floor(scaled + Fraction(1, 2))
    text = decimals(value, digits)
    assert Fraction(text) == (1 if value >= 0 else -1) * Fraction(whole, 10**digits)
    assert len(text.partition(".")[2]) == digits
    assert (text.startswith("-")) == (value < 0 and whole > 0)


def test_shares() -> None:
    assert [in_percent(share) for share in (0.925, 0.075, 0.125, 1.0, 0.0)] == [
        "93%", "8%", "13%", "100%", "0%",
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("digits", [0, 1, 2, 3])
def test_the_script_of_the_page_rounds_alike(digits: int) -> None:
    script = f"console.log(JSON.stringify({json.dumps(HALVES)}.map((v) => v.toFixed({digits}))))"
    shown = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    texts = json.loads(shown.stdout)
    unsigned_zero = [text.lstrip("-") if float(text) == 0 else text for text in texts]
    assert [decimals(value, digits) for value in HALVES] == unsigned_zero
