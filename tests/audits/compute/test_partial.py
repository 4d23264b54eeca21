"""Partial results are complete or absent, list what is missing, and read back as written."""

from pathlib import Path

import numpy as np

from foci.audits.jobs import RankingJob
from foci.audits.parts import PartialResults
from foci.audits.reveal import RevealedSlide, SlideReveal
from foci.audits.stored import AuditedSlide, from_arrow
from tests.makers.audits import model, settings
from tests.makers.cohorts import read

NATIVE, RANDOM = RankingJob("native"), RankingJob("random", orders=2)


def revealed(files: Path) -> list[RevealedSlide]:
    cohort, work = read(files), SlideReveal(model(), settings())
    return [work(cohort[name], cohort.bag(name), (NATIVE, RANDOM)) for name in ("s09", "s10")]


def test_written_and_read_again(files: Path) -> None:
    parts, found = PartialResults(files / "out"), revealed(files)
    assert parts.slides(0) is None
    assert parts.missing(0, (NATIVE, RANDOM)) == (NATIVE, RANDOM)
    facts = [found[0].slide, AuditedSlide("bad", "p", skipped="is cut"), found[1].slide]
    parts.write_slides(0, facts, found)
    parts.write_job(0, NATIVE, found)
    assert parts.slides(0) == tuple(facts)
    assert parts.slides(1) is None
    assert parts.missing(0, (NATIVE, RANDOM)) == (RANDOM,)
    parts.write_job(0, RANDOM, found)
    table = parts.job(0, RANDOM)
    assert [(c.slide_id, c.seed, c.direction) for c in from_arrow(table)] == [
        (slide, seed, direction)
        for slide in ("s09", "s10")
        for direction in ("insert", "delete")
        for seed in (0, 1)
    ]
    assert table["scores"].null_count == 8
    native = parts.job(0, NATIVE)["scores"].to_pylist()
    assert [row is None for row in native] == [False, True, False, True]
    np.testing.assert_array_equal(native[2], found[1].scores["native"])
    places = parts.places(0).to_pylist()
    assert [row["tiles"] is None for row in places] == [False, True, False]
    assert places[0]["tiles"] == [0, 1, 2, 3, 4]
    assert found[0].coords is not None
    assert list(zip(places[0]["x"], places[0]["y"], strict=True)) == [
        tuple(place) for place in found[0].coords.tolist()
    ]
    assert sorted(p.relative_to(parts.folder).as_posix() for p in parts.folder.rglob("*.*")) == [
        "native/00000.parquet", "random/00000.parquet", "slides/00000.parquet",
    ]  # fmt: skip
