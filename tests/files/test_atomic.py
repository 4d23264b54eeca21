"""Whole or absent."""

import errno
from pathlib import Path

import pytest

from foci.files import atomic
from foci.files.atomic import TEMPORARY, sweep, whole_file, whole_folder, write_whole


@pytest.mark.parametrize("content", ["ä\n", b"\x00\xff"])
def test_write_replaces(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    write_whole(path, content)
    want = content.encode() if isinstance(content, str) else content
    assert path.read_bytes() == want
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    path.write_text("old")

    def refuse(self: Path, target: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_an_error_of_the_system_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "gone" / "f"
    with pytest.raises(FileNotFoundError) as missing:
        write_whole(path, "new")
    assert missing.value.filename == str(path)

    def full(self: Path, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_whole(tmp_path / "f", "new")
    assert (refused.value.errno, refused.value.filename) == (errno.ENOSPC, str(tmp_path / "f"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError) as other, whole_file(tmp_path / "f"):
        (tmp_path / "another").read_bytes()
    assert other.value.filename == str(tmp_path / "another")


def test_a_folder_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "run") as folder:
        (folder / "a").write_text("1")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with whole_folder(tmp_path / "out" / "run") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "out" / "run").exists()
    assert (tmp_path / "out" / "run" / "a").read_text() == "1"


def test_a_file_written_bit_by_bit_replaces_the_old_one_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode
    plain.unlink()
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("old")
    with pytest.raises(RuntimeError), whole_file(path) as temporary:
        temporary.write_text("ne")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_sweeping_stays_in_the_folder_unless_it_is_told_to_go_deep(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    here, below = tmp_path / f"{TEMPORARY}a", tmp_path / "inner" / f"{TEMPORARY}b"
    for path in (here, below, tmp_path / "kept"):
        path.write_text("x")
    sweep(tmp_path)
    assert not here.exists()
    assert below.exists()
    sweep(tmp_path, deep=True)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["kept"]


def test_sweeping_leaves_a_file_whose_writer_lives(tmp_path: Path) -> None:
    with whole_file(tmp_path / "f") as temporary:
        temporary.write_text("new")
        sweep(tmp_path)
        assert temporary.exists()
    assert (tmp_path / "f").read_text() == "new"


def test_sweeping_follows_no_link_and_takes_no_other_name(tmp_path: Path) -> None:
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    out.mkdir()
    (mine / f"{TEMPORARY}a").write_text("mine")
    (out / "link").symlink_to(mine)
    (out / f"{TEMPORARY}link").symlink_to(mine / f"{TEMPORARY}a")
    (out / f"{TEMPORARY}chapter 3.txt").write_text("mine")
    sweep(out, deep=True)
    assert (mine / f"{TEMPORARY}a").read_text() == "mine"
    assert sorted(path.name for path in out.iterdir()) == [
        f"{TEMPORARY}chapter 3.txt", f"{TEMPORARY}link", "link",
    ]  # fmt: skip


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = atomic.lock
    swept: list[Path] = []

    def late(handle: int) -> bool:
        if not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        return real(handle)

    monkeypatch.setattr(atomic, "lock", late)
    write_whole(tmp_path / "f", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert swept[0].name.startswith(TEMPORARY)
