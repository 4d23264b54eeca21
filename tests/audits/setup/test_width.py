"""Features of another width: one line for the cohort."""

from pathlib import Path

import pytest

from foci.audits.prepare import check_width, for_backbone
from foci.audits.run import run
from foci.audits.sources import Sources
from foci.errors import BagError
from tests.makers import features as write
from tests.makers.audits import model, settings
from tests.makers.cohorts import make_files, read


def test_a_cohort_of_another_width_is_refused_in_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_files(tmp_path, d_in=6)
    chosen = settings(rankings=("native", "random"))
    message = (
        r"^.*s00\.h5: features are 6 wide, the model reads 8 \(so in all of 14 slides looked at\); "
        "use the features that the model was trained on$"
    )
    with pytest.raises(BagError, match=message):
        run(Sources(model(), read(tmp_path)), chosen, tmp_path / "out")
    assert caplog.messages == []
    assert not (tmp_path / "out").exists()


def test_slides_of_another_width_among_others_are_skipped(files: Path) -> None:
    for name in ("s00", "s10"):
        write.trident(files / "features" / f"{name}.h5", write.features(4, 6), write.grid(4))
    (files / "features" / "s01.h5").write_bytes(b"cut")
    check_width(for_backbone(read(files), model()))
    done = run(Sources(model(), read(files)), settings(rankings=("native",)), files / "out")
    assert [slide.slide_id for slide in done.skipped] == ["s10"]


def test_sixteen_slides_are_enough(tmp_path: Path) -> None:
    for i in range(40):
        write.trident(tmp_path / "features" / f"s{i:02d}.h5", write.features(2, 6), write.grid(2))
    cohort = for_backbone(read(tmp_path, labels=False), model())
    with pytest.raises(BagError, match=r"\(so in all of 16 slides looked at\)"):
        check_width(cohort)
