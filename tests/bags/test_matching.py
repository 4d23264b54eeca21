"""Rows of a table find their feature files."""

from pathlib import Path

import pytest

from foci.bags import Slide
from foci.bags.matching import match
from foci.errors import CohortError
from tests.bags.feature_files import UUID

BARE = "TCGA-05-4244-01Z-00-DX1"
FULL = f"{BARE}.{UUID}"


def files(*names: str) -> dict[str, Path]:
    return {name: Path(f"{name}.h5") for name in names}


def slide(name: str) -> Slide:
    return Slide(name, "case")


@pytest.mark.parametrize(
    "row", [BARE, FULL, f"{FULL}.svs", f"{BARE}.svs", f"{BARE}.{UUID.lower()}"]
)
@pytest.mark.parametrize("file", [BARE, FULL])
def test_tcga_names_match_with_and_without_uuid(row: str, file: str) -> None:
    matched = match([slide(row)], files(file))
    assert matched.slides[0].feature_path == Path(f"{file}.h5")
    assert (matched.missing, matched.unused) == ((), ())


def test_exact_name_wins_over_a_shortened_one() -> None:
    matched = match([slide(FULL)], files(FULL, BARE))
    assert matched.slides[0].feature_path == Path(f"{FULL}.h5")
    assert matched.unused == (BARE,)


def test_leading_zeros_matter() -> None:
    matched = match([slide("007"), slide("7")], files("007"))
    assert [s.slide_id for s in matched.slides] == ["007"]
    assert [s.slide_id for s in matched.missing] == ["7"]


def test_ambiguous_and_double_claims_are_refused() -> None:
    with pytest.raises(CohortError, match=f"{BARE}: fits several feature files"):
        match(
            [slide(BARE)], files(FULL, f"{BARE}.{UUID[::-1]}"[:-1] + "0", f"{BARE}.{UUID.lower()}")
        )
    with pytest.raises(CohortError, match=r"belongs to two rows .*keep one of them"):
        match([slide(BARE), slide(f"{BARE}.svs")], files(BARE))


def test_a_path_in_the_table_is_taken_as_it_is() -> None:
    given = Slide("a", "c", feature_path=Path("elsewhere/a.h5"))
    matched = match([given], {"a": Path("elsewhere/a.h5"), "b": Path("b.h5")})
    assert matched.slides == (given,)
    assert matched.unused == ("b",)
