from pathlib import Path

import pyarrow.parquet as pq

from foci.audits.stored import AuditedSlide, read_slides, slides_to_arrow


def test_round_trip(tmp_path: Path) -> None:
    slides = (
        AuditedSlide("007", "p1", "LUAD", 1024, 9000, "px", 512, "ab" * 32),
        AuditedSlide("ä", "p2", None, 3, 3, "um", None, "cd" * 32),
        AuditedSlide("x", "p3", "LUSC", skipped="x.h5: is truncated; copy it again"),
    )
    pq.write_table(slides_to_arrow(slides), tmp_path / "slides.parquet")
    assert read_slides(tmp_path / "slides.parquet") == slides


def test_rows_of_an_earlier_foci_say_nothing_of_encoder_and_content(tmp_path: Path) -> None:
    slide = AuditedSlide("s", "p", n_tiles=3, encoder="uni", n_zero=1, fingerprint="ab")
    path = tmp_path / "slides.parquet"
    pq.write_table(slides_to_arrow([slide]), path)
    (same,) = read_slides(path)
    assert (same.encoder, same.n_zero, same.fingerprint) == ("uni", 1, "ab")
    pq.write_table(
        slides_to_arrow([slide]).drop_columns(["encoder", "n_zero", "fingerprint"]), path
    )
    (old,) = read_slides(path)
    assert (old.encoder, old.n_zero, old.fingerprint) == (None, None, None)
    assert old == slide, "an audit begun before goes on"
