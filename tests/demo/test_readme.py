"""What the folder says about itself."""

from foci.demo.cohort import PlannedSlide
from foci.demo.folder import readme


def test_it_counts_and_says_synthetic() -> None:
    plans = [
        PlannedSlide(f"s{i}", f"c{i // 2}", i % 2, split, 0, hard=False, magnification=20)
        for i, split in enumerate(["train", "train", "val", "test"])
    ]
    text = readme(7, plans)
    assert "**These data are synthetic.**" in text
    assert "(seed 7)" in text
    assert "4 slides of 2 imaginary patients; 2 A-type, 2 B-type; 2 train, 1 val, 1 test." in text
