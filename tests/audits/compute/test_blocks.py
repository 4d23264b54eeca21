"""The pass over the slides: blocks are written as soon as they are whole."""

from pathlib import Path

import pytest

from foci.audits.compute.blocks import n_blocks, reveal_blocks
from foci.audits.compute.jobs import RankingJob
from foci.audits.compute.partial import PartialResults
from foci.audits.compute.slide import SlideReveal
from tests.makers.audits import model, settings
from tests.makers.cohorts import read

UNITS = (RankingJob("native"), RankingJob("random", orders=2))


@pytest.mark.parametrize(("n", "size", "want"), [(0, 4, 0), (1, 4, 1), (4, 4, 1), (5, 4, 2)])
def test_how_many(n: int, size: int, want: int) -> None:
    assert n_blocks([None] * n, size) == want  # type: ignore[list-item]


def reveal(files: Path, asked: list[int] | None = None) -> tuple[PartialResults, list[str]]:
    cohort, parts, lines = read(files).split("test"), PartialResults(files / "out"), list[str]()
    work = SlideReveal(model(), settings())

    def progress(items: range, what: str) -> range:
        if asked is not None:
            asked.append(len(items))
        return items

    reveal_blocks(
        cohort.slides, cohort.store, work, UNITS, parts,
        progress=progress, say=lines.append,  # type: ignore[arg-type]
    )  # fmt: skip
    return parts, lines


def test_every_slide_is_in_one_block(files: Path) -> None:
    asked: list[int] = []
    parts, lines = reveal(files, asked)
    found = [[s.slide_id for s in parts.slides(number) or ()] for number in range(4)]
    assert found == [["s09", "s10"], ["s11", "s12"], ["s13"], []]
    assert lines == []
    reveal(files, asked)
    assert asked == [5, 0]  # the second time everything is there


def test_a_block_of_bad_slides_only(files: Path) -> None:
    for name in ("s11", "s12"):
        (files / "features" / f"{name}.h5").write_bytes(b"cut")
    parts, lines = reveal(files)
    slides = parts.slides(1)
    assert slides is not None
    assert [s.skipped is None for s in slides] == [False, False]
    assert len(parts.job(1, UNITS[0])) == 0
    assert [line.split(":")[0] for line in lines] == ["skipped s11", "skipped s12"]
    (parts.folder / "random" / "00001.parquet").unlink()
    parts, lines = reveal(files)
    assert len(parts.job(1, UNITS[1])) == 0
    assert lines == []  # nothing was read again
