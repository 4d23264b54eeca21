"""Damaged and lost files of an audit folder."""

from pathlib import Path

import pyarrow as pa
import pytest

from foci.audits.folder import lost_file, read_object, readable
from foci.errors import FociError


def test_errors_name_the_file_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    for error, says in (
        (FileNotFoundError(2, "gone"), "is missing; run foci audit again"),
        (OSError("cut\nlong story"), r"cannot be read \(cut\); run foci audit again"),
        (pa.ArrowInvalid("no magic bytes"), r"cannot be read \(no magic bytes\)"),
        (pa.ArrowKeyError("no column"), r"cannot be read \(.*no column"),
        (ValueError(), r"cannot be read \(ValueError\)"),
    ):
        with pytest.raises(FociError, match=rf"a\.parquet: {says}"), readable(path):
            raise error
    with pytest.raises(FociError, match=r"^mine: "), readable(path):
        raise FociError("mine", "is known", "leave it")


@pytest.mark.parametrize("content", [b"[]", b"3", b"null", b"{", b"", b"\xff\xfe\x00"])
def test_what_is_no_object(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(FociError, match=r"a\.json: (is damaged|cannot be read) \("):
        read_object(tmp_path / "a.json")


def test_lost_files(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert lost_file(tmp_path, {}) is None
    assert lost_file(tmp_path, {"a": ""}) is None
    assert lost_file(tmp_path, {"a": "", "b": "", "c": ""}) == "b"
