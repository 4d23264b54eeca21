"""Equal bags and zero tiles, slide by slide."""

import pytest

from foci.audits.alarms import duplicate_bags, zero_tiles
from foci.audits.stored import AuditedSlide


def slide(name: str, content: str = "", **more: object) -> AuditedSlide:
    return AuditedSlide(name, f"patient of {name}", fingerprint=content or name, **more)


def test_different_bags_raise_no_alarm() -> None:
    assert duplicate_bags([]) is None
    assert duplicate_bags([slide("a"), slide("b")]) is None


def test_equal_bags_are_counted_and_named() -> None:
    found = duplicate_bags(
        [slide("a", "x"), slide("b"), slide("c", "x"), slide("d", "y"), slide("e", "y")]
    )
    assert found is not None
    assert found.slides == ["a", "c", "d", "e"]
    assert found.numbers == {"slides": 4, "different": 3, "audited": 5}
    assert found.sentence.startswith("4 slides (a, c, d, ...) hold the same features as another")
    assert "5 audited slides are only 3 different ones" in found.sentence
    assert "labels" not in found.sentence


@pytest.mark.parametrize(
    ("labels", "torn"), [(("A", "B"), True), (("A", "A"), False), (("A", None), False)]
)
def test_equal_bags_with_different_labels_are_said(
    labels: tuple[str | None, ...], torn: bool
) -> None:
    bags = [slide(str(i), "same", label=one) for i, one in enumerate(labels)]
    found = duplicate_bags(bags)
    assert found is not None
    assert found.sentence.endswith("1 group of equal bags with different labels.") is torn


@pytest.mark.parametrize(("n_zero", "named"), [(None, False), (0, False), (4, False), (5, True)])
def test_a_bag_is_named_from_half_of_zero_tiles_on(n_zero: int | None, named: bool) -> None:
    assert (zero_tiles([slide("a", n_tiles=10, n_zero=n_zero)]) is not None) is named


def test_the_worst_bag_is_given_by_share_and_not_by_number() -> None:
    found = zero_tiles(
        [slide("many", n_tiles=100, n_zero=60), slide("most", n_tiles=10, n_zero=9), slide("fine")]
    )
    assert found is not None
    assert "in most 9 of 10." in found.sentence
    assert found.numbers["worst_share"] == 0.9
