from pathlib import Path

import pyarrow.parquet as pq

from foci.audits.folder.slides import AuditedSlide, read_slides, to_arrow


def test_round_trip(tmp_path: Path) -> None:
    slides = (
        AuditedSlide("007", "p1", "LUAD", 1024, 9000, "px", 512, "ab" * 32),
        AuditedSlide("ä", "p2", None, 3, 3, "um", None, "cd" * 32),
        AuditedSlide("x", "p3", "LUSC", skipped="x.h5: is truncated; copy it again"),
    )
    pq.write_table(to_arrow(slides), tmp_path / "slides.parquet")
    assert read_slides(tmp_path / "slides.parquet") == slides
