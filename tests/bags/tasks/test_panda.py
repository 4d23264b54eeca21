"""The prostate task."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from foci.bags.bag import Slide
from foci.bags.tasks import NOTE, build
from foci.errors import CohortError

HEADER = "image_id,data_provider,isup_grade,gleason_score"


def train_csv(folder: Path, rows: Iterable[str]) -> Path:
    path = folder / "train.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return path


def test_grades_become_two_classes(tmp_path: Path) -> None:
    rows = ["0005f7aa,karolinska,0,0+0", "000920ad,radboud,1,3+3", "0018ae58,radboud,5,5+4"]
    train_csv(tmp_path, rows)
    got = build("panda", [str(tmp_path)], split=False)
    assert got.slides == (
        Slide("0005f7aa", "0005f7aa", "benign", site="karolinska"),
        Slide("000920ad", "000920ad", "malignant", site="radboud"),
        Slide("0018ae58", "0018ae58", "malignant", site="radboud"),
    )
    assert got.notes == (NOTE,)
    assert "cannot be checked" in NOTE


def test_the_papers_sizes_stratified_by_provider_and_label(tmp_path: Path) -> None:
    # Close to the real table: 10,615 biopsies, two providers, about a quarter benign.
    groups = {("karolinska", 0): 1925, ("karolinska", 2): 3530, ("radboud", 0): 967}
    groups["radboud", 4] = 10_615 - sum(groups.values())
    rows = [
        f"{provider}{grade}-{k},{provider},{grade},x"
        for (provider, grade), n in groups.items()
        for k in range(n)
    ]
    got = build("panda", [str(train_csv(tmp_path, rows))])
    sizes = {"train": 6793, "val": 1699, "test": 2123}
    assert Counter(s.split for s in got.slides) == sizes
    assert got.notes == (NOTE,)
    found = Counter((s.site, s.label, s.split) for s in got.slides)
    for (provider, grade), n in groups.items():
        label = "malignant" if grade else "benign"
        for split, size in sizes.items():
            assert abs(found[provider, label, split] - n * size / 10_615) < 2


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(CohortError, match=r"holds no train.csv; give PANDA's train.csv"):
        build("panda", [str(tmp_path)])
    path = train_csv(tmp_path, ["a,radboud,6,x"])
    with pytest.raises(CohortError, match=r"train.csv, line 2: isup_grade is '6', not 0 to 5"):
        build("panda", [str(path)])
    with pytest.raises(CohortError, match=r"cannot all be benign: PANDA's grades are in train.csv"):
        build("panda", [f"benign={path}"])
    train_csv(tmp_path, ["a,radboud,0,x", "a,radboud,1,x"])
    with pytest.raises(CohortError, match="line 3: slide 'a' is already in line 2"):
        build("panda", [str(path)])
    path.write_text("image_id,isup_grade\na,1\n")
    with pytest.raises(
        CohortError, match=r"no column 'data_provider' .*, or give PANDA's train.csv"
    ):
        build("panda", [str(path)])
